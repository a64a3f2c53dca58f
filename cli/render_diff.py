"""A difference as terminal text: environments first, then what got worse, then a line a config and the verdict.

What comes from a bundle is shown without its control characters: a name can't colour, move or clear a terminal.
"""

from collections.abc import Iterator, Sequence

from cli.output import Look, printable
from cli.render import INDENT, joined, more, painted, stacked, table, wrapped
from labs.core.reports import diff_summary as words
from labs.core.reports.summary import Record

IN_FULL = 20  # changes of a class that are listed, until -v
STYLES = {"regression": "red", "removed": "red", "still-failing": "red", "fixed": "green"}


def terminal(diff: Record, look: Look, level: int = 0) -> str:
    """The difference as text. `level` -1 is the verdict alone, 1 every change; bit-identical ones are only counted."""
    plain = printable(diff)
    blocks: list[list[str]] = []
    if level >= 0:
        configs = [line for c in plain["configs"] for line in joined(words.config_line(c), look)]
        blocks = [_sides(plain, look), *against(plain, look, level), _facts(plain, look), configs]
    style = "green" if plain["run"]["status"] == "passed" else "red"
    return stacked([*blocks, joined(words.verdict(plain), look, style)])


def against(diff: Record, look: Look, level: int) -> list[list[str]]:
    """The blocks that say what moved and what the environments have to do with it."""
    plain = printable(diff)
    return [_environment(plain, look), *_classes(plain, look, level)]


def verdict(diff: Record) -> list[str]:
    """The parts of the last line."""
    return words.verdict(printable(diff))


def _sides(diff: Record, look: Look) -> list[str]:
    return [line for name in ("A", "B") for line in wrapped(f"{name}  {words.side_line(diff[name.lower()])}", look)]


def _environment(diff: Record, look: Look) -> list[str]:
    """What differs between the environments, likeliest cause first, and what that suggests."""
    if not diff["environment"]:
        lines = ["the environments are the same"]
    else:
        lines = ["the environments differ:"]
        lines += _indented(table([("what", "A", "B"), *_settings(diff["environment"], look)], narrower(look)))
    return lines + (wrapped(diff["cause"], look) if diff["cause"] else [])


def _settings(found: Sequence[Record], look: Look) -> list[tuple[str, str, str]]:
    """Rows whose values are cut to what the longest name leaves them."""
    longest = max(len(s["what"]) for s in found)
    most = 40 if look.width is None else max(12, min(40, (look.width - longest - 8) // 2))
    return [(s["what"], *(words.setting_value(s[side], most) for side in ("a", "b"))) for s in found]


def _classes(diff: Record, look: Look, level: int) -> Iterator[list[str]]:
    """One block a class, worst class first."""
    changes = words.listed(diff, everything=level > 0)
    for name in diff["counts"]:
        groups = list(words.told_together([c for c in changes if c["class"] == name]))
        if not groups or name == "bit-identical":
            continue
        shown = groups if level > 0 else groups[:IN_FULL]
        lines = [painted(f"{name} ({diff['counts'][name]})", STYLES.get(name, "yellow"), look)]
        lines += [line for group in shown for line in _indented(_entry(group, narrower(look)))]
        yield [*lines, *_indented(more(len(groups) - len(shown)))]


def _entry(group: Sequence[Record], look: Look) -> list[str]:
    """One change, or several that share a reason: what, how far, its headroom, which side, and why."""
    first = group[0]
    parts = [f"{first['config']}: {words.label(group)}", words.status(first)]
    if len(group) == 1:
        decades = words.headroom(first)
        parts += [words.distance(first), f"{decades} decades" if decades else "", words.moved(first)]
    lines = joined([p for p in parts if p], look)
    return [*lines, *wrapped(f"{INDENT}{first['why']}", look)] if first["why"] else lines


def _facts(diff: Record, look: Look) -> list[str]:
    if not diff["facts"]:
        return []
    lines = [f"facts that differ, which are not judged ({len(diff['facts'])})"]
    for fact in diff["facts"]:
        values = f"{words.setting_value(fact['a'])} → {words.setting_value(fact['b'])}"
        told = joined([f"{fact['config']}: {fact['name']}", values], narrower(look))
        lines += _indented([*told, *wrapped(f"{INDENT}{fact['what']}", narrower(look))])
    return lines


def _indented(lines: Sequence[str]) -> list[str]:
    return [INDENT + line for line in lines]


def narrower(look: Look) -> Look:
    """The same look, two columns narrower, for what is indented."""
    return Look(None if look.width is None else look.width - len(INDENT), look.colour)
