"""`lab matrix`: the same run under several interpreters, instruction sets and numbers of threads."""

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from cli import options
from cli.outlets import require_files, write
from cli.output import Format, Look, Progress, emit, look
from labs.core.numpy_setup import set_up


@dataclass(frozen=True)
class View:
    """How the result is shown and where else it goes. `level` is -1 (quiet), 0 or 1 (verbose)."""

    format: Format
    fail_on: options.FailOn
    output: Path | None
    html: Path | None
    level: int


def matrix(  # one parameter an option: this list is the manual
    context: typer.Context,
    names: options.Names = None,
    python: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=PATH", help="An interpreter with torch; repeatable, the first is the base."),
    ] = None,
    env: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME:KEY=VALUE", help="A further variant with this variable set; repeatable."),
    ] = None,
    threads: Annotated[str | None, typer.Option(metavar="N,N", help="Torch threads, each number a variant.")] = None,
    changes: options.Changes = None,
    seed: options.Seed = None,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where the bundles go, a folder each.")] = Path("artifacts"),
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="PATTERN", help="Judge only the items that match; repeatable."),
    ] = None,
    no_controls: Annotated[bool, typer.Option("--no-controls", help="Skip the known faults.")] = False,
    fail_on: options.FailOnOption = "regression",
    view: options.View = "terminal",
    output: options.Output = None,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the table as an HTML page too.")] = None,
    timeout: Annotated[float, typer.Option(metavar="S", min=0.001, help="Seconds for each run.")] = 600.0,
    quiet: options.Quiet = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Every item that moves.")] = False,
) -> Callable[[], int]:
    """Run the same under several interpreters, variables, threads. Each is held against the first."""
    words, _ = context.obj
    request = {
        "names": tuple(names or ()),
        "changes": tuple(changes or ()),
        "seed": seed,
        "out": out,
        "only": tuple(only or ()),
        "controls": not no_controls,
        "timeout": timeout,
        "command": ("lab", *words),
    }
    shown = View(view, fail_on, output, html, int(verbose) - int(quiet))
    return lambda: _matrix(request, (python or [], env or [], threads), shown)


def _matrix(request: Mapping[str, Any], asked: tuple[Sequence[str], Sequence[str], str | None], view: View) -> int:
    set_up()
    from labs.core.matrix.running import run_all  # NumPy, pydantic, yaml
    from labs.core.matrix.table import table
    from labs.core.matrix.variants import variants
    from labs.core.run import Request

    require_files(view.output, view.html)
    progress = Progress(sys.stderr, quiet=view.level < 0)
    try:
        with redirect_stdout(sys.stderr):  # a user's lab may print; stdout carries the result alone
            found = table(run_all(Request(**request), variants(*asked), progress), view.fail_on)
    finally:
        progress.clear()
    if view.html is not None:
        from labs.core.reports.matrix_page.page import page

        write(view.html, page(found))
    if view.output is not None:
        write(view.output, _shown(found, view, Look(None, colour=False)).rstrip("\n") + "\n")
    emit(_shown(found, view, look(sys.stdout, os.environ)))
    return int(found["run"]["exit_code"])


def _shown(found: Mapping[str, Any], view: View, seen: Look) -> str:
    if view.format == "json":
        return json.dumps(found, indent=2, allow_nan=False)
    if view.format == "markdown":
        from labs.core.reports.matrix_markdown import markdown

        return markdown(found)
    from cli.render_matrix import terminal

    return terminal(found, seen, view.level)
