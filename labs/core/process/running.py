"""A job between its first and its last crew. Standard library only, Python 3.10 syntax."""

import contextlib
import shutil
import time
from dataclasses import dataclass, field
from pathlib import Path

from labs.core.process.crew import Crew
from labs.core.process.jobs import Job, JobResult, Outcome
from labs.core.process.log import bound, log_size

_TAIL = 4096  # bytes of the log that travel with a result


@dataclass
class Running:
    """A job that has begun: its present crew, and what earlier crews of it answered."""

    job: Job
    crew: Crew
    log_at: int
    began: float = field(default_factory=time.monotonic)
    outcomes: list[Outcome] = field(default_factory=list)
    peak: int = 0

    def collect(self) -> None:
        """Take over what the crew answered."""
        self.outcomes += self.crew.outcomes
        self.peak = max(self.peak, self.crew.peak)
        self.bound_logs()
        for log in self.crew.logs:
            _append(log, self.job.log)
            bound(self.job.log)

    def bound_logs(self) -> None:
        """Keep what it prints within bounds."""
        for log in (self.job.log, *self.crew.logs):
            bound(log)

    def result(self) -> JobResult:
        """The job's result, when its last crew is done."""
        outcomes = tuple(sorted(self.outcomes, key=lambda outcome: (outcome.task, outcome.rank)))
        seconds = time.monotonic() - self.began
        return JobResult(self.job.id, outcomes, self.crew.end, self.peak, seconds, _tail(self.job.log, self.log_at))


def _append(part: str, log: str) -> None:
    """Add what one rank printed to the job's log; a disk that refuses costs the words and not the job."""
    with contextlib.suppress(OSError), open(part, "rb") as words, open(log, "ab") as target:  # noqa: PTH123
        shutil.copyfileobj(words, target)


def _tail(log: str, start: int) -> str:
    """The last words that were printed since `start`; a log that is shorter than that by now was cut meanwhile."""
    size = log_size(log)
    if size == start or not size:
        return ""
    with Path(log).open("rb") as file:
        file.seek(max(start if start < size else 0, size - _TAIL))
        return file.read().decode("utf-8", errors="replace")
