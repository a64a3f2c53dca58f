"""`lab report`: the reports again, from the bundle alone."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from cli import options
from cli.outlets import Outlets, write
from cli.output import emit, say
from labs.core.errors import RequestError

NAME = "report.md"
STRANGE = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
READABLE = 0o644  # a temporary file is for its owner alone


def report(
    bundle: options.Bundle,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where the HTML page goes; default: into the bundle.")
    ] = None,
    junit: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where the JUnit XML goes; default: into the bundle.")
    ] = None,
) -> Callable[[], int]:
    """Print a bundle's Markdown report; write its HTML and JUnit again.

    A report.md that is lost or damaged is put back.
    """
    return lambda: _report(bundle, Outlets(junit, html))


def _report(bundle: Path, outlets: Outlets) -> int:
    from hashlib import sha256

    from labs.core.bundle import read_manifest, read_report  # imports NumPy

    texts = _rendered(read_report(bundle), bundle)
    text = texts[NAME]
    entry = next((e for e in read_manifest(bundle) if e.path == NAME), None)
    if entry is not None and entry.sha256 == sha256(text.encode()).hexdigest():
        _put(bundle / NAME, text)
    else:
        say(f"lab: {bundle / NAME} is left as it is: the run wrote it with another version, and ours differs")
    for name, elsewhere in (("report.html", outlets.html), ("junit.xml", outlets.junit)):
        if elsewhere is None:
            _put(bundle / name, texts[name])
        else:
            write(elsewhere, texts[name])
    emit(text)
    return 0


def _rendered(record: dict[str, Any], bundle: Path) -> dict[str, str]:
    """The text of each report, by the name of its file in a bundle."""
    from labs.core.reports.junit import junit
    from labs.core.reports.markdown import markdown
    from labs.core.reports.page.page import page
    from labs.core.reports.page.stored import stored

    try:
        texts = {
            NAME: markdown(record),
            "report.html": page(record, stored(bundle), str(bundle)),
            "junit.xml": junit(record),
        }
    except STRANGE as error:  # a stranger's report.json is data
        raise RequestError(f"report.json: not as a run writes it ({type(error).__name__}: {error})") from error
    return {name: text.encode(errors="replace").decode() for name, text in texts.items()}  # no lone surrogates


def _put(path: Path, text: str) -> None:
    """Put a file into the bundle without ever writing through a link that a stranger's may hold."""
    from tempfile import NamedTemporaryFile

    content = text.encode()
    if path.is_file() and not path.is_symlink() and path.read_bytes() == content:
        return
    try:
        with NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
            file.write(content)
        Path(file.name).chmod(READABLE)
        Path(file.name).replace(path)
    except OSError as error:
        say(f"lab: {path} was not written: {error.strerror}")
