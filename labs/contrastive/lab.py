"""The contrastive lab: one global batch against processes that share it, with and without gradients to the others."""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from labs.contrastive.config import Config
from labs.contrastive.controls import CONTROLS
from labs.contrastive.inputs import inputs
from labs.contrastive.reference import PARAMETERS, labels, reference, rows_of, tower, weight
from labs.core.lab import Array, Arrays, Lab, Rule, Stage, Witness, identical, zero
from labs.kernels import infonce

Loss: TypeAlias = Callable[[Config, Arrays, Arrays], Any]

EQUATIONS = """
f = x W / |x W|              both encoders, a and b; rows are samples, f [N,D]
S = c f_a f_b^T              c = exp(log_scale)
L = (mean_i CE(S_i, i) + mean_i CE(S^T_i, i)) / 2      the global batch; CE(s, i) = -log softmax(s)_i
l_r                          the same means over the rows of rank r alone, against the keys of all ranks
w_r = n_r W/N                sum_r w_r l_r / W = L

Rank r's backward pass at its features, then the mean over ranks of the parameters' gradients:
  global             sum_q dL/df_r = W dL/df_r            mean: dL         temperature dL
  local              sum_q w_q dl_q/df_r = W dL/df_r      mean: dL         temperature w_r dl_r, mean: dL
  detached_global    dL/df_r, the other copies are lost   mean: dL/W       temperature dL
  detached_local     w_r dl_r/df_r, remote rows are lost  mean: elsewhere  temperature w_r dl_r, mean: dL
  alone              one sample a micro-batch, one key: softmax 1, L = 0, all gradients 0
  cached             features of all micro-batches, dL/df, then df through each micro-batch: local, in less memory
gather: backward of an all-gather is an all-reduce and the own slice: with losses c_q <u, all>, dx = (sum_q c_q) u_r
"""

ITEMS = {
    "whole/features_[ab]": "f of all rows, in one process",
    "whole/logit_scale": "c = exp(log_scale)",
    "whole/loss": "L",
    "whole/grad/*": "dL",
    "rank*/counts": "n_q of every rank, exchanged",
    "rank*/labels": "where this rank's rows are among all: n_0 + ... + n_{r-1} + row",
    "rank*/weight": "w_r = n_r W/N",
    "rank*/own/features_[ab]": "f of this rank's rows",
    "rank*/gathered/ids": "whose rows were gathered, in order",
    "rank*/gathered/features_[ab]": "f of all rows, gathered",
    "rank*/gather/ours/loss": "c_r <u, all>",
    "rank*/gather/ours/grad": "(sum_q c_q) u_r through our own autograd function",
    "rank*/gather/framework/*": "the same by the framework's own gather; even shares only",
    "rank*/*global/loss": "L",
    "rank*/*local/loss": "l_r",
    "rank*/cached/loss": "l_r; all of cached/ has a leading axis of micro-batch sizes, all rows last",
    "rank*/alone/loss": "0: no negatives",
    "rank*/*al/grad/features_[ab]": "gradient of this rank's features f_r",
    "rank*/*al/grad/w_[ab]": "gradient of the encoders on this rank, before averaging",
    "rank*/*al/grad/log_scale": "gradient of the log-temperature on this rank, before averaging",
    "rank*/alone/grad/*": "0",
    "rank*/*al/averaged/*": "after averaging by DistributedDataParallel: dL where the route is right",
    "rank*/alone/averaged/*": "0",
    "rank*/*/updated/*": "p - lr times the averaged gradient: the same bits on every rank",
    "rank*/cached/grad/*": "as local, through micro-batches",
    "rank*/cached/averaged/*": "dL",
    "rank*/detached_global/encoder_share": "<averaged, dL>/<dL, dL> over both encoders: 1/W",
    "rank*/detached_global/temperature_share": "averaged/dL of the log-temperature: 1",
    "rank*/detached_local/cosine": "of the averaged encoder gradients with dL; 1 with one rank only",
    "rank*/detached_local/elsewhere": "whether the two directions are at least 1e-2 apart",
    "checkpoint/*": "parameters of rank 0's global update, loaded in a new process: the same bits",
}

DIRECT = ("global", "local", "detached_global", "detached_local")
ROUTES = (*DIRECT, "alone", "cached")

FACTS = {
    "gather/framework_used": "torch.distributed.nn.functional.all_gather stood beside our own gather",
    "gather/framework_deprecated": "torch marks torch.distributed.nn.functional.all_gather as deprecated",
}


def rules(config: Config) -> tuple[Rule, ...]:
    """The checks that are not `close` or `exact`."""
    gradients = [f"grad/features_{side}" for side in "ab"]
    gradients += [f"{kind}/{name}" for kind in ("grad", "averaged") for name in PARAMETERS]
    nothing = ["loss", *gradients, *(["updated/log_scale"] if config.log_scale == 0 else [])]
    ranks = range(config.world_size)
    return (
        *(zero(f"rank{rank}/alone/{name}") for rank in ranks for name in nothing),
        *(
            identical(f"rank{rank}/{route}/updated/{name}", f"rank0/{route}/updated/{name}")
            for rank in ranks[1:]
            for route in ROUTES
            for name in PARAMETERS
        ),
        *(identical(f"checkpoint/{name}", f"rank0/global/updated/{name}") for name in PARAMETERS),
    )


def _features(arrays: Arrays) -> tuple[Array, Array]:
    return tower(arrays["x_a"], arrays["w_a"]).features, tower(arrays["x_b"], arrays["w_b"]).features


def _batch_loss(f_a: Array, f_b: Array, log_scale: Array) -> Any:
    return infonce.forward(f_a, f_b, f_a, f_b, log_scale, np.arange(len(f_a)))[0]


def _loss(config: Config, held: Arrays, f_a: Array, f_b: Array, log_scale: Array, kind: str, rank: int) -> Any:
    """What a rank sends backward."""
    if kind == "global":
        return _batch_loss(f_a, f_b, log_scale)
    rows = rows_of(config)[rank]
    loss, _ = infonce.forward(f_a[rows], f_b[rows], f_a, f_b, log_scale, labels(rows))
    return weight(config, held, rows) * loss


def _moved(config: Config, arrays: Arrays, held: Arrays, rank: int) -> tuple[Array, Array]:
    """Features of which only one rank's rows move with the parameters."""
    rows = rows_of(config)[rank]
    own = (np.arange(config.batch) >= rows.start) & (np.arange(config.batch) < rows.stop)
    (a, b), (still_a, still_b) = _features(arrays), _features(held)
    return np.where(own[:, None], a, still_a), np.where(own[:, None], b, still_b)


def _whole(side: str) -> Loss:
    def loss(config: Config, arrays: Arrays, held: Arrays) -> Any:
        f_a, f_b = _features(arrays)
        moved = arrays["upstream"] - held["upstream"]  # features are no inputs; what moves upstream moves them
        return _batch_loss(f_a + moved * (side == "a"), f_b + moved * (side == "b"), arrays["log_scale"])

    return loss


def _handed(kind: str, remote: bool) -> Loss:
    """What rank 0's parameters see: its own loss, and through its features the others' where gradients travel."""

    def loss(config: Config, arrays: Arrays, held: Arrays) -> Any:
        f_a, f_b = _moved(config, arrays, held, 0)
        own = _loss(config, held, f_a, f_b, arrays["log_scale"], kind, 0)
        if not remote:
            return own
        others = range(1, config.world_size)
        if kind == "global":  # one loss, that every rank has
            return own + len(others) * _batch_loss(f_a, f_b, held["log_scale"])
        return own + sum(_loss(config, held, f_a, f_b, held["log_scale"], kind, rank) for rank in others)

    return loss


def _averaged(kind: str) -> Loss:
    """The mean over ranks of losses in which every rank's own features move and no other's."""

    def loss(config: Config, arrays: Arrays, held: Arrays) -> Any:
        moved = [_moved(config, arrays, held, rank) for rank in range(config.world_size)]
        each = [_loss(config, held, *pair, arrays["log_scale"], kind, rank) for rank, pair in enumerate(moved)]
        return sum(each) / config.world_size

    return loss


def _witnesses(route: str, loss: Loss) -> tuple[Witness, ...]:
    return tuple(Witness(f"{route}/{name}", loss, name) for name in PARAMETERS)


WITNESSES = (
    Witness("whole/grad/features_a", _whole("a"), "upstream"),
    Witness("whole/grad/features_b", _whole("b"), "upstream"),
    *_witnesses("whole/grad", _whole("")),  # the averaged gradients of the right routes are these arrays
    *_witnesses("rank0/global/grad", _handed("global", remote=True)),
    *_witnesses("rank0/local/grad", _handed("local", remote=True)),
    *_witnesses("rank0/detached_global/grad", _handed("global", remote=False)),
    *_witnesses("rank0/detached_local/grad", _handed("local", remote=False)),
    *_witnesses("rank0/detached_global/averaged", _averaged("global")),
    *_witnesses("rank0/detached_local/averaged", _averaged("local")),
)


SHARED = ("counts", "labels", "weight", "own/*", "gathered/*", "gather/*")


def _ranks(config: Config) -> int:
    return config.world_size


STAGES = (
    Stage("whole", ("whole/*",)),
    Stage("gather", (*(f"rank*/{item}" for item in SHARED), "gather/*"), ranks=_ranks),
    Stage("direct", tuple(f"rank*/{route}/*" for route in DIRECT), ranks=_ranks),
    Stage("alone", ("rank*/alone/*",), ranks=_ranks),
    Stage("cached", ("rank*/cached/*",), ranks=_ranks),
    Stage("checkpoint", ("checkpoint/*",), after=("direct",)),
)


def problems(config: Config) -> tuple[tuple[str, str], ...]:
    """What single bounds can't say."""
    found = []
    if config.shares and len(config.shares) != config.world_size:
        found.append(("shares", f"{len(config.shares)} numbers for world_size {config.world_size}"))
    if config.shares and (min(config.shares) < 1 or sum(config.shares) != config.batch):
        found.append(("shares", f"{list(config.shares)}: expected positive numbers with sum batch {config.batch}"))
    if config.batch < config.world_size:
        found.append(("batch", f"{config.batch} pairs for world_size {config.world_size}: a rank would have none"))
    sizes = config.micro_batches
    if len(set(sizes)) < len(sizes) or any(size < 1 for size in sizes):
        found.append(("micro_batches", f"{list(sizes)}: expected different positive numbers"))
    return tuple(found)


def footprint(config: Config) -> int:
    """Bytes at the peak of both processes together, roughly: logits of each direction, features, samples, encoders."""
    n, ranks = config.batch, config.world_size
    logits = 12 * n * n * (ranks + 2)
    rows = 20 * n * (config.d_a + config.d_b + 4 * config.d) * (ranks + 1)
    parameters = 40 * (config.d_a + config.d_b) * config.d * (ranks + 1)
    return 8 * (logits + rows + parameters)


LAB = Lab(
    name="contrastive",
    title="a contrastive loss over several processes: gathers, weights, micro-batches, averaging",
    equations=EQUATIONS,
    items=ITEMS,
    config=Config,
    inputs=inputs,
    reference=reference,
    rules=rules,
    witnesses=WITNESSES,
    stages=STAGES,
    controls=CONTROLS,
    footprint=footprint,
    problems=problems,
    facts=FACTS,
)
