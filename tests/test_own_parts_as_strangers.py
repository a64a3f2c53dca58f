"""Every lab's own parts, all swapped in at once: whatever the guard says then is a mistake of its own."""

import importlib

import pytest

import labs
from labs.core.launch import Framework
from labs.core.part_fields import part_fields
from labs.core.registry import load
from labs.core.run import Request, run
from labs.core.stub import stub


@pytest.fixture(scope="module")
def framework(tmp_path_factory):
    with Framework(None, tmp_path_factory.mktemp("framework")) as started:
        yield started


IDLE = {"lora": {"squared_error"}}  # what nothing calls at the default config


def sources(name):
    """Each part as the module and name that its lab takes it from."""
    own = importlib.import_module(f"labs.{name}.torch_impl").PARTS
    parts = {f.name: getattr(own, f.name) for f in part_fields(load(name)) if f.name not in IDLE.get(name, ())}
    return {part: f"{made.__module__}:{made.__name__}" for part, made in parts.items()}


@pytest.mark.parametrize("name", labs.NAMES)
def test_a_labs_own_parts_keep_to_their_own_signatures(name, framework, tmp_path):
    request = Request(names=(name,), out=tmp_path, swap=sources(name), controls=False)
    (lab,) = run(request, framework).report["labs"]
    assert lab["failures"] == []
    assert lab["status"] == "passed"
    assert {swap["part"] for swap in lab["swaps"] if swap["sha256"]} == set(sources(name))


FILLED = {"residual": "return x + branch", "gate": "return torch.nn.functional.silu(gates) * up"}


def as_files(name, folder, body="raise NotImplementedError"):
    """The stub of every part of a lab as a file of its own, and what swaps them all in."""
    folder.mkdir()
    for field in part_fields(load(name)):
        text = stub(load(name), field.name, name).replace(
            "from torch import Tensor", "import torch\nfrom torch import Tensor"
        )
        filled = FILLED.get(field.name, body)
        (folder / f"{field.name}.py").write_text(text.replace("raise NotImplementedError", filled))
    return {field.name: f"{folder}/{field.name}.py:{field.name}" for field in part_fields(load(name))}


def test_stubs_are_swapped_in_as_they_are_printed(framework, tmp_path):
    config = tmp_path / "stubs.yaml"
    config.write_text("lab: lora\n")
    swap = as_files("lora", tmp_path / "lora")
    request = Request(names=(str(config),), out=tmp_path, swap=swap, controls=False)
    (lab,) = run(request, framework).report["labs"]
    assert lab["failures"]
    for failure in lab["failures"]:
        assert "raised in part " in failure or "own parts complete" in failure or "is not there" in failure, failure
    assert "NotImplementedError" in lab["failures"][0]


def test_a_stub_that_is_filled_in_passes(framework, tmp_path):
    config = tmp_path / "filled.yaml"
    config.write_text("lab: block\n")
    swap = {part: source for part, source in as_files("block", tmp_path / "block").items() if part in FILLED}
    request = Request(names=(str(config),), out=tmp_path, swap=swap, controls=False)
    (lab,) = run(request, framework).report["labs"]
    assert (lab["failures"], lab["status"]) == ([], "passed")
