import sys
from pathlib import Path

import pytest

from labs.core.errors import RequestError
from labs.core.matrix import variants as module
from labs.core.matrix.variants import Variant, variants


@pytest.fixture(autouse=True)
def versions(monkeypatch):
    """What interpreters say of their torch, without any being started."""
    known = {"/a/python": "torch-2.9.0", "/b/python": "torch-2.13.0", "/c=d/python": "torch-2.12.0"}
    monkeypatch.setattr(module, "_version", lambda python: known.get(python, ""))


def test_an_interpreter_without_a_name_is_named_for_its_torch():
    assert variants(["/a/python", "/b/python"], [], None) == (
        Variant("torch-2.9.0", Path("/a/python")),
        Variant("torch-2.13.0", Path("/b/python")),
    )


def test_one_that_can_not_say_is_numbered():
    assert [v.name for v in variants(["/a/python", "/nowhere"], [], None)] == ["torch-2.9.0", "python-2"]


def test_a_name_and_a_path_that_holds_an_equals_sign():
    found = variants(["old=/a/python", "/c=d/python"], [], None)
    assert [(v.name, v.python) for v in found] == [("old", Path("/a/python")), ("torch-2.12.0", Path("/c=d/python"))]


def test_one_thing_is_varied_at_a_time_for_each_interpreter():
    found = variants(["a=/a/python", "b=/b/python"], ["x:K=1", "x:L=2=3", "y:M="], "1,4")
    assert [(v.name, dict(v.variables), v.threads) for v in found] == [
        (name + rest, variables, threads)
        for name in "ab"
        for rest, variables, threads in (
            ("", {}, 1),
            ("+x", {"K": "1", "L": "2=3"}, 1),
            ("+y", {"M": ""}, 1),
            ("+4-threads", {}, 4),
        )
    ]


def test_without_an_interpreter_it_is_this_one():
    assert variants([], ["x:K=1"], None) == (Variant("this-python"), Variant("this-python+x", None, {"K": "1"}))


@pytest.mark.parametrize(
    ("pythons", "env", "threads", "sentence"),
    [
        ([], [], None, "one variant has nothing to be compared with"),
        (["a=/a/python"], [], "2", "one variant has nothing to be compared with"),
        (["a=/a", "a=/b"], [], None, "a: two variants have this name"),
        (["a="], [], None, "--python a=: expected NAME=PATH"),
        (["../a=/b"], [], "1,2", None),
        (["latest=/a"], [], None, "'latest' is no name"),
        (["a b=/a"], [], None, "'a b' is no name"),
        ([], ["x"], None, "--env x: expected NAME:KEY=VALUE"),
        ([], ["x:K"], None, "--env x:K: expected NAME:KEY=VALUE"),
        ([], ["x:1K=1"], None, "expected NAME:KEY=VALUE"),
        ([], ["../x:K=1"], None, "'../x' is no name"),
        ([], [], "1,x", "--threads 1,x: expected different numbers from 1 to 1024"),
        ([], [], "0,1", "expected different numbers"),
        ([], [], "2,2", "expected different numbers"),
        ([], [], "", "expected different numbers"),
    ],
)
def test_what_can_not_be_read_is_a_sentence(pythons, env, threads, sentence):
    if sentence is None:  # a path with an equals sign in it, no name that leads out of the folder
        assert variants(pythons, env, threads)[0].name == "python-1"
        return
    with pytest.raises(RequestError) as caught:
        variants(pythons, env, threads)
    assert sentence in str(caught.value)


def test_an_interpreter_says_which_torch_it_has(monkeypatch):
    monkeypatch.undo()
    assert module._version(sys.executable).startswith("torch-2.")
    assert module._version("/nowhere/python") == ""
    assert module._version("/bin/true") == ""
