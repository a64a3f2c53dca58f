"""Sentences about a framework process that ended too early. Standard library only."""

import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_LONGEST = 300  # characters of a last word
OLDEST = (3, 10)  # Python that the framework side is written for


def no_import(python: str, error: Mapping[str, Any]) -> str:
    """NumPy or torch could not be imported there."""
    module = error["module"]
    if error["missing"]:
        return f"{python} has no {module}: pip install {module} there, or name another interpreter with --python"
    return f"{module} can't be imported by {python}: {error['text']}"


def too_old(python: str, version: tuple[int, int]) -> str:
    """The interpreter is a Python before OLDEST."""
    found, wanted = (".".join(map(str, pair)) for pair in (version, OLDEST))
    return f"{python} is Python {found}; the framework side needs {wanted} or newer"


def died(python: str, phase: str, returncode: int, log: Path) -> str:
    """phase: "start" (it never said hello), "import", or "work"."""
    how = _how(returncode)
    words = _last_line(log)
    quoted = f"; its last words: {words}" if words else ""
    if phase == "start":
        return f"{python} is not a Python interpreter that can start: it {how}{quoted}"
    where = " while importing torch" if phase == "import" else ""
    return f"the framework process ({python}) {how}{where}{quoted}"


def _how(returncode: int) -> str:
    if returncode >= 0:
        return f"exited with {returncode}"
    try:
        return f"was killed by {signal.Signals(-returncode).name}"
    except ValueError:
        return f"was killed by signal {-returncode}"


def _last_line(log: Path) -> str:
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - 4096))
            lines = file.read().decode("utf-8", errors="replace").split("\n")
    except OSError:
        return ""
    printable = ["".join(c for c in line if c.isprintable()).strip() for line in lines]
    return next((line[-_LONGEST:] for line in reversed(printable) if line), "")
