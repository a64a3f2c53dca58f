from types import SimpleNamespace

import pytest

from cli.main import main


@pytest.mark.parametrize(
    ("problems", "code", "lines"),
    [
        ((), 0, ["there: verified · 9 files hashed"]),
        (("a: changed",), 1, ["a: changed", "there: 1 problem · 9 files hashed"]),
        (("a: changed", "b: lost"), 1, ["a: changed", "b: lost", "there: 2 problems · 9 files hashed"]),
    ],
)
def test_problems_come_first_and_fail(monkeypatch, capsys, problems, code, lines):
    found = SimpleNamespace(problems=problems, summary="9 files hashed")
    monkeypatch.setattr("labs.core.verify.verify", lambda _: found)
    assert main(["verify", "there"]) == code
    assert capsys.readouterr().out.splitlines() == lines


def test_a_folder_that_is_no_bundle_is_a_wrong_request(tmp_path):
    assert main(["verify", str(tmp_path)]) == 2
