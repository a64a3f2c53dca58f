"""Heavy modules that a lab wants imported once, before its children are forked.

Standard library only, Python 3.10 syntax. The lab's torch_impl.py is read here, not run: a lab that crashes on import
must crash a child, not the worker.
"""

import ast
import importlib
import sys
from pathlib import Path


def preload(torch_impl: Path) -> None:
    """Import what the module-level tuple PRELOAD names; a module that can't be imported is left to its stage."""
    for name in _names(torch_impl):
        try:
            importlib.import_module(name)
        except Exception as error:  # noqa: BLE001 - the stage that needs it raises again, with its name on it
            sys.stderr.write(f"PRELOAD {name}: {type(error).__name__}: {error}\n")


def _names(file: Path) -> list[str]:
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return []
    for node in tree.body:
        if isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == ["PRELOAD"]:
            return _listed(node.value)
    return []


def _listed(value: ast.expr) -> list[str]:
    """The strings of a literal tuple or list; a stranger's file may have anything under that name."""
    elements = value.elts if isinstance(value, (ast.Tuple, ast.List)) else []
    return [e.value for e in elements if isinstance(e, ast.Constant) and isinstance(e.value, str)]
