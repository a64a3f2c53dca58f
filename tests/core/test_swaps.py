"""`--swap` as a request: what is refused before anything runs, and whose implementation a report names."""

import hashlib

import pytest

from labs.core.errors import RequestError
from labs.core.process.jobs import Outcome
from labs.core.registry import load
from labs.core.swaps import Swapped, completed, looked_up, parsed


def mine(tmp_path, text="def f(x):\n    return x\n"):
    (tmp_path / "mine.py").write_text(text)
    return str(tmp_path / "mine.py")


def test_a_word_names_a_part_and_where_it_comes_from():
    assert parsed(["a=f.py:g", "b=m.n:h"]) == {"a": "f.py:g", "b": "m.n:h"}


@pytest.mark.parametrize("word", ["", "a", "a=", "a=f.py", "=f.py:g", "a=:g", "a=f.py:", "a=f.py:1x", "a=f.py:g h"])
def test_a_word_of_another_form_is_refused(word):
    with pytest.raises(RequestError, match=r"expected PART=FILE\.py:NAME"):
        parsed([word])


def test_a_part_can_be_swapped_once():
    with pytest.raises(RequestError, match="twice"):
        parsed(["a=f.py:g", "a=f.py:h"])


@pytest.mark.parametrize(
    ("part", "source", "sentence"),
    [
        ("liner", "{file}:f", "lab lora has no part 'liner'; did you mean linear?"),
        ("linear", "{file}x.py:f", "No such file"),
        ("linear", "{folder}/.py:f", "No such file"),
        ("linear", "{file}:ff", "the file has no 'ff'; did you mean f?"),
    ],
)
def test_what_is_not_there_is_refused_by_name(part, source, sentence, tmp_path):
    source = source.format(file=mine(tmp_path), folder=tmp_path)
    with pytest.raises(RequestError, match="--swap") as error:
        looked_up(load("lora"), {part: source})
    assert sentence in str(error.value)


def test_a_lab_without_parts_has_nothing_to_swap(tanh_layer):
    (tanh_layer / "parts.py").rename(tanh_layer / "other.py")
    with pytest.raises(RequestError, match="has no part"):
        looked_up(load(str(tanh_layer)), {"activation": "m:f"})


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("x = 1\n\ndef f(): ...\n", 3),
        ("def g():\n    def f(): ...\n\nf = g\n", 4),
        ("from math import exp as f\n", 1),
        ("class f: ...\n", 1),
        ("from math import *\n", 0),
        ("globals()['f'] = 1\n", 0),
        ("def f(:\n", 0),
    ],
)
def test_the_line_is_read_and_nothing_is_run(text, line, tmp_path):
    file = mine(tmp_path, text + "raise SystemExit\n" * (line > 0))
    (found,) = looked_up(load("lora"), {"linear": f"{file}:f"})
    assert found.line == line
    assert found.sha256 == hashlib.sha256((tmp_path / "mine.py").read_bytes()).hexdigest()


def test_what_the_framework_process_ran_has_the_last_word():
    before = (Swapped("a", "m:f"), Swapped("b", "f.py:g", "f.py", 3, "00"))
    found = {"part": "a", "file": "/m.py", "line": 7, "sha256": "11", "libraries": ["peft 1"]}
    after = completed(before, [Outcome(0, 0, "ok", swaps=(found,)), Outcome(1, 0, "ok")])
    assert after == (Swapped("a", "m:f", "/m.py", 7, "11", ("peft 1",)), before[1])
