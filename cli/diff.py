"""`lab diff`: what differs between two bundles, check by check."""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli import options
from cli.outlets import require_files, write
from cli.output import Format, Look, emit, look

if TYPE_CHECKING:
    from labs.core.reports.summary import Record


def diff(
    a: Annotated[Path, typer.Argument(metavar="A", help="The bundle that was.", show_default=False)],
    b: Annotated[Path, typer.Argument(metavar="B", help="The bundle that is.", show_default=False)],
    fail_on: options.FailOnOption = "regression",
    view: options.View = "terminal",
    output: options.Output = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="The verdict alone.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Every change, last bits too.")] = False,
) -> Callable[[], int]:
    """Compare two bundles, check by check.

    Exit code 0: nothing that --fail-on names; 1: something; 5: nothing could be compared.
    """
    return lambda: _diff(a, b, fail_on, view, output, int(verbose) - int(quiet))


def _diff(a: Path, b: Path, fail_on: options.FailOn, view: Format, output: Path | None, level: int) -> int:
    from labs.core.diff import diff as compare  # imports NumPy
    from labs.core.difference.record import record

    require_files(output)
    found = record(compare(a, b), fail_on)
    if output is not None:
        write(output, _shown(found, view, Look(None, colour=False), level).rstrip("\n") + "\n")
    emit(_shown(found, view, look(sys.stdout, os.environ), level))
    return int(found["run"]["exit_code"])


def _shown(found: "Record", view: Format, seen: Look, level: int) -> str:
    if view == "json":
        return json.dumps(found, indent=2, allow_nan=False)
    if view == "markdown":
        from labs.core.reports.diff_markdown import markdown

        return markdown(found)
    from cli.render_diff import terminal

    return terminal(found, seen, level)
