"""A matrix as GitHub Markdown: variants, then the items that move, then the facts that differ. Pure."""

from collections.abc import Iterator

from labs.core.reports import matrix_summary as words
from labs.core.reports.diff_summary import setting_value
from labs.core.reports.markdown_text import code, escaped, table
from labs.core.reports.summary import Record

ROWS = 200  # items of a config


def markdown(matrix: Record) -> str:
    """The matrix as Markdown, ending with a newline."""
    head, *rest = (escaped(part) for part in words.verdict(matrix))
    lines = ["# framework-lab matrix", "", " · ".join([f"**{head}**", *rest])]
    lines += [*_variants(matrix), *_causes(matrix)]
    for config in matrix["configs"]:
        lines += _config(matrix, config)
    lines += _facts(matrix)
    return "\n".join(lines).rstrip("\n") + "\n"


def _variants(matrix: Record) -> Iterator[str]:
    rows = [
        [
            code(v["name"]),
            escaped(words.describes(v)),
            escaped(v["status"]) if v["status"] == "passed" else f"**{escaped(v['status'])}**",
            escaped(words.finding(matrix, v)),
            escaped(words.least(v)),
        ]
        for v in matrix["variants"]
    ]
    yield from table("Variants", ("variant", "runs on", "status", "against the first", "least"), rows, folded=False)


def _causes(matrix: Record) -> Iterator[str]:
    rows = [[code(v["name"]), escaped(v["cause"])] for v in matrix["variants"] if v["cause"]]
    yield from table("Why", ("variant", "what its environment suggests"), rows, folded=False)


def _config(matrix: Record, config: Record) -> Iterator[str]:
    moving = words.moving(config)
    yield from ("", f"## {escaped(config['name'])}", "")
    yield f"{words.still(config)} of {len(config['items'])} items have the same bits in every variant that ran."
    head = ["item", *(code(v["name"]) for v in matrix["variants"])]
    rows = [[code(item["name"]), *(_cell(c) for c in item["cells"])] for item in moving[:ROWS]]
    yield from table("Items that move: class, distance, decades left", head, rows, folded=len(rows) > ROWS // 4)
    if len(moving) > ROWS:
        yield from ("", f"{len(moving) - ROWS} more are in the JSON form.")


def _cell(cell: Record) -> str:
    """`drift 7.2 ULP, 6.8`: what is worse than the first variant, or failed, in bold."""
    name = escaped(cell["class"] or ("failed" if cell["failed"] else ""))
    shown = f"**{name}**" if cell["failed"] or cell["class"] in ("regression", "removed") else name
    parts = [" ".join(part for part in (shown, words.distance(cell)) if part), words.decades(cell)]
    return ", ".join(part for part in parts if part)


def _facts(matrix: Record) -> Iterator[str]:
    head = ["fact", *(code(v["name"]) for v in matrix["variants"]), "what"]
    rows = [
        [code(f["name"]), *(escaped(setting_value(value)) for value in f["values"]), escaped(f["what"])]
        for f in matrix["facts"]
    ]
    if rows:
        yield from ("", "## Facts")
    yield from table("Facts that differ, which are not judged", head, rows, folded=False)
