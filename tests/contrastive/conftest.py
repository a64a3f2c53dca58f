"""The contrastive lab's torch side as a run has it: real ranks in a framework process, started once for all tests."""

import dataclasses
import time
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from labs.contrastive.config import Config
from labs.core.controls import bench
from labs.core.inputs import Draw
from labs.core.items import plan
from labs.core.judge import judge_all
from labs.core.lab import Control
from labs.core.launch import Framework
from labs.core.observed import Observed
from labs.core.registry import load
from labs.core.schedule import finish, items_of, orders, start
from labs.core.trial import save_all

ROOT = Path(__file__).resolve().parents[2]
LAB = load(str(ROOT / "labs/contrastive"))
PATIENCE = 300  # seconds, on a machine with other things to do


@pytest.fixture(scope="session")
def framework(tmp_path_factory):
    with Framework(None, tmp_path_factory.mktemp("framework")) as started:
        yield started


@pytest.fixture(scope="session")
def observe(framework, tmp_path_factory):
    """The items of the good run and of some controls at one config and seed: ({name: items}, what went wrong)."""

    def run(config, seed=0, controls=()):
        folder = tmp_path_factory.mktemp("case")
        made = bench(controls, config, LAB.inputs(config, Draw(seed)), folder, folder / "controls")
        save_all(made.good.inputs, made.inputs)
        log = folder / "log.txt"
        jobs = orders(LAB, LAB.stages, made.cases, name=str(folder), share="stages", threads=1, log=log)
        start(framework, jobs)
        ran = finish(framework, jobs, time.monotonic() + PATIENCE)
        items = {case.name: dict(Observed(items_of(case, ran))) for case in made.cases}
        return items, [r.failure for r in ran if r.failure]

    return run


@pytest.fixture(scope="session")
def checks(observe):
    """Every check of a run without controls: reference against torch."""

    def run(changes=(), seed=0):
        config = dataclasses.replace(Config(), **dict(changes))
        items, failures = observe(config, seed)
        assert failures == []
        return judged(config, seed, items["good"])

    return run


@pytest.fixture(scope="session")
def spoiled(observe):
    """Every check of each control that runs at these changes, and of one part swapped for an ad-hoc fault."""

    def run(controls: tuple[Control, ...], changes=(), seed=0):
        config = dataclasses.replace(Config(), **dict(changes))
        items, failures = observe(config, seed, controls)
        assert failures == []
        return {control.name: judged(config, seed, items[control.name]) for control in controls}

    return run


def judged(config, seed, items):
    reference = LAB.reference(config, LAB.inputs(config, Draw(seed)))
    judged_items = {name: array for name, array in items.items() if name not in LAB.facts}
    return judge_all(plan(LAB.rules(config), reference), reference, judged_items, ())


@pytest.fixture(scope="session")
def matching():
    """The checks that one of the patterns names, as `item` or `item:kind`."""

    def select(found, patterns):
        return {(c.name, c.kind) for c in found for p in patterns if _matches(c, p)}

    return select


@pytest.fixture(scope="session")
def failing():
    def select(found):
        return {(c.name, c.kind) for c in found if c.status != "passed"}

    return select


def _matches(check, pattern):
    return fnmatchcase(check.name, pattern) or fnmatchcase(f"{check.name}:{check.kind}", pattern)
