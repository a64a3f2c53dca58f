"""Whole commands in which ranks fail, and runs that should not care where they run."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LAB = [sys.executable, "-c", "import sys; from cli.main import main; sys.exit(main())"]
FOLDER = ROOT / "labs/contrastive"
MARK = "FRAMEWORK_LAB_TEST"  # in the environment of every process that a test starts
ROUTES = '    """One pass from a rank\'s rows to its gradients:'
GATHER = '    """Every rank\'s rows [longest,k],'

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="NOT TESTED: looks at /proc")


def start(*words, mark="1", before=()):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), MARK: mark}
    command = [*before, *LAB, "run", *map(str, words)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def report(*words, mark="1"):
    """(exit code, the lab's entry in the report) of a run, and how long it took."""
    began = time.monotonic()
    process = start(*words, "--format", "json", mark=mark)
    out, err = process.communicate(timeout=300)
    assert "Traceback" not in err
    return process.returncode, json.loads(out)["labs"][0], time.monotonic() - began


def alive(mark):
    """Processes that carry the mark in their environment."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if f"{MARK}={mark}\0".encode() in (folder / "environ").read_bytes() + b"\0":
                found.append(folder.name)
        except OSError:
            continue
    return found


@pytest.fixture
def planted(tmp_path):
    """A user's copy of the lab with a line planted behind the docstring that starts like `at`."""

    def plant(file, at, line):
        folder = tmp_path / "unlucky"
        shutil.copytree(FOLDER, folder, ignore=shutil.ignore_patterns("__pycache__", "pinned.json"))
        for path in folder.glob("*.py"):
            text = re.sub(r"from labs\.contrastive(\.| import)", lambda m: f"from .{m[1].strip('.')}", path.read_text())
            if path.name == file:
                text, times = re.subn(rf"^({re.escape(at)}.*)$", rf"\1\n    {line}", text, flags=re.MULTILINE)
                assert times == 1
            path.write_text(text)
        (folder / "controls.py").write_text("CONTROLS = ()\n")  # they are not what is tested, and each would fail too
        return folder

    return plant


DEATHS = {
    "killed": ("os.kill(os.getpid(), 9)", "was killed by SIGKILL"),
    "aborted": ("os.abort()", "was killed by SIGABRT"),
    "left": ("os._exit(7)", "exited with 7 before it had answered"),
}


@pytest.mark.parametrize("how", DEATHS)
def test_a_rank_that_dies_ends_the_run_and_is_named_with_its_last_words(planted, tmp_path, how):
    line, said = DEATHS[how]
    words = 'import os; place.rank == 1 and print("the roof is on fire", flush=True)'
    lab = planted("torch_impl.py", ROUTES, f"{words}; place.rank == 1 and {line}")
    code, entry, _ = report(lab, "--no-controls", "--out", tmp_path / "out", mark=how)
    assert code == 3
    assert f"stage direct: rank 1 {said}; its last words: " in entry["failures"][0]
    assert "the roof is on fire" in entry["failures"][0]
    assert alive(how) == []


def test_a_rank_that_hangs_ends_the_run_within_the_time_limit(planted, tmp_path):
    words = 'import time; place.rank == 1 and print("waiting for the moon", flush=True)'
    lab = planted("torch_impl.py", ROUTES, f"{words}; place.rank == 1 and time.sleep(3600)")
    code, entry, seconds = report(lab, "--no-controls", "--timeout", "25", "--out", tmp_path / "out", mark="hangs")
    assert code == 3
    assert seconds < 40
    assert "waiting for the moon" in entry["failures"][0]
    assert re.search(r"rank 1 was stopped at the time limit at .*torch_impl\.py:\d+", entry["failures"][0])
    assert alive("hangs") == []


@pytest.mark.parametrize("wrong", ["x[:, :-1]", "torch.cat([x, x], 1)"], ids=["smaller", "larger"])
def test_a_rank_that_answers_with_a_wrong_shape_ends_the_run(planted, tmp_path, wrong):
    lab = planted(
        "torch_gather.py", GATHER, f"x = {wrong} if dist.get_rank() == 1 and x.dtype.is_floating_point else x"
    )
    code, entry, _ = report(lab, "--no-controls", "--timeout", "120", "--out", tmp_path / "out", mark="shape")
    assert code == 3
    assert re.search(r"stages? (cached|direct|gather)[a-z, ]*: rank [01] was killed by SIGABRT", entry["failures"][0])
    assert "gloo" in entry["failures"][0]
    assert alive("shape") == []


def test_a_rank_that_raises_is_named_with_its_error(planted, tmp_path):
    lab = planted("torch_impl.py", ROUTES, 'if place.rank == 1: raise LookupError("no such row")')
    code, entry, _ = report(lab, "--no-controls", "--out", tmp_path / "out", mark="raises")
    assert code == 1
    assert "on rank 1: LookupError: no such row" in entry["failures"][0]
    assert alive("raises") == []


def test_one_three_and_four_ranks_even_and_uneven_in_one_run(tmp_path):
    configs = {"one": "world_size: 1", "three": "world_size: 3", "four": "world_size: 4", "uneven": "shares: [5, 3]"}
    for name, line in configs.items():
        (tmp_path / f"{name}.yaml").write_text(f"lab: {FOLDER}\n{line}\n")
    names = [tmp_path / f"{name}.yaml" for name in configs]
    process = start(*names, "--no-controls", "--format", "json", "--out", tmp_path / "out")
    entries = json.loads(process.communicate(timeout=300)[0])["labs"]
    assert [(e["name"], e["status"]) for e in entries] == [(name, "passed") for name in configs]


def test_two_runs_at_the_same_time_do_not_meet(tmp_path):
    both = [start(FOLDER, "--no-controls", "--out", tmp_path / side) for side in ("left", "right")]
    said = [process.communicate(timeout=300) for process in both]
    assert [process.returncode for process in both] == [0, 0], said


def test_loopback_is_all_the_network_there_has_to_be(tmp_path):
    alone = ["unshare", "-rn", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
    if shutil.which("unshare") is None or subprocess.run([*alone, "true"], check=False, capture_output=True).returncode:
        pytest.skip("NOT TESTED: no network of one's own is to be had here")
    process = start(FOLDER, "--no-controls", "--out", tmp_path / "out", before=alone)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, out + err
