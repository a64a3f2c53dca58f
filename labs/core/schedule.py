"""Which jobs the framework process is given: cases × stages.

A case is one configuration with one set of parts: the run itself, a control, or the good run that stands beside the
controls. A stage that comes `after` another one is in a later job and so a new process: all that it knows is on disk.
Only controls resume in the process that they trained in, because they prove that checks can fail, not that state is
complete (docs/decisions/0004-processes.md).
"""

import dataclasses
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any, Literal

from labs.core.lab import Lab, Stage
from labs.core.launch import Framework
from labs.core.patterns import overlap
from labs.core.process.exchange import TimedOut
from labs.core.process.jobs import NEEDS, Job, JobResult, Outcome, Task
from labs.core.process.mark import marked
from labs.core.process.pack import pack_file
from labs.core.process.whereabouts import own_frames
from labs.core.storage.writing import refuse_full


@dataclass(frozen=True)
class Case:
    """One run of a lab's torch side: its config as that side sees it, its swapped parts, and its folders."""

    name: str
    config: Any
    inputs: Path
    out: Path
    scratch: Path
    checkpoints: Path
    swap: Mapping[str, str] = field(default_factory=dict)
    precision: str = "float64"
    device: str = "cpu"
    packed: bool = False  # the items of a stage in one file
    good: Path | None = None  # the folder of the good run: its items with the same bits are not written again

    @cached_property
    def values(self) -> dict[str, Any]:
        """The config as plain values, for every task alike."""
        return dataclasses.asdict(self.config)


@dataclass(frozen=True)
class Order:
    """One job, and the case and stage of each of its tasks."""

    job: Job
    tasks: tuple[tuple[Case, Stage], ...]


Share = Literal["nothing", "stages", "everything"]  # what may share a process: also stages that resume, or not

STOPPED = "stopped, because"  # how a rank is reported that another one's error stopped
GRACE = 5.0  # seconds that the framework process has to say what a stopped job had done


@dataclass(frozen=True)
class Ran:
    """One stage of one case as it went: an outcome for each rank that got to answer, and how the job ended."""

    case: Case
    stage: Stage
    outcomes: tuple[Outcome, ...]
    result: JobResult

    @property
    def failure(self) -> str:
        """Empty when every rank answered without an error; else one sentence."""
        raised = sorted((o for o in self.outcomes if o.status != "ok"), key=lambda o: o.error.startswith(STOPPED))
        if raised:
            where = f" in part {raised[0].where}" if raised[0].where else ""
            rank = f" on rank {raised[0].rank}" if self._ranks > 1 else ""
            if raised[0].where and raised[0].error.startswith(f"part {raised[0].where}"):  # a sentence with its place
                return f"stage {self.stage.name}{rank}: {raised[0].error}"
            return f"stage {self.stage.name} raised{where}{rank}: {raised[0].error}{_place(raised[0].traceback)}"
        if len(self.outcomes) < self._ranks:
            inside, end = _inside(self), self.result.end or "no answer"
            end = f"{end.replace(', before its first stage', '') if inside else end}{inside}"
            return f"stage {self.stage.name}: {end}{_last_words(self.result.log_tail)}"
        return ""

    @property
    def _ranks(self) -> int:
        return self.stage.ranks(self.case.config)

    @property
    def unequipped(self) -> bool:
        """True when a swapped-in part or the lab itself lacks a library: nothing was tried."""
        return any(o.error.startswith((f"part {o.where} {NEEDS}", f"torch_impl.py {NEEDS}")) for o in self.outcomes)

    @property
    def crashed(self) -> bool:
        """True when a process died or hung, as opposed to a Python error that it could report."""
        return bool(self.failure) and all(o.status == "ok" for o in self.outcomes)


def _inside(ran: Ran) -> str:
    """The swapped-in part that a process did not come back from."""
    part = marked(str(ran.case.scratch), ran.stage.name, ran.stage.ranks(ran.case.config)) if ran.case.swap else ""
    return f", inside part {part} ({ran.case.swap.get(part, '')})" if part else ""


def _last_words(log: str) -> str:
    """The end of what was printed, without the frames that Python dumps behind it when it crashes."""
    said, crash, dump = log.partition("Fatal Python error")
    words = said.strip()[-400:] or (crash + dump).partition("\n")[0]
    return f"; its last words: {words}" if words else ""


def _place(traceback: str) -> str:
    """The file and line that an error came from, by the last frame that is no library's."""
    own = own_frames(traceback)
    return f" ({own[-1]})" if own else ""


def needed(lab: Lab, items: Iterable[str]) -> tuple[Stage, ...]:
    """The stages that could yield any of these item patterns, and the stages that those come after."""
    wanted = tuple(items)
    names = {s.name for s in lab.stages if any(overlap(i, p) for i in wanted for p in s.items)}
    for stage in reversed(lab.stages):  # a stage is listed behind those that it comes after
        if stage.name in names:
            names.update(stage.after)
    return tuple(s for s in lab.stages if s.name in names)


def orders(
    lab: Lab, stages: Sequence[Stage], cases: Sequence[Case], *, name: str, share: Share, threads: int, log: Path
) -> tuple[Order, ...]:
    """The jobs of these cases; one job has one number of ranks. A stage of no ranks at this config does not run."""
    levels = [_levels([s for s in stages if s.ranks(case.config)], case.config, share) for case in cases]
    made: list[Order] = []
    for level in sorted({level for found in levels for level in found.values()}):
        tasks = [(c, s) for c, found in zip(cases, levels, strict=True) for s in stages if found.get(s.name) == level]
        key = (lambda t: t[1].name) if share == "nothing" else (lambda t: str(t[1].ranks(t[0].config)))
        before = tuple(order.job.id for order in made)
        groups = groupby(sorted(tasks, key=key), key)  # sorted is stable: cases and stages keep their order in a job
        made += [_order(lab, f"{name}/{level}/{g}", before, tuple(t), threads, log) for g, t in groups]
    return tuple(made)


def _levels(stages: Sequence[Stage], config: Any, share: Share) -> dict[str, int]:
    """How many processes come before each stage; a stage is listed behind those that it comes after."""
    level: dict[str, int] = {}
    ranks = {stage.name: stage.ranks(config) for stage in stages}
    for stage in stages:
        before = [name for name in stage.after if name in level]
        apart = {name: share != "everything" or ranks[name] != ranks[stage.name] for name in before}
        level[stage.name] = max((level[name] + apart[name] for name in before), default=0)
    return level


def _order(
    lab: Lab, name: str, after: tuple[str, ...], tasks: tuple[tuple[Case, Stage], ...], threads: int, log: Path
) -> Order:
    case, stage = tasks[0]
    job = Job(
        id=name,
        package=lab.package,
        path=str(lab.path),
        tasks=tuple(_task(c, s) for c, s in tasks),
        ranks=stage.ranks(case.config),
        threads=threads,
        log=str(log),
        after=after,
    )
    return Order(job, tasks)


def _task(case: Case, stage: Stage) -> Task:
    return Task(
        stage=stage.name,
        config=case.values,
        swap=dict(case.swap),
        inputs=str(case.inputs),
        out=str(case.out),
        scratch=str(case.scratch),
        checkpoints=str(case.checkpoints),
        packed=case.packed,
        good=str(case.good or ""),
        precision=case.precision,
        device=case.device,
        resumes=bool(stage.after),
    )


def start(framework: Framework, handed: Sequence[Order]) -> None:
    """Hand jobs to the framework process; the first begin as soon as torch is imported."""
    for order in handed:
        framework.submit(order.job)


def finish(framework: Framework, handed: Sequence[Order], deadline: float) -> tuple[Ran, ...]:
    """Wait for jobs that were started; every stage of every case as it went.

    Raises CannotComplete when something failed and there is no space left for it.
    """
    ran: list[Ran] = []
    for order in handed:
        result = _result(framework, order.job.id, deadline)
        for number, (case, stage) in enumerate(order.tasks):
            outcomes = tuple(o for o in result.outcomes if o.task == number)
            ran.append(Ran(case, stage, outcomes, result))
        if any(r.failure for r in ran) and order.job.log:
            refuse_full(Path(order.job.log).parent)
    return tuple(ran)


def _result(framework: Framework, job_id: str, deadline: float) -> JobResult:
    """A job's result; one that is stopped at the deadline still has what it had answered until then."""
    try:
        return framework.wait(job_id, deadline)
    except TimedOut:
        if not framework.imported:  # nobody there to say what was done
            raise
        return framework.wait(job_id, time.monotonic() + GRACE)


def items_of(case: Case, ran: Iterable[Ran]) -> dict[str, Path]:
    """Where each item of the case lies, a folder or a pack: its own, or the good run's when the bits are the same."""
    found: dict[str, Path] = {}
    for stage in ran:
        if stage.case is case:
            for outcome in stage.outcomes:
                found.update(dict.fromkeys(outcome.items, _place_of(stage, case.out, outcome.rank)))
                found.update(dict.fromkeys(outcome.same, _place_of(stage, case.good or case.out, outcome.rank)))
    return found


def _place_of(ran: Ran, folder: Path, rank: int) -> Path:
    """What one rank of a stage wrote its items to."""
    ranks = ran.stage.ranks(ran.case.config)
    return Path(pack_file(str(folder), ran.stage.name, rank, ranks)) if ran.case.packed else folder
