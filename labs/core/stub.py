"""A file to start from for one part of a lab: its signature, what it owes, and nothing done yet.

The signature is that of the lab's own part, read out of its torch_*.py as text (nothing is run), or made from the type
in parts.py where no function of that name is found.
"""

import ast
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from labs.core.errors import RequestError
from labs.core.lab import Lab
from labs.core.loading.nearest import nearest
from labs.core.part_fields import conventions, described, part_fields

LINE = 120
WIDTH = LINE - 8  # of a docstring's text, its quotes included
HOMES = {
    "Tensor": "torch",
    "Module": "torch.nn",
    "Any": "typing",
    "Path": "pathlib",
    **dict.fromkeys(("Callable", "Iterable", "Iterator", "Mapping", "Sequence"), "collections.abc"),
}
OWES = """Tensors come in the run's precision and go back in it. Autograd finds the way from the result to every input
that wants a gradient, and the inputs stay as they are."""
WRITES = "It works in place and returns None: what the docstring says is changed, everything else stays as it is."


class Signature(NamedTuple):
    """The parameters and the result of a part, as source text."""

    parameters: str
    result: str


def stub(lab: Lab, name: str, config: str) -> str:
    """The text of a Python file with the part `name` to be filled in. Raises RequestError: no such part."""
    fields = {field.name: field for field in part_fields(lab)}
    if name not in fields:
        raise RequestError(f"--part {name}: lab {lab.name} has no part {name!r}{nearest(name, fields)}")
    doc, written = described(fields[name])
    declared = _from_type(written)
    signature = next((s for s in _from_source(lab.path, name) if _alike(s, declared)), declared)
    owes = {"None": WRITES}.get(signature.result, OWES if "Tensor" in signature.result else "")
    body = [doc or f"{name}: {written}", conventions(lab), owes]
    lines = [
        f'"""Part `{name}` of the {lab.name} lab, to be filled in; then',
        "",
        f"lab run {config} --swap {name}={name}.py:{name}",
        '"""',
        "",
        *_imports(f"{signature.parameters} {signature.result}"),
        "",
        "",
        *_definition(name, signature),
        *_docstring(body),
        "    raise NotImplementedError",
    ]
    return "\n".join(lines) + "\n"


def _definition(name: str, signature: Signature) -> list[str]:
    line = f"def {name}({signature.parameters}) -> {signature.result}:"
    if len(line) <= LINE:
        return [line]
    rows = re.split(r", (?![^\[]*\])", signature.parameters)  # not inside brackets
    return [f"def {name}(", *(f"    {row}," for row in rows), f") -> {signature.result}:"]


def _docstring(paragraphs: list[str]) -> Iterator[str]:
    text = [line for p in paragraphs if p for line in ("", *_wrapped(p))][1:]
    escaped = [line.replace("\\", "\\\\").replace('"""', "'''") for line in text]
    yield f'    """{escaped[0]}'
    yield from (f"    {line}".rstrip() for line in escaped[1:])
    yield '    """'


def _wrapped(paragraph: str) -> list[str]:
    return textwrap.wrap(" ".join(paragraph.split()), WIDTH, break_long_words=False, break_on_hyphens=False)


def _imports(annotations: str) -> list[str]:
    """Import lines for the names in the annotations, the standard library first; `from __future__` spares the rest."""
    used = sorted(set(re.findall(r"[A-Za-z_]\w*", annotations)) & HOMES.keys())
    homes: dict[str, list[str]] = {}
    for word in used:
        homes.setdefault(HOMES[word], []).append(word)
    rows = [f"from {home} import {', '.join(homes[home])}" for home in sorted(homes)]
    own, torch = ([r for r in rows if r.startswith("from torch") is third] for third in (False, True))
    return ["from __future__ import annotations", *([""] if own else []), *own, *([""] if torch else []), *torch]


def _alike(found: Signature, declared: Signature) -> bool:
    """True when it takes as many parameters as parts.py declares: other functions may have the part's name."""
    return "*args" in declared.parameters or found.parameters.count(":") == declared.parameters.count(":")


def _from_source(folder: Path, name: str) -> Iterator[Signature]:
    """The signatures of the functions `name` in the lab's torch_*.py, faults left out."""
    files = [file for file in sorted(folder.glob("torch_*.py")) if "fault" not in file.name]
    for file in sorted(files, key=lambda file: file.name != "torch_parts.py"):
        try:
            tree = ast.parse(file.read_bytes())
        except (OSError, SyntaxError, ValueError):
            continue
        for node in tree.body:
            if isinstance(node, ast.FunctionDef) and node.name == name and node.returns is not None:
                spelled = _Spelled(tree)
                yield Signature(ast.unparse(spelled.visit(node.args)), ast.unparse(spelled.visit(node.returns)))


class _Spelled(ast.NodeTransformer):
    """Replaces a file's own type aliases by what they stand for."""

    def __init__(self, tree: ast.Module) -> None:
        rows = [node for node in tree.body if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)]
        named = [(node.targets[0], node.value) for node in rows if isinstance(node.value, ast.Subscript)]
        self._aliases = {target.id: value for target, value in named if isinstance(target, ast.Name)}

    def visit_Name(self, node: ast.Name) -> Any:
        return self._aliases.get(node.id, node)


def _from_type(written: str) -> Signature:
    """`Callable[[Tensor, float], Tensor]` or `(x, gamma) -> (0.5, 2.0)`, the latter as the rules lab writes it."""
    try:
        node = ast.parse(written.partition(" -> ")[0], mode="eval").body
    except SyntaxError:
        node = None
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple):
        taken, result = node.slice.elts
        types = [ast.unparse(kind) for kind in taken.elts] if isinstance(taken, ast.List) else []
        names = [f"{letter}: {kind}" for letter, kind in zip("abcdefghijklmnop", types, strict=False)]
        return Signature(", ".join(names) or "*args: Any, **kwargs: Any", ast.unparse(result))
    if isinstance(node, ast.Tuple | ast.Name):
        names = [ast.unparse(name) for name in (node.elts if isinstance(node, ast.Tuple) else [node])]
        return Signature(", ".join(f"{name}: Tensor" for name in names), "Tensor")
    return Signature("*args: Any, **kwargs: Any", "Any")
