"""Where a swapped-in callable comes from: file, line, bytes, and the libraries that its file imports.

Standard library only, Python 3.10 syntax.
"""

import ast
import hashlib
import os
import sys
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

_OURS = {"torch", "numpy", "labs"}  # the report has their versions already


def described(part: str, source: str, module: ModuleType, made: Any, code: CodeType | None) -> dict[str, Any]:
    """{part, file, line, sha256, libraries} for the report, and `path`, the file's absolute path.

    source: as the user named it; made: the callable; code: its code, None where it has none (line is 0 then).
    """
    origin = source.rpartition(":")[0]
    path, named = os.path.abspath(module.__file__ or ""), origin.endswith(".py")  # noqa: PTH100 - links kept
    if code is not None and not named:
        path = code.co_filename  # a package may hand on what another file defines
    content = _content(path)
    return {
        "part": part,
        "file": origin if named else path,
        "line": code.co_firstlineno if code is not None and code.co_filename == path else 0,
        "sha256": hashlib.sha256(content).hexdigest() if content else "",
        "libraries": _versions(_imported(content) if named else {origin.split(".")[0]}),
        "path": path,
    }


def _content(file: str) -> bytes:
    try:
        return Path(file).read_bytes() if file.endswith(".py") else b""
    except OSError:
        return b""


def _imported(content: bytes) -> set[str]:
    """The top-level names of what a file imports, at any depth."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(content)):
        if isinstance(node, ast.Import):
            names.update(alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names.add(str(node.module).split(".")[0])
    return names


def _versions(names: set[str]) -> list[str]:
    """Those that were really loaded, and are no part of Python, each with its version where it tells one."""
    loaded = sorted(names.intersection(sys.modules) - sys.stdlib_module_names - _OURS)
    return [f"{name} {getattr(sys.modules[name], '__version__', '')}".strip() for name in loaded]
