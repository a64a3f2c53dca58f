"""The reference: every item of the lab from one global batch and hand-derived formulas, in its inputs' precision.

A rank's gradients are the global ones restricted to its rows, times what the route makes of them. Only the local losses
and the routes that lose remote gradients need a computation of their own.
"""

from typing import Any, NamedTuple

import numpy as np

from labs.contrastive.config import Config
from labs.core.lab import Array, Arrays
from labs.kernels import infonce, l2_normalise, linear, sgd

PARAMETERS = ("w_a", "w_b", "log_scale")
ELSEWHERE = 1e-2  # relative distance of two directions from which on they are called different


class Tower(NamedTuple):
    """One encoder over the whole batch: features [N,D] and what its backward pass reads."""

    features: Array
    projection: linear.Saved
    unit: l2_normalise.Saved


class Share(NamedTuple):
    """What one rank's backward pass gives: its loss, the gradients of its features [n,D] and of the temperature."""

    loss: Array
    df_a: Array
    df_b: Array
    dlog_scale: Array


Route = list[Share]  # one a rank


def reference(config: Config, inputs: Arrays) -> Arrays:
    """Every item of the lab, `{name: array}`."""
    towers = tower(inputs["x_a"], inputs["w_a"]), tower(inputs["x_b"], inputs["w_b"])
    whole, local = global_batch(inputs, towers), local_shares(config, inputs, towers)
    right = _gradients(inputs, towers, whole, slice(None))
    items = _whole_items(inputs, towers, whole, right)
    found = {name: route(config, whole, local) for name, route in ROUTES.items()}
    found |= {f"cached/{size}": found["local"] for size in (*config.micro_batches, "all")}
    for rank in range(config.world_size):
        items |= _of(rank, _gather_items(config, inputs, towers, rank))
        for name, shares in found.items():
            items |= _of(rank, _route_items(config, inputs, towers, name, shares, right, rank))
        items |= _of(rank, _comparisons(config, inputs, towers, found, right))
    return {name: np.asarray(value) for name, value in items.items()}


def tower(x: Array, w: Array) -> Tower:
    """Features of length 1."""
    z, projection = linear.forward(x, w)
    features, unit = l2_normalise.forward(z)
    return Tower(features, projection, unit)


def shares_of(config: Config) -> list[slice]:
    """The rows of the batch that each rank has."""
    n, w = config.batch, config.world_size
    counts = config.shares or [(n + w - 1 - rank) // w for rank in range(w)]
    ends = np.cumsum(counts)
    return [slice(int(end) - count, int(end)) for end, count in zip(ends, counts, strict=True)]


def weight(config: Config, inputs: Arrays, rows: slice) -> Any:
    """n_r W/N: what makes the mean over ranks of local means the mean over the batch."""
    return inputs["x_a"].dtype.type((rows.stop - rows.start) * config.world_size) / config.batch


def labels(rows: slice) -> Array:
    """Each row's partner among all rows: itself, offset by the rows of the ranks before."""
    return np.arange(rows.start, rows.stop)


def global_batch(inputs: Arrays, towers: tuple[Tower, Tower]) -> Share:
    """One process, all rows: a feature is a query and a key, so its gradient has two parts."""
    f_a, f_b = (t.features for t in towers)
    loss, saved = infonce.forward(f_a, f_b, f_a, f_b, inputs["log_scale"], np.arange(len(f_a)))
    g = infonce.backward(np.ones_like(loss), saved)
    return Share(loss, g.dx + g.dkeys_x, g.dy + g.dkeys_y, g.dlog_scale)


def local_shares(config: Config, inputs: Arrays, towers: tuple[Tower, Tower]) -> Route:
    """Each rank's rows against all keys; only the own keys get gradients, the others are constants."""
    f_a, f_b = (t.features for t in towers)
    shares = []
    for rows in shares_of(config):
        loss, saved = infonce.forward(f_a[rows], f_b[rows], f_a, f_b, inputs["log_scale"], labels(rows))
        g = infonce.backward(weight(config, inputs, rows), saved)
        shares.append(Share(loss, g.dx + g.dkeys_x[rows], g.dy + g.dkeys_y[rows], g.dlog_scale))
    return shares


def _global(config: Config, whole: Share, local: Route) -> Route:
    """W equal losses, whose gradients at a rank's features add up; the averaging divides by W again."""
    w = config.world_size
    return [whole._replace(df_a=w * whole.df_a[r], df_b=w * whole.df_b[r]) for r in shares_of(config)]


def _local(config: Config, whole: Share, local: Route) -> Route:
    """The weighted losses add up to W times the global one."""
    summed = _global(config, whole, local)
    return [share._replace(df_a=sum_.df_a, df_b=sum_.df_b) for share, sum_ in zip(local, summed, strict=True)]


def _detached_global(config: Config, whole: Share, local: Route) -> Route:
    """Only the rank's own copy of the global loss reaches its features; the averaging still divides by W."""
    return [whole._replace(df_a=whole.df_a[r], df_b=whole.df_b[r]) for r in shares_of(config)]


def _detached_local(config: Config, whole: Share, local: Route) -> Route:
    """Of what the other ranks' rows say about a rank's keys, nothing arrives."""
    return local


def _alone(config: Config, whole: Share, local: Route) -> Route:
    """A softmax over one key is 1 whatever the features: no loss, no gradient."""
    return [Share(*(np.zeros_like(array) for array in share)) for share in local]


ROUTES = {
    "global": _global,
    "local": _local,
    "detached_global": _detached_global,
    "detached_local": _detached_local,
    "alone": _alone,
}
WRONG = ("detached_global", "detached_local", "alone")


def _gradients(inputs: Arrays, towers: tuple[Tower, Tower], share: Share, rows: slice) -> Arrays:
    """Gradients of the parameters from the gradients of the features of some rows."""
    a, b = towers
    return {
        "w_a": _weight_gradient(share.df_a, a, rows),
        "w_b": _weight_gradient(share.df_b, b, rows),
        "log_scale": share.dlog_scale,
    }


def _weight_gradient(df: Array, encoder: Tower, rows: slice) -> Array:
    u, n = encoder.unit
    dz = l2_normalise.backward(df, l2_normalise.Saved(u[rows], n[rows]))
    x, w = encoder.projection
    return linear.backward(dz, linear.Saved(x[rows], w)).dw


def _averaged(config: Config, inputs: Arrays, towers: tuple[Tower, Tower], shares: Route) -> Arrays:
    """The mean over ranks of their gradients."""
    each = [_gradients(inputs, towers, share, rows) for share, rows in zip(shares, shares_of(config), strict=True)]
    return {name: np.sum([g[name] for g in each], axis=0) / config.world_size for name in PARAMETERS}


def _whole_items(inputs: Arrays, towers: tuple[Tower, Tower], whole: Share, right: Arrays) -> Arrays:
    return {
        "whole/features_a": towers[0].features,
        "whole/features_b": towers[1].features,
        "whole/logit_scale": np.exp(inputs["log_scale"]),
        "whole/loss": whole.loss,
        "whole/grad/features_a": whole.df_a,
        "whole/grad/features_b": whole.df_b,
        **{f"whole/grad/{name}": gradient for name, gradient in right.items()},
    }


def _gather_items(config: Config, inputs: Arrays, towers: tuple[Tower, Tower], rank: int) -> Arrays:
    """What a rank knows of the others; rank q's loss is c_q <upstream, all rows>, so the sum of the c_q comes back."""
    f_a, f_b = (t.features for t in towers)
    c, upstream = inputs["rank_weights"], inputs["upstream"]
    every, rows = shares_of(config), shares_of(config)[rank]
    counts = np.array([r.stop - r.start for r in every])
    weighted = {"loss": c[rank] * np.sum(upstream * f_a), "grad": np.sum(c) * upstream[rows]}
    gathers = ("own", "framework") if len(set(counts)) == 1 else ("own",)
    return {
        "counts": counts,
        "labels": labels(rows),
        "weight": weight(config, inputs, rows),
        "features_a": f_a[rows],
        "features_b": f_b[rows],
        "gathered/ids": inputs["ids"],
        "gathered/features_a": f_a,
        "gathered/features_b": f_b,
        **{f"gather/{gather}/{name}": value for gather in gathers for name, value in weighted.items()},
    }


def _route_items(
    config: Config, inputs: Arrays, towers: tuple[Tower, Tower], name: str, shares: Route, right: Arrays, rank: int
) -> Arrays:
    """Where a route is right, its average is the global batch's gradient itself."""
    share = shares[rank]
    averaged = _averaged(config, inputs, towers, shares) if name in WRONG else right
    gradients = _gradients(inputs, towers, share, shares_of(config)[rank])
    return {
        f"{name}/loss": share.loss,
        f"{name}/grad/features_a": share.df_a,
        f"{name}/grad/features_b": share.df_b,
        **{f"{name}/grad/{parameter}": gradient for parameter, gradient in gradients.items()},
        **{f"{name}/averaged/{parameter}": gradient for parameter, gradient in averaged.items()},
        **{f"{name}/updated/{p}": sgd.step(inputs[p], averaged[p], config.lr) for p in PARAMETERS},
    }


def _comparisons(
    config: Config, inputs: Arrays, towers: tuple[Tower, Tower], found: dict[str, Route], right: Arrays
) -> Arrays:
    """What lost remote gradients do: a factor 1/W on the encoders alone, or another direction."""
    one = inputs["x_a"].dtype.type(1)
    good, bad = _encoder(right), _encoder(_averaged(config, inputs, towers, found["detached_local"]))
    directions = [v / np.sqrt(v @ v) for v in (good, bad)]
    apart = directions[0] - directions[1]
    return {
        "detached_global/encoder_share": one / config.world_size,
        "detached_global/temperature_share": one,
        "detached_local/cosine": directions[0] @ directions[1],
        "detached_local/elsewhere": np.sqrt(apart @ apart) >= ELSEWHERE,
    }


def _encoder(gradients: Arrays) -> Array:
    return np.concatenate([gradients["w_a"].ravel(), gradients["w_b"].ravel()])


def _of(rank: int, items: Arrays) -> Arrays:
    return {f"rank{rank}/{name}": value for name, value in items.items()}
