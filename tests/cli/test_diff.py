import functools
import json
import re
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cli.main import main
from cli.output import Look
from cli.render_diff import printable, terminal
from labs.core.diff import diff
from labs.core.difference.record import record
from labs.core.errors import RequestError
from labs.core.reports.diff_markdown import markdown
from tests.core.sample_bundle import W, control, environment, make, rehash

WRONG = {"w": np.full((2, 3), 2.0), "resume/w": np.full((2, 3), 2.0)}
LAST_BITS = dict.fromkeys(("w", "resume/w"), np.nextafter(W * (1 + 1e-15), 9.0))
DRIFTED = {"loose": W / 7 + 9e-4}
DEFAULT = environment(cpu_capability="DEFAULT")
FORMS = ("terminal", "json", "markdown")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Bundles by what became of them since the good one."""
    root = tmp_path_factory.mktemp("bundles")
    odd = {"rules": (), "facts": [{"name": "f\x1b[2J", "what": "</code><img src=x>", "value": True}]}
    return {
        "good": make(root / "good"),
        "wrong": make(root / "wrong", WRONG, environ=DEFAULT, controls=[control(status="missed")]),
        "drifted": make(root / "drifted", DRIFTED, environ=environment(cpu_capability="DEFAULT", version="2.9.0")),
        "last bits": make(root / "bits", LAST_BITS),
        "seed 7": make(root / "seed", config="lab: lora\nseed: 7\nrank: 4\n"),
        "odd": make(root / "odd", {"x\x1b[31mred|`<b>": np.ones(2)}, **odd),
    }  # fmt: skip


def shown(made, name, look=None, level=0, fail_on="regression"):
    found = record(diff(made["good"], made[name]), fail_on)
    return terminal(found, look or Look(None, colour=False), level)


CODES = [
    ("good", {"never": 0, "regression": 0, "drift": 0, "any": 0}),
    ("last bits", {"never": 0, "regression": 0, "drift": 0, "any": 1}),
    ("drifted", {"never": 0, "regression": 0, "drift": 1, "any": 1}),
    ("wrong", {"never": 0, "regression": 1, "drift": 1, "any": 1}),
    ("seed 7", {"never": 5, "regression": 5, "drift": 5, "any": 5}),
]


@pytest.mark.parametrize(("name", "fail_on", "code"), [(n, f, c) for n, codes in CODES for f, c in codes.items()])
def test_the_exit_code_is_the_same_in_every_form(made, capsys, name, fail_on, code):
    words = ["diff", str(made["good"]), str(made[name]), "--fail-on", fail_on]
    assert {main([*words, "--format", form]) for form in FORMS} == {code}
    out = capsys.readouterr().out
    assert f'"exit_code": {code}' in out


def test_json_is_one_document_that_holds_everything(made, capsys):
    main(["diff", str(made["good"]), str(made["wrong"]), "--format", "json"])
    found = json.loads(capsys.readouterr().out)
    assert (found["schema"], found["run"]["status"]) == ("framework-lab/diff/1", "failed")
    assert len(found["changes"]) == sum(found["counts"].values()) == 8


def test_json_of_a_damaged_bundle_is_one_document(tmp_path, made, capsys):
    assert main(["diff", str(made["good"]), str(tmp_path), "--format", "json"]) == 2
    assert "not a bundle" in json.loads(capsys.readouterr().out)["run"]["sentence"]


def test_what_stdout_carries_is_written_to_a_file_too(made, tmp_path, capsys):
    path = tmp_path / "diff.md"
    main(["diff", str(made["good"]), str(made["wrong"]), "--format", "markdown", "--output", str(path)])
    assert path.read_text() == capsys.readouterr().out


def test_a_file_that_can_not_be_written_is_a_sentence(made, tmp_path, capsys):
    words = ["diff", str(made["good"]), str(made["good"]), "--output"]
    assert main([*words, str(tmp_path)]) == 2
    assert main([*words, "/proc/none/diff.txt"]) == 3
    assert "expected the file to write\nlab: /proc/none/diff.txt: can't be written" in capsys.readouterr().err


def test_environments_come_before_what_moved(made):
    text = shown(made, "drifted")
    order = ["the environments differ", "likely cause: instruction set", "drift (1)", "lora passed", "no regression"]
    assert sorted(order, key=text.index) == order


def test_the_worst_comes_first(made):
    text = shown(made, "wrong")
    assert text.index("regression (2)") < text.index("lora passed → failed")
    assert "lora: w (close) · passed → failed" in text
    assert "lora: alpha_without_rank (control) · caught → missed" in text


def test_headroom_and_distance_stand_beside_a_change(made):
    assert re.search(
        r"loose \(close\) · passed · \S+ ULP · 1.0 → 0.0 \(-1.0\) decades · torch side", shown(made, "drifted")
    )


def test_last_bits_are_counted_until_verbose(made):
    assert "last-bits (" not in shown(made, "last bits")
    assert "last-bits (2)" in shown(made, "last bits", level=1)


def test_quiet_is_the_verdict_alone(made):
    assert len(shown(made, "wrong", level=-1).splitlines()) == 1


def test_the_same_is_said_in_a_few_lines(made):
    text = shown(made, "good")
    assert text.splitlines()[-1] == "no regression · 7 bit-identical"
    assert len(text.splitlines()) == 8


def test_many_that_share_a_reason_are_one_line(made):
    text = shown(made, "seed 7")
    assert "  lora: 7 checks · passed\n    the configs differ in seed (0 and 7)" in text
    assert text.splitlines()[-1].startswith("nothing was compared")


@pytest.mark.parametrize("name", ["good", "wrong", "drifted", "seed 7", "odd"])
@pytest.mark.parametrize("level", [-1, 0, 1])
def test_a_terminal_of_80_columns_is_enough(made, name, level):
    assert [line for line in shown(made, name, Look(80, colour=False), level).splitlines() if len(line) > 80] == []


def test_colour_changes_no_word(made):
    coloured = shown(made, "wrong", Look(None, colour=True))
    assert re.sub(r"\x1b\[[\d;]*m", "", coloured) == shown(made, "wrong") != coloured


def test_a_bundle_can_not_steer_a_terminal(made):
    assert "\x1b" not in shown(made, "odd", level=1)
    assert printable({"a": ["\x1b\n\u202e"]}) == {"a": ["\\x1b\\n\\u202e"]}


def test_a_bundle_can_not_steer_markdown(made):
    text = markdown(record(diff(made["good"], made["odd"]), "any"))
    assert "<img" not in text
    assert "\x1b" not in text
    assert "<b>" not in text


@pytest.mark.parametrize("name", ["wrong", "drifted", "seed 7"])
def test_markdown_says_what_the_terminal_says(made, name):
    found = record(diff(made["good"], made[name]), "drift")
    text, other = markdown(found), terminal(found, Look(None, colour=False))
    head = other.splitlines()[-1].split(" · ")[0]
    assert f"\n**{head}** · " in text
    assert found["cause"][1:] in text


ODD = st.sampled_from(
    [None, 0, -1, 1.5, "x", "", "nan", "inf", [], {}, [1], {"a": 1}, True, "\x1b[2J", 10**400, "1e400", "passed", ["x"]]
)


def places(value, path=()):
    """Every place in a document, as a path of keys."""
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, below in inner:
        yield from places(below, (*path, key))


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_whatever_stands_in_a_report_it_is_a_sentence_or_a_difference(made, data):
    bundle = made["last bits"]
    text = (bundle / "report.json").read_text()
    report = json.loads(text)
    *parts, last = data.draw(st.sampled_from([p for p in places(report) if p]))
    functools.reduce(lambda value, key: value[key], parts, report)[last] = data.draw(ODD)
    try:
        (bundle / "report.json").write_text(json.dumps(report))
        rehash(bundle)
        for pair in ((made["good"], bundle), (bundle, made["good"])):
            with suppress(RequestError):
                found = record(diff(*pair), "any")
                assert terminal(found, Look(80, colour=False), 1)
                assert markdown(found)
                json.dumps(found, allow_nan=False)
    finally:
        (bundle / "report.json").write_text(text)
        rehash(bundle)
