"""What a matrix runs: interpreters, and for each of them one thing varied at a time.

Every interpreter runs once as it is, once for each named set of environment variables and once for each further number
of threads. Nothing is combined: which of two things moved a value would not be known.
"""

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from labs.core.errors import RequestError

MOST_THREADS = 1024
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,59}")  # a folder of that name holds the bundle
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PATIENCE = 60.0  # seconds for an interpreter to say which torch it has, on a cold disk
_ASK = "from importlib.metadata import version; print(version('torch'))"


@dataclass(frozen=True)
class Variant:
    """One run of a matrix; python None is this interpreter, threads None what each config says."""

    name: str
    python: Path | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    threads: int | None = None


def variants(pythons: Sequence[str], settings: Sequence[str], threads: str | None) -> tuple[Variant, ...]:
    """The runs that `--python NAME=PATH`, `--env NAME:KEY=VALUE` and `--threads 1,2` ask for, the first one first.

    Raises RequestError for what can't be read, a name given twice, and fewer than two runs.
    """
    sets, counts = _sets(settings), _counts(threads)
    found = [v for name, python in _interpreters(pythons) for v in _of(name, python, sets, counts)]
    doubled = [name for name, times in Counter(v.name for v in found).items() if times > 1]
    if doubled:
        raise RequestError(f"{doubled[0]}: two variants have this name; name them with --python NAME=PATH")
    if len(found) == 1:
        raise RequestError("one variant has nothing to be compared with: add --python, --env or --threads 1,2")
    return tuple(found)


def _of(
    name: str, python: Path | None, sets: Mapping[str, Mapping[str, str]], counts: Sequence[int | None]
) -> Iterator[Variant]:
    yield Variant(name, python, {}, counts[0])
    for label, variables in sets.items():
        yield Variant(f"{name}+{label}", python, variables, counts[0])
    for count in counts[1:]:
        yield Variant(f"{name}+{count}-threads", python, {}, count)


def _interpreters(pythons: Sequence[str]) -> list[tuple[str, Path | None]]:
    if not pythons:
        return [(_version(sys.executable) or "this-python", None)]
    found: list[tuple[str, Path | None]] = []
    for number, text in enumerate(pythons, start=1):
        name, equals, path = text.partition("=")
        if not equals or "/" in name:
            name, path = _version(text) or f"python-{number}", text
        if not path:
            raise RequestError(f"--python {text}: expected NAME=PATH or PATH")
        found.append((_checked(name, f"--python {text}"), Path(path)))
    return found


def _version(python: str) -> str:
    """`torch-2.9.0` for an interpreter that has that torch, "" for one that can't say."""
    try:
        done = subprocess.run(  # noqa: S603 - the interpreter that the user named
            [python, "-c", _ASK], capture_output=True, text=True, check=False, timeout=_PATIENCE
        )
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return ""
    version = done.stdout.strip().partition("+")[0]
    return f"torch-{version}" if done.returncode == 0 and _NAME.fullmatch(version) else ""


def _sets(settings: Sequence[str]) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for text in settings:
        name, colon, rest = text.partition(":")
        key, equals, value = rest.partition("=")
        if not colon or not equals or not _VARIABLE.fullmatch(key) or "\0" in value:
            raise RequestError(f"--env {text}: expected NAME:KEY=VALUE, such as avx2:ATEN_CPU_CAPABILITY=avx2")
        found.setdefault(_checked(name, f"--env {text}"), {})[key] = value
    return found


def _counts(threads: str | None) -> list[int | None]:
    if threads is None:
        return [None]
    words = threads.split(",")
    if not all(w.strip().isdecimal() and 1 <= int(w) <= MOST_THREADS for w in words) or len(set(words)) < len(words):
        raise RequestError(f"--threads {threads}: expected different numbers from 1 to {MOST_THREADS}, such as 1,2")
    return [int(word) for word in words]


def _checked(name: str, where: str) -> str:
    if not _NAME.fullmatch(name) or name == "latest":
        raise RequestError(f"{where}: {name!r} is no name: expected letters, digits and . _ + -, and not latest")
    return name
