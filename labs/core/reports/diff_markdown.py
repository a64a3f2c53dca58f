"""A difference as GitHub Markdown: environments first, then what got worse, then everything else.

Pure, and everything that comes from a bundle is escaped.
"""

from collections.abc import Iterator, Sequence

from labs.core.reports import diff_summary as words
from labs.core.reports.markdown_text import code, escaped, table
from labs.core.reports.summary import Record

ROWS = 500  # of one table: a summary on GitHub has a size limit, and the JSON form has them all


def markdown(diff: Record) -> str:
    """The difference as Markdown, ending with a newline."""
    lines = ["# framework-lab diff", "", *section(diff)]
    return "\n".join(lines).rstrip("\n") + "\n"


def section(diff: Record) -> Iterator[str]:
    """The difference without a heading, its verdict first, for a report of its own or a part of another one."""
    head, *rest = (escaped(part) for part in words.verdict(diff))
    yield from (" · ".join([f"**{head}**", *rest]), "")
    yield from (f"- {side}: {escaped(words.side_line(diff[side.lower()]))}" for side in ("A", "B"))
    yield from (*_environment(diff), *_configs(diff), *_changes(diff), *_facts(diff))


def _environment(diff: Record) -> Iterator[str]:
    rows = [[code(s["what"]), *(escaped(words.setting_value(s[k])) for k in ("a", "b"))] for s in diff["environment"]]
    if not rows:
        yield from ("", "The environments are the same.")
    yield from table("The environments differ", ("what", "A", "B"), rows, folded=False)
    if diff["cause"]:
        yield from ("", f"**{escaped(diff['cause'][0].upper() + diff['cause'][1:])}.**")


def _configs(diff: Record) -> Iterator[str]:
    rows = [
        [code(c["name"]), escaped(words.status(c)), escaped(words.tally(c["counts"])), escaped(c["obstacle"])]
        for c in diff["configs"]
    ]
    yield from table("Configs", ("config", "status", "checks", "not comparable because"), rows, folded=False)


def _changes(diff: Record) -> Iterator[str]:
    head = ("class", "config", "check", "status", "distance", "decades left", "what moved", "why")
    loud = [_row(group) for group in words.told_together(words.listed(diff))]
    quiet = [_row([c]) for c in diff["changes"] if c["class"] == "last-bits"]
    for title, rows, folded in (("What changed", loud, False), ("Last bits", quiet, True)):
        yield from table(title, head, rows[:ROWS], folded=folded)
        if len(rows) > ROWS:
            yield from ("", f"{len(rows) - ROWS} more are in the JSON form.")


def _row(group: Sequence[Record]) -> list[str]:
    first, alone = group[0], len(group) == 1
    name = f"{code(first['name'])} ({escaped(first['kind'])})" if alone else escaped(words.label(group))
    numbers = [escaped(f(first)) if alone else "" for f in (words.distance, words.headroom, words.moved)]
    loud = first["class"] if first["class"] in words.QUIET else f"**{first['class']}**"
    return [loud, code(first["config"]), name, escaped(words.status(first)), *numbers, escaped(first["why"])]


def _facts(diff: Record) -> Iterator[str]:
    rows = [
        [
            code(f["config"]),
            code(f["name"]),
            *(escaped(words.setting_value(f[k])) for k in ("a", "b")),
            escaped(f["what"]),
        ]
        for f in diff["facts"]
    ]
    head = ("config", "fact", "A", "B", "what")
    yield from table("Facts that differ, which are not judged", head, rows, folded=False)
