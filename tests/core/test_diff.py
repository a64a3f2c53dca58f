import tracemalloc
from dataclasses import replace
from itertools import count

import numpy as np
import pytest

from labs.core.bundle import DamagedBundle
from labs.core.diff import diff
from labs.core.difference.classes import CLASSES, FAILS, Change, Difference, counts, exit_code
from labs.core.errors import RequestError
from labs.core.items import Tolerance
from labs.core.storage import manifest
from tests.core import sample_bundle
from tests.core.sample_bundle import W, check_of, control, entry_of, forge, make, rehash

WRONG = {"w": np.full((2, 3), 2.0), "resume/w": np.full((2, 3), 2.0)}
W_NOW = W * (1 + 1e-15)


@pytest.fixture
def bundles(tmp_path):
    """Makes a bundle with what the test says, each in a folder of its own."""
    numbers = count()
    return lambda *args, **kwargs: make(tmp_path / str(next(numbers)), *args, **kwargs)


def change_of(found, name, kind="close"):
    return next(c for c in found.changes if (c.name, c.kind) == (name, kind))


def shifted(ulp):
    """`w` moved by so many ULP of its largest magnitude, on both items that have to be the same."""
    moved = W_NOW + np.array([ulp * np.spacing(W_NOW.max()), 0, 0, 0, 0, 0]).reshape(2, 3)
    return {"w": moved, "resume/w": moved}


def test_a_run_does_not_differ_from_itself(bundles):
    bundle = bundles()
    found = diff(bundle, bundle)
    assert {c.change for c in found.changes} == {"bit-identical"}
    assert (found.environment, found.cause, found.facts, found.configs[0].caught) == ((), "", (), 1)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({}, {}, "bit-identical"),
        ({}, shifted(4), "last-bits"),
        ({}, shifted(5), "drift"),
        ({}, WRONG, "regression"),
        (WRONG, {}, "fixed"),
        (WRONG, WRONG, "still-failing"),
        ({}, {"w": None}, "regression"),
        ({}, {"w": np.full((2, 3), np.nan)}, "regression"),
    ],
)
def test_a_check_has_its_class(bundles, before, after, expected):
    assert change_of(diff(bundles(before), bundles(after)), "w").change == expected


def test_the_distance_is_in_ulp_of_the_largest_magnitude(bundles):
    assert change_of(diff(bundles(), bundles(shifted(3))), "w").ulp == 3.0


def test_a_change_of_headroom_is_told_for_both_sides(bundles):
    before, after = change_of(diff(bundles(), bundles({"loose": W / 7 + 9e-4})), "loose").headroom
    assert (round(before, 2), round(after, 2)) == (1.0, 0.05)


def test_what_moved_is_named(bundles):
    reference = {"w": W * (1 + 4e-16)}
    found = diff(bundles(), bundles(shifted(1), reference=reference))
    assert change_of(found, "w").moved == ("observed", "reference")
    assert change_of(found, "loose").moved == ()


def test_a_reference_that_moves_is_no_bit_identity(bundles):
    found = change_of(diff(bundles(), bundles(reference={"w": W * (1 + 4e-16)})), "w")
    assert (found.change, found.moved) == ("last-bits", ("reference",))


def test_zeros_of_another_sign_are_other_bits_and_no_distance(bundles):
    found = change_of(diff(bundles(), bundles({"grad/a": -np.zeros(3)})), "grad/a", "zero")
    assert (found.change, found.ulp) == ("last-bits", 0.0)


def test_the_bound_of_a_within_check_can_move(bundles):
    found = change_of(diff(bundles(), bundles(reference={"bound": np.full(2, 0.75)})), "error", "within")
    assert (found.change, found.moved, found.ulp) == ("drift", ("reference",), None)
    assert found.why == "moved by up to 0.25, where the bound is what counts"


def test_integers_that_move_are_counted(bundles):
    flipped = np.array([False, True])
    found = diff(bundles(), bundles({"mask": flipped}, reference={"mask": flipped}))
    assert change_of(found, "mask", "exact").why == "2 of 2 differ, by up to 1"


def test_another_shape_is_not_comparable_and_both_are_said(bundles):
    found = diff(bundles(), bundles({"loose": W[0]}, reference={"loose": W[0]}))
    assert change_of(found, "loose").change == "not-comparable"
    assert change_of(found, "loose").why == "float64 (2, 3) and float64 (3,)"


@pytest.mark.parametrize(("error", "expected"), [(1e-17, "bit-identical"), (2e-17, "last-bits"), (9e-13, "drift")])
def test_a_witness_moves_with_its_error(bundles, error, expected):
    moved = bundles(witness=replace(sample_bundle.WITNESS, max_abs=error))
    assert change_of(diff(bundles(), moved), "grad/w", "witness").change == expected


def test_checks_that_came_and_went(bundles):
    less, more = bundles({"loose": None}, reference={"loose": None}, tolerances=()), bundles()
    assert change_of(diff(less, more), "loose").change == "added"
    assert change_of(diff(more, less), "loose").change == "removed"


def test_a_config_that_is_gone_takes_its_checks_along(bundles):
    found = diff(bundles(), bundles(name="block"))
    assert counts(found.changes) == {"removed": 7, "added": 7}
    assert change_of(found, "w").why == "config lora is not in B"
    assert exit_code(found, "never") == 5


def test_a_check_that_b_was_not_asked_for_is_not_removed(bundles):
    narrow = bundles({"loose": None}, reference={"loose": None}, tolerances=(), narrowed=["--only grad/*"])
    found = change_of(diff(bundles(), narrow), "loose")
    assert (found.change, found.why) == ("not-comparable", "B was narrowed by --only grad/*")


def test_a_check_that_b_was_asked_for_is_removed(bundles):
    narrow = bundles({"loose": None}, reference={"loose": None}, tolerances=(), narrowed=["--only loo*"])
    assert change_of(diff(bundles(), narrow), "loose").change == "removed"


@pytest.mark.parametrize(
    ("made", "why"),
    [
        ({"config": "lab: lora\nseed: 0\nrank: 8\n"}, "the configs differ in rank (4 and 8)"),
        (
            {"config": "lab: lora\nseed: 7\nrank: 4\nsgd:\n  lr: 1\n"},
            "differ in seed (0 and 7) and sgd.lr (absent and 1)",
        ),
        ({"inputs": {"x": W + 1}}, "the inputs differ: x"),
        ({"inputs": {"y": W}}, "the inputs differ: y"),
        ({"lab": "block"}, "another lab: lora and block"),
        ({"precision": "bfloat16"}, "another precision: float64 and bfloat16"),
    ],
)
def test_what_makes_a_config_incomparable_is_said(bundles, made, why):
    found = diff(bundles(), bundles(WRONG, **made))
    assert {c.change for c in found.changes} == {"not-comparable"}
    assert all(c.why.endswith(why) for c in found.changes)
    assert exit_code(found, "regression") == 5


@pytest.mark.parametrize("key", ["threads: 2", "save: none", 'tolerances:\n  "*": {atol: 1, rtol: 0, reason: x}'])
def test_what_changes_no_input_is_a_setting_and_no_obstacle(bundles, key):
    found = diff(bundles(), bundles(config=f"lab: lora\nseed: 0\nrank: 4\n{key}\n"))
    assert {c.change for c in found.changes} == {"bit-identical"}
    assert f"{key.split(':')[0]} of lora" in [s.what for s in found.environment]


def test_another_limit_is_told_beside_the_check(bundles):
    found = change_of(diff(bundles(), bundles(tolerances=(("loose", Tolerance(1e-2, 0.0, "more")),))), "loose")
    assert found.change == "bit-identical"
    assert found.why == "its limit was 0.001 + 0 |reference| and is 0.01 + 0 |reference|"


def test_values_that_were_not_kept_are_bounded_by_their_distances_to_one_reference(bundles):
    found = change_of(diff(bundles(), bundles(shifted(-1), save="none")), "w")
    assert (found.change, found.at_most, found.ulp > 4) == ("drift", True, True)
    near = {"w": W, "resume/w": W}
    close = change_of(
        diff(bundles(near, save="none"), bundles({"w": W * (1 + 3e-16), "resume/w": W * (1 + 3e-16)})), "w"
    )
    assert (close.change, close.at_most, close.ulp <= 4) == ("last-bits", True, True)


def test_bit_identity_needs_no_values(bundles):
    found = diff(bundles(save="none"), bundles(save="none"))
    assert {c.change for c in found.changes} == {"bit-identical"}


def test_without_values_and_with_another_reference_the_distance_is_unknown(bundles):
    found = change_of(diff(bundles(save="none"), bundles(shifted(1), reference={"w": W * (1 + 4e-16)})), "w")
    assert (found.change, found.ulp) == ("drift", None)
    assert "not known how far" in found.why


@pytest.mark.parametrize(
    ("before", "after", "change"),
    [
        ("caught", "missed", "regression"),
        ("caught", "leaked", "regression"),
        ("missed", "caught", "fixed"),
        ("missed", "leaked", "still-failing"),
        ("unseen", "missed", "regression"),
        ("missed", "unseen", "fixed"),
        ("caught", None, "removed"),
        (None, "caught", "added"),
    ],
)
def test_a_fault_that_stops_being_caught_is_a_regression(bundles, before, after, change):
    made = [{"controls": [control("c", status)] if status else []} for status in (before, after)]
    found = change_of(diff(bundles(**made[0]), bundles(**made[1])), "c", "control")
    assert found.change == change


@pytest.mark.parametrize("before", ["caught", "unseen"])
def test_a_fault_that_a_narrow_precision_can_not_show_is_no_change(bundles, before):
    pair = [bundles(controls=[control("c", status)], precision="bfloat16") for status in (before, "unseen")]
    assert {c.change for c in diff(*pair).changes} == {"bit-identical"}


def test_faults_that_b_was_not_asked_for_are_not_removed(bundles):
    found = diff(bundles(), bundles(controls=[], narrowed=["--no-controls"]))
    assert change_of(found, "alpha_without_rank", "control").change == "not-comparable"
    assert not found.fails("regression")


def test_faults_are_compared_though_the_configs_differ(bundles):
    other = bundles(config="lab: lora\nseed: 1\nrank: 4\n", controls=[control(status="missed")])
    assert diff(bundles(), other).fails("regression")


@pytest.mark.parametrize(
    ("key", "value", "kind"),
    [
        ("failures", ["stage trained: killed\nlast words"], "failure"),
        ("wiring", {"spoils": 1, "problems": ["a spoiled w passed"]}, "wiring"),
    ],
)
def test_complaints_are_regressions_too(bundles, key, value, kind):
    bad = bundles(status="failed", **{key: value})
    found = [c for c in diff(bundles(), bad).changes if c.kind == kind]
    assert [(c.change, "\n" in c.name) for c in found] == [("regression", False)]
    assert [c.change for c in diff(bad, bundles()).changes if c.kind == kind] == ["fixed"]
    assert [c.change for c in diff(bad, bad).changes if c.kind == kind] == ["still-failing"]


def test_a_verdict_that_nothing_explains_is_a_regression(bundles):
    found = diff(bundles(), bundles(status="error"))
    assert change_of(found, "lora", "verdict").change == "regression"


def test_facts_that_differ_are_told_and_not_judged(bundles):
    fact = {"name": "gather/deprecated", "what": "torch says so"}
    found = diff(bundles(facts=[{**fact, "value": False}]), bundles(facts=[{**fact, "value": True}]))
    assert [(f.name, f.a, f.b) for f in found.facts] == [("gather/deprecated", "False", "True")]
    assert [exit_code(found, name) for name in FAILS] == [0, 0, 0, 1]


@pytest.mark.parametrize("change", CLASSES)
@pytest.mark.parametrize("fail_on", FAILS)
def test_each_class_and_what_it_means_for_the_exit_code(change, fail_on):
    anchor = Change("lora", "compared", "close", "bit-identical")
    found = Difference({}, {}, (), "", (), (Change("lora", "w", "close", change), anchor), ())
    worse = {"never": 0, "regression": 2, "drift": 2, "any": 8}[fail_on]
    assert exit_code(found, fail_on) == int(change in CLASSES[:worse] or (fail_on == "drift" and change == "drift"))


def test_every_class_is_in_one_order_with_the_worst_first(bundles):
    found = diff(bundles(), bundles({**WRONG, "loose": W / 7 + 9e-4}))
    order = [CLASSES.index(c.change) for c in found.changes]
    assert order == sorted(order)


def remove(name):
    return lambda bundle: (bundle / name).unlink()


def put(name, data=b"data"):
    return lambda bundle: (bundle / name).write_bytes(data)


def link(name, target):
    def done(bundle):
        (bundle / name).unlink()
        (bundle / name).symlink_to(target)

    return done


def forged(**values):
    return lambda bundle: forge(bundle, lambda report: report.update(values))


def forged_check(**values):
    return lambda bundle: forge(bundle, lambda report: check_of(report, "w").update(values))


def forged_lab(**values):
    return lambda bundle: forge(bundle, lambda report: entry_of(report).update(values))


def nested(depth):
    value = {}
    for _ in range(depth):
        value = {"x": value}
    return value


def doubled(bundle):
    forge(bundle, lambda report: entry_of(report)["checks"].append(check_of(report, "w")))


def renamed(bundle):
    put("report.json", (bundle / "report.json").read_bytes().replace(b'"id": "0"', b'"id": "1"'))(bundle)


DAMAGE = {
    "no report": (remove("report.json"), "report.json: missing"),
    "no manifest": (remove("manifest.json"), "manifest.json: missing"),
    "no config": (remove("lora/config.yaml"), "lora/config.yaml: missing, though manifest.json lists it"),
    "no array": (remove("lora/observed/w.npy"), "lora/observed/w.npy: missing, though manifest.json lists it"),
    "another size": (put("lora/observed/w.npy"), "lora/observed/w.npy: 4 bytes, manifest.json says 176"),
    "another report": (renamed, "report.json: changed: its sha256 is not the one in manifest.json"),
    "not JSON": (lambda b: (put("report.json")(b), rehash(b)), "report.json: not valid JSON"),
    "another schema": (forged(schema="framework-lab/report/2"), "schema is 'framework-lab/report/2'"),
    "a linked array": (link("lora/observed/w.npy", "../reference/w.npy"), "lora/observed/w.npy: a link"),
    "a linked config": (link("lora/config.yaml", "/etc/hostname"), "lora/config.yaml: a link"),
    "a linked report": (link("report.json", "/etc/hostname"), "report.json: a link"),
    "a config outside": (forged_lab(name="../lora"), "can't be the name of a config's folder"),
    "no number": (forged_check(headroom="many"), "headroom: got 'many', expected a number"),
    "no tolerance": (forged_check(tolerance={"atol": "x", "rtol": 0, "reason": ""}), "atol: got 'x'"),
    "a check twice": (doubled, "check w is reported twice"),
    "half a character": (forged_check(message="\ud800"), "the character U+D800 is half of one"),
    "facts that are none": (forged_lab(facts="all"), "facts: got str"),
    "a deep environment": (forged(environment=nested(12)), "nested more than 8 levels deep"),
    "a framework that is none": (forged(environment={"framework": 1}), "environment.framework: got int"),
    "a config that is none": (
        lambda b: (put("lora/config.yaml", b"- 1\n")(b), rehash(b)), "lora/config.yaml: not keys and values"),
    "a config that is code": (
        lambda b: (put("lora/config.yaml", b"lab: !!python/name:os.system\n")(b), rehash(b)), "tags are not"),
    "arrays of another run": (
        lambda b: (put("lora/observed/w.npy", (b / "lora/reference/w.npy").read_bytes())(b), rehash(b)),
        "lora/observed/w.npy: not the values that report.json has the hash of"),
    "a pickled array": (
        lambda b: (np.save(b / "lora/observed/w.npy", np.array([{}], object), allow_pickle=True), rehash(b)),
        "not the header of a plain array"),
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_or_hostile_bundle_ends_in_a_sentence(bundles, name):
    damage, sentence = DAMAGE[name]
    good, bad = bundles(), bundles(shifted(2))
    damage(bad)
    for pair in ((good, bad), (bad, good)):
        with pytest.raises(DamagedBundle) as caught:
            diff(*pair)
        assert sentence in str(caught.value)
        assert str(bad) in str(caught.value)


def test_an_item_that_leads_out_of_the_bundle_is_not_followed(bundles):
    pair = bundles(), bundles(shifted(2))
    for bundle in pair:
        forged_check(name="../../../x")(bundle)
    with pytest.raises(DamagedBundle, match=r"x.npy: leads out of the bundle"):
        diff(*pair)


def test_what_can_not_be_read_is_a_sentence(bundles, monkeypatch):
    def refused(bundle, name):  # what permissions do, and root would not notice
        raise PermissionError(13, "Permission denied", str(bundle / name))

    bundle = bundles()
    monkeypatch.setattr(manifest, "measure", refused)
    with pytest.raises(RequestError, match=r"(report\.json|config\.yaml) can't be read: Permission denied"):
        diff(bundle, bundle)


def test_no_bundle_at_all_is_a_wrong_request(tmp_path, bundles):
    with pytest.raises(RequestError, match="nowhere: there is no such folder"):
        diff(bundles(), tmp_path / "nowhere")
    with pytest.raises(RequestError, match="not a bundle"):
        diff(tmp_path, bundles())


def test_odd_facts_and_numbers_of_a_stranger_are_shown_as_they_are(bundles):
    deep = [1]
    for _ in range(300):
        deep = [deep]
    odd = bundles(facts=[{"name": "f\x1b[2J", "what": "x", "value": deep}])
    assert diff(bundles(), odd).facts[0].a == "absent"


def test_large_arrays_are_not_loaded(bundles):
    values = np.ones(4_000_000)
    large = {"w": values, "resume/w": values}
    moved = dict.fromkeys(large, values * (1 + 3e-16))
    first, second = bundles(large, reference={"w": values}), bundles(moved, reference={"w": values})
    del values, large, moved
    tracemalloc.start()
    assert change_of(diff(first, second), "w").change == "last-bits"
    assert tracemalloc.get_traced_memory()[1] < 8_000_000  # of two arrays of 32 MB
    tracemalloc.stop()
