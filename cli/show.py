"""`lab show`: what a lab computes, promises and can be given."""

import dataclasses
import json
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.list import complete_config
from cli.output import emit
from labs.core.errors import RequestError

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
) -> Callable[[], int]:
    """Show a lab: equations, items, parts, controls with reasons, resolved config."""
    if yaml and schema:
        raise typer.BadParameter("--yaml and --schema exclude each other")
    return lambda: _show(name, yaml=yaml, schema=schema)


def _show(name: str, *, yaml: bool, schema: bool) -> int:
    from labs.core import config  # imports pydantic and yaml

    settings = config.resolve(name)
    if yaml:
        emit(config.commented_yaml(settings))
    elif schema:
        emit(json.dumps(config.schema(settings.lab), indent=2))
    else:
        emit("\n".join(_sections(settings, config.to_yaml(settings))))
    return 0


def _sections(settings: "Settings", resolved: str) -> Iterator[str]:
    lab = settings.lab
    yield f"{lab.name}: {lab.title}"
    yield from _section("Equations", lab.equations.strip("\n").splitlines())
    yield from _section("Items", _pairs(list(lab.items.items())))
    yield from _section("Parts", _pairs(list(_parts(lab))))
    yield from _section("Controls", [line for c in lab.controls for line in _control(c)])
    yield from _section(f"Config {settings.name}", resolved.splitlines())


def _section(title: str, lines: Sequence[str]) -> list[str]:
    return ["", title, *(f"  {line}".rstrip() for line in lines)] if lines else []


def _pairs(pairs: Sequence[tuple[str, str]]) -> list[str]:
    width = max((len(left) for left, _ in pairs), default=0)
    return [f"{left:<{width}}  {right}" for left, right in pairs]


def _parts(lab: "Lab") -> Iterator[tuple[str, str]]:
    """The swappable callables: what each does, then its signature, both as the lab's parts.py writes them."""
    if not (lab.path / "parts.py").is_file():
        return
    for part in dataclasses.fields(_parts_record(lab)):
        signature = part.type if isinstance(part.type, str) else str(part.type)
        doc = part.metadata.get("doc", "")
        yield from [(part.name, doc), ("", signature)] if doc else [(part.name, signature)]


def _parts_record(lab: "Lab") -> type[Any]:
    try:
        module = import_module(f"{lab.package}.parts")
    except Exception as error:
        raise RequestError(f"{lab.path / 'parts.py'}: {type(error).__name__}: {error}") from error
    for value in vars(module).values():
        if isinstance(value, type) and dataclasses.is_dataclass(value) and value.__module__ == module.__name__:
            return value
    raise RequestError(f"{lab.path / 'parts.py'}: no dataclass of parts in it")


def _control(control: "Control") -> list[str]:
    made = [f"{part} -> {fault}" for part, fault in control.swap.items()]
    made += [f"{key} = {value} (torch side)" for key, value in control.lie.items()]
    made += [f"{key} = {value}" for key, value in control.at.items()]
    must = ", ".join(control.must)
    may = f"; can fail: {', '.join(control.may)}" if control.may else ""
    return [f"{control.name}: {control.why}", f"  {', '.join(made)}; has to fail: {must}{may}"]
