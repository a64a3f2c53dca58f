import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from labs.core.bundle import save_array
from labs.core.errors import RequestError
from labs.core.storage.manifest import measure, to_text
from labs.core.verify import verify
from tests.core.sample_bundle import check_of, forge, make, rehash

ROOT = Path(__file__).parents[2]


@pytest.fixture
def bundle(tmp_path):
    return make(tmp_path)


WRONG = {"w": np.full((2, 3), 2.0), "resume/w": np.full((2, 3), 2.0)}
BAD_SIDES = {
    "good": {},
    "wrong": WRONG,
    "missing": {"w": None},
    "extra": {"surprise": np.ones(3)},
    "nan": {"w": np.full((2, 3), np.nan)},
    "float32": {"w": np.ones((2, 3), np.float32)},
    "shape": {"loose": np.ones((3, 2))},
    "empty": {"mask": np.zeros(0, bool)},
}


@pytest.mark.parametrize("name", BAD_SIDES)
def test_an_honest_bundle_has_no_problem_whether_its_checks_passed_or_not(tmp_path, name):
    found = verify(make(tmp_path, BAD_SIDES[name]))
    assert found.problems == ()
    assert "1 witness check (that takes the lab's code)" in found.summary


def test_reports_that_were_made_later_are_let_be(bundle):
    for name in ("report.html", "junit.xml"):
        (bundle / name).write_text("made by lab report")
    assert verify(bundle).problems == ()


@pytest.mark.parametrize("name", ["report.htm", "lora/report.html", "x/junit.xml"])
def test_no_other_file_is_let_be(bundle, name):
    (bundle / name).parent.mkdir(exist_ok=True)
    (bundle / name).write_text("made by somebody")
    assert verify(bundle).problems[0] == f"{name}: not listed in manifest.json"


def test_a_report_that_was_made_later_is_still_no_link(bundle):
    (bundle / "report.html").symlink_to("/etc/passwd")
    assert verify(bundle).problems == ("report.html: a link; a bundle holds plain files only",)


def test_the_summary_counts(bundle):
    assert verify(bundle).summary.startswith("14 files hashed, 6 checks judged again; not again: 1 witness")


@pytest.mark.parametrize("save", ["none", "failing"])
def test_arrays_that_were_not_saved_are_said_to_be_so(tmp_path, save):
    found = verify(make(tmp_path, save=save))
    assert found.problems == ()
    assert (
        "0 checks judged again; not again: 1 witness check (that takes the lab's code), 6 checks (without saved arrays)"
        in found.summary
    )


def test_latest_can_be_verified(bundle):
    assert verify(bundle.parent / "latest").problems == ()


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    return make(tmp_path_factory.mktemp("bundles"))


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_flipped_byte_anywhere_is_named_by_its_file(shared, data):
    path = data.draw(st.sampled_from(sorted(p for p in shared.rglob("*") if p.is_file())))
    whole = path.read_bytes()
    at = data.draw(st.integers(0, len(whole) - 1))
    other = data.draw(st.integers(1, 255)) ^ whole[at]
    path.write_bytes(whole[:at] + bytes([other]) + whole[at + 1 :])
    problems = verify(shared).problems
    path.write_bytes(whole)
    assert any(path.relative_to(shared).as_posix() in problem for problem in problems)


def test_the_manifest_with_other_white_space_is_noticed(bundle):
    path = bundle / "manifest.json"
    path.write_text(path.read_text().replace("\n", "\n\t", 1))
    assert verify(bundle).problems == ("manifest.json: not as it was written, though it can be read",)


def remove(name):
    return lambda bundle: (bundle / name).unlink()


def put(name, data=b"data"):
    def done(bundle):
        (bundle / name).parent.mkdir(exist_ok=True)
        (bundle / name).write_bytes(data)

    return done


def link(name, target):
    def done(bundle):
        (bundle / name).unlink(missing_ok=True)
        (bundle / name).symlink_to(target)

    return done


DAMAGE = [
    (remove("lora/observed/w.npy"), "lora/observed/w.npy: missing, though manifest.json lists it"),
    (remove("report.json"), "report.json: missing"),
    (remove("manifest.json"), "manifest.json: missing"),
    (put("extra.txt"), "extra.txt: not listed in manifest.json"),
    (put("lora/observed/extra.npy"), "lora/observed/extra.npy: not listed"),
    (put("new\x1b[31m"), r"'new\\x1b\[31m': not listed"),
    (put("lora/observed/w.npy"), "w.npy: 4 bytes, manifest.json says 176"),
    (put("lora/observed/w.npy"), r"lora: w \(close\): can't be judged again: lora/observed/w.npy: not a .npy file"),
    (link("lora/observed/w.npy", "../reference/w.npy"), "lora/observed/w.npy: a link"),
    (link("extra", "/etc"), "extra: a link; a bundle holds plain files only"),
    (link("report.json", "/etc/hostname"), "report.json: a link"),
    (link("manifest.json", "/etc/hostname"), "manifest.json: a link"),
    (link("gone", "nowhere"), "gone: a link"),
    (lambda bundle: os.mkfifo(bundle / "pipe"), "pipe: a device, pipe or socket"),
]


@pytest.mark.parametrize(("damage", "sentence"), DAMAGE)
def test_damage_is_named(bundle, damage, sentence):
    damage(bundle)
    assert [problem for problem in verify(bundle).problems if re.search(sentence, problem)]


def test_a_linked_config_folder_is_not_read(bundle):
    (bundle / "lora").rename(bundle.parent / "elsewhere")
    (bundle / "lora").symlink_to("../elsewhere")
    assert "lora: a link; a bundle holds plain files only" in verify(bundle).problems
    assert " 0 checks judged again" in verify(bundle).summary


def pass_everything(report):
    report["run"].update(status="passed", exit_code=0)
    report["labs"][0]["status"] = "passed"
    for check in report["labs"][0]["checks"]:
        check.update(status="passed", out_of_tolerance=0, message="")


def test_a_failure_turned_into_a_pass_is_found_though_all_is_hashed_again(tmp_path):
    bundle = make(tmp_path, WRONG)
    forge(bundle, pass_everything)
    assert verify(bundle).problems[0] == (
        "lora: w (close): recorded as passed, judged again it is failed: 5 of 6 elements out of tolerance, "
        "worst at [0, 0]: observed 2.0, reference 1.0, limit 1.1e-08"
    )


def drop(name):
    def change(report):
        lab = report["labs"][0]
        lab["checks"] = [check for check in lab["checks"] if check["name"] != name]

    return change


def double(report):
    report["labs"][0]["checks"].append(check_of(report, "w"))


def add(report):
    report["labs"][0]["checks"].append({**check_of(report, "w"), "name": "added"})


def climb(report):
    report["labs"][0]["checks"].append({**check_of(report, "w"), "name": "../../../../etc/hostname"})


def record(**values):
    return lambda report: check_of(report, "w").update(values)


def lab(**values):
    return lambda report: report["labs"][0].update(values)


def run(**values):
    return lambda report: report["run"].update(values)


def control(**values):
    return lambda report: report["labs"][0]["controls"][0].update(values)


HUGE = {"atol": 1e9, "rtol": 0.0, "reason": ""}
FORGED = [
    (drop("w"), "lora: reference/w.npy: stored, and no check in report.json reads it"),
    (drop("mask"), "lora: observed/mask.npy: stored, and no check in report.json reads it"),
    (drop("mask"), "lora: 6 items said to be promised, the checks read 5"),
    (double, r"lora: w \(close\): reported twice"),
    (add, r"added \(close\): recorded as passed, judged again it is failed: missing"),
    (add, "6 items said to be promised, the checks read 7"),
    (
        climb,
        r"etc/hostname \(close\): can't be judged again: ../../../../etc/hostname: leads out|leads out of the bundle",
    ),
    (record(status="failed"), r"w \(close\): recorded as failed, judged again it is passed"),
    (record(status="great"), r"w \(close\): recorded as great"),
    (record(max_abs=0.0), r"max_abs is recorded as 0.0, from the stored arrays it is"),
    (record(worst=None), "worst is recorded as None"),
    (record(headroom="inf"), "headroom is recorded as 'inf'"),
    (record(shape=[3, 2]), r"shape is recorded as \[3, 2\]"),
    (record(observed_sha256="0" * 64), "observed_sha256 is recorded"),
    (record(count=0), "passed, though by its own numbers it did not"),
    (record(out_of_tolerance=1), "passed, though by its own numbers it did not"),
    (record(kind="pickle"), "kind 'pickle' is unknown"),
    (record(kind="exact"), r"w \(exact\): recorded as passed, judged again it is failed"),
    (record(kind="identical", other="../../x"), "leads out|not an item name"),
    (record(tolerance=HUGE), "looser than the default and gives no reason"),
    (record(tolerance={**HUGE, "atol": "nan"}), "expected finite"),
    (record(tolerance={**HUGE, "atol": "x"}), "atol: got 'x', expected a number"),
    (record(tolerance={**HUGE, "reason": "because"}), "recorded|blunt"),
    (record(name="a\x1bb"), r"'a\\x1bb'"),
    (lab(checks=[]), "said to have passed, which its checks, controls, wiring or failures do not bear out"),
    (lab(failures=["stage forward raised"]), "said to have passed"),
    (lab(wiring={"spoils": 1, "problems": ["x"]}), "said to have passed"),
    (lab(status="failed"), "the run is said to have passed, and a lab did not"),
    (control(status="missed"), "said to have passed"),
    (control(leaked=["x"]), "control alpha_without_rank: caught, though it lists what was missed or leaked"),
    (run(exit_code=1), "status 'passed' does not go with exit code 1"),
    (run(status="failed"), "status 'failed' does not go with exit code 0"),
    (lambda report: report["labs"].append(report["labs"][0]), "lora is reported 2 times"),
    (lambda report: report.update(schema="x"), "schema is 'x', expected"),
    (lambda report: report.update(labs=[]), "says nothing of lora, though its folder is there"),
    (record(max_abs=10**400), "an integer of 1329 bits, expected a number"),
]


@pytest.mark.parametrize(("change", "sentence"), FORGED)
def test_a_report_that_its_arrays_do_not_bear_out_is_found(bundle, change, sentence):
    forge(bundle, change)
    assert [problem for problem in verify(bundle).problems if re.search(sentence, problem)]


def test_statistics_may_differ_in_their_last_bits(bundle):
    forge(
        bundle,
        lambda report: check_of(report, "loose").update(mean_abs=check_of(report, "loose")["mean_abs"] * (1 + 1e-12)),
    )
    assert verify(bundle).problems == ()


def with_fact(bundle, value, array):
    save_array(bundle / "lora/observed/facts/odd.npy", array)
    forge(bundle, lab(facts=[{"name": "facts/odd", "what": "versions differ", "value": value}]))


@pytest.mark.parametrize(("value", "array"), [(True, np.ones((), bool)), ("nan", np.array(np.nan)), (3, np.array(3))])
def test_a_fact_that_no_check_reads_is_no_problem(bundle, value, array):
    with_fact(bundle, value, array)
    assert verify(bundle).problems == ()


@pytest.mark.parametrize(("value", "array"), [(True, np.zeros((), bool)), (1.0, np.ones(1 << 16))])
def test_a_fact_that_is_stated_otherwise_is_found(bundle, value, array):
    with_fact(bundle, value, array)
    assert verify(bundle).problems == ("lora: fact facts/odd: its array does not say what the report states",)


def test_a_narrowed_run_may_hold_arrays_that_no_check_reads(bundle):
    forge(bundle, lambda report: (drop("mask")(report), lab(narrowed=["--only w"], promised=5)(report)))
    assert verify(bundle).problems == ()


def test_an_object_array_is_not_unpickled(bundle):
    np.save(bundle / "lora/observed/w.npy", np.array([Bomb()], dtype=object), allow_pickle=True)
    rehash(bundle)
    assert any("w.npy: not the header of a plain array" in problem for problem in verify(bundle).problems)


class Bomb:
    def __reduce__(self):
        return os._exit, (7,)


def test_a_manifest_that_points_out_of_the_bundle_opens_nothing(bundle):
    listed = replace(measure(bundle, "report.json"), path="../../../../etc/hostname")
    (bundle / "manifest.json").write_text(to_text([listed]))
    assert "manifest.json: ../../../../etc/hostname leads out of the bundle or to itself" in verify(bundle).problems


def test_what_is_no_bundle_is_a_wrong_request(tmp_path):
    with pytest.raises(RequestError, match="not a bundle"):
        verify(tmp_path)


LIMITED = """
import resource, sys
from pathlib import Path
from labs.core.verify import verify
from tests.core.sample_bundle import check_of, forge, make, rehash
taken = int(Path("/proc/self/status").read_text().split("VmData:")[1].split()[0]) << 10
resource.setrlimit(resource.RLIMIT_DATA, (taken + (48 << 20), taken + (48 << 20)))
print(verify(Path(sys.argv[1])))
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="NOT TESTED: no /proc to measure memory by")
def test_arrays_larger_than_memory_are_judged(tmp_path):
    bundle = make(tmp_path, {"grad/a": np.zeros(12 << 20)})
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    script = [sys.executable, "-c", LIMITED, str(bundle)]
    done = subprocess.run(script, env=environment, capture_output=True, text=True, check=False)
    assert "problems=()" in done.stdout, done.stderr
