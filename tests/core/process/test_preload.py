"""PRELOAD is read, never run: whatever a stranger's file has under that name."""

import sys

import pytest

from labs.core.process.preload import preload


@pytest.mark.parametrize(
    "text",
    [
        "PRELOAD = compute()",
        "PRELOAD = 3",
        "PRELOAD = (1, None, print('x'))",
        "PRELOAD = 'colorsys'",
        "def (",
        "\0",
        "",
    ],
)
def test_what_is_no_tuple_of_names_is_passed_over(tmp_path, text, capsys):
    (tmp_path / "f.py").write_text(text)
    preload(tmp_path / "f.py")
    assert capsys.readouterr() == ("", "")


def test_named_modules_are_imported_and_missing_ones_left_to_their_stage(tmp_path, capsys):
    sys.modules.pop("colorsys", None)
    (tmp_path / "f.py").write_text("PRELOAD = ('colorsys', 'no_such_module')\nraise SystemExit\n")
    preload(tmp_path / "f.py")
    assert "colorsys" in sys.modules
    assert "PRELOAD no_such_module: ModuleNotFoundError" in capsys.readouterr().err


def test_a_file_that_is_not_there_is_passed_over(tmp_path):
    preload(tmp_path / "none.py")
