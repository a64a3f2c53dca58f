"""Every lab's own parts, all swapped in at once: whatever the guard says then is a mistake of its own."""

import importlib

import pytest

import labs
from labs.core.launch import Framework
from labs.core.part_fields import part_fields
from labs.core.registry import load
from labs.core.run import Request, run


@pytest.fixture(scope="module")
def framework(tmp_path_factory):
    with Framework(None, tmp_path_factory.mktemp("framework")) as started:
        yield started


def sources(name):
    """Each part as the module and name that its lab takes it from."""
    own = importlib.import_module(f"labs.{name}.torch_impl").PARTS
    parts = {field.name: getattr(own, field.name) for field in part_fields(load(name))}
    return {part: f"{made.__module__}:{made.__name__}" for part, made in parts.items()}


@pytest.mark.parametrize("name", labs.NAMES)
def test_a_labs_own_parts_keep_to_their_own_signatures(name, framework, tmp_path):
    request = Request(names=(name,), out=tmp_path, swap=sources(name), controls=False)
    (lab,) = run(request, framework).report["labs"]
    assert lab["failures"] == []
    assert lab["status"] == "passed"
    assert {swap["part"] for swap in lab["swaps"] if swap["sha256"]} == set(sources(name))
