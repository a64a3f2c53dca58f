"""Where a report goes beside stdout: the files that were asked for, and GitHub when it runs us."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cli.output import say
from labs.core.errors import CannotComplete, RequestError

if TYPE_CHECKING:
    from labs.core.reports.summary import Record


@dataclass(frozen=True)
class Outlets:
    """The files for JUnit XML and for the HTML page; None: not asked for."""

    junit: Path | None = None
    html: Path | None = None

    def __post_init__(self) -> None:
        """Refuse what can't be a file before anything is run."""
        require_files(self.junit, self.html)


def require_files(*paths: Path | None) -> None:
    """Refuse what can't be a file before anything is done. Raises RequestError."""
    for path in paths:
        if path is not None and path.is_dir():
            raise RequestError(f"{path}: a folder, expected the file to write")


def publish(report: "Record", bundle: Path | None, outlets: Outlets) -> None:
    """Write the files that were asked for, and tell GitHub. Raises CannotComplete naming a file that can't be written.

    `bundle` holds the arrays that the page draws; None: there is none, as when the run did not get that far.
    """
    if outlets.junit is not None:
        from labs.core.reports.junit import junit

        write(outlets.junit, junit(report))
    if outlets.html is not None:
        from labs.core.reports.page.page import page  # jinja2
        from labs.core.reports.page.stored import stored

        write(outlets.html, page(report, stored(bundle), str(bundle or "")))
    if os.environ.get("GITHUB_ACTIONS") == "true":
        _tell_github(report)


def publish_error(sentence: str, command: Sequence[str], outlets: Outlets) -> None:
    """The same for a run that ended without a verdict, so that no file of an earlier run is taken for this one's.

    What can't be written is said and no more: the error itself is the news.
    """
    from labs.core.reports.json_text import writable

    try:
        publish(writable(error_report(sentence, command)), None, outlets)
    except CannotComplete as error:
        say(f"lab: {error}")


def error_report(sentence: str, command: Sequence[str], **facts: object) -> dict[str, object]:
    """The report of a command that ended without a verdict; `facts` go with the sentence, such as its exit code."""
    run = {"status": "error", **facts, "sentence": sentence, "command": list(command)}
    return {"schema": "framework-lab/report/1", "run": run, "environment": {}, "labs": []}


def write(path: Path, text: str) -> None:
    """Write a file that the user named, its folder made as needed. Raises CannotComplete naming it."""
    from labs.core.storage.writing import writing

    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")


def _tell_github(report: "Record") -> None:
    """Annotations go to stderr, which GitHub reads as well, so that stdout stays the result."""
    from labs.core.reports.github import annotations, step_summary

    for command in annotations(report):
        say(command)
    path = os.environ.get("GITHUB_STEP_SUMMARY")
    if not path:
        return
    try:
        with Path(path).open("a", encoding="utf-8", newline="\n") as file:
            file.write(step_summary(report, file.tell()))
    except OSError as error:
        say(f"lab: the step summary {path} was not written: {error.strerror}")
