"""A matrix as terminal text: a block a variant, then the items that move with a column a variant, then the verdict."""

from collections.abc import Sequence

from cli.output import Look
from cli.render import INDENT, clipped, joined, painted, wrapped
from cli.render_diff import printable
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
    lines = [line for block in blocks if block for line in [*block, ""]]
    return "\n".join([*lines, *joined(words.verdict(plain), look, style)])


def _variants(matrix: Record, look: Look) -> list[str]:
    """A numbered line a variant, and below it what moved, what that comes from, and the least headroom."""
    lines: list[str] = []
    for number, variant in enumerate(matrix["variants"], start=1):
        head = f"{number}  {variant['name']} {variant['status']}"
        style = "" if variant["status"] == "passed" and not variant["fails"] else "red"
        lines += joined([head, *filter(None, [words.describes(variant)])], look, style)
        told = [words.finding(matrix, variant), words.least(variant), variant["cause"]]
        lines += [line for text in told if text for line in wrapped(f"   {text}", look, hang=5)]
    return lines


def _items(matrix: Record, look: Look, level: int) -> list[str]:
    """The items that move, a column a variant in the order of the list above."""
    shown = [(config, words.moving(config)) for config in matrix["configs"]]
    cells = [words.cell(c) for _, items in shown for item in items for c in item["cells"]]
    width = max((len(cell) for cell in cells), default=0)
    widest = max((len(item["name"]) for _, items in shown for item in items), default=0)
    if look.width is not None:
        widest = max(NAME, min(widest, look.width - len(INDENT) - (width + 2) * len(matrix["variants"])))
    lines: list[str] = []
    for config, items in shown:
        lines += _config(config, items if level > 0 else items[:IN_FULL], len(items), (widest, width), look)
    return [*lines, *wrapped(words.legend(matrix), look)] if cells else lines


def _config(config: Record, shown: Sequence[Record], moving: int, widths: tuple[int, int], look: Look) -> list[str]:
    numbers = [str(n) for n in range(1, len(config["items"][0]["cells"]) + 1)] if config["items"] else []
    same = f"{words.still(config)} of {len(config['items'])} items have the same bits in every variant that ran"
    lines = joined([config["name"], same], look)
    if shown:
        lines.append(painted(_line("", numbers, widths), "dim", look))
    for item in shown:
        style = "red" if any(c["failed"] for c in item["cells"]) else ""
        line = _line(item["name"], [words.cell(c) for c in item["cells"]], widths)
        lines.append(painted(line, style, look) if style else line)
    rest = moving - len(shown)
    return [*lines, *([f"{INDENT}… and {rest} more (-v shows all)"] if rest else [])]


def _line(name: str, cells: Sequence[str], widths: tuple[int, int]) -> str:
    """An item's name cut to its column, then its cells."""
    columns = [cell.rjust(widths[1]) for cell in cells]
    return "  ".join([INDENT + clipped(name, widths[0]).ljust(widths[0]), *columns]).rstrip()


def _facts(matrix: Record, look: Look) -> list[str]:
    if not matrix["facts"]:
        return []
    lines = ["facts that differ, which are not judged"]
    for fact in matrix["facts"]:
        values = ", ".join(f"{n} {setting_value(v)}" for n, v in enumerate(fact["values"], start=1) if v)
        lines += wrapped(f"{INDENT}{fact['config']}: {fact['name']}: {values}", look, hang=4)
        lines += wrapped(f"{INDENT * 2}{fact['what']}", look, hang=4)
    return lines
