"""The framework process as the referee sees it: start it, give it jobs, wait for answers, leave nothing behind.

Imports almost nothing at module level: the process has to be started before anything slow is imported here, so that
torch is being imported there all the while.
"""

from __future__ import annotations

import os
import sys

from labs.core.errors import CannotComplete
from labs.core.process.ignition import ignite
from labs.core.process.interpreter import environment

TYPE_CHECKING = False  # typing is among the things that are slow to import
if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from types import TracebackType
    from typing import Any, Self

    from labs.core.process.exchange import Exchange
    from labs.core.process.jobs import Job, JobResult


class Framework:
    """A context manager around one framework process.

    python: the interpreter that has torch (None: this one). scratch: a folder for framework.log and rendezvous files.
    variables: environment variables that it gets beside ours.
    fork: False starts an interpreter for each child (slower, same results); None forks where that is safe.
    Enter it from a thread that outlives it: on Linux the process ends with the thread that started it.
    Deadlines are values of `time.monotonic()`; None waits as long as it takes.
    """

    def __init__(
        self,
        python: str | Path | None,
        scratch: str | Path,
        fork: bool | None = None,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        self._python = str(python) if python else sys.executable
        self._scratch = os.path.abspath(scratch)  # noqa: PTH100 - pathlib is slow to import
        self._mode = "auto" if fork is None else "fork" if fork else "spawn"
        self._variables = variables or {}
        self._process = self._orders = self._answers = -1
        self._talk: Exchange | None = None

    def __enter__(self) -> Self:
        """Start the process, unless it runs; it imports torch while the caller goes on. Raises CannotComplete."""
        if self._process >= 0:
            return self
        os.makedirs(self._scratch, exist_ok=True)  # noqa: PTH103
        foreign = self._python != sys.executable
        try:
            environ = environment(self._variables, foreign=foreign)
            started = ignite(self._python, self._scratch, self._mode, environ)
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            advice = "name an interpreter that has torch with --python"
            raise CannotComplete(f"{self._python} can't be started: {why}; {advice}") from error
        self._process, self._orders, self._answers = started
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Close, however the block was left."""
        self.close()

    def ready(self, deadline: float | None = None) -> dict[str, Any]:
        """Facts about the framework side, once torch is imported. Raises CannotComplete."""
        return self._exchange().ready(deadline)

    @property
    def imported(self) -> bool:
        """True once the process has said that torch is imported."""
        return self._talk is not None and self._talk.imported

    def submit(self, job: Job) -> None:
        """Hand over a job; never waits for the other side."""
        self._exchange().submit(job)

    def wait(self, job_id: str, deadline: float | None = None) -> JobResult:
        """The result of a job; answers of others that come meanwhile are kept.

        A job that raised or crashed has a result that says so. Past the deadline the job is stopped and TimedOut
        raised. Raises CannotComplete when the framework process itself is gone.
        """
        return self._exchange().wait(job_id, deadline)

    def close(self) -> None:
        """End the process and everything that it started; safe to call twice, and after the process died."""
        if self._process < 0:
            return
        try:
            os.close(self._orders)
            if self._talk:
                self._talk.part()
        finally:
            self._bury()
            os.close(self._answers)

    def _exchange(self) -> Exchange:
        """The conversation with the process; its imports wait until the process has been started."""
        if self._talk is None:
            from labs.core.process.exchange import Exchange  # noqa: PLC0415

            self._talk = Exchange(self._python, self._scratch, self._orders, self._answers, self._bury)
        return self._talk

    def _bury(self) -> int:
        """Kill what is left of the process group, then reap its leader: until then nobody else can have its number.

        Returns the exit status, negative for a signal, as subprocess has it.
        """
        process, self._process = self._process, -1
        if process < 0:
            return 0
        try:  # noqa: SIM105 - contextlib is slow to import
            os.killpg(process, 9)
        except (ProcessLookupError, PermissionError):
            pass
        return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
