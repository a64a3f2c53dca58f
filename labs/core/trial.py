"""One lab of a run, from its inputs to its checks: begin (draw, hand over), expect (reference), conclude, prove."""

import shutil
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from labs.core import memory, pinned
from labs.core.config import Settings
from labs.core.controls import Bench, Verdict, benches, verdicts
from labs.core.errors import RequestError
from labs.core.inputs import Draw
from labs.core.items import Tolerance, plan, promised
from labs.core.judge import Check, judge_all
from labs.core.lab import Array, Arrays, Lab, Rule
from labs.core.launch import Framework
from labs.core.loading.nearest import nearest
from labs.core.observed import Observed
from labs.core.patterns import matches, picks
from labs.core.precision import USUAL, Target, tolerances, unjudged
from labs.core.schedule import Case, Order, Ran, finish, items_of, needed, orders, start
from labs.core.storage.folder import MAPPED, is_item_name, save_array
from labs.core.stored_inputs import with_stored
from labs.core.wiring import Wiring, wiring
from labs.core.witness import witness_checks

LARGE = 1 << 26  # bytes of arrays that are worth a second thread


@dataclass(frozen=True)
class Trial:
    """A lab whose inputs are drawn and whose jobs are with the framework process."""

    settings: Settings
    only: tuple[str, ...]
    folder: Path
    inputs: Arrays
    case: Case
    main: tuple[Order, ...]
    beside: tuple[tuple[tuple[Bench, ...], tuple[Order, ...]], ...]  # lanes of controls, and the jobs of each
    target: Target = USUAL


@dataclass(frozen=True)
class Known:
    """The reference side of one bench of controls: its checks, and the items that this precision leaves unjudged."""

    bench: Bench
    rules: tuple[Rule, ...]
    reference: Arrays
    silent: frozenset[str]


@dataclass(frozen=True)
class Expected:
    """What the referee alone knows: the reference, every check that it implies, and that these can be trusted."""

    reference: Arrays
    rules: tuple[Rule, ...]
    unselected: frozenset[str]
    witnesses: tuple[Check, ...]
    wiring: Wiring
    beside: tuple[Known, ...]  # of each bench, in the order of the lanes
    moved: frozenset[str]  # items of the reference that lost their pinned values
    seconds: Mapping[str, float]
    unjudged: Mapping[str, str] = field(default_factory=dict)  # items that this precision says nothing of, and why


@dataclass(frozen=True)
class Judged:
    """What came of it."""

    checks: tuple[Check, ...]
    verdicts: tuple[Verdict, ...]
    ran: tuple[Ran, ...]
    observed: Mapping[str, Array]
    facts: Mapping[str, Array]
    seconds: Mapping[str, float]


def begin(
    settings: Settings,
    only: tuple[str, ...],
    lanes: int,
    swap: Mapping[str, str],
    folder: Path,
    scratch: Path,
    target: Target = USUAL,
) -> Trial:
    """Draw the inputs, write them where the framework process reads them, and lay out the jobs.

    The lab's own stages share a process, as long as none of them crashes; beside a stranger's part each has its own.
    lanes: how many processes the controls may fill at once; 0 for a run without them. target: precision and device.
    """
    lab, config = settings.lab, settings.config
    memory.require(settings.name, lab.footprint(config))
    inputs = target.inputs(with_stored(lab.inputs(config, Draw(settings.seed)), settings.from_files))
    _refuse_bad_names(f"{lab.name}: inputs.py", inputs)
    place = scratch / "main"
    case = target.case(
        Case("main", config, folder / "inputs", folder / "observed", place, folder / "checkpoints", swap)
    )
    save_all(case.inputs, inputs)
    inputs = mapped(case.inputs, inputs)
    partners = [r.other for r in lab.rules(config) if r.kind == "identical" and matches(r.item, only)]
    stages = needed(lab, (*only, *partners) if only else ("*",))
    log = folder / "log.txt"
    threads = settings.threads
    main = orders(
        lab, stages, [case], name=f"{folder.name}/run", share="nothing" if swap else "stages", threads=threads, log=log
    )
    beside = []
    made = benches(lab, scratch / "controls", folder / "controls", lanes) if lanes else ()
    for number, drawn in enumerate(made):
        lane = tuple(map(target.bench, drawn))
        for bench in lane:
            save_all(bench.good.inputs, bench.inputs)
        cases = [case for bench in lane for case in bench.cases]
        name = f"{folder.name}/controls/{number}"
        beside.append((lane, orders(lab, lab.stages, cases, name=name, share="everything", threads=1, log=log)))
    return Trial(settings, only, folder, inputs, case, main, tuple(beside), target)


def mapped(folder: Path, arrays: Arrays) -> Arrays:
    """The same arrays, the large ones as they were saved: both processes then map the same memory.

    Who writes into one gets a copy of that page, as in the framework process.
    """
    large = {name for name, array in arrays.items() if array.nbytes > MAPPED}
    return {n: np.asarray(np.load(folder / f"{n}.npy", mmap_mode="c")) if n in large else a for n, a in arrays.items()}


def hand_over(trials: Sequence[Trial], framework: Framework) -> None:
    """Give the jobs to the framework process: the runs first, so that they are judged while the controls run."""
    for trial in trials:
        start(framework, trial.main)
    for trial in trials:
        for _, handed in trial.beside:
            start(framework, handed)


def length(trial: Trial) -> tuple[int, int]:
    """What takes long begins first: ranks, which wait for each other and leave gaps for others, then many stages."""
    jobs = [order.job for order in trial.main]
    return max((job.ranks for job in jobs), default=0), sum(len(job.tasks) for job in jobs)


def expect(trial: Trial) -> Expected:
    """Everything that needs no torch: reference, checks, witness and wiring; computed while torch is importing."""
    lab, config, stated = trial.settings.lab, trial.settings.config, trial.settings.tolerances
    precision = trial.target.precision
    seconds: dict[str, float] = {}
    with timed(seconds, "reference"):
        reference = lab.reference(config, trial.inputs)
        _refuse_bad_names(f"{lab.name}: the reference", reference)
        every = plan(lab.rules(config), reference)
    _refuse_idle_patterns(stated, promised(every))
    if trial.settings.save == "all":  # now, while there is time
        save_all(trial.folder / "reference", reference)
    _refuse_idle_witnesses(lab, reference)
    silent = unjudged(precision, lab, every)
    rules = tuple(r for r in every if selected(r.item, r.kind, trial.only) and r.item not in silent)
    with timed(seconds, "witness"):
        witnesses = tuple(w for w in lab.witnesses if selected(w.item, "witness", trial.only))
        proofs = witness_checks(witnesses, config, trial.inputs, reference, trial.settings.seed)
    with timed(seconds, "wiring"):
        wired = wiring(rules, reference, tolerances(precision, lab, reference, stated))
    with timed(seconds, "reference of controls"):
        beside = tuple(_known(trial, bench, reference) for lane, _ in trial.beside for bench in lane)
    unselected = frozenset(promised(every)) - frozenset(promised(rules))
    moved = _moved(trial, reference, beside)
    return Expected(reference, rules, unselected, proofs, wired, beside, moved, seconds, silent)


def _moved(trial: Trial, reference: Arrays, beside: Sequence[Known]) -> frozenset[str]:
    """What the reference no longer gives as pinned at the default config, computed anew where no part of the run is."""
    lab, usual = trial.settings.lab, trial.settings.lab.config()
    if trial.target.precision.narrow:  # other inputs than the pinned ones
        return frozenset()
    at_default = [known.reference for known in beside if known.bench.config == usual]
    if trial.settings.config == usual and trial.settings.seed == 0 and not trial.settings.from_files:
        at_default.append(reference)
    values = pinned.read(lab)
    if values and not at_default:
        at_default.append(lab.reference(usual, lab.inputs(usual, Draw(0))))
    return pinned.moved(values, at_default[0]) if values else frozenset()


def _refuse_bad_names(whose: str, names: Iterable[str]) -> None:
    """Names become paths of the bundle, and have to be names of items."""
    for name in names:
        if not is_item_name(name):
            raise RequestError(
                f"{whose} has {name!r}, which is not a path of lower-case letters, digits, '_', '.', '-', '/'"
            )


def _refuse_idle_patterns(tolerances: Sequence[tuple[str, Tolerance]], items: Sequence[str]) -> None:
    """A tolerance that no item has is a mistyped one."""
    for pattern, _ in tolerances:
        if not any(matches(item, (pattern,)) for item in items):
            raise RequestError(f"tolerances: {pattern!r} matches no item{nearest(pattern, items)}")


def _refuse_idle_witnesses(lab: Lab, reference: Arrays) -> None:
    """A witness of an item that the reference does not compute would prove nothing."""
    idle = [w.item for w in lab.witnesses if w.item not in reference]
    if idle:
        raise RequestError(f"{lab.name}: the reference has no {', '.join(idle)}, which witnesses in lab.py stand for")


def _known(trial: Trial, bench: Bench, own: Arrays) -> Known:
    """What the controls of a bench are held against: the run's own reference, where config and inputs are the same."""
    lab, inputs = trial.settings.lab, trial.inputs
    same = bench.config == trial.settings.config and alike(bench.inputs, inputs)
    reference = own if same else lab.reference(bench.config, bench.inputs)
    every = plan(lab.rules(bench.config), reference)
    silent = unjudged(trial.target.precision, lab, every)
    return Known(bench, tuple(r for r in every if r.item not in silent), reference, frozenset(silent))


def alike(a: Arrays, b: Arrays) -> bool:
    """True when both have the same names and values."""
    return a.keys() == b.keys() and all(np.array_equal(a[name], b[name]) for name in a)


def selected(item: str, kind: str, only: tuple[str, ...]) -> bool:
    """True when `--only` (nothing: everything) asks for this check."""
    return not only or picks(item, kind, only)


def conclude(trial: Trial, expected: Expected, framework: Framework, deadline: float) -> Judged:
    """Judge what torch answers for the run itself."""
    seconds: dict[str, float] = {}
    lab, loosened, precision = trial.settings.lab, trial.settings.tolerances, trial.target.precision
    facts = lab.facts
    with timed(seconds, "framework"):
        ran = _singly(trial, finish(framework, trial.main, deadline), framework, deadline)
    paths = items_of(trial.case, ran)
    observed = Observed({n: p for n, p in paths.items() if n not in expected.unselected and n not in facts})
    with timed(seconds, "judge"):
        limits = tolerances(precision, lab, expected.reference, loosened)
        checks = judge_all(expected.rules, expected.reference, observed, limits)
    stated = dict(Observed({n: p for n, p in paths.items() if n in facts}))
    return Judged((*checks, *expected.witnesses), (), ran, observed, stated, seconds)


def prove(trial: Trial, expected: Expected, judged: Judged, framework: Framework, deadline: float) -> Judged:
    """The same with what became of the controls, the shorter lane before the longer one."""
    lab, loosened, precision = trial.settings.lab, trial.settings.tolerances, trial.target.precision
    seconds = dict(judged.seconds)
    found: dict[str, Verdict] = {}
    of_bench = {id(known.bench): known for known in expected.beside}
    with timed(seconds, "controls"):
        for lane, handed in reversed(trial.beside):  # the first lane is the longest
            beside = finish(framework, handed, deadline)
            for bench in lane:
                known = of_bench[id(bench)]
                ignored = lab.facts.keys() | known.silent
                limits = tolerances(precision, lab, known.reference, loosened)
                told = verdicts(bench, known.rules, known.reference, ignored, beside, limits, narrow=precision.narrow)
                found |= {verdict.control.name: verdict for verdict in told}
    ordered = tuple(found[control.name] for control in lab.controls if control.name in found)
    return replace(judged, verdicts=ordered, seconds=seconds)


def _singly(trial: Trial, ran: tuple[Ran, ...], framework: Framework, deadline: float) -> tuple[Ran, ...]:
    """Run again, each in a process of its own, what one crash took along, and the stages that resume from it."""
    lost = {r.stage.name for r in ran if r.crashed}
    if trial.case.swap or len(lost) in (0, 1) or time.monotonic() > deadline:
        return ran
    again = [r.stage for r in ran if r.stage.name in lost or lost & set(r.stage.after)]
    kept = tuple(r for r in ran if r.stage not in again)
    _keep_only(trial.case.out, items_of(trial.case, kept))
    log, threads = trial.folder / "log.txt", trial.settings.threads
    lab, name = trial.settings.lab, f"{trial.folder.name}/again"
    alone = orders(lab, again, [trial.case], name=name, share="nothing", threads=threads, log=log)
    start(framework, alone)
    rerun = finish(framework, alone, deadline)
    if any(r.crashed for r in rerun):
        return (*kept, *rerun)
    first = next(r for r in ran if r.crashed)  # it died beside the others and not alone: nobody can trust either
    first = replace(first, outcomes=())  # what ranks of it wrote is gone
    return (*kept, first, *(r for r in rerun if r.stage is not first.stage))


def _keep_only(folder: Path, names: Collection[str]) -> None:
    """Remove the arrays of a folder that are not named."""
    for file in sorted(folder.glob("**/*.npy")):
        if file.relative_to(folder).as_posix().removesuffix(".npy") not in names:
            file.unlink()


@contextmanager
def timed(seconds: dict[str, float], step: str) -> Iterator[None]:
    """Add the wall time of the block to `seconds[step]`."""
    began = time.perf_counter()
    yield
    seconds[step] = round(time.perf_counter() - began, 4)


def save_all(folder: Path, arrays: Mapping[str, Array]) -> None:
    """Write each array to `<folder>/<name>.npy`, many bytes from two threads at once."""
    written = [(folder / f"{name}.npy", array) for name, array in arrays.items()]
    if sum(array.nbytes for array in arrays.values()) < LARGE:
        for path, array in written:
            save_array(path, array)
        return
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - 13 ms that only large runs need

    with ThreadPoolExecutor(max_workers=2) as pool:
        for done in [pool.submit(save_array, *file) for file in written]:
            done.result()


def save_arrays(trial: Trial, expected: Expected, judged: Judged, checks: Sequence[Check]) -> None:
    """Keep in the bundle what the config's `save` says: all arrays, those of failing checks, or none.

    What a stage wrote before it was stopped was not judged, and is not kept.
    """
    save, folder = trial.settings.save, trial.folder
    failing = {n for c in checks if c.status != "passed" for n in (c.name, c.other)}
    answered = {*judged.observed, *judged.facts}
    keep = {"all": answered | set(expected.reference), "failing": failing, "none": set[str]()}[save]
    if save != "all":
        save_all(folder / "reference", {n: a for n, a in expected.reference.items() if n in keep})
    _keep_only(folder / "observed", keep & answered)
    if save == "all":
        return
    if not failing or save == "none":
        shutil.rmtree(folder / "inputs")
    shutil.rmtree(folder / "controls", ignore_errors=True)
