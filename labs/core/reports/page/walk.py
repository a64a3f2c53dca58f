"""The walk from the loss back to every input: what each node shows, and where it stands in the drawing of the graph."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from labs.core.lab import Array
from labs.core.reports import summary
from labs.core.reports.anchors import anchor, node_anchor
from labs.core.reports.page.stored import Absent, Stored, fetch
from labs.core.reports.summary import Record

NODES = 200  # of a walk; whoever reads a bundle does not choose what is in it
ROWS, COLUMNS = 8, 8  # numbers of an array that are written out
WIDE, HIGH, ACROSS, DOWN = 92, 24, 106, 46  # a box, and how far the next one is


class Shown(NamedTuple):
    """An array at a node: its item, where its check is on the page, shape and size, some of its numbers, or why not."""

    item: str
    href: str
    facts: str
    verdict: str
    numbers: str
    remark: str


class Stop(NamedTuple):
    """One node: its rules, its value and gradient, the nodes around it, its box in the drawing."""

    name: str
    id: str
    forward: str
    backward: str
    value: Shown
    gradient: Shown | None
    read_by: list[tuple[str, str]]
    reads: list[tuple[str, str]]
    x: int
    y: int
    status: str


class Walk(NamedTuple):
    """The stops from the loss on, and the drawing: its size and its edges as paths."""

    stops: list[Stop]
    width: int
    height: int
    edges: list[str]


def walk(lab: Record, arrays: Stored) -> Walk | None:
    """The walk of a config, None when its lab has none."""
    nodes = lab.get("walk", ())[:NODES]
    if not nodes:
        return None
    checks = {str(c["name"]): c for c in lab["checks"] if c["kind"] != "witness"}
    boxes = _boxes(nodes)
    stops = [_stop(lab, node, nodes, arrays, checks, boxes[node["name"]]) for node in nodes]
    width = max(x for x, _ in boxes.values()) + WIDE
    height = max(y for _, y in boxes.values()) + HIGH
    edges = [_edge(boxes[node["name"]], boxes[reader]) for node in nodes for reader in node["read_by"]]
    return Walk(stops, width, height, edges)


def _stop(
    lab: Record,
    node: Record,
    nodes: Sequence[Record],
    arrays: Stored,
    checks: Mapping[str, Record],
    box: tuple[int, int],
) -> Stop:
    name = str(node["name"])
    value = _shown(lab, node["value"], arrays, checks)
    gradient = _shown(lab, node["gradient"], arrays, checks) if node["gradient"] else None
    return Stop(
        name=name,
        id=node_anchor(lab, name),
        forward=str(node["forward"]),
        backward=str(node["backward"]),
        value=value,
        gradient=gradient,
        read_by=[(n, node_anchor(lab, n)) for n in node["read_by"]],
        reads=[(n["name"], node_anchor(lab, n["name"])) for n in nodes if name in n["read_by"]],
        x=box[0],
        y=box[1],
        status=_status(node, checks),
    )


def _status(node: Record, checks: Mapping[str, Record]) -> str:
    """`failed` where the value is wrong, `gradient` where only the gradient is, else `passed`."""
    wrong = [item in checks and checks[item]["status"] != "passed" for item in (node["value"], node["gradient"])]
    return "failed" if wrong[0] else "gradient" if wrong[1] else "passed"


def _shown(lab: Record, item: str, arrays: Stored, checks: Mapping[str, Record]) -> Shown:
    check = checks.get(item)
    href = anchor(lab, item) if check else ""
    verdict = f"torch: {summary.decades(check)}" if check else ""
    try:
        array = _array(arrays, item, is_item=check is not None)
    except Absent as why:
        return Shown(item, href, "", verdict, "", str(why))
    numbers, remark = written(array)
    return Shown(item, href, _facts(array), verdict, numbers, remark)


def _array(arrays: Stored, item: str, *, is_item: bool) -> Array:
    try:
        return fetch(arrays.reference, item)
    except Absent:
        if is_item:
            raise
        return fetch(arrays.inputs, item)


def _facts(array: Array) -> str:
    flat = np.asarray(array, np.float64).reshape(-1)
    if array.ndim == 0:
        return "a number"
    with np.errstate(all="ignore"):
        norm, low, high = float(np.sqrt(flat @ flat)), float(flat.min()), float(flat.max())
    return f"{' × '.join(map(str, array.shape))}, norm {norm:.4g}, from {low:.4g} to {high:.4g}"


def written(array: Array) -> tuple[str, str]:
    """Some numbers of an array in aligned columns, and which ones they are when not all."""
    lead = array.ndim - 2
    matrix = np.asarray(array[(0,) * lead] if lead > 0 else array, np.float64)
    matrix = matrix.reshape(1, -1) if matrix.ndim < 2 else matrix  # noqa: PLR2004
    shown = matrix[:ROWS, :COLUMNS]
    words = [[f"{value:.4g}" for value in row] for row in shown]
    width = max(len(word) for row in words for word in row)
    text = "\n".join("  ".join(word.rjust(width) for word in row) for row in words)
    return text, _which(array, matrix.shape)


def _which(array: Array, shape: tuple[int, ...]) -> str:
    """What `written` left out, "" when nothing."""
    rows, columns = shape
    slices = [f"[{'0, ' * (array.ndim - 2)}:, :] of {array.size // (rows * columns)} slices"]
    cut = [f"{ROWS} of {rows} rows"] * (rows > ROWS) + [f"{COLUMNS} of {columns} columns"] * (columns > COLUMNS)
    return ", ".join(slices * (array.size > rows * columns) + cut)


def _boxes(nodes: Sequence[Record]) -> dict[str, tuple[int, int]]:
    """Top left corners: a row for each distance from the loss (the longest way counts), every row in the middle."""
    depth: dict[str, int] = {}
    for node in nodes:
        depth[node["name"]] = 1 + max((depth[reader] for reader in node["read_by"]), default=-1)
    rows: dict[int, list[str]] = {}
    for name, level in depth.items():
        rows.setdefault(level, []).append(name)
    widest = max(len(names) for names in rows.values())
    return {
        name: ((widest - len(names)) * ACROSS // 2 + place * ACROSS, level * DOWN)
        for level, names in rows.items()
        for place, name in enumerate(names)
    }


def _edge(box: tuple[int, int], reader: tuple[int, int]) -> str:
    """From the foot of the node that reads to the head of the one that is read, as the gradient flows."""
    x1, y1, x2, y2 = reader[0] + WIDE // 2, reader[1] + HIGH, box[0] + WIDE // 2, box[1]
    if y2 - y1 <= DOWN:
        return f"M{x1} {y1}C{x1} {y1 + 14} {x2} {y2 - 14} {x2} {y2}"
    side = x1 + (y2 - y1) // 3 * (1 if x2 >= x1 else -1)  # a long way goes around what is between
    return f"M{x1} {y1}C{side} {y1 + 30} {side} {y2 - 30} {x2} {y2}"
