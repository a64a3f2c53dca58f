import hashlib
import json
from types import SimpleNamespace

import pytest

from cli.main import main
from labs.core.reports.junit import junit
from labs.core.reports.markdown import markdown
from tests.cli.samples import reports


@pytest.fixture
def bundle(tmp_path, monkeypatch):
    """A folder with a report, whose manifest knows report.md."""
    text = markdown(reports.red())
    entry = SimpleNamespace(path="report.md", sha256=hashlib.sha256(text.encode()).hexdigest())
    monkeypatch.setattr("labs.core.bundle.read_manifest", lambda _: (entry,))
    (tmp_path / "report.json").write_text(json.dumps(reports.red()))
    (tmp_path / "report.md").write_text(text)
    return tmp_path


def test_the_report_is_printed_from_the_bundle_alone(bundle, capsys):
    assert main(["report", str(bundle)]) == 0
    assert capsys.readouterr().out == markdown(reports.red())


@pytest.mark.parametrize("damage", [lambda path: path.unlink(), lambda path: path.write_text("other")])
def test_a_lost_or_damaged_report_is_put_back(bundle, damage):
    damage(bundle / "report.md")
    main(["report", str(bundle)])
    assert (bundle / "report.md").read_text() == markdown(reports.red())


def test_another_versions_report_is_left_alone(bundle, monkeypatch):
    monkeypatch.setattr("labs.core.bundle.read_manifest", lambda _: ())
    (bundle / "report.md").write_text("as it was")
    main(["report", str(bundle)])
    assert (bundle / "report.md").read_text() == "as it was"


def test_a_link_in_the_bundle_is_replaced_and_not_followed(bundle, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside") / "precious"
    outside.write_text("mine")
    (bundle / "report.md").unlink()
    (bundle / "report.md").symlink_to(outside)
    main(["report", str(bundle)])
    assert outside.read_text() == "mine"


def test_a_folder_that_can_not_be_written_is_no_error(bundle, capsys, monkeypatch):
    (bundle / "report.md").unlink()
    refused = PermissionError(13, "Permission denied")
    monkeypatch.setattr("tempfile.NamedTemporaryFile", lambda **_: (_ for _ in ()).throw(refused))
    assert main(["report", str(bundle)]) == 0
    assert "was not written: Permission denied" in capsys.readouterr().err


def test_a_report_that_no_run_wrote_is_refused(bundle, capsys):
    strange = reports.green()
    del strange["labs"][0]["narrowed"]
    (bundle / "report.json").write_text(json.dumps(strange))
    assert main(["report", str(bundle)]) == 2
    assert "report.json" in capsys.readouterr().err


def test_a_folder_that_is_no_bundle_is_refused(tmp_path):
    assert main(["report", str(tmp_path / "nothing")]) == 2


def test_the_page_and_junit_are_put_into_the_bundle(bundle):
    main(["report", str(bundle)])
    assert (bundle / "junit.xml").read_text() == junit(reports.red())
    page = bundle / "report.html"
    assert page.read_text().startswith("<!doctype html>")
    assert page.stat().st_mode & 0o777 == 0o644


def test_the_page_and_junit_go_where_they_are_asked_to(bundle, tmp_path_factory):
    there = tmp_path_factory.mktemp("there")
    assert main(["report", str(bundle), "--html", str(there / "a/x.html"), "--junit", str(there / "x.xml")]) == 0
    assert (there / "a/x.html").read_text().startswith("<!doctype html>")
    assert (there / "x.xml").read_text() == junit(reports.red())
    assert not (bundle / "report.html").exists()
    assert not (bundle / "junit.xml").exists()


@pytest.mark.parametrize("name", ["report.html", "junit.xml"])
def test_no_report_is_written_through_a_link(bundle, name, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside") / "precious"
    outside.write_text("mine")
    (bundle / name).symlink_to(outside)
    main(["report", str(bundle)])
    assert outside.read_text() == "mine"


def test_a_lone_surrogate_is_no_bug(bundle):
    strange = reports.green()
    strange["labs"][0]["title"] = "\ud800"
    (bundle / "report.json").write_text(json.dumps(strange))
    assert main(["report", str(bundle)]) == 0


LOST = {**dict.fromkeys(("name", "value", "gradient", "forward", "backward"), ""), "read_by": ["nobody"]}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("walk", [{}]), ("walk", [LOST]),
        ("facts", [3]), ("tables", [{"title": "t", "header": ["a"], "rows": [[[]]]}]), ("trajectories", {}),
    ],
)  # fmt: skip
def test_what_only_the_page_reads_is_checked_as_well(bundle, key, value, capsys):
    strange = reports.green()
    strange["labs"][0][key] = value
    (bundle / "report.json").write_text(json.dumps(strange))
    assert main(["report", str(bundle)]) == 2
    assert "report.json" in capsys.readouterr().err
