"""The reference: every item of the lab from hand-derived formulas, in the precision of its inputs.

Each document goes through the model alone. What the padded batch and the packed row share with that is the very same
array: a route is right when it gives what the documents give on their own.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from labs.core.lab import Array, Arrays
from labs.kernels import adamw, attention, cross_entropy, sgd
from labs.packing import reference_data as data
from labs.packing import reference_model as model
from labs.packing.config import Config


class Alone(NamedTuple):
    """The documents on their own, and the plain token mean over all of them."""

    docs: list[Array]  # ids, [L] each
    targets: list[Array]  # [L] each
    runs: list[model.Pass]
    sums: Array  # loss sum of each document
    counts: list[int]  # targets of each document
    loss: Array
    grads: Arrays


def reference(config: Config, inputs: Arrays) -> Arrays:
    """Every item of the lab, `{name: array}`."""
    docs = data.documents(config, inputs["tokens"], config.truncation)
    alone = _alone(config, inputs, docs)
    sections = (_routes, _isolation, _zero, _unaffected, _normalised, _split, _windows, _shards, _wrong)
    items = {name: value for section in sections for name, value in section(config, inputs, alone).items()}
    items |= _truncated(config, inputs) | _prompted(config, inputs) | _turns(config, inputs)
    return {name: np.asarray(value) for name, value in items.items()}  # a scalar is an array without axes


def _alone(config: Config, inputs: Arrays, docs: list[Array]) -> Alone:
    targets = [data.targets(ids) for ids in docs]
    counts = [int(data.count(row)) for row in targets]
    runs = [_run(config, inputs, ids) for ids in docs]
    ones = _weights(targets, [1] * len(docs), inputs)
    sums = [model.objective([r], [y], [w])[0] for r, y, w in zip(runs, targets, ones, strict=True)]
    loss, grads = model.objective(runs, targets, _weights(targets, _token_mean(counts, inputs), inputs))
    return Alone(docs, targets, runs, np.array(sums), counts, loss, grads)


def _run(config: Config, inputs: Arrays, ids: Array) -> model.Pass:
    return model.forward(config, inputs, ids, np.arange(len(ids)), attention.causal(len(ids), len(ids)))


def _weights(targets: Sequence[Array], values: Sequence[Any], inputs: Arrays) -> list[Array]:
    """One weight for every token of a document, in the precision of the inputs."""
    return [np.full(len(y), value, inputs["head"].dtype) for y, value in zip(targets, values, strict=True)]


def _token_mean(counts: Sequence[int], inputs: Arrays) -> list[Any]:
    return [_share(sum(counts), inputs)] * len(counts)


def _share(count: int, inputs: Arrays) -> Any:
    """1/count, 0 where there is nothing to share."""
    one = inputs["head"].dtype.type(1)
    return one / count if count else 0 * one


def _routes(config: Config, inputs: Arrays, alone: Alone) -> Arrays:
    """Alone, padded, packed: each with its own layout, and the same values."""
    layouts = {
        "alone": data.alone(alone.docs),
        "padded": data.padded(alone.docs, config.pad_id),
        "packed": data.packed(alone.docs),
    }
    shared = {
        "q": np.concatenate([run.q for run in alone.runs]),
        "k": np.concatenate([run.k for run in alone.runs]),
        **{f"logits/doc{i}": run.logits for i, run in enumerate(alone.runs)},
        "loss_sum": np.sum(alone.sums),
        "count": np.array(sum(alone.counts)),
        "loss": alone.loss,
        **_named("grad", alone.grads),
        **_updated(config, inputs, alone.grads),
    }
    width = max(map(len, alone.docs))
    padding = sum(width - len(ids) for ids in alone.docs)
    rows = {}
    if padding:  # a query that sees nothing reads 0, so its logits are those of the bare embedding
        rows["padded/padding/logits"] = np.tile(inputs["embedding"][config.pad_id] @ inputs["head"], (padding, 1))
        rows["padded/padding/grad"] = np.zeros((padding, config.d_model), inputs["head"].dtype)
    return {**rows, **{f"{r}/{name}": v for r, own in layouts.items() for name, v in {**own, **shared}.items()}}


def _updated(config: Config, inputs: Arrays, grads: Arrays) -> Arrays:
    """Parameters after one update, of each optimizer from the same start; AdamW's betas cancel in the first."""
    lr, eps, decay = config.adamw_lr, config.eps, config.weight_decay
    found: Arrays = {}
    for name in model.PARAMETERS:
        p, g = inputs[name], grads[name]
        found[f"sgd/{name}"] = sgd.step(p, g, config.sgd_lr)
        found[f"adamw/{name}"] = adamw.update(p, g, adamw.start(p), lr=lr, eps=eps, weight_decay=decay)[0]
    return found


def _isolation(config: Config, inputs: Arrays, alone: Alone) -> Arrays:
    """Derivatives of one document's outputs, weighted by the probe: by its own inputs, and by those of the others."""
    total = sum(map(len, alone.docs))
    own = [
        model.backward(up, run)["x"] for up, run in zip(_by_document(inputs["probe"], alone), alone.runs, strict=True)
    ]
    others = np.zeros(((len(own) - 1) * total, config.d_model), inputs["head"].dtype)
    return {"isolation/inside": np.concatenate(own), "isolation/across": others}


def _by_document(rows: Array, alone: Alone) -> list[Array]:
    return np.split(rows, np.cumsum([len(ids) for ids in alone.docs])[:-1])


def _zero(config: Config, inputs: Arrays, alone: Alone) -> Arrays:
    """No labels at all: the loss is 0, and so is every gradient."""
    return {
        "zero/count": np.array(0),
        "zero/loss": np.zeros((), inputs["head"].dtype),
        "zero/connected": np.ones((), bool),
        "zero/framework_mean_is_nan": np.ones((), bool),
        **{f"zero/grad/{name}": np.zeros_like(grad) for name, grad in alone.grads.items()},
    }


def _unaffected(config: Config, inputs: Arrays, alone: Alone) -> Arrays:
    """Two rows more, one without labels and one without tokens: nothing changes."""
    return {
        "unaffected/tokens": np.array([*map(len, alone.docs), config.limit, 0]),
        "unaffected/count": np.array(sum(alone.counts)),
        "unaffected/loss": alone.loss,
        "unaffected/document_mean": _mean_of_means(alone, [1] * len(alone.docs), inputs)[0],
        **{f"unaffected/grad/{name}": alone.grads[name] for name in model.PARAMETERS},
        "unaffected/added/grad": np.zeros((2, config.limit, config.d_model), inputs["head"].dtype),
    }


def _mean_of_means(alone: Alone, sizes: Sequence[int], inputs: Arrays) -> tuple[Any, Arrays]:
    """Mean over groups of documents of each group's token mean; a group without targets is no group."""
    totals = [sum(group) for group in data.grouped(alone.counts, sizes)]
    groups = sum(total > 0 for total in totals)
    values = [_share(total * groups, inputs) for total, size in zip(totals, sizes, strict=True) for _ in range(size)]
    return model.objective(alone.runs, alone.targets, _weights(alone.targets, values, inputs))


def _normalised(config: Config, inputs: Arrays, alone: Alone) -> Arrays:
    """Three denominators, three losses; the gradient of the embedded input shows how much each token weighs."""
    means = {
        "token_mean": (alone.loss, alone.grads),
        "document_mean": _mean_of_means(alone, [1] * len(alone.docs), inputs),
        "micro_mean": _mean_of_means(alone, config.micro_batches, inputs),
    }
    losses = {f"normaliser/{name}/loss": loss for name, (loss, _) in means.items()}
    return {**losses, **{f"normaliser/{name}/grad/x": grads["x"] for name, (_, grads) in means.items()}}


def _split(config: Config, inputs: Arrays, alone: Alone) -> Arrays:
    """Ranks that average, and micro-batches that add up: with the global count both give the un-split batch."""
    local = np.array([sum(group) for group in data.grouped(list(alone.sums), config.ranks)])
    parameters = {f"grad/{name}": alone.grads[name] for name in model.PARAMETERS}
    return {
        "ranks/loss": local * len(config.ranks) * _share(sum(alone.counts), inputs),
        "ranks/mean": alone.loss,
        "accumulate/loss": alone.loss,
        **{f"{way}/{name}": value for way in ("ranks", "accumulate") for name, value in parameters.items()},
    }


def _windows(config: Config, inputs: Arrays, alone: Alone) -> Arrays:
    """One update for each window of micro-batches, with the window's own count, also where it is a short one."""
    sizes = [
        sum(config.micro_batches[i : i + config.window]) for i in range(0, len(config.micro_batches), config.window)
    ]
    numbers = data.grouped(range(len(alone.docs)), sizes)
    losses, grads = [], []
    for window in numbers:
        runs, targets = [alone.runs[i] for i in window], [alone.targets[i] for i in window]
        values = _token_mean([alone.counts[i] for i in window], inputs)
        loss, grad = model.objective(runs, targets, _weights(targets, values, inputs))
        losses.append(loss)
        grads.append(grad)
    stacked = {f"windows/grad/{name}": np.stack([grad[name] for grad in grads]) for name in model.PARAMETERS}
    return {"windows/loss": np.stack(losses), **stacked}


def _shards(config: Config, inputs: Arrays, alone: Alone) -> Arrays:
    """The packed row cut along the sequence: a shard's last token still predicts the next shard's first."""
    parts = data.sharded(np.concatenate(alone.targets), config.shards)
    return {"shards/targets": parts, "shards/count": np.sum(parts != data.IGNORE, axis=1), "shards/loss": alone.loss}


def _wrong(config: Config, inputs: Arrays, alone: Alone) -> Arrays:
    """Three mistakes, computed as they are made, so that their size can be seen."""
    row = data.packed(alone.docs)
    total = len(row["ids"])
    everything, onward = attention.causal(total, total), np.arange(total)
    leaking = model.forward(config, inputs, row["ids"], row["positions"], everything)
    moved = model.forward(config, inputs, row["ids"], onward, row["mask"])
    twice = data.targets(row["targets"])
    right = np.concatenate([run.logits for run in alone.runs])
    return {
        "wrong/leak/mask": everything,
        "wrong/leak/logits": leaking.logits,
        "wrong/leak/loss": cross_entropy.forward(leaking.logits, row["targets"])[0],
        "wrong/double_shift/targets": twice,
        "wrong/double_shift/count": data.count(twice),
        "wrong/double_shift/loss": cross_entropy.forward(right, twice)[0],
        "wrong/positions_continue/positions": onward,
        "wrong/positions_continue/q": moved.q,
        "wrong/positions_continue/k": moved.k,
        "wrong/positions_continue/loss": cross_entropy.forward(moved.logits, row["targets"])[0],
    }


def _truncated(config: Config, inputs: Arrays) -> Arrays:
    """Either side cut: labels of all documents, and those that still have a predictor."""
    found: Arrays = {}
    for side in ("right", "left"):
        docs = data.documents(config, inputs["tokens"], side)
        rows = [data.targets(ids) for ids in docs]
        found |= {
            f"truncate/{side}/ids": np.concatenate(docs),
            f"truncate/{side}/targets": np.concatenate(rows),
            f"truncate/{side}/labels": np.array(sum(map(len, docs))),
            f"truncate/{side}/count": data.count(*rows),
        }
    return found


def _prompted(config: Config, inputs: Arrays) -> Arrays:
    """A prompt as long as the limit: what the right side loses is all that was to be learned."""
    learned = np.arange(config.limit + config.completion) >= config.limit
    found: Arrays = {}
    for side in ("right", "left"):
        ids, kept = (data.cut(values, config.limit, side) for values in (inputs["prompted"], learned))
        found |= _single(config, inputs, f"prompted/{side}", ids, kept)
        found[f"prompted/{side}/empty"] = found[f"prompted/{side}/count"] == 0
    return found


def _turns(config: Config, inputs: Arrays) -> Arrays:
    """Every assistant turn, or the final one; what users say and tools return is never learned."""
    found: Arrays = {}
    for which in ("all", "final"):
        learned = data.learned_turns(config.roles, which)
        found[f"turns/{which}/learned"] = learned
        found |= _single(config, inputs, f"turns/{which}", inputs["conversation"], learned)
    return found


def _single(config: Config, inputs: Arrays, prefix: str, ids: Array, learned: Array) -> Arrays:
    """One document by itself, some of its tokens learned."""
    row = data.targets(np.where(learned, ids, data.IGNORE))
    loss, _ = cross_entropy.forward(_run(config, inputs, ids).logits, row)
    return {f"{prefix}/targets": row, f"{prefix}/count": data.count(row), f"{prefix}/loss": loss}


def _named(prefix: str, arrays: Arrays) -> Arrays:
    return {f"{prefix}/{name}": array for name, array in arrays.items()}
