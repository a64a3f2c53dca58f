"""The framework process: imports torch once, then runs jobs in children, until its standard input ends.

Standard library, NumPy and torch only, Python 3.10 syntax. Jobs are JSON lines on standard input; answers go to an
inherited descriptor, because standard output belongs to whatever libraries print. This process stays single-threaded
and computes nothing, so that a fork of it is a clean start.
"""

import gc
import importlib
import json
import os
import select
import signal
import socket
import sys
import time
import warnings
from collections import deque
from pathlib import Path
from typing import Any, NoReturn

from labs.core.process import lifeline
from labs.core.process.crew import Crew, Member, Seat, Start
from labs.core.process.jobs import Job, JobResult, job_from, plain
from labs.core.process.log import log_size
from labs.core.process.preload import preload
from labs.core.process.running import Running
from labs.core.process.start import forked, spawned
from labs.core.process.wire import Lines, pack


def main(answers: str, scratch: str, mode: str) -> NoReturn:
    """Serve jobs, or be one child (mode "seat"), on the descriptor `answers`.

    mode: "fork" starts children by forking, "spawn" starts an interpreter for each, "auto" forks where that is safe.
    """
    os.set_inheritable(int(answers), False)  # noqa: FBT003
    lifeline.bind(signal.SIGTERM)  # its default action ends this process at once, also while torch is being imported
    if mode != "seat" and lifeline.hung_up(0):
        os._exit(0)
    error = _import_torch()
    if mode == "seat":
        _sit_down(int(answers))
    if error:
        os.write(int(answers), pack({"error": error}))
        os._exit(1)
    fork = hasattr(os, "fork") and (mode == "fork" or (mode == "auto" and sys.platform != "darwin"))
    Worker(int(answers), scratch, fork).serve()


def _import_torch() -> dict[str, Any]:
    """Import NumPy and torch without collecting garbage (8 % faster); what went wrong, or {}."""
    gc.disable()
    for name in ("numpy", "torch"):
        try:
            importlib.import_module(name)
        except Exception as error:  # noqa: BLE001 - a broken shared library raises OSError, a mismatch anything
            missing = isinstance(error, ModuleNotFoundError) and error.name == name
            from labs.core.process.sentence import sentence  # noqa: PLC0415 - mostly there is nothing to say

            return {"module": name, "missing": missing, "text": sentence(error)}
    gc.freeze()  # children collect only what they make, and share these pages
    return {}


def _sit_down(line: int) -> NoReturn:
    from labs.core.process.torch_child import run  # noqa: PLC0415 - torch is imported above, with care

    values = json.loads(sys.stdin.buffer.read())
    run(Seat(**{**values, "job": job_from(values["job"])}), socket.socket(fileno=line))


def torch_facts() -> dict[str, Any]:
    """How torch was built and which instruction set it chose."""
    import torch  # noqa: PLC0415 - as above

    return {
        "version": torch.__version__,
        "git": torch.version.git_version,
        "build": torch.__config__.show(),
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
    }


_LASTING = 0.05  # seconds without news after which the referee is told what is running
_LOOK = 0.25  # seconds between two looks at how much the children have printed


class Worker:
    """The event loop: as many jobs at once as there are CPUs, in the order in which they came."""

    def __init__(self, answers: int, scratch: str, fork: bool) -> None:
        self._answers, self._scratch = answers, scratch
        self._unsent = bytearray()
        self._lines = Lines()
        self._queue: deque[Job] = deque()
        self._running: list[Running] = []
        self._over: set[str] = set()
        self._begins: dict[str, int] = {}  # job -> the task that it is in, when the referee was not told yet
        self._preloaded: set[str] = set()
        self._meetings = 0
        self._look = 0.0  # when to look at the logs again
        self._wake, self._waker = socket.socketpair()
        self._start: Start = (lambda seat: forked(seat, self._private())) if fork else self._spawned

    def serve(self) -> NoReturn:
        """Say what this process is, then work until standard input ends."""
        from labs.core.process.facts import facts  # noqa: PLC0415 - needs NumPy

        os.set_blocking(self._answers, False)
        warnings.filterwarnings("ignore", message=".*fork.*", category=DeprecationWarning)  # NumPy's BLAS has threads
        self._listen_to_signals()
        self._send({"ready": {**facts(), "torch": torch_facts()}})
        while True:
            self._begin_jobs()
            self._wait()
            self._advance()

    def _listen_to_signals(self) -> None:
        self._waker.setblocking(False)  # noqa: FBT003
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._waker.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGTERM, lambda *_: os.killpg(0, signal.SIGKILL))

    def _begin_jobs(self) -> None:
        """Begin jobs while a CPU is free."""
        while job := next((job for job in self._queue if self._over.issuperset(job.after)), None):
            if sum(_cpus(running.job) for running in self._running) >= (os.cpu_count() or 1):
                return
            self._queue.remove(job)
            self._preload(job)
            self._running.append(Running(job, self._crew(job, 0), log_size(job.log)))

    def _crew(self, job: Job, first: int) -> Crew:
        self._meetings += 1
        meeting = str(Path(self._scratch, f"rendezvous-{self._meetings}"))
        seats = [Seat(job, rank, job.ranks, first, meeting, os.getpid()) for rank in range(job.ranks)]
        return Crew(seats, self._start, lambda task: self._begins.update({job.id: task}))

    def _preload(self, job: Job) -> None:
        swapped = {source.rpartition(":")[0] for task in job.tasks for source in task.swap.values()}
        files = {str(Path(job.path, "torch_impl.py")), *(file for file in swapped if file.endswith(".py"))}
        for file in sorted(files - self._preloaded):
            self._preloaded.add(file)
            preload(Path(file))
            gc.freeze()

    def _private(self) -> list[int]:
        """Descriptors that a forked child must not keep: lines of others, and ours to the referee."""
        lines = [member.line.fileno() for member in self._members()]
        return [self._answers, self._wake.fileno(), self._waker.fileno(), *(line for line in lines if line >= 0)]

    def _spawned(self, seat: Seat) -> tuple[int, socket.socket]:
        return spawned(seat, self._scratch)

    def _members(self) -> list[Member]:
        return [member for running in self._running for member in running.crew.members]

    def _wait(self) -> None:
        """Sleep until something happens, and read it."""
        patience = [running.crew.patience for running in self._running if running.crew.patience is not None]
        waits = [max(0.0, until - time.monotonic()) for until in patience] + [_LASTING] * bool(self._begins)
        waits += [_LOOK] * bool(self._running)
        timeout = min(waits, default=None)
        talking = {m.line.fileno(): (r.crew, m) for r in self._running for m in r.crew.members if m.listening}
        unsent = [self._answers] if self._unsent else []
        ready, _, _ = select.select([0, self._wake.fileno(), *talking], unsent, [], timeout)
        self._flush()
        if not ready:
            self._tell_begins()
        if self._wake.fileno() in ready:
            self._wake.recv(4096)
        if 0 in ready:
            self._hear_referee()
        for line in [line for line in ready if line in talking]:
            crew, member = talking[line]
            crew.hear(member)

    def _tell_begins(self) -> None:
        """Say which tasks last; most are over before it would be worth a message."""
        for job_id, task in self._begins.items():
            self._send({"begin": [job_id, task]})
        self._begins.clear()

    def _hear_referee(self) -> None:
        data = os.read(0, 1 << 16)
        if not data:
            self._end()
        for message in self._lines.feed(data):
            if "job" in message:
                self._queue.append(job_from(message["job"]))
            elif "cancel" in message:
                self._cancel(*message["cancel"])

    def _cancel(self, job_id: str, seconds: float) -> None:
        for running in self._running:
            if running.job.id == job_id:
                running.crew.stop(f"was stopped after {seconds:.3g} s")
        for job in [job for job in self._queue if job.id == job_id]:
            self._queue.remove(job)
            self._report(JobResult(job.id, (), f"was not begun within {seconds:.3g} s", 0, 0.0, ""))

    def _advance(self) -> None:
        """Reap; report the jobs that are done; give what is left of a job in which a rank raised to a new crew."""
        self._bound_logs()
        for running in list(self._running):
            running.crew.reap()
            running.crew.tick(time.monotonic())
            if not running.crew.done:
                continue
            running.collect()
            crew, left = running.crew, running.crew.broken + 1
            if crew.broken >= 0 and not crew.end and left < len(running.job.tasks):
                running.crew = self._crew(running.job, left)
            else:
                self._running.remove(running)
                self._report(running.result())

    def _bound_logs(self) -> None:
        if time.monotonic() >= self._look:
            self._look = time.monotonic() + _LOOK
            for running in self._running:
                running.bound_logs()

    def _report(self, result: JobResult) -> None:
        self._over.add(result.id)
        self._begins.pop(result.id, None)
        self._send({"result": plain(result)})

    def _send(self, message: dict[str, Any]) -> None:
        self._unsent += pack(message)
        self._flush()

    def _flush(self) -> None:
        """Write what the referee takes now; it may be busy, and its work must not hold up ours."""
        try:
            while self._unsent:
                del self._unsent[: os.write(self._answers, self._unsent)]
        except BlockingIOError:
            pass
        except BrokenPipeError:
            self._end()

    def _end(self) -> NoReturn:
        """End the children (and see them off, so that nobody inherits them), then the whole process group."""
        for member in self._members():
            member.dismiss()
        for member in self._members():
            if member.alive:
                os.waitpid(member.pid, 0)
        os.killpg(0, signal.SIGKILL)
        os._exit(0)


def _cpus(job: Job) -> int:
    """The CPUs that a job keeps busy: of ranks that wait for each other, half."""
    return -(-job.ranks // 2) * job.threads
