import os
import tracemalloc

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from labs.core.errors import RequestError
from labs.core.loading import strict_yaml, yaml_text

VALUES = {
    "1e-9": 1e-9,
    "1E5": 1e5,
    ".5": 0.5,
    "-.5e+3": -500.0,
    "1.": 1.0,
    "3": 3,
    "-0": 0,
    "+5": 5,
    "9223372036854775807": 2**63 - 1,
    "true": True,
    "false": False,
    "null": None,
    "~": None,
    "": None,
    "off": "off",
    "on": "on",
    "yes": "yes",
    "no": "no",
    "True": "True",
    "017": "017",
    "0o17": "0o17",
    "0x1F": "0x1F",
    "1_000": "1_000",
    "1:30": "1:30",
    "190:20:30": "190:20:30",
    "2026-11-29": "2026-11-29",
    "2026-11-29T20:53:00Z": "2026-11-29T20:53:00Z",
    "nan": "nan",
    ".": ".",
    "e5": "e5",
    "٣": "٣",
    '"3"': "3",
    "'true'": "true",
    '"a\\nb"': "a\nb",
    ".inf": float("inf"),
    "-.inf": float("-inf"),
    "1e400": float("inf"),
    "[1, 2]": (1, 2),
    "{a: {b: 1}}": {"a": {"b": 1}},
}

REFUSED = {
    "a: 1\na: 2": "f:2: a: given twice, on lines 1 and 2",
    "s:\n  x: 1\n  y: 2\n  x: 3": "f:4: s.x: given twice, on lines 2 and 4",
    '{a: 1, "a": 2}': "f:1: a: given twice, on lines 1 and 1",
    "a: &x 1": "f:1:4: anchors are not supported; a text that starts with & needs quotes",
    "&x a: 1": "f:1:1: anchors are not supported; a text that starts with & needs quotes",
    "a: *x": 'f:1:4: aliases are not supported; a text that starts with * needs quotes: "*x…"',
    "*x : 1": 'f:1:1: aliases are not supported; a text that starts with * needs quotes: "*x…"',
    "a: !!python/object:os.system x": "f:1:4: tags are not supported; a text that starts with ! needs quotes",
    "a: !!str 3": "f:1:4: tags are not supported; a text that starts with ! needs quotes",
    "a: ! 3": "f:1:4: tags are not supported; a text that starts with ! needs quotes",
    "a: !!map {}": "f:1:4: tags are not supported; a text that starts with ! needs quotes",
    "a:\n  <<: {b: 1}": "f:2:3: merge keys (<<) are not supported",
    "1: x": "f:1:1: a key has to be a text, found 1; quote it",
    "true: x": "f:1:1: a key has to be a text, found true; quote it",
    "~: x": "f:1:1: a key has to be a text, found ~; quote it",
    "?\n: x": "f:1:2: a key has to be a text, found nothing; quote it",
    "[a]: x": "f:1:1: a key has to be a text, found a list or a mapping",
    "? {a: 1}\n: x": "f:1:3: a key has to be a text, found a list or a mapping",
    "a: 1\n---\nb: 2": "f:2:1: a second document starts here; a config is one document",
    "a:\n\tb: 1": "f:2:1: broken YAML: a tab can't indent or start a value, use spaces",
    "a: [1, 2": "f:1:9: broken YAML while parsing a flow sequence: expected ',' or ']', but got '<stream end>'",
    "a: b: c": "f:1:5: broken YAML: mapping values are not allowed here",
    'a: "\\q"': "f:1:6: broken YAML while scanning a double-quoted scalar: found unknown escape character 'q'",
    'a: "\\UFFFFFFFF"': "f: broken YAML: ",
    'a: "\\0"': "f:1:4: a text can't hold the character U+0000",
    'a: "\\ud800"': "f:1:4: a text can't hold the character U+D800",
    "a: 1\nb: \x07": "f:2:4: the character U+0007 is not allowed in YAML",
    "a: 9223372036854775808": "f:1:4: an integer of more than 64 bits; write a large number as 1e20",
    "a: " + "9" * 5000: "f:1:4: an integer of more than 64 bits; write a large number as 1e20",
    "[" * 1_000_000: "f:1:22: nested more than 20 levels deep",
    "{" * 1_000_000: "f:1:2: a key has to be a text",
    "- " * 500_000: "f:1:43: nested more than 20 levels deep",
    "[" + "a," * 20_000 + "]": "f:1:19998: more than 10000 keys and values",
    "a" * (2 << 20): "f: longer than 1048576 characters",
}


@pytest.mark.parametrize("text", VALUES)
def test_a_plain_value_means_what_it_looks_like(text):
    value = strict_yaml.parse(f"key: {text}", "f").value["key"]
    assert (type(value), value) == (type(VALUES[text]), VALUES[text])


@pytest.mark.parametrize("text", REFUSED, ids=lambda text: ascii(text[:30]))
def test_what_is_refused_is_said_in_one_sentence_with_its_place(text):
    with pytest.raises(RequestError) as caught:
        strict_yaml.parse(text, "f")
    assert str(caught.value).startswith(REFUSED[text])
    assert "\n" not in str(caught.value)


def test_every_key_and_element_has_its_line():
    document = strict_yaml.parse("a: 1\nb:\n  c: 2\n  d:\n  - 3\n  - {e: 4}\n", "f")
    assert document.lines == {
        ("a",): 1,
        ("b",): 2,
        ("b", "c"): 3,
        ("b", "d"): 4,
        ("b", "d", 0): 5,
        ("b", "d", 1): 6,
        ("b", "d", 1, "e"): 6,
    }


def test_a_value_from_the_command_line_has_no_line_number():
    with pytest.raises(RequestError, match=r"^--set a=\[: broken YAML"):
        strict_yaml.parse("[", "--set a=[", numbered=False)


@pytest.mark.parametrize(
    ("data", "value"), [(b"", None), (b"# only a comment\n", None), (b"\xef\xbb\xbfa: 1\r\n", {"a": 1})]
)
def test_an_empty_file_is_none_and_a_byte_order_mark_is_skipped(tmp_path, data, value):
    (tmp_path / "c.yaml").write_bytes(data)
    assert strict_yaml.read(tmp_path / "c.yaml", "f").value == value


def test_bytes_that_are_not_utf_8_are_named_with_their_line(tmp_path):
    (tmp_path / "c.yaml").write_bytes(b"a: 1\nb: \xff\n")
    with pytest.raises(RequestError, match=r"^f:2: not UTF-8: byte 0xff$"):
        strict_yaml.read(tmp_path / "c.yaml", "f")


def test_a_hundred_megabytes_are_refused_without_being_read(tmp_path):
    with (tmp_path / "c.yaml").open("wb") as file:
        file.truncate(100_000_000)
    tracemalloc.start()
    with pytest.raises(RequestError, match=r"^f: 100000000 bytes, a config has at most 1048576$"):
        strict_yaml.read(tmp_path / "c.yaml", "f")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1_000_000


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_only_a_regular_file_is_opened(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(RequestError, match=r"^f: not a regular file$"):
            strict_yaml.read(path, "f")


@pytest.mark.parametrize("name", ["missing.yaml", "x" * 5000, "nul\0"])
def test_a_file_that_can_not_be_opened_is_a_sentence(tmp_path, name):
    with pytest.raises(RequestError, match=r"^f: "):
        strict_yaml.read(tmp_path / name, "f")


@given(st.text("ab01.:-+ \n\t[]{},#&*!|>'\"%@`?\\~<=xUu\r\0\x85\u2028\ufeff", max_size=40))
def test_no_text_breaks_the_reader(text):
    try:
        strict_yaml.parse(text, "f")
    except RequestError as error:
        assert "\n" not in str(error)  # noqa: PT017  most texts raise nothing


TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
SCALARS = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | TEXTS
TREES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4).map(tuple) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=8,
)


@given(st.dictionaries(TEXTS, TREES, max_size=4))
def test_what_is_written_is_read_back(tree):
    assert strict_yaml.parse(yaml_text.dump(tree), "f").value == tree


@given(st.dictionaries(TEXTS, SCALARS, max_size=4))
def test_other_readers_read_the_same(tree):
    assert yaml.safe_load(yaml_text.dump(tree)) == tree


def test_comments_stand_above_their_keys():
    text = yaml_text.dump({"a": 1, "b": {"c": 2.5e-300}}, {("a",): "first\n\nsecond", ("b", "c"): "third"})
    assert text == "# first\n#\n# second\na: 1\nb:\n  # third\n  c: 2.5e-300\n"
