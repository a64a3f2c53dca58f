"""What every form of a matrix says in the same words. Pure functions over its document, standard library only."""

from collections.abc import Sequence

from labs.core.reports import diff_summary
from labs.core.reports.summary import Record, count, number, short

MARKS = {
    "bit-identical": "=",
    "last-bits": "~",
    "drift": "D",
    "fixed": "X",
    "added": "+",
    "not-comparable": "?",
    "still-failing": "F",
    "removed": "-",
    "regression": "R",
}
QUIET = ("bit-identical", "")


def describes(variant: Record) -> str:
    """What a variant runs on: torch, instruction set, threads, variables."""
    parts = [f"torch {variant['torch']}", variant["cpu_capability"]] if variant["torch"] else []
    parts += [count(variant["threads"], "thread")] if variant["threads"] else []
    return " · ".join([*(p for p in parts if p), *(f"{key}={value}" for key, value in variant["variables"].items())])


def finding(matrix: Record, variant: Record) -> str:
    """What became of a variant beside the first one: why it can't run, or what moved."""
    if variant["error"]:
        return str(variant["error"])
    if variant["name"] == matrix["base"]:
        return "the others are held against this one"
    return diff_summary.tally(variant["counts"])


def least(variant: Record) -> str:
    """The smallest headroom of a variant and the item that has it."""
    if not variant["least"]:
        return ""
    found = variant["least"]
    return f"{number(found['headroom']):.1f} decades left ({found['config']}: {found['name']})"


def moving(config: Record) -> list[Record]:
    """The items of a config that are not bit-identical in every variant, or failed in one."""
    return [i for i in config["items"] if any(c["class"] not in QUIET or c["failed"] for c in i["cells"])]


def still(config: Record) -> int:
    """How many items of a config are bit-identical in every variant that ran."""
    return len(config["items"]) - len(moving(config))


def decades(cell: Record) -> str:
    """The headroom of a cell, "-" where nothing measures it, "" where the variant has no such item."""
    return diff_summary.decades(cell["headroom"]) if cell["there"] else ""


def distance(cell: Record) -> str:
    """`7.2 ULP`, "" where nothing moved or it is not known how far."""
    return f"{short(cell['ulp'])} ULP" if cell["ulp"] is not None else ""


def cell(found: Record) -> str:
    """`~ 7.1`: the mark of the class, then the decades left; `!` before a value that failed."""
    mark = MARKS.get(found["class"], "")
    return " ".join(part for part in (f"{'!' * found['failed']}{mark}", decades(found)) if part)


def legend(matrix: Record) -> str:
    """The marks that are used, in words."""
    used = {c["class"] for config in matrix["configs"] for item in config["items"] for c in item["cells"]}
    words = [f"{mark} {name}" for name, mark in MARKS.items() if name in used]
    return ", ".join([*words, "! failed", "numbers are decades left"])


def verdict(matrix: Record) -> list[str]:
    """The parts of the last line."""
    variants: Sequence[Record] = matrix["variants"]
    stopped = [v["name"] for v in variants if v["error"]]
    failed = [v["name"] for v in variants if v["exit_code"] == 1 or v["fails"]]
    parts = [f"matrix {'not completed' if matrix['run']['status'] == 'error' else matrix['run']['status']}"]
    parts += [count(len(variants), "variant")]
    parts += [f"failed: {', '.join(failed)}"] if failed else []
    return [*parts, f"can't run: {', '.join(stopped)}"] if stopped else parts
