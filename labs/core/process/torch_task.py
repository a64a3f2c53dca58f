"""One task in a child of the framework process: load, swap, call the stage, save. Python 3.10 syntax."""

import os
import time
import traceback
from pathlib import Path
from typing import Any

import torch

from labs.core.place import Place
from labs.core.process.jobs import Job, Outcome, Task
from labs.core.process.reuse import Memory, left, noting
from labs.core.process.swap import StageError, Swap, guilty, lab_module, load_swap, with_swaps
from labs.core.process.torch_items import arrays_of, load_inputs, save_items
from labs.core.setting import rebuild

_LONGEST = 20_000  # characters of a traceback that are kept: its end says what happened


def attempt(job: Job, index: int, rank: int, ranks: int, memory: Memory) -> Outcome:
    """Run task `index` of a job; an exception of any kind is an outcome too."""
    began = time.perf_counter()
    task = job.tasks[index]
    swaps: list[Swap] = []
    try:
        _start_clean()
        _load_swaps(job, task, swaps)
        parts = with_swaps(
            lab_module(job.package, job.path, "torch_impl").PARTS, {swap.part: swap.callable for swap in swaps}
        )
        known = memory.same(task) if ranks == 1 else None
        place = Place(rank, ranks, Path(task.scratch), Path(task.checkpoints))
        written, same = _perform(job, task, parts, place, memory) if known is None else ((), known)
    except BaseException as error:  # noqa: BLE001 - a user's code may raise anything, sys.exit included
        return failure(error, index, rank, swaps, time.perf_counter() - began)
    return Outcome(index, rank, "ok", written, same, seconds=time.perf_counter() - began)


def _start_clean() -> None:
    """Undo what an earlier task of the job may have left behind in torch."""
    torch.set_grad_enabled(True)
    torch.set_default_dtype(torch.float32)
    torch.default_generator.manual_seed(0)  # what torch.manual_seed does on a CPU, without its look for accelerators


def _load_swaps(job: Job, task: Task, swaps: list[Swap]) -> None:
    for part, source in task.swap.items():
        swaps.append(Swap(part, None, ""))  # until it is loaded, an error while loading it is this part's
        swaps[-1] = load_swap(part, source, job.package, job.path)


def _perform(
    job: Job, task: Task, own_parts: Any, place: Place, memory: Memory
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    lab = lab_module(job.package, job.path, "torch_impl")
    if task.stage not in lab.STAGES:
        raise StageError(f"there is no stage {task.stage!r}; the stages are {', '.join(lab.STAGES)}")
    config = rebuild(lab_module(job.package, job.path, "config").Config, task.config)
    noted = memory.wants(task)
    parts, read = noting(own_parts) if noted else (own_parts, set())
    for folder in (task.scratch, task.checkpoints):
        if not os.path.isdir(folder):  # noqa: PTH112 - pathlib is slow, and this is often
            os.makedirs(folder, exist_ok=True)  # noqa: PTH103
    before = left(task) if noted else ()
    result = lab.STAGES[task.stage](config, load_inputs(task.inputs), parts, place)
    items = arrays_of(task.stage, result)
    if noted:
        memory.note(task, read, tuple(items), before)
    return save_items(items, task.out, task.good)


def failure(error: BaseException, index: int, rank: int, swaps: list[Swap], seconds: float) -> Outcome:
    """The outcome of a task that raised: one line, the traceback's end, and the swapped-in part it passed through."""
    traceback.print_exception(type(error), error, error.__traceback__)  # to the log
    loading = [swap.part for swap in swaps if swap.callable is None]
    return Outcome(
        index,
        rank,
        "raised",
        error=_line(error),
        traceback="".join(traceback.format_exception(type(error), error, error.__traceback__))[-_LONGEST:],
        where=loading[0] if loading else guilty(error, swaps),
        seconds=seconds,
    )


def _line(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - a user's __str__
        text = "(its text can't be printed)"
    first = text.strip().splitlines()[0][:500] if text.strip() else ""
    if isinstance(error, StageError):
        return first
    return f"{type(error).__name__}: {first}" if first else type(error).__name__
