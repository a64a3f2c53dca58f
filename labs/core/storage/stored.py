"""Reading one file of a bundle that a stranger may have made: plain files inside the folder, and bounded JSON.

Nothing is opened before `lstat` says that it is a plain file, because opening a FIFO hangs and following a link leads
out of the folder.
"""

import errno
import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any, Never

from labs.core.errors import RequestError

JSON_LIMIT = 64 << 20  # bytes: a report of a thousand checks is about one MiB


class DamagedBundle(RequestError):
    """A bundle is incomplete, changed or hostile; the sentence names the file."""


def shown(name: str) -> str:
    """Give a file name as it can be printed: one that holds control characters is quoted."""
    return name if name.isprintable() else ascii(name)


def plain_file(bundle: Path, name: str) -> Path:
    """Find the plain file `name` (parts joined by "/") below `bundle`, reached without a link; see `_plain`."""
    return _plain(bundle, name, stat.S_ISREG, "a plain file")


def plain_folder(bundle: Path, name: str) -> Path:
    """Find the folder `name` below `bundle`, reached without a link; see `_plain`."""
    return _plain(bundle, name, stat.S_ISDIR, "a folder")


def _plain(bundle: Path, name: str, is_wanted: Callable[[int], bool], wanted: str) -> Path:
    """Go down from `bundle`, looking at each part before it is followed.

    The bundle itself may be a link (`latest`). Raises DamagedBundle for a name that is not a clean relative path and
    for what is a link or not `wanted`, FileNotFoundError when there is nothing.
    """
    parts = name.split("/")
    if any(part in ("", ".", "..") or "\\" in part or "\0" in part for part in parts):
        raise DamagedBundle(f"{shown(name)}: leads out of the bundle; expected a relative path without '..'")
    path = bundle
    for depth, part in enumerate(parts, start=1):
        path /= part
        mode = _mode(path, name)
        is_last = depth == len(parts)
        if not (is_wanted(mode) if is_last else stat.S_ISDIR(mode)):
            expected = wanted if is_last else "a folder"
            raise DamagedBundle(f"{shown('/'.join(parts[:depth]))}: {kind_of(mode)}, expected {expected}")
    return path


def kind_of(mode: int) -> str:
    """Name what an `st_mode` describes, for a sentence."""
    kinds = ((stat.S_ISLNK, "a link"), (stat.S_ISDIR, "a folder"), (stat.S_ISREG, "a plain file"))
    return next((word for test, word in kinds if test(mode)), "a device, pipe or socket")


def read_json(bundle: Path, name: str) -> tuple[dict[str, Any], bytes]:
    """Read the JSON object in a file of the bundle, and its bytes. Raises DamagedBundle naming the file."""
    try:
        path = plain_file(bundle, name)
        if path.stat().st_size > JSON_LIMIT:
            raise DamagedBundle(f"{name}: {path.stat().st_size} bytes, expected at most {JSON_LIMIT}")
        raw = path.read_bytes()
        value = json.loads(raw.decode(), object_pairs_hook=_object, parse_constant=_refused)
    except FileNotFoundError:
        raise DamagedBundle(f"{name}: missing") from None
    except OSError as error:
        raise DamagedBundle(f"{name}: {error.strerror}") from None
    except RecursionError:
        raise DamagedBundle(f"{name}: nested too deeply") from None
    except ValueError as error:  # JSONDecodeError, UnicodeDecodeError, integers of too many digits
        raise DamagedBundle(f"{name}: not valid JSON: {error}") from None
    if not isinstance(value, dict):
        raise DamagedBundle(f"{name}: got {type(value).__name__}, expected a JSON object")
    return value, raw


def _mode(path: Path, name: str) -> int:
    try:
        return os.lstat(path).st_mode
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path)) from None
        raise DamagedBundle(f"{shown(name)}: {error.strerror}") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [key for key, _ in pairs]
        raise ValueError(f"key {next(n for n in names if names.count(n) > 1)!r} twice in one object")
    return found


def _refused(constant: str) -> Never:
    raise ValueError(f"{constant} is not JSON")
