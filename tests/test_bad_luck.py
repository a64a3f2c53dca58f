"""Whole commands meeting hostile input and bad luck, as processes: exit codes, sentences, and what is left behind."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from labs.core.verify import verify

ROOT = Path(__file__).resolve().parent.parent
LAB = [sys.executable, "-c", "import sys; from cli.main import main; sys.exit(main())"]
MARK = "FRAMEWORK_LAB_TEST"  # in the environment of every process that a test starts


def start(*words, mark="1", **options):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), MARK: mark, **options.pop("env", {})}
    return subprocess.Popen(
        [*LAB, *map(str, words)], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
    )


def lab(*words, **options):
    process = start(*words, **options)
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


def alive(mark):
    """Processes that carry the mark in their environment."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if f"{MARK}={mark}\0".encode() in (folder / "environ").read_bytes() + b"\0":
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def gone(mark, seconds=5.0):
    until = time.monotonic() + seconds
    while alive(mark) and time.monotonic() < until:
        time.sleep(0.05)
    return alive(mark) == []


def bundles(out):
    return sorted(p for p in out.glob("framework-lab-*") if p.is_dir()) if out.exists() else []


@pytest.mark.skipif(sys.platform != "linux", reason="NOT TESTED: looks at /proc")
@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT], ids=lambda s: s.name)
def test_a_run_that_is_killed_leaves_no_process_and_no_bundle_that_looks_complete(sent, tanh_layer, tmp_path):
    moments = random.Random(int(sent))
    for attempt in range(5):
        mark, out = f"{sent}-{attempt}-{os.getpid()}", tmp_path / str(attempt)
        process = start("run", tanh_layer, "--out", out, mark=mark)
        time.sleep(moments.uniform(0.1, 3.5))
        process.send_signal(sent)
        _, err = process.communicate(timeout=30)
        assert gone(mark), err
        assert [verify(b).problems for b in bundles(out)] in ([], [()])
        if sent != signal.SIGKILL:
            # before our handlers stand, and when Python has taken them down on its way out, a signal has its default
            # action: then there is nothing, or the whole bundle (verified above)
            assert process.returncode in (130, 0, -sent), err
            assert bundles(out) or not out.exists() or list(out.iterdir()) == []


def test_what_a_killed_run_left_is_swept_by_the_next(tanh_layer, tmp_path):
    process = start("run", tanh_layer, "--out", tmp_path / "out")
    until = time.monotonic() + 30
    while not list((tmp_path / "out").glob(".*/tanh_layer/inputs/x.npy")) and time.monotonic() < until:
        time.sleep(0.02)
    process.kill()
    process.communicate()
    assert list((tmp_path / "out").glob(".framework-lab-*"))
    code, _, err = lab("run", tanh_layer, "--out", tmp_path / "out")
    assert code == 0, err
    assert list((tmp_path / "out").glob(".framework-lab-*")) == []


def test_two_runs_in_the_same_second_have_two_bundles(tanh_layer, tmp_path):
    both = [start("run", tanh_layer, "--out", tmp_path / "out", "-q") for _ in range(2)]
    results = [process.communicate(timeout=120) for process in both]
    assert [process.returncode for process in both] == [0, 0], results
    assert len(bundles(tmp_path / "out")) == 2
    assert all(verify(b).problems == () for b in bundles(tmp_path / "out"))


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["run", "lorra"], 2, "lora"),
        (["run", "lora", "--set", "rnk=2"], 2, "rank"),
        (["run", "lora", "--set", "rank=0"], 2, "got 0, expected an integer >= 1"),
        (["run", "lora", "--set", "rank=two"], 2, "integer"),
        (["run", "lora", "--only", "nothing/*"], 5, "nothing/*"),
        (["run", "lora", "--python", "/no/such/python"], 3, "/no/such/python"),
        (["run", "lora", "--python", "/bin/true"], 3, "/bin/true"),
        (["run", "lora", "--out", "/proc/nowhere"], 3, "/proc/nowhere"),
        (["run", "lora", "--set", "d_in=100000", "--set", "d_out=100000"], 2, "GiB"),
        (["run", "."], 2, "lab.py"),
        (["verify", "/no/such/bundle"], 2, "/no/such/bundle"),
        (["show", "lorra"], 2, "lora"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_a_request_that_can_not_be_met_is_a_sentence_and_a_code(words, code, said, tmp_path):
    out = [] if "--out" in words or words[0] != "run" else ["--out", tmp_path / "out"]
    found, stdout, err = lab(*words, *out, cwd=tmp_path)
    last = err.strip().splitlines()[-1]
    assert found == code, err
    assert said in last
    assert stdout == ""
    assert "Traceback" not in err
    assert bundles(tmp_path / "out") == []


def test_with_format_json_an_error_is_one_document_too(tmp_path):
    code, out, _ = lab("run", "lora", "--set", "rank=0", "--format", "json", "--out", tmp_path)
    document = json.loads(out)
    assert (code, document["run"]["exit_code"], document["run"]["status"]) == (2, 2, "error")


def without(tmp_path, module):
    """An interpreter that has everything of this one but `module`."""
    script = tmp_path / f"python-without-{module}"
    hide = f"import sys; sys.modules[{module!r}] = None"
    (tmp_path / "hide").mkdir()
    (tmp_path / "hide/sitecustomize.py").write_text(hide)
    script.write_text(f'#!/bin/sh\nPYTHONPATH="{tmp_path}/hide" exec "{sys.executable}" "$@"\n')
    script.chmod(0o755)
    return script


@pytest.mark.parametrize("module", ["torch", "numpy"])
def test_an_interpreter_without_torch_or_numpy_is_a_sentence(module, tanh_layer, tmp_path):
    code, _, err = lab("run", tanh_layer, "--python", without(tmp_path, module), "--out", tmp_path / "out")
    assert code == 3
    assert module in err.lower()
    assert "Traceback" not in err


@pytest.fixture
def finished(tanh_layer, tmp_path):
    code, _, err = lab("run", tanh_layer, "--out", tmp_path / "out")
    assert code == 0, err
    return bundles(tmp_path / "out")[0]


def test_verify_passes_a_fresh_bundle_and_names_a_flipped_byte(finished):
    assert lab("verify", finished)[0] == 0
    item = finished / "tanh_layer/observed/grad/w.npy"
    data = bytearray(item.read_bytes())
    data[-3] ^= 1
    item.write_bytes(data)
    code, out, err = lab("verify", finished)
    assert code == 1
    assert "tanh_layer/observed/grad/w.npy" in out + err


def test_verify_names_what_is_missing_pickled_or_climbs_out(finished, tmp_path):
    shutil.rmtree(finished / "tanh_layer/reference/grad")
    np.save(finished / "tanh_layer/observed/loss.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    (finished / "tanh_layer/observed/output.npy").unlink()
    (finished / "tanh_layer/observed/output.npy").symlink_to(tmp_path / "elsewhere.npy")
    code, out, err = lab("verify", finished)
    assert code in (1, 2)
    for name in ("reference/grad/w.npy", "observed/loss.npy", "observed/output.npy"):
        assert name in out + err


def test_a_bundle_can_be_run_again_from_its_own_config(finished, tmp_path):
    code, _, err = lab("run", finished / "tanh_layer/config.yaml", "--out", tmp_path / "again")
    assert code == 0, err
    (again,) = bundles(tmp_path / "again")
    for name in ("inputs/x", "observed/grad/w", "reference/output"):
        path = f"tanh_layer/{name}.npy"
        assert (again / path).read_bytes() == (finished / path).read_bytes()


def test_report_writes_the_markdown_again_from_the_bundle_alone(finished):
    before = (finished / "report.md").read_text()
    (finished / "report.md").unlink()
    assert lab("report", finished)[0] == 0
    assert (finished / "report.md").read_text() == before
