"""The walk of the page is the graph that the reference computes."""

import numpy as np
import pytest

from labs.block.config import Config
from labs.block.lab import LAB
from labs.block.reference import PARAMETERS
from labs.core.inputs import Draw


@pytest.fixture(scope="module", params=[True, False], ids=["rope", "no rope"])
def walked(request):
    config = Config(rope=request.param, steps=0)
    inputs = LAB.inputs(config, Draw(0))
    return LAB.walk(config), inputs, LAB.reference(config, inputs)


def test_every_node_has_a_value_and_a_gradient_of_its_shape(walked):
    nodes, inputs, reference = walked
    for node in nodes[1:]:
        value = reference.get(node.value, inputs.get(node.value))
        assert value.shape == reference[node.gradient].shape, node.name


def test_only_the_loss_has_no_gradient_item(walked):
    assert [node.name for node in walked[0] if not node.gradient] == ["loss"]


def test_nodes_are_read_by_nodes_before_them(walked):
    seen = set()
    for node in walked[0]:
        assert set(node.read_by) <= seen
        assert node.read_by or node.name == "loss"
        seen.add(node.name)


def test_the_walk_reaches_every_input_and_every_intermediate(walked):
    nodes, _inputs, reference = walked
    names = {node.name for node in nodes}
    assert {"x", *PARAMETERS} <= names
    assert {n.removeprefix("grad/") for n in reference if n.startswith("grad/")} <= names


def test_the_rules_hold_in_numbers_where_a_line_of_numpy_can_say_them(walked):
    """A sum hands its gradient on, a value that is read twice gets both, a matrix the sum over all rows."""
    _nodes, inputs, reference = walked
    grad = {n.removeprefix("grad/"): a for n, a in reference.items() if n.startswith("grad/")}
    assert np.array_equal(grad["down"], grad["residual_2"])
    assert np.allclose(grad["normed_2"], grad["gate"] @ inputs["w_gate"].T + grad["up"] @ inputs["w_up"].T)
    assert np.allclose(grad["w_down"], np.einsum("btf,btd->fd", reference["forward/gated"], grad["down"]))
