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


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def summed(a, b):
    """aᵀ b, summed over all rows."""
    return np.einsum("bti,btj->ij", a, b)


def joined(heads):
    return heads.swapaxes(1, 2).reshape(heads.shape[0], heads.shape[2], -1)


def split(rows, width):
    return rows.reshape(*rows.shape[:2], -1, width).swapaxes(1, 2)


def through_norm(x, gamma, dy, epsilon):
    r, v = 1 / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + epsilon), dy * gamma
    return r * v - r**3 / x.shape[-1] * x * np.sum(v * x, axis=-1, keepdims=True)


def gamma_rule(x, dy, epsilon):
    r = 1 / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + epsilon)
    return np.sum(dy * x * r, axis=(0, 1))


def to_query_heads(kv, heads):
    return np.repeat(kv, heads // kv.shape[1], axis=1)


def shared(heads, groups):
    """Summed over the query heads that share a key/value head."""
    return heads.reshape(heads.shape[0], groups, -1, *heads.shape[2:]).sum(axis=2)


def by_the_rules(config, inputs, v, d):
    """The backward rules of the walk written out: {node: gradient} from values `v` and the gradients `d` before it."""
    weights = inputs["weights"] * (inputs["labels"] >= 0)
    softmax = np.exp(v["logits"]) / np.exp(v["logits"]).sum(axis=-1, keepdims=True)
    onehot = np.eye(config.vocabulary)[np.maximum(inputs["labels"], 0)]
    width, scale = config.hidden // config.heads, np.sqrt(config.hidden // config.heads)
    keys, values = (to_query_heads(v[n], config.heads) for n in ("k", "v"))
    g, probs = v["gate"], v["probs"]
    return {
        "mean_loss": np.asarray(config.loss_scale),
        "logits": d["mean_loss"] * (weights / weights.sum())[..., None] * (softmax - onehot),
        "w_head": summed(v["residual_2"], d["logits"]),
        "residual_2": d["logits"] @ inputs["w_head"].T,
        "down": d["residual_2"],
        "w_down": summed(v["gated"], d["down"]),
        "gated": d["down"] @ inputs["w_down"].T,
        "gate": d["gated"] * v["up"] * sigmoid(g) * (1 + g * (1 - sigmoid(g))),
        "up": d["gated"] * g * sigmoid(g),
        "w_gate": summed(v["normed_2"], d["gate"]),
        "w_up": summed(v["normed_2"], d["up"]),
        "normed_2": d["gate"] @ inputs["w_gate"].T + d["up"] @ inputs["w_up"].T,
        "gamma_2": gamma_rule(v["residual_1"], d["normed_2"], config.epsilon),
        "residual_1": d["residual_2"] + through_norm(v["residual_1"], inputs["gamma_2"], d["normed_2"], config.epsilon),
        "attended": d["residual_1"],
        "w_o": summed(joined(v["heads"]), d["attended"]),
        "heads": split(d["attended"] @ inputs["w_o"].T, width),
        "probs": d["heads"] @ values.swapaxes(-1, -2),
        "v": shared(probs.swapaxes(-1, -2) @ d["heads"], config.kv_heads),
        "scores": probs * (d["probs"] - np.sum(probs * d["probs"], axis=-1, keepdims=True)),
        "q": d["scores"] @ keys / scale,
        "k": shared(d["scores"].swapaxes(-1, -2) @ v["q"] / scale, config.kv_heads),
        **{f"w_{n}": summed(v["normed_1"], joined(d[n])) for n in "qkv"},
        "normed_1": sum(joined(d[n]) @ inputs[f"w_{n}"].T for n in "qkv"),
        "gamma_1": gamma_rule(inputs["x"], d["normed_1"], config.epsilon),
        "x": d["residual_1"] + through_norm(inputs["x"], inputs["gamma_1"], d["normed_1"], config.epsilon),
    }


def test_the_backward_rules_hold_in_numbers():
    config = Config(rope=False, steps=0)
    inputs = LAB.inputs(config, Draw(0))
    reference = LAB.reference(config, inputs)
    v, d = ({n.removeprefix(p): a for n, a in reference.items() if n.startswith(p)} for p in ("forward/", "grad/"))
    found = by_the_rules(config, inputs, v, d)
    assert set(found) == {node.name for node in LAB.walk(config)[1:]}
    assert [name for name in found if not np.allclose(found[name], d[name], rtol=1e-10, atol=1e-13)] == []
