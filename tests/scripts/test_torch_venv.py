"""scripts/torch-venv with a stand-in for Python, whose `-m venv` makes another one that notes what pip is asked."""

import os
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts/torch-venv"
PYTHON = """#!/usr/bin/env bash
here=$(dirname "$0")
case "$*" in
-V) echo Python 3.12.1 ;;
"-m venv "*) mkdir -p "$3/bin" && cp "$0" "$3/bin/python" && : >"$3/pyvenv.cfg" ;;
"-m pip "*) shift 4; echo "$*" >>"$here/pip"; [ -z "${PIP_FAILS-}" ] && echo "${HAS-2.9.0+cpu}" >"$here/torch" ;;
-c*) cat "$here/torch" ;;
esac
"""


@pytest.fixture
def make(tmp_path):
    """Runs the script with the stand-in: (exit code, stdout, stderr)."""
    python = tmp_path / "python"
    python.write_text(PYTHON)
    python.chmod(0o755)

    def called(*words, **environ):
        done = subprocess.run(
            ["bash", SCRIPT, *map(str, words)],
            capture_output=True,
            text=True,
            check=False,
            env={"PATH": os.environ["PATH"], "PYTHON": str(python), **environ},
        )
        return done.returncode, done.stdout, done.stderr

    return called


def asked_of_pip(folder):
    return (folder / "bin/pip").read_text().splitlines()


def test_it_installs_one_torch_and_numpy_and_prints_the_interpreter(make, tmp_path):
    folder = tmp_path / "a folder"
    code, out, err = make("2.9.0", folder)
    assert (code, out) == (0, f"{folder}/bin/python\n")
    assert "installing torch 2.9.0 and NumPy" in err
    assert asked_of_pip(folder) == ["torch==2.9.0 numpy"]


def test_the_second_call_has_nothing_to_do(make, tmp_path):
    make("2.9.0", tmp_path / "v")
    assert make("2.9.0", tmp_path / "v") == (0, f"{tmp_path}/v/bin/python\n", "")
    assert len(asked_of_pip(tmp_path / "v")) == 1


def test_torch_alone_comes_from_the_index_that_is_named(make, tmp_path):
    make("2.9.0", tmp_path / "v", LAB_TORCH_INDEX="https://index/cpu")
    assert asked_of_pip(tmp_path / "v") == [
        "--no-deps --index-url https://index/cpu torch==2.9.0",
        "torch==2.9.0 numpy",
    ]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "usage: torch-venv VERSION [DIR]"),
        (["--help"], "usage: torch-venv VERSION [DIR]"),
        (["2.9.0", "a", "b"], "usage: torch-venv VERSION [DIR]"),
        (["2.9.0; rm x"], "2.9.0; rm x: no version"),
        (["2.9.0", "/etc"], "/etc is there and is no virtual environment"),
    ],
)
def test_a_wrong_request_is_exit_code_2(make, words, sentence):
    code, out, err = make(*words)
    assert (code, out) == (2, "")
    assert sentence in err


def test_an_interpreter_that_is_not_there_is_named(make, tmp_path):
    code, _, err = make("2.9.0", tmp_path / "v", PYTHON="/nowhere/python")
    assert code == 2
    assert "/nowhere/python: no such interpreter" in err


def test_what_pip_can_not_install_is_exit_code_3_and_can_be_tried_again(make, tmp_path):
    code, out, err = make("2.9.0", tmp_path / "v", PIP_FAILS="yes")
    assert (code, out) == (3, "")
    assert "pip could not install torch 2.9.0" in err
    assert make("2.9.0", tmp_path / "v")[0] == 0


def test_another_torch_than_the_one_asked_for_is_not_taken_for_it(make, tmp_path):
    code, _, err = make("2.9.0", tmp_path / "v", HAS="2.8.0")
    assert code == 3
    assert "has no torch 2.9.0 after all" in err


def test_it_works_through_a_link_from_anywhere(tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/link").symlink_to(SCRIPT)
    done = subprocess.run(["bash", "bin/link"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (
        2,
        "torch-venv: usage: torch-venv VERSION [DIR], such as torch-venv 2.9.0\n",
    )
