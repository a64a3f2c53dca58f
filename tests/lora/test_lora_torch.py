import subprocess
import sys

import pytest
import torch

from labs.lora import torch_parts
from labs.lora.torch_price import priced

IMPORT = """
import torch
from torch import ones
from labs.lora.torch_price import priced
from labs.lora.torch_impl import PARTS
x, a, b = (ones(*shape, dtype=torch.float64) for shape in ((2, 3, 4), (4, 1), (1, 5)))
priced("factored", PARTS.branch, (x, a, b))
PARTS.step(x, x, 0.1)
PARTS.framework_kaiming(4, 2)
import sys
slow = ("torch._dynamo", "sympy", "labs.kernels", "labs.lora.reference", "yaml")
print([name for name in slow if name in sys.modules])
"""


def tensors(*shapes):
    return tuple(torch.ones(*shape, dtype=torch.float64) for shape in shapes)


def test_the_torch_side_imports_nothing_slow_and_nothing_of_the_reference():
    done = subprocess.run([sys.executable, "-c", IMPORT], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("way", "forward", "kept"),
    [("branch", 2 * 6 * 4 + 2 * 6 * 5, 24 + 4 + 6 + 5), ("branch_product", 2 * 4 * 5 + 2 * 6 * 4 * 5, 24 + 4 + 5 + 20)],
)
def test_the_price_is_counted_by_hand(way, forward, kept):
    found = priced("way", getattr(torch_parts, way), tensors((2, 3, 4), (4, 1), (1, 5)))
    assert found["order/operations/way/forward"] == forward
    assert found["order/operations/way/backward"] == 2 * forward
    assert found["order/saved_bytes/way"] == 8 * kept


def test_a_tensor_kept_twice_is_counted_once():
    found = priced("way", lambda x: x @ x, tensors((3, 3)))
    assert found["order/saved_bytes/way"] == 8 * 9


def test_bfloat16_merges_as_storage_does():
    w = torch.tensor([[1.0]], dtype=torch.bfloat16)
    a, b = torch.tensor([[1.0]], dtype=torch.float64), torch.tensor([[0.003]], dtype=torch.float64)
    merged = torch_parts.merge(w, a, b, 1.0)
    assert merged.dtype == torch.bfloat16
    assert merged.item() == 1.0
    assert torch_parts.unmerge(merged, a, b, 1.0).item() == 0.99609375


def test_the_frameworks_kaiming_takes_the_features_for_the_fan_in():
    drawn = torch_parts.framework_kaiming(400, 2)
    assert drawn.shape == (400, 2)
    assert 0.045 < drawn.abs().max().item() <= 0.05


def test_a_step_is_plain_sgd_in_place():
    parameter = torch.tensor([1.0, -2.0], dtype=torch.float64)
    torch_parts.step(parameter, torch.tensor([4.0, 8.0], dtype=torch.float64), 0.25)
    assert parameter.tolist() == [0.0, -4.0]
