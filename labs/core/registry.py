"""Labs and shipped configs by name. What `lab list` and shell completion need imports the standard library only."""

import dataclasses
import importlib
import importlib.machinery
import importlib.util
import itertools
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import labs
from labs.core.errors import CannotComplete, RequestError
from labs.core.loading.nearest import nearest
from labs.core.process.sentence import sentence

if TYPE_CHECKING:
    from labs.core.lab import Lab

_USER = "user_lab_"  # how the packages of users' own labs are called
CONFIGS = Path(__file__).resolve().parents[2] / "configs"  # beside `labs`, in a checkout as in a wheel


class Shipped(NamedTuple):
    """A config that ships with the tool: the name of its lab, its one-line title, its file."""

    lab: str
    title: str
    path: Path


def shipped() -> dict[str, Shipped]:
    """Return every shipped config by name, in alphabetical order, read from the heads of the files alone."""
    return {path.stem: _head(path) for path in sorted(CONFIGS.glob("*.yaml"), key=lambda p: p.stem)}


def locate(name: str) -> Path:
    """Find what `name` means: a shipped config, else a file or folder of that path. Raises RequestError."""
    known = shipped()
    if name in known:
        return known[name].path
    if name and _exists(Path(name)):
        return Path(name)
    raise RequestError(f"{name or repr(name)}: no such config, file or lab folder{nearest(Path(name).stem, known)}")


def is_path(name: str) -> bool:
    """Whether a `lab:` value is the path of a folder and not the name of a shipped lab."""
    return "/" in name or "\\" in name or name.startswith(".")


def load(name: str) -> "Lab":
    """Load a lab by its name in `labs.NAMES` or by the path of its folder.

    A folder is imported by file location as a package of its own, so that its relative imports work. Raises
    RequestError: an unknown name, a folder without lab.py, a lab.py that can't be imported or defines no LAB.
    """
    if name in labs.NAMES:
        module = importlib.import_module(f"labs.{name}.lab")
        return _placed(module.LAB, f"labs.{name}", Path(str(module.__file__)).parent)
    folder = Path(name)
    if not name or not (is_path(name) or _exists(folder)):
        raise RequestError(f"{name or repr(name)}: no such lab{nearest(name, labs.NAMES)}")
    resolved = folder.resolve()
    if resolved.parent == Path(str(labs.__file__)).resolve().parent and resolved.name in labs.NAMES:
        return load(resolved.name)
    return _load_folder(folder, resolved)


@contextmanager
def user_code(lab: "Lab") -> Iterator[None]:
    """Turn an exception in the files of a user's own lab into a sentence with its place. Raises RequestError.

    In a lab that ships with the tool it would be our own bug, and stays what it is.
    """
    try:
        yield
    except (RequestError, CannotComplete):
        raise
    except Exception as error:
        if not lab.package.startswith(_USER):
            raise
        raise RequestError(f"{_origin(error, lab.path, lab.path)}: {sentence(error)}") from error


def _head(path: Path) -> Shipped:
    title = lab = ""
    with path.open(encoding="utf-8") as file:
        for line in file:
            if line.startswith("#") and not title:
                title = line.lstrip("#").strip()
            if line.startswith("lab:"):
                lab = line.removeprefix("lab:").split("#")[0].strip()
                break
    return Shipped(lab, title, path)


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # a name that is too long, a folder that may not be searched, a null byte
        return False


def _load_folder(folder: Path, resolved: Path) -> "Lab":
    if not _exists(resolved / "lab.py"):
        what = "it has no lab.py" if _exists(resolved) else "no such folder"
        raise RequestError(f"{folder}: not a lab folder, {what}")
    if os.fsencode(folder).decode(errors="ignore") != str(folder):
        raise RequestError(f"{folder}: the path of a lab stands in its config, so it has to be UTF-8")
    package = _free_name(resolved)
    try:
        _register(package, resolved)
        lab = getattr(importlib.import_module(f"{package}.lab"), "LAB", None)
    except (Exception, SystemExit) as error:
        _forget(package)
        raise RequestError(f"{_origin(error, folder, resolved)}: {sentence(error)}") from error
    return _placed(_fit(lab, folder), package, resolved)


def _placed(lab: "Lab", package: str, path: Path) -> "Lab":
    return dataclasses.replace(lab, package=package, path=path)


def _free_name(folder: Path) -> str:
    """Choose a package name: `user_lab_<folder>`, with a number when another folder of that name is loaded already."""
    stem = _USER + re.sub(r"\W", "_", folder.name, flags=re.ASCII)
    numbered = (f"{stem}_{number}" for number in itertools.count(2))
    for name in itertools.chain([stem], numbered):
        module = sys.modules.get(name)
        if module is None or list(module.__path__) == [str(folder)]:
            return name
    raise AssertionError  # the count never ends


def _register(package: str, folder: Path) -> None:
    if package in sys.modules:
        return
    importlib.invalidate_caches()  # the folder may be younger than what the finders remember
    start = folder / "__init__.py"
    if start.exists():
        spec = importlib.util.spec_from_file_location(package, start, submodule_search_locations=[str(folder)])
    else:
        spec = importlib.machinery.ModuleSpec(package, None, is_package=True)
        spec.submodule_search_locations = [str(folder)]
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[package] = module
    if spec.loader is not None:
        spec.loader.exec_module(module)


def _forget(package: str) -> None:
    """Take a half-imported package out again, so that a second attempt starts clean."""
    for name in [name for name in sys.modules if name == package or name.startswith(f"{package}.")]:
        del sys.modules[name]


def _origin(error: BaseException, folder: Path, resolved: Path) -> str:
    """Where in the user's folder an import failed, as file:line."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{folder / Path(error.filename).name}:{error.lineno}"
    place = f"{folder / 'lab.py'}"
    trace = error.__traceback__
    while trace is not None:
        file = Path(trace.tb_frame.f_code.co_filename)
        if file.is_relative_to(resolved):
            place = f"{folder / file.relative_to(resolved)}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place


def _fit(lab: object, folder: Path) -> "Lab":
    from labs.core.lab import Lab  # noqa: PLC0415  it imports NumPy, which `lab list` does without

    if lab is None:
        raise RequestError(f"{folder / 'lab.py'}: defines no LAB")
    if not isinstance(lab, Lab):
        raise RequestError(f"{folder / 'lab.py'}: LAB is a {type(lab).__name__}, expected a labs.core.lab.Lab")
    if not (dataclasses.is_dataclass(lab.config) and isinstance(lab.config, type)):
        raise RequestError(f"{folder / 'lab.py'}: config is {lab.config!r}, expected a dataclass")
    return lab
