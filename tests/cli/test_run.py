import json
import sys
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cli.main import main
from labs.core.errors import CannotComplete
from tests.cli.samples import reports


@dataclass(frozen=True)
class Engine:
    """Stands for labs.core.run and labs.core.launch: notes the request, answers with `report` or raises it."""

    seen: dict[str, Any]
    report: Any

    def Framework(self, python, _scratch):  # noqa: N802
        self.seen["python"] = python
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        self.close()

    def close(self):
        self.seen["closed"] = True

    def Request(self, **values):  # noqa: N802
        self.seen.update(values)

    def run(self, _request, _framework, progress):
        progress("drawing inputs")
        sys.stdout.write("a user's lab prints\n")
        if isinstance(self.report, Exception):
            raise self.report
        return SimpleNamespace(report=self.report, bundle=Path("artifacts/framework-lab-x"))


@pytest.fixture
def engine(monkeypatch):
    def install(report):
        stand_in = Engine({}, report)
        monkeypatch.setitem(sys.modules, "labs.core.run", stand_in)
        monkeypatch.setitem(sys.modules, "labs.core.launch", stand_in)
        return stand_in.seen

    return install


@pytest.mark.parametrize(("report", "code"), [(reports.green(), 0), (reports.red(), 1), (reports.crash(), 1)])
@pytest.mark.parametrize("form", ["terminal", "json", "markdown"])
def test_the_exit_code_is_the_same_in_every_format(engine, report, code, form):
    engine(report)
    assert main(["run", "--format", form]) == code


def test_json_is_the_report_and_nothing_else(engine, capsys):
    engine(reports.red())
    main(["run", "--format", "json"])
    assert json.loads(capsys.readouterr().out) == reports.red()


def test_json_of_a_run_that_fails_is_one_document(engine, capsys):
    engine(CannotComplete("no torch"))
    assert main(["run", "--format", "json"]) == 3
    assert json.loads(capsys.readouterr().out)["run"]["sentence"] == "no torch"


def test_the_talk_goes_to_stderr(engine, capsys):
    engine(reports.green())
    main(["run"])
    out, err = capsys.readouterr()
    assert out.startswith("lora passed")
    assert err == "drawing inputs\na user's lab prints\n"


def test_quiet_leaves_the_verdict_alone(engine, capsys):
    engine(reports.red())
    main(["run", "-q"])
    assert len(capsys.readouterr().out.splitlines()) == 1


def test_verbose_adds_the_tables(engine, capsys):
    engine(reports.green())
    main(["run", "-v"])
    assert "max_ulp" in capsys.readouterr().out


def test_without_options_the_request_has_its_defaults(engine):
    seen = engine(reports.green())
    main(["run"])
    assert seen == {
        "names": (), "changes": (), "seed": None, "out": Path("artifacts"), "python": None, "threads": None,
        "swap": {}, "precision": "float64", "device": "cpu", "only": (), "baseline": None,
        "controls": True, "timeout": 600.0, "command": ("lab", "run"),
        "closed": True,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("words", "key", "value"),
    [
        (["lora", "my.yaml"], "names", ("lora", "my.yaml")),
        (["--set", "rank=1", "--set", "steps=3"], "changes", ("rank=1", "steps=3")),
        (["--seed", "7"], "seed", 7),
        (["--out", "there"], "out", Path("there")),
        (["--python", "/p"], "python", "/p"),
        (["--threads", "2"], "threads", 2),
        (["--swap", "linear=f.py:g", "--swap", "gate=m:f"], "swap", {"linear": "f.py:g", "gate": "m:f"}),
        (["--only", "a/*", "--only", "b"], "only", ("a/*", "b")),
        (["--no-controls"], "controls", False),
        (["--timeout", "0.5"], "timeout", 0.5),
        (["-q"], "command", ("lab", "run", "-q")),
    ],
)
def test_an_option_reaches_the_engine(engine, words, key, value):
    seen = engine(reports.green())
    main(["run", *words])
    assert seen[key] == value


def test_the_framework_process_is_closed_when_the_run_fails(engine):
    seen = engine(CannotComplete("no torch"))
    main(["run"])
    assert seen["closed"]
