"""`lab show`: what a lab computes, promises and can be given."""

import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from cli.columns import fitted
from cli.list import complete_config
from cli.output import emit, look

if TYPE_CHECKING:
    from labs.core.config import Settings
    from labs.core.lab import Control, Lab


def show(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="A shipped config, a YAML file or a lab folder.",
            autocompletion=complete_config,
            show_default=False,
        ),
    ],
    yaml: Annotated[bool, typer.Option("--yaml", help="Print a commented config to start from.")] = False,
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON schema for editors.")] = False,
    part: Annotated[
        str | None, typer.Option(metavar="PART", help="Print a file to start your own part from.", show_default=False)
    ] = None,
) -> Callable[[], int]:
    """Show equations, items, parts, known faults and config of a lab."""
    if yaml + schema + bool(part) > 1:
        raise typer.BadParameter("--yaml, --schema and --part exclude each other")
    return lambda: _show(name, yaml=yaml, schema=schema, part=part)


def _show(name: str, *, yaml: bool, schema: bool, part: str | None) -> int:
    from labs.core import config  # imports pydantic and yaml

    settings = config.resolve(name)
    if yaml:
        emit(config.commented_yaml(settings))
    elif schema:
        emit(json.dumps(config.schema(settings.lab), indent=2))
    elif part is not None:
        from labs.core.stub import stub

        emit(stub(settings.lab, part, name))
    else:
        seen = look(sys.stdout, os.environ)
        emit("\n".join([*fitted(_sections(settings), seen), *_config(settings, config.to_yaml(settings))]))
    return 0


def _sections(settings: "Settings") -> Iterator[str]:
    lab = settings.lab
    yield f"{lab.name}: {lab.title}"
    yield from _section("Equations", lab.equations.strip("\n").splitlines())
    yield from _section("Items", _pairs(list(lab.items.items())))
    yield from _section("Parts", [*_conventions(lab), *_pairs(list(_parts(lab)))])
    yield from _section("Controls", [line for c in lab.controls for line in _control(c)])


def _config(settings: "Settings", resolved: str) -> list[str]:
    """The resolved config, never broken: it is there to be copied."""
    return _section(f"Config {settings.name}", resolved.splitlines())


def _section(title: str, lines: Sequence[str]) -> list[str]:
    return ["", title, *(f"  {line}".rstrip() for line in lines)] if lines else []


def _pairs(pairs: Sequence[tuple[str, str]]) -> list[str]:
    width = max((len(left) for left, _ in pairs), default=0)
    return [f"{left:<{width}}  {right}" for left, right in pairs]


def _conventions(lab: "Lab") -> list[str]:
    """What holds for all parts: shapes and names."""
    from labs.core.part_fields import conventions

    text = conventions(lab)
    return [*text.splitlines(), "", "A file to start from: lab show NAME --part PART", ""] if text else []


def _parts(lab: "Lab") -> Iterator[tuple[str, str]]:
    """The swappable callables: what each does, then its signature, both as the lab's parts.py writes them."""
    from labs.core.part_fields import described, part_fields

    for part in part_fields(lab):
        doc, signature = described(part)
        yield from [(part.name, doc), ("", signature)] if doc else [(part.name, signature)]


def _control(control: "Control") -> list[str]:
    made = [f"{part} -> {fault}" for part, fault in control.swap.items()]
    made += [f"{key} = {value} (torch side)" for key, value in control.lie.items()]
    made += [f"{key} = {value}" for key, value in control.at.items()]
    must = ", ".join(control.must)
    may = f"; can fail: {', '.join(control.may)}" if control.may else ""
    return [f"{control.name}: {control.why}", f"  {', '.join(made)}; has to fail: {must}{may}"]
