"""After a failed check: how far is each side from extended precision, which side is wrong, and what fault is it?

Only red runs pay for this. The lab's controls run again at the user's config; what they give is held against what was
observed, and against the reference. The values pinned with the release say which side moved at the default config.
Where the user's sizes make extended precision too expensive, the whole case is replayed at the default config.
"""

import dataclasses
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from labs.core import arbiter, pinned
from labs.core.controls import bench
from labs.core.explain import explain
from labs.core.inputs import Draw
from labs.core.judge import Check
from labs.core.lab import Array, Arrays, Control
from labs.core.launch import Framework
from labs.core.likeness import Fault, Likeness, likenesses
from labs.core.observed import Observed
from labs.core.patterns import matches
from labs.core.reports.summary import DENIED, EQUALS
from labs.core.schedule import finish, items_of, orders, start
from labs.core.trial import Expected, Judged, Trial, alike, save_all

INEXACT = 1e3  # ULP: a side that only rounds is a few away from extended precision, not a thousand


@dataclass(frozen=True)
class Scene:
    """Both sides at one config, and what each known fault gives there."""

    note: str  # empty, or where this is when it is not the user's config
    reference: Mapping[str, Array]
    observed: Mapping[str, Array]
    exact: Mapping[str, Array]
    faults: Mapping[str, Fault]
    spoiled: Mapping[str, frozenset[str]]  # by each control: the items that it changes here


@dataclass(frozen=True)
class Moved:
    """The items that no longer have their pinned values at the default config, on each side."""

    reference: frozenset[str]
    observed: frozenset[str]


def investigate(
    trial: Trial, expected: Expected, judged: Judged, framework: Framework, scratch: Path, deadline: float
) -> tuple[Check, ...]:
    """The run's checks, the failed ones with arbiter, side and diagnosis filled in as far as they can be known."""
    failed = tuple(c for c in judged.checks if c.status != "passed" and _is_comparable(c, judged))
    if not failed or time.monotonic() > deadline or trial.target.precision.narrow:
        return judged.checks
    lab, config = trial.settings.lab, trial.settings.config
    usual = lab.config()
    usual_inputs = lab.inputs(usual, Draw(0))
    at_default = _play(trial, usual, usual_inputs, framework, scratch / "default", deadline)
    known = pinned.read(lab)
    moved = Moved(pinned.moved(known, at_default.reference), pinned.moved(known, at_default.observed))
    if not arbiter.affordable(trial.inputs):
        scene = dataclasses.replace(at_default, note=" (at the default config)")
    else:
        here = config == usual and alike(trial.inputs, usual_inputs)
        scene = at_default if here else _play(trial, config, trial.inputs, framework, scratch / "config", deadline)
        telling = _telling(lab.controls, scene, at_default)
        scene = dataclasses.replace(scene, reference=expected.reference, observed=judged.observed, faults=telling)
    return _explained(judged.checks, failed, scene, moved)


def _is_comparable(check: Check, judged: Judged) -> bool:
    """True when there are values to explain: not for a blunt check, nor for what a stage that failed did not yield."""
    blunt = check.headroom is not None and check.headroom > 0
    return not blunt and (check.name in judged.observed or not any(r.failure for r in judged.ran))


def _play(trial: Trial, config: Any, inputs: Arrays, framework: Framework, scratch: Path, deadline: float) -> Scene:
    """Run the run's own parts and every control at one config."""
    lab = trial.settings.lab
    made = bench(lab.controls, config, inputs, scratch, scratch / "out")
    own = scratch / "places" / "replay"
    replay = dataclasses.replace(
        made.good,
        name="replay",
        out=scratch / "replay",
        scratch=own,
        checkpoints=own / "checkpoints",
        swap=trial.case.swap,
    )
    save_all(made.good.inputs, inputs)
    cases = [*made.cases, replay]
    log = trial.folder / "log.txt"
    threads = trial.settings.threads
    played = orders(lab, lab.stages, cases, name=str(scratch), share="stages", threads=threads, log=log)
    start(framework, played)
    ran = finish(framework, played, deadline)
    reference = lab.reference(config, inputs)
    exact = arbiter.extended(lab, config, inputs) if arbiter.affordable(inputs) else {}
    good, given = items_of(made.good, ran), {control.name: items_of(case, ran) for control, case in made.faulty}
    faults = {control.name: _fault(control, given[control.name], good) for control, _ in made.faulty}
    spoiled = {name: frozenset(n for n in good if paths.get(n) != good[n]) for name, paths in given.items()}
    return Scene("", reference, Observed(items_of(replay, ran)), exact, faults, spoiled)


def _fault(control: Control, given: Mapping[str, Path], good: Mapping[str, Path]) -> Fault:
    """What a control gives for the items that it must spoil, also where the good run gives the same."""
    patterns = [pattern.split(":")[0] for pattern in control.must]
    paths = {n: p for n, p in given.items() if matches(n, patterns)}
    absent = [n for n in good if n not in paths and matches(n, patterns)]
    return {**dict.fromkeys(absent), **Observed(paths)}


def _telling(controls: Sequence[Control], here: Scene, at_default: Scene) -> dict[str, Fault]:
    """What the controls give here, without the items for which one is only asleep.

    Where a fault and the lab's own part give the same, the own part has the very fault, or the fault can't show at this
    config: it is asleep when it does show at the default config, or asks for another config itself (`at`).
    """
    return {
        c.name: {
            n: array
            for n, array in here.faults[c.name].items()
            if n in here.spoiled[c.name] or not (c.at or n in at_default.spoiled[c.name])
        }
        for c in controls
    }


def _explained(checks: tuple[Check, ...], failed: tuple[Check, ...], scene: Scene, moved: Moved) -> tuple[Check, ...]:
    names = tuple(dict.fromkeys(c.name for c in failed))
    far = arbiter.distances(names, scene.exact, scene.reference, scene.observed)
    order = tuple(dict.fromkeys(c.name for c in checks))
    observed_faults = likenesses(names, order, scene.observed, scene.faults)
    reference_faults = likenesses([n for n in names if n in scene.reference], order, scene.reference, scene.faults)
    disproved = {c.name for c in failed if c.kind == "witness"}
    backward_alone = all("grad" in name.split("/") for name in names)  # else the proof is of another function
    proved = {c.name for c in checks if c.kind == "witness" and backward_alone} - disproved

    def filled(check: Check) -> Check:
        if check not in failed:
            return check
        name = check.name
        fault, mirrored = observed_faults[name], reference_faults.get(name, Likeness())
        blame = _blame(name, disproved, proved, moved, fault.proof, mirrored.proof, far.get(name))
        diagnosis = _diagnosis(name, scene, fault, mirrored)
        return dataclasses.replace(check, arbiter=far.get(name), blame=blame, diagnosis=diagnosis)

    return tuple(filled(c) for c in checks)


def _blame(
    name: str,
    disproved: set[str],
    proved: set[str],
    moved: Moved,
    fault: str,
    mirrored: str,
    far: Mapping[str, float] | None,
) -> dict[str, str] | None:
    """Which side is wrong and why, by the strongest evidence that there is; None when nothing tells."""
    inexact = far is not None and far["reference_ulp"] > INEXACT >= far["observed_ulp"]
    evidence = (
        (name in disproved, "reference", "its gradient is not the derivative of its own loss"),
        (name in moved.reference & moved.observed, "both", "neither has the value pinned for the default config"),
        (name in moved.reference, "reference", "it no longer has the value pinned for the default config"),
        (name in moved.observed, "observed", "it does not have the value pinned for the default config"),
        (bool(mirrored) and not fault, "reference", f"it has the values of the known fault {mirrored}"),
        (bool(fault) and not mirrored, "observed", f"it has the values of the known fault {fault}"),
        (inexact, "reference", "extended precision agrees with the torch side"),
        (name in proved, "observed", "the reference's gradient is proved by complex step"),
    )
    return next(({"side": side, "because": why} for true, side, why in evidence if true), None)


def _diagnosis(name: str, scene: Scene, fault: Likeness, mirrored: Likeness) -> str | None:
    """A fault that nothing denies, else what the array looks like, else a fault that fits here and not elsewhere."""
    likely = [(side, like) for side, like in zip(EQUALS, (fault, mirrored), strict=True) if like.control]
    told = [f"{side}{like.control}" for side, like in likely if like.proof]
    told += [clause] if not told and (clause := _clause(scene.reference.get(name), scene.observed.get(name))) else []
    told += [f"{side}{like.control}{DENIED}{like.denied_at}" for side, like in likely if like.denied_at]
    return f"{told[0]}{scene.note}" if told else None


def _clause(reference: Array | None, observed: Array | None) -> str | None:
    if reference is None or observed is None:
        return None
    return explain(np.asarray(reference), np.asarray(observed))
