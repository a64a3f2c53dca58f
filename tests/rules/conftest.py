"""Both sides of the rules lab in one process: what a run does in two, without the engine around it."""

import dataclasses
import importlib

import pytest
import torch

from labs.core.inputs import Draw
from labs.core.items import plan
from labs.core.judge import judge_all
from labs.core.place import Place
from labs.core.process.torch_items import arrays_of
from labs.rules.lab import LAB


@pytest.fixture
def observe(tmp_path):
    """The torch side's items, facts included, with faulty parts swapped in; of a copy of the lab too."""

    def run(config, inputs, swap=(), package="labs.rules"):
        torch_impl = importlib.import_module(f"{package}.torch_impl")
        torch_faults = importlib.import_module(f"{package}.torch_faults")
        faults = {part: getattr(torch_faults, fault) for part, fault in dict(swap).items()}
        parts = dataclasses.replace(torch_impl.PARTS, **faults)
        torch.default_generator.manual_seed(0)
        tensors = {name: torch.from_numpy(array.copy()) for name, array in inputs.items()}
        return arrays_of("rows", torch_impl.STAGES["rows"](config, tensors, parts, Place(0, 1, tmp_path, tmp_path)))

    return run


@pytest.fixture
def checks(observe):
    """Every check of a run: reference against torch."""

    def run(theme="all", swap=(), lab=LAB, package="labs.rules"):
        config = lab.config(theme=theme)
        inputs = lab.inputs(config, Draw(0))
        reference = lab.reference(config, inputs)
        observed = {n: a for n, a in observe(config, inputs, swap, package).items() if n not in lab.facts}
        return judge_all(plan(lab.rules(config), reference), reference, observed, ())

    return run
