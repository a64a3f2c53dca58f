"""What tests of several folders share: the lab of docs/writing-a-lab.md, written out as a user would."""

import re
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/writing-a-lab.md"

settings.register_profile("patient", deadline=None)  # a loaded machine is no reason to fail
settings.load_profile("patient")


@pytest.fixture
def tanh_layer(tmp_path):
    """The folder of the page's lab, made from the page's own code blocks."""
    for name, text in re.findall(r"^```\w+ file=(\S+)\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "tanh_layer"
