import dataclasses
import subprocess
import sys

import pytest
import torch

from labs.block import torch_faults, torch_parts
from labs.block.config import Config
from labs.block.inputs import inputs
from labs.block.torch_impl import PARTS, STAGES
from labs.block.torch_training import shuffled, start
from labs.core.inputs import Draw
from labs.core.place import Place

IMPORT = """
import sys
from pathlib import Path
import torch
from labs.block.config import Config
from labs.block.torch_impl import PARTS, STAGES
from labs.block import torch_faults
from labs.core.place import Place
tensors = torch.load(sys.argv[1] + "/inputs.pt", weights_only=True)
for stage in STAGES.values():
    place = Place(0, 1, Path(sys.argv[1]), Path(sys.argv[1]))
    stage(Config(), {n: t.clone() for n, t in tensors.items()}, PARTS, place)
slow = ("torch._dynamo", "sympy", "labs.kernels", "labs.block.reference", "yaml")
print([name for name in slow if name in sys.modules])
"""


def tensors(config):
    return {name: torch.from_numpy(array) for name, array in inputs(config, Draw(0)).items()}


@pytest.fixture
def place(tmp_path):
    return Place(0, 1, tmp_path, tmp_path)


def test_the_stages_import_nothing_slow_and_nothing_of_the_reference(tmp_path):
    torch.save(tensors(Config()), tmp_path / "inputs.pt")
    command = [sys.executable, "-c", IMPORT, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_checkpoint_holds_tensors_and_plain_numbers_by_name(place):
    STAGES["train"](Config(), tensors(Config()), PARTS, place)
    state = torch.load(place.checkpoints / "halfway.pt", weights_only=True)
    assert state["done"] == Config().checkpoint_after
    named = [state[kind] for kind in ("param", "exp_avg", "exp_avg_sq", "step")]
    assert all(set(one) == set(named[0]) and len(one) == 10 for one in named)
    plain = [value for key, value in state.items() if key not in ("param", "exp_avg", "exp_avg_sq", "step")]
    assert all(isinstance(value, int | torch.Tensor) for value in plain)
    assert {float(step) for step in state["step"].values()} == {float(Config().checkpoint_after)}


def test_a_checkpoint_on_the_way_is_not_the_one_at_the_end(place):
    STAGES["train"](Config(), tensors(Config()), PARTS, place)
    halfway, final = (torch.load(place.checkpoints / f"{name}.pt", weights_only=True) for name in ("halfway", "final"))
    assert not any(torch.equal(halfway["param"][name], final["param"][name]) for name in final["param"])


def test_batches_run_through_each_order_before_the_next_is_drawn():
    config = dataclasses.replace(Config(), samples=5, batch=2)
    state = start(config, tensors(config))
    orders = iter([torch.tensor([4, 2, 0, 1, 3]), torch.tensor([3, 1, 4, 0, 2])])
    parts = dataclasses.replace(PARTS, shuffle=lambda n: next(orders))
    given = {**tensors(config), "data/labels": torch.arange(5)}
    batch = shuffled(config, parts, given)
    assert [batch(state)[1].tolist() for _ in range(5)] == [[4, 2], [0, 1], [3, 3], [1, 4], [0, 2]]


def test_dropout_makes_the_stochastic_run_another_one(place):
    first, second = (dataclasses.replace(Config(), dropout=share) for share in (0.0, 0.5))
    stage = STAGES["stochastic/uninterrupted"]
    losses = [stage(c, tensors(c), PARTS, place)["stochastic/uninterrupted/loss"] for c in (first, second)]
    assert not torch.equal(*losses)


def test_the_stochastic_run_depends_on_its_seed_alone(place):
    stage = STAGES["stochastic/uninterrupted"]
    losses = []
    for seed, before in ((1, 0), (1, 9), (2, 0)):
        torch.default_generator.manual_seed(before)
        config = dataclasses.replace(Config(), torch_seed=seed)
        losses.append(stage(config, tensors(config), PARTS, place)["stochastic/uninterrupted/loss"])
    assert torch.equal(losses[0], losses[1])
    assert not torch.equal(losses[0], losses[2])


def test_a_query_that_sees_nothing_has_zeros_and_no_gradient():
    scores = torch.randn(1, 1, 2, 2, dtype=torch.float64, requires_grad=True)
    probs = torch_parts.softmax(scores, torch.tensor([[False, False], [True, False]]))
    assert probs.tolist() == [[[[0.0, 0.0], [1.0, 0.0]]]]
    probs.square().sum().backward()
    assert scores.grad[0, 0, 0].tolist() == [0.0, 0.0]


def test_neighbouring_pairs_are_what_llama_permutes_away():
    """A rotation of neighbours, seen through the permutation that deals a row out to two halves, is one of halves."""
    x = torch.randn(1, 1, 3, 6, dtype=torch.float64)
    deal = [0, 2, 4, 1, 3, 5]
    neighbours = torch_faults.rope_neighbours(x, torch.arange(3), 100.0)
    halves = torch_parts.rope(x[..., deal], torch.arange(3), 100.0)
    torch.testing.assert_close(neighbours[..., deal], halves, rtol=0, atol=1e-15)


FORWARD_IS_RIGHT = [  # a fault of the backward pass alone: (right part, faulty part, arguments)
    ("norm", "norm_constant_r", ((2, 3, 4), (4,), 1e-5)),
    ("norm", "norm_rows_from_first_axis", ((2, 3, 4), (4,), 1e-5)),
    ("norm", "norm_weight_without_gradient", ((2, 3, 4), (4,), 1e-5)),
    ("gate", "gate_sigmoid_derivative", ((2, 3, 4), (2, 3, 4))),
    ("residual", "residual_without_gradient", ((2, 3, 4), (2, 3, 4))),
]


@pytest.mark.parametrize(("part", "fault", "shapes"), FORWARD_IS_RIGHT)
def test_a_fault_of_the_backward_pass_leaves_the_forward_pass_right(part, fault, shapes):
    torch.manual_seed(0)
    given = [torch.randn(s, dtype=torch.float64, requires_grad=True) if isinstance(s, tuple) else s for s in shapes]
    right, wrong = getattr(torch_parts, part)(*given), getattr(torch_faults, fault)(*given)
    torch.testing.assert_close(wrong, right, rtol=1e-14, atol=1e-14)


ONE_STEP = {  # the numbers of the faults' table: p, g, options, right, and the fault with its wrong value
    "adam_eps_scaled": ((0.0, 1e-6), {"lr": 1.0, "epsilon": 1e-8, "weight_decay": 0.0}, -0.990099, -0.759747),
    "adam_l2": ((1.0, 0.1), {"lr": 0.1, "epsilon": 1e-8, "weight_decay": 0.1}, 0.89, 0.90),
}


@pytest.mark.parametrize("fault", ONE_STEP)
def test_faulty_optimizers_have_the_wrong_values_of_the_table(fault):
    (p, g), options, right, wrong = ONE_STEP[fault]
    for update, expected in ((torch_parts.optimizer, right), (getattr(torch_faults, fault), wrong)):
        lists = [[torch.tensor([value], dtype=torch.float64)] for value in (p, g, 0.0, 0.0)]
        update(*lists, [torch.tensor(0.0)], beta1=0.9, beta2=0.999, **options)
        assert lists[0][0].item() == pytest.approx(expected, abs=2e-6)


def test_a_counter_in_bfloat16_stops_at_256():
    step, value = torch.tensor(254.0), torch.zeros(1, dtype=torch.float64)
    counted = []
    for _ in range(4):
        torch_faults.adam_step_stuck(
            *([value.clone()] for _ in range(4)), [step], lr=1.0, beta1=0.9, beta2=0.999, epsilon=1e-8, weight_decay=0.0
        )
        counted.append(step.item())
    assert counted == [255.0, 256.0, 256.0, 256.0]


def cut(x, gamma, epsilon):
    return torch_parts.norm(x, gamma, epsilon).detach()


def test_a_part_that_cuts_the_graph_leaves_items_out(place):
    config = dataclasses.replace(Config(), steps=0)
    items = STAGES["pass"](config, tensors(config), dataclasses.replace(PARTS, norm=cut), place)
    assert "grad/residual_2" in items
    assert "grad/gamma_1" not in items
    assert "grad/normed_1" not in items
    assert "fused/heads" in items
