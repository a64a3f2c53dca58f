import json
from pathlib import Path

import pytest

from cli.main import main
from cli.outlets import Outlets, publish, publish_error
from labs.core.errors import CannotComplete, RequestError
from labs.core.reports.junit import junit
from labs.core.reports.markdown import markdown
from tests.cli.samples import reports


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch):
    """Not on GitHub, even when these tests are."""
    for name in ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def github(monkeypatch, tmp_path):
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    return tmp_path / "summary.md"


def test_files_are_written_where_they_are_asked_for(tmp_path):
    outlets = Outlets(tmp_path / "a/b/junit.xml", tmp_path / "c/report.html")
    publish(reports.red(), None, outlets)
    assert outlets.junit.read_text() == junit(reports.red())
    assert outlets.html.read_text().startswith("<!doctype html>")


def test_nothing_is_written_unasked(tmp_path, capsys):
    publish(reports.red(), None, Outlets())
    assert list(tmp_path.iterdir()) == []
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("option", ["--junit", "--html"])
def test_a_folder_is_refused_before_anything_is_run(tmp_path, option, capsys):
    assert main(["run", option, str(tmp_path)]) == 2
    assert "a folder, expected the file to write" in capsys.readouterr().err


def test_a_file_that_can_not_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CannotComplete, match=r"file/junit.xml: can't be written"):
        publish(reports.red(), None, Outlets(tmp_path / "file/junit.xml"))


def test_a_run_without_a_verdict_leaves_no_older_verdict_behind(tmp_path):
    outlets = Outlets(tmp_path / "junit.xml", tmp_path / "report.html")
    publish(reports.green(), None, outlets)
    publish_error("no torch", ["lab", "run"], outlets)
    assert 'errors="1"' in outlets.junit.read_text()
    assert "no torch" in outlets.junit.read_text()
    assert "no torch" in outlets.html.read_text()


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (CannotComplete("no torch"), 3, "no torch"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (ZeroDivisionError("x"), 4, "a bug in framework-lab: ZeroDivisionError"),
    ],
)
def test_however_a_run_ends_its_files_say_so(tmp_path, monkeypatch, error, code, said):
    monkeypatch.setattr("cli.run._finished", lambda *_: (_ for _ in ()).throw(error))
    assert main(["run", "--junit", str(tmp_path / "junit.xml"), "--html", str(tmp_path / "report.html")]) == code
    assert said in (tmp_path / "junit.xml").read_text()
    assert said in (tmp_path / "report.html").read_text()


def test_an_error_is_the_news_even_when_it_can_not_be_written(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    publish_error("no torch", ["lab", "run"], Outlets(tmp_path / "file/junit.xml"))
    assert "can't be written" in capsys.readouterr().err


def test_github_gets_annotations_on_stderr_and_a_summary(github, capsys):
    publish(reports.red(), None, Outlets())
    out, err = capsys.readouterr()
    assert out == ""
    assert [line.split(" ")[0] for line in err.splitlines()] == ["::error"] * 5
    assert github.read_text() == markdown(reports.red())


def test_half_a_character_in_an_error_is_no_error_of_its_own(github, tmp_path):
    publish_error("no such file: \udcff", ["lab"], Outlets(tmp_path / "junit.xml"))
    assert "no such file: ?" in github.read_text()


def test_a_second_summary_is_appended(github):
    publish(reports.green(), None, Outlets())
    publish(reports.green(), None, Outlets())
    assert github.read_text() == 2 * markdown(reports.green())


def test_a_summary_that_can_not_be_written_is_said_and_no_more(github, monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path))
    publish(reports.green(), None, Outlets())
    assert "was not written" in capsys.readouterr().err


@pytest.mark.parametrize("value", ["", "false", "0"])
def test_elsewhere_nobody_is_told(monkeypatch, value, capsys):
    monkeypatch.setenv("GITHUB_ACTIONS", value)
    publish(reports.red(), None, Outlets())
    assert capsys.readouterr().err == ""


def test_json_stays_one_document_on_github(github, capsys, monkeypatch):
    monkeypatch.setattr("cli.run._finished", lambda *_: (_ for _ in ()).throw(RequestError("no such config")))
    assert main(["run", "x", "--format", "json"]) == 2
    out, err = capsys.readouterr()
    assert json.loads(out)["run"]["sentence"] == "no such config"
    assert "::error title=framework-lab::no such config" in err


def test_a_report_that_can_not_be_written_does_not_lose_the_run(tmp_path, capsys, monkeypatch):
    class Finished:
        report, bundle = reports.green(), Path("artifacts/framework-lab-x")

    (tmp_path / "file").write_text("")
    monkeypatch.setattr("cli.run._finished", lambda *_: Finished)
    assert main(["run", "--junit", str(tmp_path / "file/junit.xml")]) == 3
    assert "the run itself is complete: artifacts/framework-lab-x" in capsys.readouterr().err
