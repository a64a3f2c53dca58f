import json
import re
import sys
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pytest

from cli.main import main
from cli.output import Look
from cli.render_matrix import terminal
from labs.core.errors import CannotComplete, RequestError
from labs.core.matrix import running
from labs.core.matrix.running import Row, run_all
from labs.core.matrix.table import table
from labs.core.matrix.variants import Variant
from labs.core.reports.matrix_markdown import markdown
from labs.core.reports.matrix_page.page import page
from labs.core.run import Request
from tests.core.sample_bundle import W, control, environment, make

WRONG = {"w": np.full((2, 3), 2.0), "resume/w": np.full((2, 3), 2.0)}
DRIFTED = {"loose": W / 7 + 9e-4}
FACT = {"name": "gather/deprecated", "what": "torch says so"}
NAMES = ("first", "same", "drifted", "wrong", "gone")


def row(root, name, *args, **kwargs):
    bundle = make(root / name, *args, **kwargs)
    return Row(Variant(name, variables={"KEY": name}), json.loads((bundle / "report.json").read_text()), bundle)


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    root = tmp_path_factory.mktemp("variants")
    return {
        "first": row(root, "first", facts=[{**FACT, "value": False}]),
        "same": row(root, "same", facts=[{**FACT, "value": False}]),
        "drifted": row(root, "drifted", DRIFTED, environ=environment(cpu_capability="DEFAULT"),
                       facts=[{**FACT, "value": True}]),
        "wrong": row(root, "wrong", WRONG, controls=[control(status="missed")]),
        "gone": Row(Variant("gone"), error="/gone can't be started: No such file or directory"),
        "odd": row(root, "odd", {"x\x1b[31m</td><script>alert(1)</script>|`": np.ones(2)}, rules=()),
    }  # fmt: skip


def made(rows, *names, fail_on="regression"):
    return table([rows[name] for name in names or NAMES], fail_on)


def items(found):
    return {item["name"]: item["cells"] for item in found["configs"][0]["items"]}


def test_each_item_has_a_class_and_its_headroom_in_each_variant(rows):
    cells = items(made(rows))
    assert [c["class"] for c in cells["w"]] == ["", "bit-identical", "bit-identical", "regression", ""]
    assert [c["class"] for c in cells["loose"]] == ["", "bit-identical", "drift", "bit-identical", ""]
    assert [round(c["headroom"], 1) for c in cells["loose"][:4]] == [1.0, 1.0, 0.0, 1.0]
    assert cells["loose"][4]["headroom"] is None
    assert [c["failed"] for c in cells["w"]] == [False, False, False, True, False]


def test_the_worst_class_of_an_item_counts(rows):
    assert items(made(rows))["resume/w"][3]["class"] == "drift"
    assert items(made(rows))["control: alpha_without_rank"][3]["class"] == "regression"


def test_what_differs_most_comes_first(rows):
    assert next(iter(items(made(rows)))) in ("w", "control: alpha_without_rank")


def test_a_variant_that_can_not_run_is_a_row_that_says_why(rows):
    last = made(rows)["variants"][-1]
    assert (last["status"], last["exit_code"]) == ("can't run", 3)
    assert "No such file" in last["error"]


def test_when_the_first_can_not_run_the_next_one_is_the_first(rows):
    found = made(rows, "gone", "first", "drifted")
    assert found["base"] == "first"
    assert [c["class"] for c in items(found)["loose"]] == ["", "", "drift"]


def test_facts_that_differ_have_a_value_for_each_variant(rows):
    assert [f["values"] for f in made(rows)["facts"]] == [["False", "False", "True", "", ""]]


CODES = [
    (("first", "same"), "regression", 0),
    (("first", "drifted"), "regression", 0),
    (("first", "drifted"), "drift", 1),
    (("first", "same"), "any", 0),
    (("first", "wrong"), "never", 1),  # its own run failed
    (("first", "same", "gone"), "regression", 3),
    (("gone", "wrong"), "regression", 1),
    (("gone",), "regression", 3),
]


@pytest.mark.parametrize(("names", "fail_on", "code"), CODES)
@pytest.mark.parametrize("form", ["terminal", "json", "markdown"])
def test_the_exit_code_is_the_same_in_every_form(rows, monkeypatch, capsys, names, fail_on, code, form):
    monkeypatch.setattr(running, "run_all", lambda *_: [rows[name] for name in names])
    assert main(["matrix", "--threads", "1,2", "--fail-on", fail_on, "--format", form]) == code
    out = capsys.readouterr().out
    if form == "json":
        assert json.loads(out)["run"]["exit_code"] == code


def test_files_are_written_beside_stdout(rows, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(running, "run_all", lambda *_: [rows["first"], rows["drifted"]])
    files = tmp_path / "m.md", tmp_path / "m.html"
    words = ["matrix", "--threads", "1,2", "--format", "markdown", "--output", str(files[0]), "--html", str(files[1])]
    assert main(words) == 0
    assert files[0].read_text() == capsys.readouterr().out
    assert files[1].read_text().startswith("<!DOCTYPE html>")


def test_a_file_that_can_not_be_is_refused_before_anything_runs(monkeypatch, tmp_path):
    monkeypatch.setattr(running, "run_all", lambda *_: pytest.fail("it ran"))
    assert main(["matrix", "--threads", "1,2", "--html", str(tmp_path)]) == 2


def look(width):
    return Look(width, colour=False)


@pytest.mark.parametrize("level", [-1, 0, 1])
@pytest.mark.parametrize("width", [80, 160])
def test_a_terminal_is_enough(rows, width, level):
    lines = terminal(made(rows, *NAMES, "odd"), look(width), level).splitlines()
    assert [line for line in lines if len(line) > width] == []
    assert not any("\x1b" in line for line in lines)


def test_the_terminal_says_what_moved_and_why(rows):
    text = terminal(made(rows), look(None))
    assert " 3  drifted passed · torch 2.13.0 · DEFAULT · KEY=drifted\n    1 drift, 6 bit-identical · 0.0 dec" in text
    assert "likely cause: instruction set" in text
    assert " 5  gone can't run\n    /gone can't be started: No such file or directory" in text
    assert "lora: gather/deprecated: 1 False, 2 False, 3 True" in text
    assert text.splitlines()[-1] == "matrix failed · 5 variants · failed: wrong · can't run: gone"


def test_variants_that_do_not_fit_side_by_side_get_a_table_of_their_own(rows):
    text = terminal(made(rows, *["first", "drifted"] * 6), look(80))
    heads = [line.split() for line in text.splitlines() if re.fullmatch(r"[ \d]+", line) and line.strip()]
    assert [n for head in heads for n in head] == [str(n) for n in range(1, 13)]
    assert len(heads) > 1


def test_quiet_is_the_verdict_alone(rows):
    assert len(terminal(made(rows), look(None), level=-1).splitlines()) == 1


def test_markdown_has_a_column_for_each_variant(rows):
    text = markdown(made(rows))
    assert "| <code>loose</code> | 1.0 | bit-identical, 1.0 | drift 7.21e+12 ULP, 0.0 | bit-identical, 1.0 |  |" in text
    assert re.search(r"<code>w</code> \| \S+ \|.*\| \*\*regression\*\* \S+ ULP, -\d\.\d \|", text)
    assert "<script" not in markdown(made(rows, "first", "odd"))


class Seen(HTMLParser):
    """Tags, attributes and texts of a page."""

    def __init__(self):
        super().__init__()
        self.tags, self.attributes, self.texts = [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data):
        self.texts.append(data.strip())


def seen(text):
    found = Seen()
    found.feed(text)
    return found


def test_the_page_shows_every_item_and_variant(rows):
    found = made(rows)
    shown = seen(page(found))
    assert set(items(found)) | set(NAMES) <= set(shown.texts)
    assert "matrix failed · 5 variants · failed: wrong · can't run: gone" in shown.texts


def test_the_page_needs_nothing_and_runs_nothing(rows):
    text = page(made(rows, *NAMES, "odd"))
    shown = seen(text)
    assert not {"script", "img", "link", "iframe", "object"} & set(shown.tags)
    assert not [a for a in shown.attributes if a[0].startswith("on") or a[0] in ("src", "href", "style")]
    assert any("default-src 'none'; style-src 'sha256-" in (value or "") for _, value in shown.attributes)
    assert "</td><script>" not in text


def test_a_run_that_can_not_be_completed_is_a_row(monkeypatch, tmp_path):
    def never(*_):
        raise CannotComplete("no torch\nthere")

    monkeypatch.setattr(running, "run", never)
    found = run_all(Request(out=tmp_path), [Variant("a"), Variant("b", python=tmp_path / "nowhere")])
    assert [r.error[:8] for r in found] == ["no torch", str(tmp_path)[:8]]


def test_a_wrong_request_ends_the_matrix(monkeypatch, tmp_path):
    monkeypatch.setattr(running, "run", lambda *_: (_ for _ in ()).throw(RequestError("rank: got 0")))
    with pytest.raises(RequestError, match="rank: got 0"):
        run_all(Request(out=tmp_path), [Variant("a"), Variant("b")])


def test_each_variant_has_its_folder_threads_and_variables(monkeypatch, tmp_path):
    asked = []
    monkeypatch.setattr(running, "Framework", lambda python, scratch, variables: Recorded(asked, python, variables))
    monkeypatch.setattr(running, "run", lambda request, *_: asked.append((request.out, request.threads)) or FINISHED)
    run_all(Request(out=tmp_path, threads=None), [Variant("a", None, {"K": "1"}), Variant("b", threads=4)])
    assert asked == [(None, {"K": "1"}), (tmp_path / "a", None), (None, {}), (tmp_path / "b", 4)]


FINISHED = SimpleNamespace(report={}, bundle=None)


class Recorded:
    """Stands for a framework process: notes what it was started with."""

    def __init__(self, asked, python, variables):
        asked.append((python, variables))

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        pass


def test_a_matrix_of_real_runs_has_a_bundle_a_variant_and_a_row_for_what_can_not_run(tanh_layer, tmp_path, capsys):
    words = ["matrix", str(tanh_layer), "--python", f"here={sys.executable}", "--python", f"gone={tmp_path}/python"]
    words += ["--env", "plain:ATEN_CPU_CAPABILITY=default", "--out", str(tmp_path / "out"), "--no-controls"]
    assert main([*words, "--format", "json"]) == 3
    found = json.loads(capsys.readouterr().out)
    assert [(v["name"], v["status"]) for v in found["variants"]] == [
        ("here", "passed"), ("here+plain", "passed"), ("gone", "can't run"), ("gone+plain", "can't run"),
    ]  # fmt: skip
    assert sum(found["variants"][1]["counts"].values()) == 6
    told = json.loads((tmp_path / "out/here+plain/latest/environment.json").read_text())
    assert told["framework"]["variables"]["ATEN_CPU_CAPABILITY"] == "default"
    assert told["referee"]["variables"]["ATEN_CPU_CAPABILITY"] is None
