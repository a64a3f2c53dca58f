"""A map of an array's errors: each element by how far its error is from its limit, drawn as horizontal strokes.

The last two axes are rows and columns; each index of the axes before is a panel of its own, side by side, wrapped.
"""

import math
from itertools import groupby
from typing import NamedTuple

import numpy as np

from labs.core.reports.page.ratios import WORDS, Levels

WRAP = 48  # elements in a row: a longer single axis goes on in the next row
SIDE = 48  # rows and columns of a panel; more are shown as blocks that have their worst element's colour
PANELS = 16
WIDEST = 96  # units that panels fill before they wrap


class Heat(NamedTuple):
    """The map: its size in units, a path of strokes for each level, where the worst element is, and what was cut."""

    width: int
    height: int
    paths: list[tuple[int, str]]
    worst: tuple[int, int] | None
    legend: list[tuple[int, str]]
    remark: str


def heat(levels: Levels, worst: tuple[int, ...] | None) -> Heat:
    """Draw the levels of an array; `worst` is the index of the element to point at."""
    panels = _panels(levels)
    rows, columns = panels.shape[1:]
    kept, remark = _most_telling(panels)
    pooled = max(1, math.ceil(rows / SIDE)), max(1, math.ceil(columns / SIDE))
    if pooled != (1, 1):
        remark = " ".join([f"Each square is the worst of {pooled[0]} × {pooled[1]} elements.", remark]).strip()
    small = _pooled(panels[kept], *pooled)
    across = max(1, min(len(kept), WIDEST // (small.shape[2] + 1)))
    sheet = _sheet(small, across)
    place = _place(worst, levels.shape, kept, small.shape[1:], pooled, across)
    shown = sorted({int(v) for v in np.unique(sheet)} - {-1})
    paths, legend = [(v, _strokes(sheet, v)) for v in shown], [(v, WORDS[v]) for v in shown]
    return Heat(sheet.shape[1], sheet.shape[0], paths, place, legend, remark)


def _panels(levels: Levels) -> Levels:
    """[…,R,C] -> [P,R,C]; one long axis is wrapped, what the last row lacks is -1."""
    if levels.ndim > 1:
        return levels.reshape(-1, *levels.shape[-2:])
    flat = levels.reshape(-1)
    columns = min(WRAP, flat.size)
    rows = math.ceil(flat.size / columns)
    wrapped = np.full(rows * columns, -1, np.int8)
    wrapped[: flat.size] = flat
    return wrapped.reshape(1, rows, columns)


def _most_telling(panels: Levels) -> tuple[list[int], str]:
    """The panels to show: all, or those with the worst elements in their order."""
    count = len(panels)
    if count <= PANELS:
        return list(range(count)), ""
    badness = panels.reshape(count, -1).max(axis=1)
    kept = sorted(np.argsort(-badness, kind="stable")[:PANELS].tolist())
    return kept, f"{PANELS} of {count} slices are shown, those with the worst elements."


def _pooled(panels: Levels, rows: int, columns: int) -> Levels:
    """Blocks of `rows` by `columns` elements as their worst one."""
    count, height, width = panels.shape
    high, wide = math.ceil(height / rows), math.ceil(width / columns)
    padded = np.full((count, high * rows, wide * columns), -1, np.int8)
    padded[:, :height, :width] = panels
    blocks: Levels = padded.reshape(count, high, rows, wide, columns).max(axis=(2, 4))
    return blocks


def _sheet(panels: Levels, across: int) -> Levels:
    """All panels on one sheet, a unit apart; -1 where there is nothing."""
    count, rows, columns = panels.shape
    down = math.ceil(count / across)
    sheet = np.full((down * (rows + 1) - 1, across * (columns + 1) - 1), -1, np.int8)
    for number, panel in enumerate(panels):
        top, left = _corner(number, rows, columns, across)
        sheet[top : top + rows, left : left + columns] = panel
    return sheet


def _corner(panel: int, rows: int, columns: int, across: int) -> tuple[int, int]:
    return panel // across * (rows + 1), panel % across * (columns + 1)


def _place(
    worst: tuple[int, ...] | None,
    shape: tuple[int, ...],
    kept: list[int],
    size: tuple[int, ...],
    pooled: tuple[int, int],
    across: int,
) -> tuple[int, int] | None:
    """Where on the sheet (x, y) the element is; None when it is not shown or no index of that shape."""
    if worst is None or len(worst) != len(shape) or any(not 0 <= i < n for i, n in zip(worst, shape, strict=True)):
        return None
    if len(shape) < 2:  # noqa: PLR2004
        panel, row, column = 0, *divmod(worst[0] if worst else 0, WRAP)
    else:
        lead = int(np.ravel_multi_index(worst[:-2], shape[:-2])) if len(shape) > 2 else 0  # noqa: PLR2004
        if lead not in kept:
            return None
        panel, row, column = kept.index(lead), worst[-2], worst[-1]
    top, left = _corner(panel, size[0], size[1], across)
    return left + column // pooled[1], top + row // pooled[0]


def _strokes(sheet: Levels, level: int) -> str:
    """Horizontal strokes through all elements of a level: `M x y h length`, y in the middle of the row."""
    found: list[str] = []
    for y, row in enumerate(sheet):
        x = 0
        for value, run in groupby(row.tolist()):
            length = len(list(run))
            if value == level:
                found.append(f"M{x} {y}.5h{length}")
            x += length
    return "".join(found)
