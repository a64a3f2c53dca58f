"""README.md is true: its tree, its commands, its exit codes."""

import re
import shlex
from pathlib import Path

import pytest
import typer.main

from cli.app import app

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = typer.main.get_command(app).commands  # type: ignore[attr-defined]


def section(title):
    return README.split(f"## {title}\n")[1].split("\n## ")[0]


def tree():
    """The paths of README's tree: two spaces deeper is one folder down; what follows a path is its comment."""
    folders, found = [], {}
    for line in section("The tree").split("```")[1].splitlines()[1:]:
        indent, name, comment = re.fullmatch(r"( *)(\S+)\s*(.*)", line).groups()
        folders = [*folders[: len(indent) // 2], name]
        found["".join(folders).rstrip("/")] = comment
    return found


def test_every_path_of_the_tree_exists():
    assert [path for path in tree() if not (ROOT / path).exists()] == []


def test_every_path_of_the_tree_has_a_comment():
    assert [path for path, comment in tree().items() if not comment] == []


@pytest.mark.parametrize(
    "pattern", ["cli/*.py", "labs/**/*.py", "configs/*.yaml", "scripts/*", "docs/decisions/*", "*.*"]
)
def test_every_file_is_in_the_tree(pattern):
    files = [p for p in ROOT.glob(pattern) if p.is_file() and p.name != "__init__.py" and p.name[0] != "."]
    assert sorted({p.relative_to(ROOT).as_posix() for p in files} - set(tree())) == []


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_documented(name):
    assert f"`lab {name}" in section("Commands")


@pytest.mark.parametrize(
    ("name", "option"),
    [
        (name, option)
        for name, command in COMMANDS.items()
        for p in command.params
        for option in p.opts
        if option[0] == "-"
    ],
)
def test_every_option_is_documented(name, option):
    assert re.search(rf"`{option}\b", section("Commands")), f"lab {name} {option}"


def part_about(name):
    """What the section says of one command: from the line that begins with it to the one that begins with another."""
    parts = re.split(r"^(?=`lab )", section("Commands"), flags=re.MULTILINE)
    return "".join(part for part in parts if part.startswith(f"`lab {name}`"))


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_documented_where_its_command_is(name):
    options = [p.opts for p in COMMANDS[name].params if p.opts[0][0] == "-" and "--help" not in p.opts]
    assert [o for o in options if not any(re.search(rf"`{word}\b", part_about(name)) for word in o)] == []


def options_of(command):
    return {option for p in command.params for option in (*p.opts, *p.secondary_opts)} | {"--help", "-h"}


def shown_commands():
    blocks = re.findall(r"```(?:sh|bash)\n(.*?)```", README, re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    return [shlex.split(line, comments=True) for line in lines if re.match(r"(scripts/)?lab ", line)]


@pytest.mark.parametrize("words", shown_commands(), ids=" ".join)
def test_every_command_shown_can_be_typed(words):
    command = COMMANDS[words[1]]
    used = {word.split("=")[0] for word in words[2:] if word.startswith("-")}
    assert used <= options_of(command)


def test_documented_options_exist():
    known = set().union(*(options_of(command) for command in COMMANDS.values()))
    known |= {"--version", "--install-completion", "--show-completion"}
    assert set(re.findall(r"`(--?[a-z][a-z-]*)", section("Commands"))) <= known


@pytest.mark.parametrize("code", ["0", "1", "2", "3", "4", "5", "130"])
def test_every_exit_code_is_documented(code):
    assert re.search(rf"^\| {code} \|", section("Exit codes"), re.MULTILINE)


def test_the_readme_links_to_files_that_exist():
    links = re.findall(r"\]\((?!http)([^)#]+)", README)
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_decisions_are_numbered_without_gaps():
    numbers = sorted(int(p.name[:4]) for p in (ROOT / "docs" / "decisions").glob("*.md"))
    assert numbers == list(range(1, len(numbers) + 1))
