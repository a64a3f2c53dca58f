"""Both sides of the lora lab in one process, as fixtures: what a run does in two, without the engine around it."""

import dataclasses
from fnmatch import fnmatchcase

import pytest
import torch

from labs.core.inputs import Draw
from labs.core.items import plan
from labs.core.judge import judge_all
from labs.core.place import Place
from labs.core.process.torch_items import arrays_of
from labs.lora import torch_faults, torch_impl
from labs.lora.config import Config
from labs.lora.lab import LAB


@pytest.fixture
def observe(tmp_path):
    """The torch side's items, with parts swapped in (faults by name) and config values that only it sees."""

    def run(config, inputs, swap=(), lie=()):
        faults = {
            part: fault if callable(fault) else getattr(torch_faults, fault) for part, fault in dict(swap).items()
        }
        parts = dataclasses.replace(torch_impl.PARTS, **faults)
        config, place, items = dataclasses.replace(config, **dict(lie)), Place(0, 1, tmp_path, tmp_path), {}
        for stage in LAB.stages:
            torch.default_generator.manual_seed(0)
            tensors = {name: torch.from_numpy(array.copy()) for name, array in inputs.items()}
            items.update(arrays_of(stage.name, torch_impl.STAGES[stage.name](config, tensors, parts, place)))
        return items

    return run


@pytest.fixture
def checks(observe):
    """Every check of a run: reference against torch."""

    def run(changes=(), seed=0, swap=(), lie=()):
        config = dataclasses.replace(Config(), **dict(changes))
        inputs = LAB.inputs(config, Draw(seed))
        reference = LAB.reference(config, inputs)
        return judge_all(plan(LAB.rules(config), reference), reference, observe(config, inputs, swap, lie), ())

    return run


@pytest.fixture
def matching():
    """The checks that one of the patterns names, as `item` or `item:kind`."""

    def select(found, patterns):
        return {(c.name, c.kind) for c in found for p in patterns if _matches(c, p)}

    return select


@pytest.fixture
def failing():
    def select(found):
        return {(c.name, c.kind) for c in found if c.status != "passed"}

    return select


def _matches(check, pattern):
    return fnmatchcase(check.name, pattern) or fnmatchcase(f"{check.name}:{check.kind}", pattern)
