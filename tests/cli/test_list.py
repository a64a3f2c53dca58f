from types import SimpleNamespace

import pytest

from cli.list import complete_config
from cli.main import main


@pytest.fixture(autouse=True)
def configs(monkeypatch):
    entries = {"lora": ("lora", "A low-rank branch"), "lora-7b": ("lora", "The same, large"), "block": ("block", "")}
    shipped = {name: SimpleNamespace(lab=lab, title=title) for name, (lab, title) in entries.items()}
    monkeypatch.setattr("labs.core.registry.shipped", lambda: shipped)


def test_each_config_is_a_line_with_its_lab_and_title(capsys):
    assert main(["list"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "block    block",
        "lora     lora   A low-rank branch",
        "lora-7b  lora   The same, large",
    ]


@pytest.mark.parametrize(("typed", "names"), [("lo", ["lora", "lora-7b"]), ("lora-", ["lora-7b"]), ("x", [])])
def test_a_shell_gets_the_names_that_start_so(typed, names):
    assert complete_config(typed) == names
