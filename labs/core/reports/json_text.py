"""report.json as text: a line for each check, control, stage and table, so that it can be read, searched and compared.

Numbers that JSON does not have are words in it: "nan", "inf", "-inf". The innermost records are written by json's own
fast encoder; indenting everything would take ten times as long.
"""

import json
import math
from collections.abc import Mapping
from typing import Any

_DEEP = 4  # levels that are laid out: report, labs, one lab, its checks


def json_text(value: Any) -> str:
    """The text of a JSON document, with a line end. Raises ValueError for NaN and infinities."""
    return _laid_out(value, 0) + "\n"


def writable(value: Any) -> Any:
    """The same value as a JSON file in UTF-8 can hold it, all the way down.

    NaN and infinities become the strings "nan", "inf", "-inf"; half a character, as errors and file names of other
    encodings can have, becomes "?".
    """
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, str) and not value.isascii():
        return value.encode(errors="replace").decode()
    if isinstance(value, Mapping):
        return {k: writable(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [writable(v) for v in value]
    return value


def _laid_out(value: Any, level: int) -> str:
    if level < _DEEP and value and isinstance(value, Mapping):
        return _block("{}", [f"{_flat(key)}: {_laid_out(v, level + 1)}" for key, v in value.items()], level)
    if level < _DEEP and isinstance(value, list) and any(isinstance(v, Mapping) for v in value):
        return _block("[]", [_laid_out(v, level + 1) for v in value], level)
    return _flat(value)


def _block(brackets: str, lines: list[str], level: int) -> str:
    indent = "\n" + " " * level
    return f"{brackets[0]}{indent} {f',{indent} '.join(lines)}{indent}{brackets[1]}"


def _flat(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
