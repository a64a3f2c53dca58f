"""A bundle while it is being written: a hidden folder that becomes visible in one rename, whole or not at all.

The hidden folder's name reserves the final one: `mkdir` is exclusive, so of two runs in the same second the second
becomes `-2`. It is locked (`flock` on the folder) as long as its process lives, so the next run can tell what a killed
process left behind and remove it. Where a file system has no such locks nothing is removed.

`rename` can't replace a bundle: it refuses a target folder that is not empty, and a bundle holds its manifest.
"""

import fcntl
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain, count
from pathlib import Path

from labs.core.errors import CannotComplete, RequestError
from labs.core.storage.manifest import MANIFEST, files, is_plain, measure, to_text
from labs.core.storage.stored import kind_of
from labs.core.storage.writing import writing

LATEST = "latest"
_HIDDEN = re.compile(r"\.(framework-lab-\d{8}T\d{6}Z(?:-\d+)?)\.(?:partial|latest)")


@dataclass
class Draft:
    """A bundle that only its writer sees.

    `path` is the folder to write into, `name` the name that the bundle is going to have, `remark` what did not work
    out but harms nothing (`latest` stayed as it was).
    """

    out: Path
    name: str
    path: Path
    published: Path | None = None
    remark: str = ""

    def write(self, name: str, text: str) -> Path:
        """Write a text file of the bundle, as UTF-8. Raises CannotComplete naming the path."""
        path = self.path / name
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
        return path

    def publish(self) -> Path:
        """Write the manifest and make the bundle visible; its final path.

        Nothing waits for the disk (docs/decisions/0005-no-fsync.md): the rename is atomic for every process, and what a
        power failure may take is named by the manifest.
        Nothing that exists is ever replaced but the link `latest`. Raises CannotComplete naming the path.
        """
        _seal(self.path)
        with writing(self.out / self.name):
            self.published = _rename(self.path, _names(self.out, self.name))
        self.remark = _point_latest(self.out, self.name, self.published.name)
        return self.published


@contextmanager
def open_draft(out: Path, stamp: datetime) -> Iterator[Draft]:
    """Start a bundle of that moment below `out`; unless it is published inside the block, nothing remains.

    Raises RequestError when `out` is not a folder, CannotComplete when the disk refuses.
    """
    moment = stamp.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
    _make_out(out)
    _sweep(out)
    with writing(out):
        draft, lock = _reserve(out, f"framework-lab-{moment}")
    try:
        yield draft
    finally:
        if draft.published is None:
            shutil.rmtree(draft.path, ignore_errors=True)
        os.close(lock)


def _make_out(out: Path) -> None:
    with writing(out):
        if os.path.lexists(out) and not out.is_dir():
            raise RequestError(f"{out}: not a folder, so no bundle can be put there")
        out.mkdir(parents=True, exist_ok=True)


def _names(out: Path, name: str) -> Iterator[Path]:
    """Yield the names for a bundle that nothing has at this moment, in order of preference."""
    numbered = (f"{name}-{number}" for number in count(2))
    return (out / free for free in chain([name], numbered) if not os.path.lexists(out / free))


def _reserve(out: Path, name: str) -> tuple[Draft, int]:
    for final in _names(out, name):
        path = out / f".{final.name}.partial"
        try:
            path.mkdir()
        except FileExistsError:
            continue
        lock = _lock(path, sure=False)
        if lock is None:
            continue
        if not os.path.lexists(final):
            return Draft(out, final.name, path), lock
        path.rmdir()  # the name was published between the look and the mkdir
        os.close(lock)
    raise AssertionError  # numbers do not end


def _lock(folder: Path, *, sure: bool) -> int | None:
    """Lock a folder: the descriptor that holds it, None when another process has it or removed it.

    Where the file system has no locks: None when the caller has to be `sure`.
    """
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None
    if _held(descriptor, folder, sure=sure):
        return descriptor
    os.close(descriptor)
    return None


def _held(descriptor: int, folder: Path, *, sure: bool) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        if sure:
            return False
    try:
        return os.path.samestat(os.fstat(descriptor), folder.lstat())
    except FileNotFoundError:
        return False


def _sweep(out: Path) -> None:
    """Remove what killed processes left; a living owner that was about to lock its folder takes another name."""
    with suppress(OSError):
        for path in list(out.iterdir()):
            found = _HIDDEN.fullmatch(path.name)
            if found:
                with suppress(OSError):
                    _remove(path, out / found[1])


def _remove(path: Path, final: Path) -> None:
    link = path.is_symlink()
    owner = final if link else path  # a link to become `latest` belongs to the process that holds the bundle
    lock = _lock(owner, sure=True)
    if lock is None and os.path.lexists(owner):
        return
    if link:
        path.unlink()
    else:
        shutil.rmtree(path, ignore_errors=True)
    if lock is not None:
        os.close(lock)


def _seal(folder: Path) -> None:
    with writing(folder):
        found = list(files(folder))
        for name, mode in found:
            if not is_plain(mode):
                raise CannotComplete(f"{folder / name}: {kind_of(mode)}; a bundle holds plain files only")
        entries = [measure(folder, name) for name, _ in found]
        (folder / MANIFEST).write_text(to_text(entries), encoding="utf-8", newline="\n")


def _rename(source: Path, names: Iterator[Path]) -> Path:
    for final in names:
        try:
            source.rename(final)
        except OSError:
            if not os.path.lexists(final):
                raise
        else:
            return final
    raise AssertionError  # numbers do not end


def _point_latest(out: Path, name: str, target: str) -> str:
    latest, fresh = out / LATEST, out / f".{name}.latest"
    if os.path.lexists(latest) and not latest.is_symlink():
        return f"{latest}: not a link, so it stays as it is and does not point to {target}"
    try:
        fresh.symlink_to(target)
        fresh.replace(latest)
    except OSError as error:
        with suppress(OSError):
            fresh.unlink()
        return f"{latest}: can't point to {target}: {error.strerror}"
    return ""
