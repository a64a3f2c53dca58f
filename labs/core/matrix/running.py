"""Every variant of a matrix, one after the other: each leaves a bundle, or a sentence that says why not."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from labs.core.errors import CannotComplete
from labs.core.launch import Framework
from labs.core.matrix.variants import Variant
from labs.core.reports.summary import Record
from labs.core.run import Progress, Request, run


@dataclass(frozen=True)
class Row:
    """What came of one variant: its report and bundle, or `error`."""

    variant: Variant
    report: Record | None = None
    bundle: Path | None = None
    error: str = ""


def run_all(request: Request, variants: Sequence[Variant], progress: Progress = lambda _text: None) -> tuple[Row, ...]:
    """Run every variant into a folder of its name below `request.out`.

    A variant that can't be completed is a row that says why. Raises RequestError and NothingCompared: what is asked
    for is the same for each of them.
    """
    heads = [f"[{number}/{len(variants)}] {variant.name}: " for number, variant in enumerate(variants, start=1)]
    return tuple(_row(request, v, progress, head) for v, head in zip(variants, heads, strict=True))


def _row(request: Request, variant: Variant, progress: Progress, head: str) -> Row:
    asked = replace(request, out=request.out / variant.name, threads=variant.threads or request.threads)
    try:
        with (
            TemporaryDirectory(prefix="framework-lab-") as scratch,
            Framework(variant.python, Path(scratch), variables=variant.variables) as framework,
        ):
            finished = run(asked, framework, lambda step: progress(head + step))
    except CannotComplete as error:
        return Row(variant, error=" ".join(str(error).split()))
    return Row(variant, finished.report, finished.bundle)
