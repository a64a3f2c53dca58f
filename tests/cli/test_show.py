import json

import pytest

from cli.main import main


@pytest.fixture
def shown(capsys):
    def show(*words):
        assert main(["show", *words]) == 0
        return capsys.readouterr().out

    return show


@pytest.mark.parametrize(
    "fact",
    [
        "lora: a low-rank branch",
        "\nEquations\n  Y = X W + s (X A) B",
        "\nItems\n",
        "  trained/grad/lora_a ",
        "\nParts\n",
        "  linear ",
        "Callable[[Tensor, Tensor, Tensor, Tensor, float], Tensor]",
        "\nControls\n",
        "has to fail: ",
        "\nConfig lora\n",
        "  lab: ",
        "  seed: 0",
    ],
)
def test_a_lab_shows(shown, fact):
    assert fact in shown("labs/lora")


def test_yaml_is_a_config_to_start_from(shown, tmp_path):
    config = tmp_path / "mine.yaml"
    config.write_text(shown("labs/lora", "--yaml"))
    assert "\nConfig mine\n" in shown(str(config))


def test_schema_is_json(shown):
    assert json.loads(shown("labs/lora", "--schema"))["properties"]["lab"]


def test_an_unknown_name_is_a_wrong_request(capsys):
    assert main(["show", "lorra"]) == 2
    assert "lorra" in capsys.readouterr().err


def test_a_lab_whose_parts_can_not_be_imported_says_where(capsys, monkeypatch):
    monkeypatch.setattr("labs.core.part_fields.import_module", lambda name: (_ for _ in ()).throw(SyntaxError(name)))
    assert main(["show", "labs/lora"]) == 2
    assert "lora/parts.py: SyntaxError: labs.lora.parts" in capsys.readouterr().err
