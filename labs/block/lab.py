"""The block lab: one transformer layer with a head, from the loss to every matrix, trained, stopped and resumed."""

from collections.abc import Mapping
from itertools import pairwise

import numpy as np

from labs.block.config import Config
from labs.block.controls import CONTROLS
from labs.block.inputs import inputs
from labs.block.reference import PARAMETERS, reference
from labs.block.reference_layer import loss
from labs.block.walk import walk
from labs.core.lab import Array, Lab, Rule, Stage, Table, Witness, identical, within, zero

EQUATIONS = """
n1 = RMSNorm(x; gamma_1)              x [B,T,d], rows are vectors
q, k, v = n1 W_q, n1 W_k, n1 W_v      split into H query and G key/value heads of width D = d/H; q and k turned by RoPE
S = q k^T / sqrt(D)                   query head h reads key/value head h // (H/G)
P = softmax over the keys j <= i      heads = P v, attended = heads W_o
h = x + attended                      residual_1
n2 = RMSNorm(h; gamma_2)
y = h + (silu(n2 W_gate) * (n2 W_up)) W_down      residual_2
logits = y W_head
L = loss_scale sum_i w_i (-log softmax(logits_i)[label_i]) / sum_i w_i      over supervised positions i

dS = P * (dP - rowsum(P * dP)),  dh = dy + RMSNorm backward,  dx = dh + RMSNorm backward: a value that is read on
several paths gets the sum of their gradients; a parameter the sum over all rows
AdamW: p <- p (1 - lr wd) - lr m^/(sqrt(v^) + eps), m^ = m/(1 - beta1^t), v^ = v/(1 - beta2^t)
"""

ITEMS = {
    "forward/normed_[12]": "RMSNorm of x and of residual_1",
    "forward/[qkv]": "projections, [B,heads,T,D]",
    "forward/[qk]_turned": "queries and keys after RoPE",
    "forward/scores": "q k^T / sqrt(D), before the mask",
    "forward/probs": "softmax over the visible keys; 0 at the others",
    "forward/heads": "P v",
    "forward/attended": "heads W_o",
    "forward/residual_[12]": "x + attended; residual_1 + down, the layer's output",
    "forward/gate": "n2 W_gate",
    "forward/up": "n2 W_up",
    "forward/gated": "silu(gate) up",
    "forward/down": "gated W_down",
    "forward/logits": "residual_2 W_head",
    "forward/mean_loss": "weighted mean of the supervised positions' cross-entropy",
    "forward/loss": "loss_scale mean_loss = L",
    "grad/*": "dL/d of each intermediate, each parameter and x",
    "fused/heads": "attention as one operation: forward/heads again",
    "fused/grad/[qkv]": "and its gradients under the same dL/dheads",
    "grouped/heads": "causal attention of 4 query heads on 2 key/value heads, whatever the layer has",
    "grouped/grad/[qkv]": "its gradients under grouped/upstream",
    "fused/grouped/*": "the same as one operation",
    "padded/probs": "the first key hidden as padding is: the first query sees nothing, its row is 0",
    "padded/heads": "P v then",
    "padded/grad/*": "its gradients under dL/dheads; 0 for what the first query reads",
    "causality/before": "residual_2 of all positions but the last",
    "causality/after": "the same where x is another one in the last position: the same bits",
    "causality/last_changes": "whether the last position's own output changes",
    "first/grad/logits": "dL/dlogits of the first position, which has no target: 0",
    "first/reached/*": "whether a gradient reaches it, at x through its k and v",
    "sgd/param/*": "p - sgd_lr g: one SGD step, because Adam hides a constant factor in g",
    "train/loss": "L before each AdamW step, [steps]",
    "train/grad/*": "gradients of each step, [steps,...]",
    "train/param/*": "parameters after each step",
    "train/exp_avg": "m after each step, flat: all parameters in the order of their names",
    "train/exp_avg_sq": "v after each step, flat",
    "train/step": "updates counted, [steps, parameters]",
    "resume/*": "the steps after the checkpoint, taken by a new process: the bits of uninterrupted/*; grad is flat",
    "uninterrupted/*": "the same steps of the run that was not stopped",
    "final/*": "the state when training ends, flat",
    "reloaded/*": "the checkpoint written then, read by a new process: the same bits",
    "stochastic/uninterrupted/*": "after checkpoint_after steps with dropout and shuffled batches",
    "stochastic/resumed/*": "taken by a new process from random state and data position: the same bits",
    "stochastic/dropout/output": "dropout of ones [64,64], so the mask and its scale",
    "stochastic/dropout/grad": "the gradient of its sum: the bits of the output",
    "stochastic/dropout/kept": "the output with 1/(1 - dropout) for its zeros: 1/(1 - dropout) everywhere",
    "stochastic/dropout/excess": "share of zeros - dropout, of all, each column, each row: within Bernstein's bound",
    "stochastic/dropout/again": "two masks at 1/2: shares that both, one, the other, neither drop - 1/4: likewise",
    "stochastic/shuffle/sorted": "a shuffled order of 64, sorted: 0 ... 63",
    "stochastic/shuffle/successors": "elements i followed by i + 1: one on average, so hardly ever more than 12",
    "stochastic/shuffle/again": "elements that a second order has in the same place: likewise",
    "stochastic/shuffle/repeats": "whether the same random state gives the same order",
}

SEE_ONE = 2  # positions with which a query sees at most one key when the first is hidden
DRAWN = ("batch", "loss", "param")  # of the stochastic run
UNINTERRUPTED = ("uninterrupted", "dropout", "shuffle")


def rules(config: Config) -> tuple[Rule, ...]:
    """The checks that are not `close` or `exact`."""
    extras = _extra_rules(config) if config.extras else ()
    return (zero("first/grad/logits"), *extras, *(_training_rules() if config.steps else ()))


def _extra_rules(config: Config) -> tuple[Rule, ...]:
    # A query that sees one key gives it all its attention, whatever the score.
    alone = ("scores", "q", "k") if config.positions == SEE_ONE else ()
    flat = (zero(f"padded/grad/{name}") for name in alone)
    return (identical("causality/after", "causality/before"), *flat)


def _training_rules() -> tuple[Rule, ...]:
    resumed = ("loss", "step", "grad", "exp_avg", "exp_avg_sq", *(f"param/{name}" for name in PARAMETERS))
    return (
        *(identical(f"resume/{name}", f"uninterrupted/{name}") for name in resumed),
        *(identical(f"reloaded/{kind}", f"final/{kind}") for kind in ("param", "exp_avg", "exp_avg_sq", "step")),
        *(identical(f"stochastic/resumed/{name}", f"stochastic/uninterrupted/{name}") for name in DRAWN),
        identical("stochastic/dropout/grad", "stochastic/dropout/output"),
        *(within(f"stochastic/dropout/{name}", f"stochastic/dropout/bound/{name}") for name in ("excess", "again")),
        *(within(f"stochastic/shuffle/{name}", "stochastic/shuffle/bound") for name in ("successors", "again")),
    )


def _trains(config: Config) -> int:
    return 1 if config.steps else 0


STAGES = (
    Stage("pass", ("forward/*", "grad/*", "fused/*", "padded/*", "grouped/*", "causality/*", "first/*")),
    Stage("train", ("train/*", "uninterrupted/*", "final/*", "sgd/*"), ranks=_trains),
    Stage("resume", ("resume/*", "reloaded/*"), after=("train",), ranks=_trains),
    Stage("stochastic/uninterrupted", tuple(f"stochastic/{name}/*" for name in UNINTERRUPTED), ranks=_trains),
    Stage("stochastic/resumed", ("stochastic/resumed/*",), after=("stochastic/uninterrupted",), ranks=_trains),
)


def problems(config: Config) -> tuple[tuple[str, str], ...]:
    """What single bounds can't say."""
    width = config.hidden // config.heads
    rows = {len(row) for row in config.x}
    found = (
        (config.hidden % config.heads, "heads", f"{config.heads} does not divide hidden {config.hidden}"),
        (config.heads % config.kv_heads, "kv_heads", f"{config.kv_heads} does not divide heads {config.heads}"),
        (config.rope and width % 2, "rope", f"turns pairs, and a head of {width} features has no halves"),
        (
            config.x and (len(config.x) != config.positions or rows != {config.hidden}),
            "x",
            f"expected {config.positions} rows of {config.hidden}, as positions and hidden say",
        ),
        (
            config.steps and config.checkpoint_after >= config.steps,
            "checkpoint_after",
            f"{config.checkpoint_after} leaves no step of {config.steps} to resume",
        ),
    )
    return tuple((key, text) for wrong, key, text in found if wrong)


def tables(config: Config, reference: Mapping[str, Array]) -> tuple[Table, ...]:
    """Frobenius norms along the way, where a gradient that vanishes or explodes shows first."""
    backwards = [name.removeprefix("grad/") for name in reference if name.startswith("grad/")][::-1]
    layers = [name for name in backwards if f"forward/{name}" in reference and name != "mean_loss"]
    return (
        _norms("gradients at the layer's values, from the loss down", reference, [*layers, "x"]),
        _norms("gradients of the parameters, from the loss down", reference, [n for n in backwards if n in PARAMETERS]),
    )


def _norms(title: str, reference: Mapping[str, Array], names: list[str]) -> Table:
    gradients = [_norm(reference[f"grad/{name}"]) for name in names]
    values = [_norm(reference[f"forward/{name}"]) if f"forward/{name}" in reference else "" for name in names]
    ratios = ["", *(g / above if above else "" for above, g in pairwise(gradients))]
    rows = tuple(zip(names, values, gradients, ratios, strict=True))
    return Table(title, ("at", "norm of the value", "norm of the gradient", "ratio to the row above"), rows)


def _norm(array: Array) -> float:
    flat = np.ravel(array)
    return float(np.sqrt(flat @ flat))


def footprint(config: Config) -> int:
    """Bytes at the peak of both processes together, roughly: so many arrays of each shape live at once."""
    d, f, v = config.hidden, config.ffn, config.vocabulary
    rows = config.batch * config.positions
    parameters = 2 * d * d * (1 + config.kv_heads / config.heads) + 3 * d * f + d * v
    activations = rows * (14 * d + 4 * f + 3 * v + 3 * config.heads * config.positions)
    training = 16 * config.steps * parameters + 4 * config.samples * config.positions * d if config.steps else 0
    return int(8 * (5 * parameters + 4 * activations + training))


LAB = Lab(
    name="block",
    title="one transformer layer from the loss to every matrix, trained with AdamW, stopped and resumed",
    equations=EQUATIONS,
    items=ITEMS,
    config=Config,
    inputs=inputs,
    reference=reference,
    rules=rules,
    witnesses=tuple(Witness(f"grad/{name}", loss, name) for name in ("x", *PARAMETERS)),
    stages=STAGES,
    controls=CONTROLS,
    footprint=footprint,
    problems=problems,
    tables=tables,
    accumulates=dict.fromkeys(("train/*", "resume/*"), "every step starts from the last"),
    walk=walk,
    trajectories=("train/loss", "train/param/*", "train/exp_avg", "train/exp_avg_sq"),
)
