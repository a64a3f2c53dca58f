"""Plain values written as YAML that `strict_yaml` reads back to equal values (and other YAML readers do, too)."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*")
_WORDS = {None: "null", True: "true", False: "false"}
_TAKEN = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})  # not texts, here or to other readers


def dump(tree: Mapping[str, Any], comments: Mapping[tuple[str, ...], str] | None = None) -> str:
    """Block mappings down to the values; lists, and mappings inside lists, on one line. `comments` stand above keys."""
    return "\n".join(_block(tree, comments or {}, ()) if tree else ["{}"]) + "\n"


def flow(value: object) -> str:
    """Write one value on one line."""
    if value is None or isinstance(value, bool):
        return _WORDS[value]
    if isinstance(value, float):
        return _float(value)
    if isinstance(value, str):
        return value if _is_plain(value) else quoted(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{flow(key)}: {flow(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(flow, value)) + "]"
    return str(value)


def quoted(text: str) -> str:
    """Write a text in double quotes on one line; every character that does not print becomes an escape."""
    return '"' + "".join(map(_character, text)) + '"'


def _block(tree: Mapping[str, Any], comments: Mapping[tuple[str, ...], str], path: tuple[str, ...]) -> Iterator[str]:
    indent = "  " * len(path)
    for key, value in tree.items():
        here = (*path, key)
        yield from (f"{indent}# {line}".rstrip() for line in comments.get(here, "").splitlines())
        if isinstance(value, Mapping) and value:
            yield f"{indent}{flow(key)}:"
            yield from _block(value, comments, here)
        else:
            yield f"{indent}{flow(key)}: {flow(value)}"


def _is_plain(text: str) -> bool:
    return _PLAIN.fullmatch(text) is not None and text.lower() not in _TAKEN


def _float(value: float) -> str:
    text = repr(value)
    if text in {"inf", "-inf", "nan"}:
        return text.replace("inf", ".inf").replace("nan", ".nan")
    return text if "." in text else text.replace("e", ".0e")  # YAML 1.1 takes 1e-09 for a text, 1.0e-09 for a number


def _character(character: str) -> str:
    if character in '"\\':
        return "\\" + character
    return character if character.isprintable() else f"\\U{ord(character):08x}"
