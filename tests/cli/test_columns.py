import pytest

from cli.columns import fitted
from cli.output import Look

PIPE, NARROW = Look(None, colour=False), Look(30, colour=False)


@pytest.mark.parametrize(
    ("line", "broken"),
    [
        ("short", ["short"]),
        ("", [""]),
        ("loss  lora  what it is, in more words", ["loss  lora  what it is, in", "            more words"]),
        ("  a sentence that is longer than that", ["  a sentence that is longer", "    than that"]),
        ("an_item/with/a/long/name  and text", ["an_item/with/a/long/name  and", "  text"]),
        ("/a/path/that/is/longer/than/a/terminal", ["/a/path/that/is/longer/than/a/terminal"]),
    ],
)
def test_what_is_too_long_goes_on_under_its_column(line, broken):
    assert fitted([line], NARROW) == broken
    assert fitted([line], PIPE) == [line]
