"""The manifest of a bundle: every file with size and sha256, written last.

There is one way to write it (`to_text`), so a changed byte in the manifest itself shows even where JSON would not care.
"""

import hashlib
import json
import os
import re
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from labs.core.storage.stored import DamagedBundle, plain_file, read_json, shown

MANIFEST = "manifest.json"
SCHEMA = "framework-lab/manifest/1"
_PIECE = 1 << 18  # bytes read at once
_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Entry:
    """One file of a bundle: its path below the bundle, its size in bytes, its sha256 in hexadecimal."""

    path: str
    size: int
    sha256: str


def files(bundle: Path) -> Iterator[tuple[str, int]]:
    """Walk all that is no folder below `bundle`, the manifest left out: (path, st_mode). Links are not followed."""
    top = len(os.path.join(bundle, ""))  # noqa: PTH118 - pathlib is slow, and files are many
    for folder, folders, names in os.walk(bundle, onerror=_raise):
        folders.sort()
        links = [name for name in folders if os.path.islink(f"{folder}/{name}")]  # noqa: PTH114
        for name in sorted(names + links):
            path = f"{folder}/{name}"
            relative = path[top:].replace(os.sep, "/")
            if relative != MANIFEST:
                yield relative, os.lstat(path).st_mode


def measure(bundle: Path, name: str) -> Entry:
    """Read one plain file in pieces: its entry."""
    with open(f"{bundle}/{name}", "rb") as file:  # noqa: PTH123 - pathlib is slow, and files are many
        digest, size = hashlib.sha256(), 0
        while piece := file.read(_PIECE):
            digest.update(piece)
            size += len(piece)
        return Entry(name, size, digest.hexdigest())


def complaint(bundle: Path, entry: Entry, *, contents: bool = True) -> str:
    """Say what is not as an entry says: absent, a link, another size, other contents where wanted; "" for nothing.

    Nothing is read outside the bundle. Raises OSError for a file that can't be read.
    """
    name = shown(entry.path)
    try:
        size = plain_file(bundle, entry.path).lstat().st_size
    except FileNotFoundError:
        return f"{name}: missing, though {MANIFEST} lists it"
    except DamagedBundle as error:
        return str(error)
    if size != entry.size:
        return f"{name}: {size} bytes, {MANIFEST} says {entry.size}"
    if contents and measure(bundle, entry.path).sha256 != entry.sha256:
        return f"{name}: changed: its sha256 is not the one in {MANIFEST}"
    return ""


def to_text(entries: Iterable[Entry]) -> str:
    """Write the manifest, sorted by path, a line for each file."""
    ordered = sorted(entries, key=lambda entry: entry.path)
    lines = ",\n".join(json.dumps(vars(entry)) for entry in ordered)
    return f'{{"schema": {json.dumps(SCHEMA)}, "files": [\n{lines}\n]}}\n'


def read_manifest(bundle: Path) -> tuple[Entry, ...]:
    """Read the entries of a bundle's manifest. Raises DamagedBundle when it is missing, malformed or not as written."""
    found, raw = read_json(bundle, MANIFEST)
    if found.get("schema") != SCHEMA:
        raise DamagedBundle(f"{MANIFEST}: schema is {found.get('schema')!r}, expected {SCHEMA!r}")
    listed = found.get("files")
    if not isinstance(listed, list):
        raise DamagedBundle(f"{MANIFEST}: files is no list")
    entries = tuple(_entry(item) for item in listed)
    if len({entry.path for entry in entries}) < len(entries):
        raise DamagedBundle(f"{MANIFEST}: a file is listed twice")
    if raw != to_text(entries).encode():
        raise DamagedBundle(f"{MANIFEST}: not as it was written, though it can be read")
    return entries


def is_plain(mode: int) -> bool:
    """Tell a plain file from a link, a pipe or a device."""
    return stat.S_ISREG(mode)


def _entry(item: object) -> Entry:
    match item:
        case {"path": str(path), "size": int(size), "sha256": str(sha256), **rest} if not rest:
            pass
        case _:
            raise DamagedBundle(f"{MANIFEST}: an entry is not {{path, size, sha256}}")
    if any(part in ("", ".", "..") or "\\" in part for part in path.split("/")) or path == MANIFEST:
        raise DamagedBundle(f"{MANIFEST}: {shown(path)} leads out of the bundle or to itself")
    if size < 0 or not _DIGEST.fullmatch(sha256):
        raise DamagedBundle(f"{MANIFEST}: {shown(path)}: not a size and a sha256")
    return Entry(path, size, sha256)


def _raise(error: OSError) -> None:
    raise error
