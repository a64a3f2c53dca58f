"""What the referee asks of the framework process, and what it gets back.

Both sides import this file (standard library only, Python 3.10 syntax), so a field exists once. The records travel as
JSON objects: `plain` one way, `job_from`, `outcome_from` and `result_from` the other.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

NO_DEVICE = "there is no such device"  # how an outcome says that --device can't be had
NEEDS = "needs the module"  # how an outcome says that the interpreter lacks what a swapped-in part imports


@dataclass(frozen=True)
class Task:
    """One call of a stage.

    config: the resolved config as plain values; swap: part name -> "fault:NAME" | "file.py:name" | "module:name".
    inputs: folder of <name>.npy; out: folder that gets <item path>.npy; scratch, checkpoints: see `Place`.
    packed: the items of a stage go into one file instead (see `pack`).
    good: the `out` of an earlier run: items whose dtype, shape and bits are those of its stage are not written.
    resumes: the stage reads what an earlier stage left on disk.
    precision: what floats among the inputs are cast to; device: where they are put; items come back as float64.
    """

    stage: str
    config: dict[str, Any]
    swap: dict[str, str]
    inputs: str
    out: str
    scratch: str
    checkpoints: str
    packed: bool = False
    good: str = ""
    resumes: bool = False
    precision: str = "float64"
    device: str = "cpu"


@dataclass(frozen=True)
class Job:
    """Tasks that run one after the other in one process a rank; a task that raises does not stop the next.

    id: unique in a run; package, path: the lab's import name and folder; threads: torch threads of each rank.
    log: file to which the processes print (appended); the framework's own log when empty.
    after: ids of jobs that have to be over, however they ended, before this one begins.
    """

    id: str
    package: str
    path: str
    tasks: tuple[Task, ...]
    ranks: int = 1
    threads: int = 1
    log: str = ""
    after: tuple[str, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """How one task ended on one rank.

    task: index in the job. items: names written to `out`; same: names whose bits equal the good run's (not written).
    error: one line ("ZeroDivisionError: …"); where: the swapped-in part through which the error passed, or "".
    swaps: of each part that the user swapped in, {part, file, line, sha256, libraries}.
    """

    task: int
    rank: int
    status: Literal["ok", "raised"]
    items: tuple[str, ...] = ()
    same: tuple[str, ...] = ()
    error: str = ""
    traceback: str = ""
    where: str = ""
    seconds: float = 0.0
    swaps: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True)
class JobResult:
    """How a job ended. A task without an outcome did not complete; `end` then says why.

    end: "" when every rank answered for every task and exited with 0, else "rank 1 was killed by SIGSEGV in stage …".
    peak_rss_bytes: peaks of the ranks added up (pages that they share count once a rank).
    log_tail: the last words printed, decoded leniently.
    """

    id: str
    outcomes: tuple[Outcome, ...]
    end: str
    peak_rss_bytes: int
    seconds: float
    log_tail: str


_OWN = ("stage", "resumes")  # of a task; the rest is the same for all stages of a case


def plain(record: Job | Outcome | JobResult) -> dict[str, Any]:
    """A record as JSON can hold it. Nothing is copied, which `dataclasses.asdict` does a hundred times as slowly.

    What the tasks of a job have in common is there once: a thousand of them would fill any pipe otherwise.
    """
    values = dict(vars(record))
    if isinstance(record, Job):
        shared: dict[tuple[Any, ...], int] = {}
        values["shared"] = []
        values["tasks"] = [_apart(task, shared, values["shared"]) for task in record.tasks]
    elif isinstance(record, JobResult):
        values["outcomes"] = [vars(outcome) for outcome in record.outcomes]
    return values


def _apart(task: Task, numbers: dict[tuple[Any, ...], int], shared: list[dict[str, Any]]) -> list[Any]:
    """The number of the entry in `shared` that has most of a task, and what the task has for itself.

    The stages of a case have one config object: that it is the same says enough, and is found out at once.
    """
    rest = {name: value for name, value in vars(task).items() if name not in _OWN}
    alike = {**rest, "config": id(task.config), "swap": tuple(task.swap.items())}
    number = numbers.setdefault(tuple(alike.values()), len(shared))
    if number == len(shared):
        shared.append(rest)
    return [number, *(getattr(task, name) for name in _OWN)]


def job_from(values: Mapping[str, Any]) -> Job:
    """A job after a trip through JSON."""
    given = dict(values)
    shared = given.pop("shared")
    tasks = tuple(Task(**shared[number], **dict(zip(_OWN, own))) for number, *own in given["tasks"])  # noqa: B905
    return Job(**{**given, "tasks": tasks, "after": tuple(given["after"])})


def outcome_from(values: Mapping[str, Any]) -> Outcome:
    """An outcome after a trip through JSON."""
    return Outcome(**{**values, **{name: tuple(values[name]) for name in ("items", "same", "swaps")}})


def result_from(values: Mapping[str, Any]) -> JobResult:
    """A job's result after a trip through JSON."""
    return JobResult(**{**values, "outcomes": tuple(outcome_from(outcome) for outcome in values["outcomes"])})
