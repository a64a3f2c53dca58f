"""The manifest of a bundle: every file with size and sha256, written last.

There is one way to write it (`to_text`), so a changed byte in the manifest itself shows even where JSON would not care.
"""

import hashlib
import json
import os
import re
import stat
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from labs.core.storage.stored import DamagedBundle, read_json, shown

MANIFEST = "manifest.json"
SCHEMA = "framework-lab/manifest/1"
_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Entry:
    """One file of a bundle: its path below the bundle, its size in bytes, its sha256 in hexadecimal."""

    path: str
    size: int
    sha256: str


def files(bundle: Path) -> Iterator[tuple[str, int]]:
    """Walk all that is no folder below `bundle`, the manifest left out: (path, st_mode). Links are not followed."""
    for folder, folders, names in os.walk(bundle, onerror=_raise):
        folders.sort()
        links = [name for name in folders if (Path(folder) / name).is_symlink()]
        for name in sorted(names + links):
            path = Path(folder) / name
            relative = path.relative_to(bundle).as_posix()
            if relative != MANIFEST:
                yield relative, path.lstat().st_mode


def measure(bundle: Path, name: str) -> Entry:
    """Read one plain file in pieces: its entry."""
    with (bundle / name).open("rb") as file:
        return Entry(name, os.fstat(file.fileno()).st_size, hashlib.file_digest(file, "sha256").hexdigest())


def to_text(entries: Iterable[Entry]) -> str:
    """Write the manifest, sorted by path."""
    ordered = sorted(entries, key=lambda entry: entry.path)
    return json.dumps({"schema": SCHEMA, "files": [asdict(entry) for entry in ordered]}, indent=1) + "\n"


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
