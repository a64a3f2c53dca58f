"""One task in a child of the framework process: load, swap, call the stage, save. Python 3.10 syntax."""

import contextlib
import dataclasses
import os
import sys
import time
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from labs.core.place import Place
from labs.core.process.jobs import NEEDS, NO_DEVICE, Job, Outcome, Task
from labs.core.process.mark import Mark, mark_file
from labs.core.process.pack import pack_file
from labs.core.process.reuse import Files, Memory, added, files, noting
from labs.core.process.swap import StageError, Swap, guilty, lab_module, load_swap, with_swaps
from labs.core.process.torch_items import arrays_of, load_inputs, pack_items, save_items
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
        parts = _parts(job, task, rank, ranks, swaps)
        known = memory.same(task)
        place = Place(rank, ranks, Path(task.scratch), Path(task.checkpoints))
        written, same = _perform(job, task, parts, place, memory) if known is None else ((), known)
    except BaseException as error:  # noqa: BLE001 - a user's code may raise anything, sys.exit included
        return failure(error, index, rank, swaps, time.perf_counter() - began)
    return Outcome(index, rank, "ok", written, same, seconds=time.perf_counter() - began, swaps=_found(swaps))


def _start_clean() -> None:
    """Undo what an earlier task of the job may have left behind in torch."""
    torch.set_grad_enabled(True)
    torch.set_default_dtype(torch.float32)
    torch.default_generator.manual_seed(0)  # what torch.manual_seed does on a CPU, without its look for accelerators


def _load_swaps(job: Job, task: Task, swaps: list[Swap]) -> None:
    opened: dict[str, ModuleType] = {}
    for part, source in task.swap.items():
        swaps.append(Swap(part, None, ""))  # until it is loaded, an error while loading it is this part's
        swaps[-1] = load_swap(part, source, job.package, job.path, opened)


def _parts(job: Job, task: Task, rank: int, ranks: int, swaps: list[Swap]) -> Any:
    """The lab's parts with the swapped ones in their places, the user's behind a guard."""
    own = _torch_impl(job).PARTS
    if all(swap.fault for swap in swaps):
        return with_swaps(own, {swap.part: swap.callable for swap in swaps})
    from labs.core.process.torch_guard import guarded  # noqa: PLC0415 - few runs need it

    mark = Mark(mark_file(task.scratch, task.stage, rank))
    return with_swaps(own, {s.part: guarded(s, getattr(own, s.part, None), mark, ranks) for s in swaps})


def _torch_impl(job: Job) -> ModuleType:
    """The lab's torch side; one written with another library may lack it here."""
    try:
        return lab_module(job.package, job.path, "torch_impl")
    except ModuleNotFoundError as error:
        raise StageError(f"torch_impl.py {NEEDS} {error.name!r}, which {sys.executable} does not have") from error


def _found(swaps: list[Swap]) -> tuple[dict[str, Any], ...]:
    return tuple(dict(swap.found) for swap in swaps if swap.found)


def _perform(
    job: Job, task: Task, own_parts: Any, place: Place, memory: Memory
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    lab = lab_module(job.package, job.path, "torch_impl")
    if task.stage not in lab.STAGES:
        raise StageError(f"there is no stage {task.stage!r}; the stages are {', '.join(lab.STAGES)}")
    config = rebuild(lab_module(job.package, job.path, "config").Config, task.config)
    noted = memory.wants(task, job.tasks) and not (place.ranks > 1 and task.resumes)
    parts, read = noting(own_parts) if noted else (own_parts, set())
    for folder in (task.scratch, task.checkpoints):
        if not os.path.isdir(folder):  # noqa: PTH112 - pathlib is slow, and this is often
            os.makedirs(folder, exist_ok=True)  # noqa: PTH103
    found = files(task) if noted else None
    with _on(task.device):
        result = lab.STAGES[task.stage](config, load_inputs(task.inputs, task.precision, task.device), parts, place)
    left = _left(task, found, own_parts, read, place.ranks) if noted else None
    items = arrays_of(task.stage, result, task.precision)
    del result  # the items alone hold their memory now, and saving lets go of it
    if left is not None:
        memory.note(task, read, tuple(items), found or {}, left)
    if not task.packed:
        return save_items(items, task.out), ()
    packs = [pack_file(out, task.stage, place.rank, place.ranks) if out else "" for out in (task.out, task.good)]
    return pack_items(items, *packs)


def _left(task: Task, found: Files | None, parts: Any, read: set[str], ranks: int) -> Files | None:
    """The files that a stage left, or None where that is not known; of several ranks they all have to get here.

    They come to one answer, and what any of them read is read by all, so that later they decide alike.
    """
    distributed = torch.distributed
    if ranks == 1:
        return added(found, files(task))
    if not distributed.is_initialized():  # the stage ended the group that it was given
        return None
    distributed.barrier()  # the others' files are complete
    left = added(found, files(task))
    names = [field.name for field in dataclasses.fields(parts)]
    marks = torch.tensor([left is None, *(name in read for name in names)], dtype=torch.uint8)
    distributed.all_reduce(marks, distributed.ReduceOp.MAX)
    unknown, *seen = marks.tolist()
    read.update(name for name, mark in zip(names, seen, strict=True) if mark)
    return None if unknown else left


def _on(device: str) -> contextlib.AbstractContextManager[Any]:
    """Tensors that a stage makes are made on this device. Raises StageError when there is none."""
    if device == "cpu":
        return contextlib.nullcontext()
    try:
        torch.zeros((), device=device).cpu()
        made: contextlib.AbstractContextManager[Any] = torch.device(device)
    except Exception as error:  # noqa: BLE001 - each backend has its own
        raise StageError(f"{NO_DEVICE}: {_line(error)}") from None
    return made


def failure(error: BaseException, index: int, rank: int, swaps: list[Swap], seconds: float) -> Outcome:
    """The outcome of a task that raised: one line, the traceback's end, and the swapped-in part it passed through."""
    traceback.print_exception(type(error), error, error.__traceback__)  # to the log
    loading = [swap.part for swap in swaps if swap.callable is None]
    return Outcome(
        index,
        rank,
        "raised",
        error=_line(error) if not loading else _unloaded(error, loading[0]),
        traceback="".join(traceback.format_exception(type(error), error, error.__traceback__))[-_LONGEST:],
        where=loading[0] if loading else guilty(error, swaps),
        seconds=seconds,
        swaps=_found(swaps),
    )


def _unloaded(error: BaseException, part: str) -> str:
    """Why a part could not be loaded; a module that is not there is the interpreter's lack, not the part's fault."""
    if isinstance(error, ModuleNotFoundError) and error.name:
        return f"part {part} {NEEDS} {error.name!r}, which {sys.executable} does not have"
    return _line(error)


def _line(error: BaseException) -> str:
    from labs.core.process.sentence import sentence  # noqa: PLC0415 - a good run needs none

    return sentence(error, named=not isinstance(error, StageError))
