"""The Typer app, and the one place where errors become a sentence and an exit code.

Commands parse and return what is to be done; it is done here, outside Typer, which would turn a broken pipe anywhere
in the engine into exit code 1. Nothing slow is imported until a command runs.
"""

import errno
import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Annotated, Any, NoReturn

import typer

from cli import diff, matrix, report, run, show, verify
from cli import list as list_command
from cli.early import Early, asked
from cli.main import INTERRUPTED
from cli.outlets import error_report
from cli.output import emit, say
from labs.core.errors import CannotComplete, NothingCompared, RequestError

CODES = {RequestError: 2, CannotComplete: 3, NothingCompared: 5}
USAGE, BUG = 2, 4
COMPLETION = "_LAB_COMPLETE"  # the shell sets it when it asks for completions

app = typer.Typer(
    name="lab",
    help="Check the mechanics of training code: NumPy float64 by hand against torch autograd, every value.",
    epilog="Exit codes: 0 passed, 1 a check failed, 2 the request was wrong, 3 the run could not be completed, "
    "4 a bug of ours, 5 nothing was compared, 130 interrupted.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
app.command("list")(list_command.list_configs)
app.command("show")(show.show)
app.command("run")(run.run)
app.command("verify")(verify.verify)
app.command("diff")(diff.diff)
app.command("matrix")(matrix.matrix)
app.command("report")(report.report)


def _version(value: bool) -> None:
    if value:
        from importlib.metadata import PackageNotFoundError, version  # slow, and for this option alone

        try:
            emit(f"framework-lab {version('framework-lab')}")
        except PackageNotFoundError:
            emit("framework-lab, a checkout that was never installed")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Options that stand before the command; `--version` acts while it is parsed."""


def perform(words: list[str], early: Early) -> int:
    """Run a command line and return its exit code; `early` has the framework process that it may want."""
    with suppress(AttributeError, ValueError):  # a stream of a test or an embedding program may not be a text file
        sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]
    try:
        with _signals_interrupt():
            return _perform(words, early)
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - the edge: everything ends here as an exit code
        code, sentence = _explained(error, words)
    say(f"lab: {sentence}")
    if asked(words, "--format") == "json":  # read without Typer, because its own errors count too
        with suppress(CannotComplete):  # when stdout itself is what failed
            emit(json.dumps(error_report(sentence, ("lab", *words), exit_code=code), indent=2))
    return code


def _perform(words: list[str], early: Early) -> int:
    try:
        action = app(args=words, prog_name="lab", standalone_mode=False, obj=(words, early), complete_var=COMPLETION)
    except SystemExit as stop:
        if COMPLETION in os.environ:
            raise
        return 0 if stop.code == 1 else BUG  # Typer leaves with 1 when the reader of --help has gone away
    return action() if callable(action) else int(action or 0)


@contextmanager
def _signals_interrupt() -> Iterator[None]:
    """SIGTERM and SIGHUP (the terminal is gone) raise KeyboardInterrupt, so that one path cleans up after all.

    What is ignored stays ignored: `nohup` means it.
    """

    def interrupt(_signal: int, _frame: Any) -> NoReturn:
        raise KeyboardInterrupt

    heeded = [s for s in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(s) is not signal.SIG_IGN]
    try:
        previous = {s: signal.signal(s, interrupt) for s in heeded}
    except ValueError:  # not the main thread: somebody else's process, somebody else's signals
        yield
        return
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _explained(error: BaseException, words: list[str]) -> tuple[int, str]:
    """The exit code and the sentence of an error; a traceback goes into a log file."""
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED, "interrupted"
    if hasattr(error, "format_message"):  # Typer's usage errors, whose class has no public name in every version
        command = getattr(getattr(error, "ctx", None), "command_path", None) or _command(words)
        return USAGE, f"{_flat(error.format_message())} (see {command} --help)"
    if isinstance(error, OSError) and error.filename is None and error.errno == errno.ENOSPC:  # from Typer's own echo
        return CODES[CannotComplete], f"stdout: {error.strerror}"
    code = next((code for kind, code in CODES.items() if isinstance(error, kind)), BUG)
    return code, _bug(error) if code == BUG else _lines(str(error))


def _command(words: list[str]) -> str:
    """Whose help says more, where the error itself does not: an option without its value knows no command."""
    known = {command.name for command in app.registered_commands}
    return " ".join(["lab", *(word for word in words[:1] if word in known)])


def _lines(text: str) -> str:
    """One sentence a line: a config can have several errors."""
    return "\n".join(_flat(line) for line in text.splitlines() if line.strip())


def _flat(text: str) -> str:
    return " ".join(text.split())


def _bug(error: BaseException) -> str:
    import tempfile
    import traceback

    what = f"a bug in framework-lab: {_flat(f'{type(error).__name__}: {error}')}"
    text = "".join(traceback.format_exception(error))
    try:
        descriptor, path = tempfile.mkstemp(prefix="framework-lab-", suffix=".log", text=True)
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as log:
            log.write(text)
    except OSError as disk:
        say(text)
        return f"{what}; no log could be written ({disk.strerror})"
    return f"{what}; the traceback is in {path}"
