"""The walk from the loss back to every input: at each node the local rule, forward and backward."""

from labs.block.config import Config
from labs.core.lab import Node

SUMMED = "summed over all rows"


def walk(config: Config) -> tuple[Node, ...]:
    """Every node after the nodes that read it, from the loss to x and the parameters."""
    return (*_head(), *_feed_forward(), *_attention(config.rope), *_start())


def _head() -> tuple[Node, ...]:
    return (
        Node("loss", "forward/loss", "", "L = loss_scale · mean_loss", "dL/dL = 1, by definition"),
        _node("mean_loss", "Σ w_i (−log softmax(logits_i)[label_i]) / Σ w_i", "d = loss_scale", "loss"),
        _node(
            "logits",
            "residual_2 W_head",
            "d_i = dmean_loss · w_i / Σ w · (softmax(logits_i) − onehot(label_i)), 0 without a label",
            "mean_loss",
        ),
        _parameter("w_head", f"d = residual_2ᵀ dlogits, {SUMMED}", "logits"),
        _node("residual_2", "residual_1 + down", "d = dlogits W_headᵀ", "logits"),
    )


def _feed_forward() -> tuple[Node, ...]:
    return (
        _node("down", "gated W_down", "d = dresidual_2: a sum hands its gradient on unchanged", "residual_2"),
        _parameter("w_down", f"d = gatedᵀ ddown, {SUMMED}", "down"),
        _node("gated", "silu(gate) ⊙ up, silu(g) = g σ(g)", "d = ddown W_downᵀ", "down"),
        _node("gate", "normed_2 W_gate", "d = dgated ⊙ up ⊙ σ(g)(1 + g (1 − σ(g)))", "gated"),
        _node("up", "normed_2 W_up", "d = dgated ⊙ silu(gate)", "gated"),
        _parameter("w_gate", f"d = normed_2ᵀ dgate, {SUMMED}", "gate"),
        _parameter("w_up", f"d = normed_2ᵀ dup, {SUMMED}", "up"),
        _node(
            "normed_2",
            "residual_1 ⊙ gamma_2 · r, r = 1/√(mean(residual_1²) + ε)",
            "d = dgate W_gateᵀ + dup W_upᵀ: it is read twice, so two gradients add up",
            "gate",
            "up",
        ),
        _parameter("gamma_2", f"d = dnormed_2 ⊙ residual_1 · r, {SUMMED}", "normed_2"),
    )


def _attention(rope: bool) -> tuple[Node, ...]:
    return (
        _node(
            "residual_1",
            "x + attended",
            "d = dresidual_2 + r v − (r³/d) h Σ v h, with h = residual_1 and v = dnormed_2 ⊙ gamma_2: "
            "past the second branch, and through its norm; the last term is r's own dependence on h",
            "residual_2",
            "normed_2",
        ),
        _node("attended", "heads W_o, the heads side by side", "d = dresidual_1", "residual_1"),
        _parameter("w_o", f"d = headsᵀ dattended, {SUMMED}", "attended"),
        _node("heads", "P v", "d = dattended W_oᵀ, split into heads", "attended"),
        _node("probs", "P = softmax(S) over the keys j ≤ i", "d = dheads vᵀ", "heads"),
        _node("v", "normed_1 W_v", "d = Pᵀ dheads, summed over the query heads that share it", "heads"),
        _node("scores", "S = q kᵀ / √D", "d = P ⊙ (dP − rowsum(P ⊙ dP)); 0 where the mask hides the key", "probs"),
        *(_turned() if rope else ()),
        _node("q", "normed_1 W_q", _back_to("q", rope), "q_turned" if rope else "scores"),
        _node("k", "normed_1 W_k", _back_to("k", rope), "k_turned" if rope else "scores"),
    )


def _turned() -> tuple[Node, ...]:
    rule = "each pair of features turned by the position times its frequency"
    return (
        _node("q_turned", f"q, {rule}", "d = dS k / √D", "scores"),
        _node("k_turned", f"k, {rule}", "d = dSᵀ q / √D, summed over the query heads that share it", "scores"),
    )


def _back_to(name: str, rope: bool) -> str:
    if rope:
        return f"d = d{name}_turned, turned back: a rotation's transpose is its inverse"
    return "d = dS k / √D" if name == "q" else "d = dSᵀ q / √D, summed over the query heads that share it"


def _start() -> tuple[Node, ...]:
    return (
        *(_parameter(f"w_{name}", f"d = normed_1ᵀ d{name}, {SUMMED}", name) for name in ("q", "k", "v")),
        _node(
            "normed_1",
            "x ⊙ gamma_1 · r, r = 1/√(mean(x²) + ε)",
            "d = dq W_qᵀ + dk W_kᵀ + dv W_vᵀ: read three times",
            "q",
            "k",
            "v",
        ),
        _parameter("gamma_1", f"d = dnormed_1 ⊙ x · r, {SUMMED}", "normed_1"),
        Node(
            "x",
            "x",
            "grad/x",
            "the input: where the walk ends",
            "d = dresidual_1 + r v − (r³/d) x Σ v x, with v = dnormed_1 ⊙ gamma_1: past the first branch, and through "
            "its norm",
            ("residual_1", "normed_1"),
        ),
    )


def _node(name: str, forward: str, backward: str, *read_by: str) -> Node:
    return Node(name, f"forward/{name}", f"grad/{name}", forward, backward, read_by)


def _parameter(name: str, backward: str, read_by: str) -> Node:
    return Node(name, name, f"grad/{name}", "a parameter", backward, (read_by,))
