"""The reference: every item of the lab from one global batch and hand-derived formulas, in its inputs' precision.

A rank's gradients are the global ones restricted to its rows, times what the route makes of them. Only local losses
whose remote gradients are lost need a computation of their own.
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


class Known(NamedTuple):
    """What the items of all ranks are made of."""

    towers: tuple[Tower, Tower]
    rows: list[slice]  # of each rank
    whole: Share
    routes: dict[str, Route]
    averaged: dict[str, Arrays]  # gradients of the parameters, by route


def reference(config: Config, inputs: Arrays) -> Arrays:
    """Every item of the lab, `{name: array}`."""
    known = _known(config, inputs)
    items = _whole_items(inputs, known)
    for rank in range(config.world_size):
        for section in (_gather_items, _route_items, _cached_items, _comparisons):
            items |= {f"rank{rank}/{name}": value for name, value in section(config, inputs, known, rank).items()}
    return {name: np.asarray(value) for name, value in items.items()}


def tower(x: Array, w: Array) -> Tower:
    """Features of length 1."""
    z, projection = linear.forward(x, w)
    features, unit = l2_normalise.forward(z)
    return Tower(features, projection, unit)


def rows_of(config: Config) -> list[slice]:
    """The rows of the batch that each rank has: as stated, or as even as can be."""
    n, w = config.batch, config.world_size
    counts = config.shares or [(n + w - 1 - rank) // w for rank in range(w)]
    ends = [int(end) for end in np.cumsum(counts)]
    return [slice(end - count, end) for end, count in zip(ends, counts, strict=True)]


def weight(config: Config, inputs: Arrays, rows: slice) -> Any:
    """n_r W/N: what makes the mean over ranks of local means the mean over the batch."""
    return inputs["x_a"].dtype.type((rows.stop - rows.start) * config.world_size) / config.batch


def labels(rows: slice) -> Array:
    """Each row's partner among all rows: itself, offset by the rows of the ranks before."""
    return np.arange(rows.start, rows.stop)


def _known(config: Config, inputs: Arrays) -> Known:
    towers = tower(inputs["x_a"], inputs["w_a"]), tower(inputs["x_b"], inputs["w_b"])
    rows, whole = rows_of(config), _global_batch(inputs, towers)
    routes = _routes(rows, whole, _local_shares(config, inputs, towers, rows))
    averaged = {name: _averaged(towers, route, rows) for name, route in routes.items()}
    right = _gradients(towers, whole, slice(None))
    return Known(towers, rows, whole, routes, {**averaged, "global": right, "local": right})


def _global_batch(inputs: Arrays, towers: tuple[Tower, Tower]) -> Share:
    """One process, all rows: a feature is a query and a key, so its gradient has two parts."""
    f_a, f_b = (t.features for t in towers)
    loss, saved = infonce.forward(f_a, f_b, f_a, f_b, inputs["log_scale"], np.arange(len(f_a)))
    g = infonce.backward(np.ones_like(loss), saved)
    return Share(loss, g.dx + g.dkeys_x, g.dy + g.dkeys_y, g.dlog_scale)


def _local_shares(config: Config, inputs: Arrays, towers: tuple[Tower, Tower], every: list[slice]) -> Route:
    """Each rank's rows against all keys; only the own keys get gradients, the others are constants."""
    f_a, f_b = (t.features for t in towers)
    shares = []
    for rows in every:
        loss, saved = infonce.forward(f_a[rows], f_b[rows], f_a, f_b, inputs["log_scale"], labels(rows))
        g = infonce.backward(weight(config, inputs, rows), saved)
        shares.append(Share(loss, g.dx + g.dkeys_x[rows], g.dy + g.dkeys_y[rows], g.dlog_scale))
    return shares


def _routes(every: list[slice], whole: Share, local: Route) -> dict[str, Route]:
    """What arrives at each rank's features and temperature.

    With remote gradients the W (weighted) losses add up to W times the global one. Without them a global loss reaches
    the own rows once, and of what other ranks' rows say about the own keys of a local loss nothing arrives. A softmax
    over a single key is 1 whatever the features: no loss, no gradient.
    """
    once = [whole._replace(df_a=whole.df_a[rows], df_b=whole.df_b[rows]) for rows in every]
    summed = [s._replace(df_a=len(every) * s.df_a, df_b=len(every) * s.df_b) for s in once]
    return {
        "global": summed,
        "local": [s._replace(df_a=r.df_a, df_b=r.df_b) for s, r in zip(local, summed, strict=True)],
        "detached_global": once,
        "detached_local": local,
        "alone": [Share(*(np.zeros_like(array) for array in share)) for share in local],
    }


def _gradients(towers: tuple[Tower, Tower], share: Share, rows: slice) -> Arrays:
    """Gradients of the parameters from the gradients of the features of some rows."""
    a, b = (_weight_gradient(df, t, rows) for df, t in zip((share.df_a, share.df_b), towers, strict=True))
    return {"w_a": a, "w_b": b, "log_scale": share.dlog_scale}


def _weight_gradient(df: Array, encoder: Tower, rows: slice) -> Array:
    u, n = encoder.unit
    dz = l2_normalise.backward(df, l2_normalise.Saved(u[rows], n[rows]))
    x, w = encoder.projection
    return linear.backward(dz, linear.Saved(x[rows], w)).dw


def _averaged(towers: tuple[Tower, Tower], route: Route, every: list[slice]) -> Arrays:
    """The mean over ranks of their gradients."""
    each = [_gradients(towers, share, rows) for share, rows in zip(route, every, strict=True)]
    return {name: np.sum([g[name] for g in each], axis=0) / len(every) for name in PARAMETERS}


def _whole_items(inputs: Arrays, known: Known) -> Arrays:
    return {
        "whole/features_a": known.towers[0].features,
        "whole/features_b": known.towers[1].features,
        "whole/logit_scale": np.exp(inputs["log_scale"]),
        "whole/loss": known.whole.loss,
        "whole/grad/features_a": known.whole.df_a,
        "whole/grad/features_b": known.whole.df_b,
        **{f"whole/grad/{name}": gradient for name, gradient in known.averaged["global"].items()},
    }


def _gather_items(config: Config, inputs: Arrays, known: Known, rank: int) -> Arrays:
    """What a rank knows of the others; rank q's loss is c_q <upstream, all rows>, so the sum of the c_q comes back."""
    f_a, f_b = (t.features for t in known.towers)
    c, upstream, rows = inputs["rank_weights"], inputs["upstream"], known.rows[rank]
    counts = np.array([r.stop - r.start for r in known.rows])
    weighted = {"loss": c[rank] * np.sum(upstream * f_a), "grad": np.sum(c) * upstream[rows]}
    gathers = ("ours", "framework") if len(set(counts)) == 1 else ("ours",)
    return {
        "counts": counts,
        "labels": labels(rows),
        "weight": weight(config, inputs, rows),
        "own/features_a": f_a[rows],
        "own/features_b": f_b[rows],
        "gathered/ids": inputs["ids"],
        "gathered/features_a": f_a,
        "gathered/features_b": f_b,
        **{f"gather/{gather}/{name}": value for gather in gathers for name, value in weighted.items()},
    }


def _route_items(config: Config, inputs: Arrays, known: Known, rank: int) -> Arrays:
    routes = known.routes
    found = {name: _pass_items(config, inputs, known, name, rank) for name in routes}
    return {f"{name}/{item}": value for name, items in found.items() for item, value in items.items()}


def _pass_items(config: Config, inputs: Arrays, known: Known, route: str, rank: int) -> Arrays:
    share, averaged = known.routes[route][rank], known.averaged[route]
    gradients = _gradients(known.towers, share, known.rows[rank])
    return {
        "loss": share.loss,
        "grad/features_a": share.df_a,
        "grad/features_b": share.df_b,
        **{f"grad/{name}": gradient for name, gradient in gradients.items()},
        **{f"averaged/{name}": gradient for name, gradient in averaged.items()},
        **{f"updated/{name}": sgd.step(inputs[name], averaged[name], config.lr) for name in PARAMETERS},
    }


def _cached_items(config: Config, inputs: Arrays, known: Known, rank: int) -> Arrays:
    """Whatever the size of the micro-batches, what the local loss gives; sizes on a leading axis, all rows last."""
    sizes = len(config.micro_batches) + 1
    items = _pass_items(config, inputs, known, "local", rank)
    return {f"cached/{name}": np.stack([value] * sizes) for name, value in items.items()}


def _comparisons(config: Config, inputs: Arrays, known: Known, rank: int) -> Arrays:
    """What lost remote gradients do: a factor 1/W on the encoders alone, or another direction."""
    one = inputs["x_a"].dtype.type(1)
    good, bad = (_direction(known.averaged[route]) for route in ("global", "detached_local"))
    return {
        "detached_global/encoder_share": one / config.world_size,
        "detached_global/temperature_share": one,
        "detached_local/cosine": good @ bad,
        "detached_local/elsewhere": np.sqrt((good - bad) @ (good - bad)) >= ELSEWHERE,
    }


def _direction(gradients: Arrays) -> Array:
    """Both encoders' gradients as one vector of length 1."""
    vector = np.concatenate([gradients["w_a"].ravel(), gradients["w_b"].ravel()])
    unit: Array = vector / np.sqrt(vector @ vector)
    return unit
