"""Units of the torch side that a whole run does not show one by one, in this process: a group of one rank."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from labs.contrastive import torch_gather, torch_parts
from labs.contrastive.config import Config
from labs.contrastive.inputs import inputs
from labs.contrastive.torch_impl import PARTS, STAGES
from labs.contrastive.torch_model import Encoders
from labs.contrastive.torch_uncompiled import uncompiled
from labs.core.inputs import Draw
from labs.core.place import Place

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def tensors():
    return {name: torch.from_numpy(array) for name, array in inputs(Config(world_size=1), Draw(0)).items()}


@pytest.fixture
def place(tmp_path):
    """Where a rank of its own stands; its group ends with the test."""
    yield Place(0, 1, tmp_path, tmp_path)
    if dist.is_initialized():
        dist.destroy_process_group()


def test_what_averages_is_the_framework_s_own_module(tensors, place):
    torch_gather.meet(place, 1)
    with uncompiled():
        assert type(PARTS.average(Encoders(PARTS.encode, PARTS.scale, tensors))) is DistributedDataParallel


COMPILER = """
import sys
from pathlib import Path
import torch
from labs.contrastive.config import Config
from labs.contrastive.inputs import inputs
from labs.contrastive.torch_impl import PARTS, STAGES
from labs.contrastive.torch_uncompiled import MODE, uncompiled
from labs.core.inputs import Draw
from labs.core.place import Place

def routes():
    tensors = {name: torch.from_numpy(array) for name, array in inputs(Config(world_size=1), Draw(0)).items()}
    place = Place(0, 1, Path("."), Path("."))
    each = [STAGES[name](Config(world_size=1), tensors, PARTS, place) for name in ("direct", "alone", "cached")]
    return {name: value for items in each for name, value in items.items()}

without = routes()
assert "torch._dynamo" not in sys.modules and "sympy" not in sys.modules
with uncompiled():
    assert torch._dynamo.config.optimize_ddp is True
assert torch._dynamo.utils.get_optimize_ddp_mode() == MODE
torch.nn.parallel.DistributedDataParallel._inside_ddp_forward.__wrapped__.__wrapped__.__dict__.clear()
beside = routes()
assert without.keys() == beside.keys()
assert all(torch.equal(torch.as_tensor(without[name]), torch.as_tensor(beside[name])) for name in without)
print("the same bits")
"""


def test_the_compiler_is_not_imported_and_its_real_answers_give_the_same_bits(tmp_path):
    words, environment = [sys.executable, "-c", COMPILER], {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(words, cwd=tmp_path, env=environment, text=True, capture_output=True, check=False)
    assert done.stdout.strip().endswith("the same bits"), done.stderr


def test_other_processes_than_the_config_says_are_refused(tmp_path):
    with pytest.raises(ValueError, match="world_size is 4, but 2 processes run this stage"):
        torch_gather.meet(Place(0, 2, tmp_path, tmp_path), 4)


def test_a_torch_without_a_gather_of_its_own_is_a_fact_and_no_failure(tensors, place, monkeypatch):
    stated = STAGES["gather"](Config(world_size=1), tensors, PARTS, place)
    monkeypatch.setattr(torch_gather, "framework_all_gather", lambda: None)
    monkeypatch.setitem(STAGES["gather"].__globals__, "framework_all_gather", lambda: None)
    without = STAGES["gather"](Config(world_size=1), tensors, PARTS, place)
    assert (stated["gather/framework_used"], without["gather/framework_used"]) == (True, False)
    assert torch.equal(stated["rank0/gather/framework/grad"], without["rank0/gather/framework/grad"])


@pytest.mark.parametrize(("counts", "rank", "rows"), [([5, 3], 0, (0, 5)), ([5, 3], 1, (5, 8)), ([1, 5, 2], 2, (6, 8))])
def test_own_rows_stand_behind_those_of_the_ranks_before(counts, rank, rows):
    own = torch_gather.own_rows(counts, rank)
    assert (own.start, own.stop) == rows
    assert torch_parts.labels(counts, rank).tolist() == list(range(*rows))


@pytest.mark.parametrize(
    ("count", "size", "sizes"), [(4, 1, [1, 1, 1, 1]), (4, 3, [3, 1]), (4, 4, [4]), (4, 9, [4]), (1, 2, [1])]
)
def test_micro_batches_take_every_row_once(count, size, sizes):
    pieces = torch_parts.micro_batches(count, size)
    assert [piece.stop - piece.start for piece in pieces] == sizes
    assert torch.cat([torch.arange(count)[piece] for piece in pieces]).tolist() == list(range(count))


def test_a_checkpoint_gives_the_same_bits_back(tmp_path, tensors):
    saved = {name: tensors[name] for name in ("w_a", "w_b", "log_scale")}
    torch_parts.save(saved, tmp_path / "parameters.pt")
    loaded = torch_parts.load(tmp_path / "parameters.pt")
    assert all(np.array_equal(loaded[name].numpy(), saved[name].numpy()) for name in saved)
