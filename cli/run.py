"""`lab run`: compute both sides, judge, write the bundle, say the verdict."""

import json
import os
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from cli import options
from cli.outlets import Outlets, publish, publish_error
from cli.output import Format, Progress, emit, look
from labs.core.errors import CannotComplete, NothingCompared, RequestError
from labs.core.numpy_setup import set_up

if TYPE_CHECKING:
    from labs.core.launch import Framework
    from labs.core.run import Finished

Precision = Literal["float64", "float32", "bfloat16"]


@dataclass(frozen=True)
class View:
    """How the result is shown. `level` is -1 (quiet), 0 or 1 (verbose)."""

    format: Format
    level: int


def run(  # one parameter an option: this list is the manual
    context: typer.Context,
    names: options.Names = None,
    changes: options.Changes = None,
    seed: options.Seed = None,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where the bundle goes.")] = Path("artifacts"),
    python: Annotated[
        str | None,
        typer.Option(metavar="PATH", help="Another interpreter that has torch and NumPy, for the framework side."),
    ] = None,
    threads: Annotated[int | None, typer.Option(min=1, help="Torch threads, instead of the config's.")] = None,
    swap: Annotated[
        list[str] | None,
        typer.Option(metavar="PART=FILE.py:NAME", help="Judge your own callable as this part; repeatable."),
    ] = None,
    precision: Annotated[
        Precision, typer.Option(help="What the torch side computes in; limits follow from it. Narrows the verdict.")
    ] = "float64",
    device: Annotated[str, typer.Option(metavar="NAME", help="Where the torch side computes, such as cuda.")] = "cpu",
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="PATTERN", help="Judge only the items that match; repeatable. Narrows the verdict."),
    ] = None,
    baseline: Annotated[
        Path | None,
        typer.Option(metavar="BUNDLE", help="A bundle that passed; what got worse since then fails the run."),
    ] = None,
    no_controls: Annotated[
        bool, typer.Option("--no-controls", help="Skip the known faults. Narrows the verdict.")
    ] = False,
    view: options.View = "terminal",
    junit: Annotated[Path | None, typer.Option(metavar="FILE", help="Write JUnit XML too.", show_default=False)] = None,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the report as an HTML page too.", show_default=False)
    ] = None,
    timeout: Annotated[float, typer.Option(metavar="S", min=0.001, help="Seconds for the whole run.")] = 600.0,
    quiet: options.Quiet = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Every check and control as a table.")] = False,
) -> Callable[[], int]:
    """Run labs and judge them: exit code 0 passed, 1 an honest no."""
    words, early = context.obj
    request = {
        "names": tuple(names or ()),
        "changes": tuple(changes or ()),
        "seed": seed,
        "out": out,
        "threads": threads,
        "swap": tuple(swap or ()),
        "precision": precision,
        "device": device,
        "only": tuple(only or ()),
        "controls": not no_controls,
        "baseline": baseline,
        "timeout": timeout,
        "command": ("lab", *words),
    }
    show = View(view, level=int(verbose) - int(quiet))
    return lambda: _run(request, lambda: early.framework(python), show, Outlets(junit, html))


def _run(request: dict[str, Any], framework: "Callable[[], Framework]", view: View, outlets: Outlets) -> int:
    progress = Progress(sys.stderr, quiet=view.level < 0)
    try:
        with redirect_stdout(sys.stderr):  # a user's lab may print; stdout carries the result alone
            finished = _finished(request, framework(), progress)
    except (Exception, KeyboardInterrupt) as error:
        publish_error(_sentence(error), request["command"], outlets)
        raise
    finally:
        progress.clear()
    try:
        publish(finished.report, finished.bundle, outlets)
    except CannotComplete as error:
        raise CannotComplete(f"{error}; the run itself is complete: {finished.bundle}") from error
    emit(_shown(finished, view))
    return int(finished.report["run"]["exit_code"])


def _sentence(error: BaseException) -> str:
    """What the files say of a run that ended without a verdict; a bug's traceback is in the log that stderr names."""
    if isinstance(error, RequestError | CannotComplete | NothingCompared):
        return str(error)
    return "interrupted" if isinstance(error, KeyboardInterrupt) else f"a bug in framework-lab: {error!r}"


def _finished(request: dict[str, Any], framework: "Framework", progress: Progress) -> "Finished":
    """Import the rest of the engine while the framework process imports torch."""
    with framework:
        set_up()
        from labs.core.run import Request  # NumPy, pydantic, yaml
        from labs.core.run import run as run_labs
        from labs.core.swaps import parsed

        return run_labs(Request(**{**request, "swap": parsed(request["swap"])}), framework, progress)


def _shown(finished: "Finished", view: View) -> str:
    if view.format == "json":
        return json.dumps(finished.report, indent=2, allow_nan=False)
    if view.format == "markdown":
        from labs.core.reports.markdown import markdown  # when asked for

        return markdown(finished.report)
    from cli.render import terminal  # while torch was importing it was not needed

    return terminal(finished.report, str(finished.bundle), look(sys.stdout, os.environ), view.level)
