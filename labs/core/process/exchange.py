"""The referee's conversation with the framework process: orders out, answers in, and what its silence means.

Standard library only.
"""

import os
import select
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from labs.core.errors import CannotComplete
from labs.core.process import lastwords
from labs.core.process.jobs import Job, JobResult, plain, result_from
from labs.core.process.wire import Lines, UnreadableError, pack

_GOODBYE = 1.0  # seconds that the process has to see its children off


class TimedOut(CannotComplete):
    """A job did not answer in time; `wait` for it again gives what it had answered until it was stopped."""


class Exchange:
    """One conversation. `bury` ends the process and gives its exit status; the rest is as in `Framework`."""

    def __init__(self, python: str, scratch: str, orders: int, answers: int, bury: Callable[[], int]) -> None:
        self._python, self._log, self._bury = python, Path(scratch, "framework.log"), bury
        self._orders, self._answers = orders, answers
        self._unsent = bytearray()
        self._lines = Lines()
        self._began = time.monotonic()
        self._phase = "start"  # -> "import" (it is a Python) -> "work" (torch is imported)
        self._facts: dict[str, Any] = {}
        self._jobs: dict[str, Job] = {}
        self._stages: dict[str, str] = {}
        self._results: dict[str, JobResult] = {}
        self._failure = ""

    @property
    def imported(self) -> bool:
        """See `Framework.imported`."""
        return bool(self._facts)

    def ready(self, deadline: float | None) -> dict[str, Any]:
        """See `Framework.ready`."""
        while not self._facts:
            self._step(deadline, ", while importing torch")
        return self._facts

    def submit(self, job: Job) -> None:
        """See `Framework.submit`."""
        if job.id in self._jobs:
            raise ValueError(f"a job named {job.id} was submitted already")
        self._jobs[job.id] = job
        self._send({"job": plain(job)})

    def wait(self, job_id: str, deadline: float | None) -> JobResult:
        """See `Framework.wait`."""
        while job_id not in self._results:
            try:
                self._step(deadline, self._whereabouts(job_id))
            except TimedOut:
                self._send({"cancel": [job_id, time.monotonic() - self._began]})
                raise
        return self._results[job_id]

    def part(self) -> None:
        """The orders were closed: give the process a moment to see its children off; nothing can be asked any more."""
        self._fail("the framework process was closed")
        if self._phase != "work":  # it has no children yet, and no ear for the end of its input
            return
        until = time.monotonic() + _GOODBYE
        while select.select([self._answers], [], [], max(0.0, until - time.monotonic()))[0]:
            if not os.read(self._answers, 1 << 16):  # nobody else holds the other end, so it has ended
                return

    def _whereabouts(self, job_id: str) -> str:
        if self._phase != "work":
            return ", while importing torch"
        return f", in stage {self._stages[job_id]}" if job_id in self._stages else ", before its first stage"

    def _step(self, deadline: float | None, whereabouts: str) -> None:
        """Wait for one thing to happen: an answer comes, or an order can be sent. Raises TimedOut, CannotComplete."""
        if self._failure:
            raise CannotComplete(self._failure)
        timeout = None if deadline is None else max(0.0, deadline - time.monotonic())
        unsent = [self._orders] if self._unsent else []
        readable, writable, _ = select.select([self._answers], unsent, [], timeout)
        if writable:
            self._flush()
        if readable:
            self._hear()
        if not readable and not writable:
            seconds = time.monotonic() - self._began
            raise TimedOut(f"the framework process did not answer within {seconds:.3g} s{whereabouts}")

    def _send(self, message: dict[str, Any]) -> None:
        self._unsent += pack(message)
        self._flush()

    def _flush(self) -> None:
        """Write what the pipe takes now; the rest goes out while waiting."""
        try:
            while self._unsent and not self._failure:
                del self._unsent[: os.write(self._orders, self._unsent)]
        except BlockingIOError:
            pass
        except BrokenPipeError:
            self._unsent.clear()  # it died; the end of its answers says how

    def _hear(self) -> None:
        data = os.read(self._answers, 1 << 16)
        try:
            for message in self._lines.feed(data):
                self._note(message)
        except UnreadableError as error:
            self._fail(f"{self._python} answered what no framework process would: {error}")
        if not data:
            self._fail(lastwords.died(self._python, self._phase, self._bury(), self._log))

    def _note(self, message: dict[str, Any]) -> None:
        if "hello" in message:
            self._phase = "import"
            version = (message["hello"][0], message["hello"][1])
            if version < lastwords.OLDEST:
                self._fail(lastwords.too_old(self._python, version))
        elif "error" in message:
            self._fail(lastwords.no_import(self._python, message["error"]))
        elif "ready" in message:
            self._phase, self._facts = "work", message["ready"]
        elif "begin" in message:
            job_id, task = message["begin"]
            self._stages[job_id] = self._jobs[job_id].tasks[task].stage
        elif "result" in message:
            result = result_from(message["result"])
            self._results[result.id] = result

    def _fail(self, sentence: str) -> None:
        self._failure = self._failure or sentence
