"""Recipes name what exists, and the tables say the same; they run where their library is installed."""

import ast
import re
import shlex
import subprocess
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import pytest

from cli.main import main
from labs.core.registry import load
from labs.core.swaps import looked_up, parsed

ROOT = Path(__file__).parents[1]
RECIPES = sorted(p for p in ROOT.glob("recipes/**/*.py") if "\n    lab run " in p.read_text())
DOCS = {path: ast.get_docstring(ast.parse(path.read_text())) for path in RECIPES}
COMMANDS = [shlex.split(line) for doc in DOCS.values() for line in re.findall(r"^ *(lab run .*)$", doc, re.MULTILINE)]


def rows(page):
    """The cells of the table of results, links as their text."""
    lines = re.findall(r"^\| .* \|$", (ROOT / page).read_text().split("| library ")[1].split("\n\n")[0], re.MULTILINE)
    return [re.sub(r"\[(.*?)\]\(.*?\)", r"\1", line) for line in lines]


@pytest.mark.parametrize("path", RECIPES, ids=lambda p: str(p.relative_to(ROOT / "recipes")))
def test_a_recipe_says_its_library_version_and_what_it_found(path):
    assert re.search(r"tested with .* \d+\.\d+", DOCS[path].splitlines()[0])
    assert re.search(r"^Found: .{20}", DOCS[path], re.MULTILINE)


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: " ".join(words[2:])[:60])
def test_a_command_of_a_recipe_names_parts_and_functions_that_exist(words, monkeypatch):
    monkeypatch.chdir(ROOT)
    lab = load(words[2])
    swaps = [word for option, word in pairwise(words) if option == "--swap"]
    found = looked_up(lab, parsed(swaps))
    assert all(swap.line for swap in found)
    assert found or words[2].startswith("recipes/")


def test_the_line_that_runs_a_whole_file_finds_all_its_commands():
    (line,) = re.findall(r"^(sed .*) \| sh$", (ROOT / "recipes/README.md").read_text(), re.MULTILINE)
    *sed, file = shlex.split(line)
    found = subprocess.run([*sed, *map(str, RECIPES)], capture_output=True, text=True, check=True, cwd=ROOT).stdout
    assert (ROOT / file) in RECIPES
    assert sorted(map(shlex.split, found.splitlines())) == sorted([*words, "-q"] for words in COMMANDS)


def test_every_recipe_is_in_the_table_and_both_tables_are_the_same():
    linked = re.findall(r"^\| .*?\]\((.*?)\) \|", (ROOT / "recipes/README.md").read_text(), re.MULTILINE)
    assert {(ROOT / "recipes" / link).exists() for link in linked} == {True}
    owed = {p.parent.name if p.parent.name != "recipes" else p.name for p in RECIPES}
    assert set(linked) == owed
    assert rows("README.md") == rows("recipes/README.md")


def test_a_recipe_whose_library_is_missing_is_a_sentence(tmp_path, monkeypatch, capsys):
    if find_spec("peft"):
        pytest.skip("peft is here")
    monkeypatch.chdir(ROOT)
    swap = "scale=recipes/peft_lora.py:scale"
    assert main(["run", "lora", "--swap", swap, "--only", "trained/loss", "--no-controls", "--out", str(tmp_path)]) == 3
    assert "part scale needs the module 'peft'" in capsys.readouterr().out


def test_a_lab_whose_library_is_missing_is_a_sentence(tmp_path, monkeypatch, capsys):
    if find_spec("jax"):
        pytest.skip("jax is here")
    monkeypatch.chdir(ROOT)
    assert main(["run", "recipes/jax_lora", "--no-controls", "--out", str(tmp_path)]) == 3
    assert "needs the module 'jax'" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["rms_norm", "flash_attention"])
def test_torchs_own_parts_agree(name, tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    part = {"rms_norm": "norm", "flash_attention": "attention"}[name]
    words = ["run", "block", "--swap", f"{part}=recipes/torch_own.py:{name}", "--no-controls", "--out", str(tmp_path)]
    assert main(words) == 0
