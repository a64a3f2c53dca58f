"""The rules lab: a table of small numbers with right answers that anyone can check by hand."""

import numpy as np

from labs.core.lab import Lab, Rule, Stage, zero

from .config import Config
from .controls import CONTROLS
from .inputs import inputs
from .reference import reference
from .table import NONE, THEMES, Value

INTRODUCTION = """Kernel, torch and the number in the table agree three ways; the wrong number is the control.
Of each row: where it was seen and the rule; operands and result; the fault and its result."""

CANCELLED = {"label_double_shift/torch": "a loss far below its logits: its digits cancel"}


def equations() -> str:
    """The table as text, theme by theme."""
    lines = [*INTRODUCTION.splitlines()]
    for theme, rows in THEMES.items():
        lines += ["", theme]
        for row in rows:
            given = ", ".join(f"{name} {_text(value)}" for name, value in row.given.items())
            lines += [f"  {row.name} ({row.source}): {row.rule}"]
            lines += [f"    right  {given}: {_text(row.right)}", f"    wrong  {row.fault}: {_text(row.wrong)}"]
    return "\n".join(lines)


def _text(value: Value) -> str:
    if isinstance(value, tuple):
        return f"[{' '.join(map(_text, value))}]"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "-" if isinstance(value, int) and value == NONE else f"{value:.10g}"


def rules(config: Config) -> tuple[Rule, ...]:
    """`zero` for the rows whose right answer is nothing but 0."""
    chosen = [row for theme, rows in THEMES.items() if config.theme in ("all", theme) for row in rows]
    return tuple(zero(f"{row.name}/{side}") for row in chosen if _blank(row.right) for side in ("torch", "literal"))


def _blank(right: Value) -> bool:
    array = np.array(right)
    return array.dtype.kind == "f" and not array.any()


LAB = Lab(
    name="rules",
    title="small numbers that anyone can check by hand: kernel, torch and the table agree, the wrong one does not",
    equations=equations(),
    items={
        "*/torch": "the row's value: kernel against torch",
        "*/literal": "the row's value: kernel against the number in the table",
    },
    config=Config,
    inputs=inputs,
    reference=reference,
    rules=rules,
    witnesses=(),  # the table is the third leg
    stages=(Stage("rows", ("*/torch", "*/literal", "facts/*")),),
    controls=CONTROLS,
    footprint=lambda config: 1 << 20,
    unjudged={"float32": CANCELLED, "bfloat16": CANCELLED},
    facts={
        "facts/masked_row_nan": "attention by torch gives NaN to a query that sees no key (0 from torch 2.5 on)",
        "facts/masked_row_gradient_nan": "and NaN is the gradient of that query",
        "facts/empty_mean_nan": "the mean cross-entropy of no label is NaN (0 before torch 1.11)",
        "facts/trunc_normal_at_bound": "narrow trunc_normal_ draws in bfloat16 land on the far bound (pytorch 145498)",
    },
)
