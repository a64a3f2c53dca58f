"""`lab report`: the reports again, from the bundle alone."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from cli.output import emit, say
from labs.core.errors import RequestError

NAME = "report.md"


def report(
    bundle: Annotated[Path, typer.Argument(metavar="BUNDLE", help="The folder of a run.", show_default=False)],
) -> Callable[[], int]:
    """Print a bundle's Markdown report again, and put its report.md back when that is lost or damaged."""
    return lambda: _report(bundle)


def _report(bundle: Path) -> int:
    from hashlib import sha256

    from labs.core.bundle import read_manifest, read_report  # imports NumPy

    text = _rendered(read_report(bundle))
    entry = next((e for e in read_manifest(bundle) if e.path == NAME), None)
    if entry is not None and entry.sha256 == sha256(text.encode()).hexdigest():
        _restore(bundle / NAME, text.encode())
    else:
        say(f"lab: {bundle / NAME} is left as it is: the run wrote it with another version, and ours differs")
    emit(text)
    return 0


def _rendered(record: dict[str, Any]) -> str:
    from labs.core.reports.markdown import markdown

    try:
        return markdown(record)
    except (AttributeError, KeyError, TypeError, ValueError) as error:  # a stranger's report.json is data
        raise RequestError(f"report.json: not as a run writes it ({type(error).__name__}: {error})") from error


def _restore(path: Path, content: bytes) -> None:
    """Put the file back without ever writing through a link that a stranger's bundle may hold."""
    from tempfile import NamedTemporaryFile

    if path.is_file() and not path.is_symlink() and path.read_bytes() == content:
        return
    try:
        with NamedTemporaryFile(dir=path.parent, prefix=f".{NAME}.", delete=False) as file:
            file.write(content)
        Path(file.name).replace(path)
    except OSError as error:
        say(f"lab: {path} was not written: {error.strerror}")
