"""What a child of the framework process does: settle in, join its group, run its tasks, leave. Python 3.10 syntax."""

import contextlib
import faulthandler
import gc
import os
import signal
import socket
import sys
import traceback
from datetime import timedelta
from pathlib import Path
from typing import NoReturn, TextIO

import torch

from labs.core.process import lifeline, whereabouts
from labs.core.process.crew import Seat
from labs.core.process.jobs import Outcome, plain
from labs.core.process.reuse import Memory
from labs.core.process.torch_task import attempt, failure
from labs.core.process.wire import pack

_PATIENCE = timedelta(days=1)  # the referee's time limit ends a hung group, not gloo's


def run(seat: Seat, line: socket.socket) -> NoReturn:
    """Run the tasks of a seat from its first on, answer over `line`, and leave without torch's clean-up."""
    code = 1
    try:
        _settle(seat)
        _work(seat, line)
        code = 0
    except BaseException:  # noqa: BLE001 - nothing may climb into the event loop that this process was forked from
        traceback.print_exc()
    finally:
        _flush(sys.stdout)
        _flush(sys.stderr)
        os._exit(code)


def _settle(seat: Seat) -> None:
    lifeline.bind(signal.SIGKILL)
    if seat.parent and lifeline.orphaned(seat.parent):
        os._exit(1)
    _redirect(seat.log)
    whereabouts.tell(seat.spot)
    faulthandler.enable(file=2)  # a crash leaves the Python lines that led to it in the log
    gc.enable()
    torch.set_num_threads(seat.job.threads)
    if seat.job.threads > 1:
        _warm_up()


def _redirect(log: str) -> None:
    """Standard output and error to the job's log, a line at a time so that a crash loses none; nothing to read."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    if log:
        Path(log).parent.mkdir(parents=True, exist_ok=True)
        target = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.dup2(target, 1)
        os.dup2(target, 2)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True, errors="backslashreplace")  # type: ignore[union-attr]


def _warm_up() -> None:
    """The first threaded products of the math library in some torch wheels are inexact (pytorch 188792)."""
    x = torch.ones(256, 256, dtype=torch.float64)
    for _ in range(2):
        x @ x  # the value is not wanted


def _work(seat: Seat, line: socket.socket) -> None:
    memory = Memory()
    for index in range(seat.first, len(seat.job.tasks)):
        line.sendall(pack({"begin": index}))
        outcome = _join(seat, index) or attempt(seat.job, index, seat.rank, seat.ranks, memory)
        line.sendall(pack({"outcome": plain(outcome)}))
        if seat.ranks > 1 and not line.recv(1):  # all ranks begin a task together, or not at all
            return
        if not outcome.same or outcome.items:  # something was computed
            gc.collect(1)
    if seat.ranks > 1:
        torch.distributed.destroy_process_group()


def _join(seat: Seat, index: int) -> Outcome | None:
    """Meet the other ranks, once, through a file. An outcome only when that fails."""
    distributed = torch.distributed
    if seat.ranks == 1 or distributed.is_initialized():
        return None
    try:
        store = distributed.FileStore(seat.meeting, seat.ranks)  # type: ignore[attr-defined]
        distributed.init_process_group("gloo", store=store, rank=seat.rank, world_size=seat.ranks, timeout=_PATIENCE)
    except Exception as error:  # noqa: BLE001 - whatever gloo says is the outcome
        return failure(error, index, seat.rank, [], 0.0)
    return None


def _flush(stream: TextIO) -> None:
    with contextlib.suppress(OSError, ValueError):  # a stage may have closed it
        stream.flush()
