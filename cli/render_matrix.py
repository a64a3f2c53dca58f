"""A matrix as terminal text: a block a variant, then the items that move with a column a variant, then the verdict."""

from collections.abc import Sequence
from typing import NamedTuple

from cli.output import Look, printable
from cli.render import INDENT, clipped, joined, more, painted, stacked, wrapped
from cli.render_diff import narrower
from labs.core.reports import matrix_summary as words
from labs.core.reports.diff_summary import setting_value
from labs.core.reports.summary import Record

IN_FULL = 12  # items of a config that are listed, until -v
NAME = 24  # columns that an item's name keeps on the narrowest terminal


def terminal(matrix: Record, look: Look, level: int = 0) -> str:
    """The matrix as text. `level` -1 is the verdict alone, 1 every item."""
    plain = printable(matrix)
    blocks: list[list[str]] = []
    if level >= 0:
        blocks = [_variants(plain, look), _items(plain, look, level), _facts(plain, look)]
    style = "green" if plain["run"]["exit_code"] == 0 else "red"
    return stacked([*blocks, joined(words.verdict(plain), look, style)])


def _variants(matrix: Record, look: Look) -> list[str]:
    """A numbered line a variant, and below it what moved, the least headroom, and what that comes from."""
    lines: list[str] = []
    for number, variant in enumerate(matrix["variants"], start=1):
        style = "" if variant["status"] == "passed" and not variant["fails"] else "red"
        head = [f"{number:>2}  {variant['name']} {variant['status']}", words.describes(variant)]
        lines += _hung(joined([part for part in head if part], narrower(look), style))
        told = [part for part in (words.finding(matrix, variant), words.least(variant)) if part]
        told = joined(told, narrower(narrower(look)))
        lines += [part for line in told for part in wrapped(f"    {line}", look, hang=6)]
        lines += wrapped(f"    {variant['cause']}", look, hang=6) if variant["cause"] else []
    return lines


def _hung(lines: Sequence[str]) -> list[str]:
    """A first line at the margin, the others under its text."""
    return [lines[0], *(INDENT + line for line in lines[1:])]


def _items(matrix: Record, look: Look, level: int) -> list[str]:
    """The items that move, a column a variant in the order of the list above."""
    shown = [(config, words.moving(config)) for config in matrix["configs"]]
    cells = [words.cell(c) for _, items in shown for item in items for c in item["cells"]]
    columns = _columns(
        max((len(item["name"]) for _, items in shown for item in items), default=0),
        max((len(cell) for cell in cells), default=0),
        len(matrix["variants"]),
        look,
    )
    lines: list[str] = []
    for config, items in shown:
        lines += ["", *_config(config, items if level > 0 else items[:IN_FULL], len(items), columns, look)]
    return [*lines[1:], "", *wrapped(words.legend(matrix), look)] if cells else lines[1:]


class Columns(NamedTuple):
    """Widths of the names and of a cell, and which variants stand side by side before the next table begins."""

    name: int
    cell: int
    tables: Sequence[range]


def _columns(name: int, cell: int, variants: int, look: Look) -> Columns:
    if look.width is None:
        return Columns(name, cell, [range(variants)])
    room = look.width - len(INDENT)
    side_by_side = max(1, min(variants, (room - min(name, NAME)) // (cell + 2)))
    starts = range(0, variants, side_by_side)
    widest = max(min(name, NAME), min(name, room - (cell + 2) * side_by_side))
    return Columns(widest, cell, [range(start, min(variants, start + side_by_side)) for start in starts])


def _config(config: Record, shown: Sequence[Record], moving: int, columns: Columns, look: Look) -> list[str]:
    same = f"{words.still(config)} of {len(config['items'])} items have the same bits in every variant that ran"
    lines = joined([config["name"], same], look)
    for side_by_side in columns.tables if shown else ():
        lines.append(painted(_line("", [str(n + 1) for n in side_by_side], columns), "dim", look))
        for item in shown:
            cells = [item["cells"][n] for n in side_by_side]
            line = _line(item["name"], [words.cell(c) for c in cells], columns)
            lines.append(painted(line, "red", look) if any(c["failed"] for c in cells) else line)
    return [*lines, *(INDENT + line for line in more(moving - len(shown)))]


def _line(name: str, cells: Sequence[str], columns: Columns) -> str:
    """An item's name cut to its column, then its cells."""
    text = [cell.rjust(columns.cell) for cell in cells]
    return "  ".join([INDENT + clipped(name, columns.name).ljust(columns.name), *text]).rstrip()


def _facts(matrix: Record, look: Look) -> list[str]:
    if not matrix["facts"]:
        return []
    lines = ["facts that differ, which are not judged"]
    for fact in matrix["facts"]:
        values = ", ".join(f"{n} {setting_value(v)}" for n, v in enumerate(fact["values"], start=1) if v)
        lines += wrapped(f"{INDENT}{fact['config']}: {fact['name']}: {values}", look, hang=4)
        lines += wrapped(f"{INDENT * 2}{fact['what']}", look, hang=4)
    return lines
