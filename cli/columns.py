"""Text in columns, broken where a terminal ends: what does not fit goes on under its own column."""

import re
from collections.abc import Iterable

from cli.output import Look

LEFT = 0.6  # of the width: a column that begins beyond is too narrow to go on in


def fitted(lines: Iterable[str], look: Look) -> list[str]:
    """The lines, those that are longer than a terminal is wide broken at spaces; as they are where there is none."""
    if look.width is None:
        return list(lines)
    return [part for line in lines for part in _broken(line, look.width)]


def _broken(line: str, width: int) -> list[str]:
    if len(line) <= width:
        return [line]
    from textwrap import wrap  # a pipe needs none

    margin = len(line) - len(line.lstrip())
    columns = [found.end() for found in re.finditer(r"(?<=\S) {2,}", line) if found.end() <= LEFT * width]
    hang = " " * (columns[-1] if columns else margin + 2)
    return wrap(line, width, subsequent_indent=hang, break_long_words=False, break_on_hyphens=False)
