"""The torch side's stages: what yields the items. Each uses only its parts; autograd differentiates everything."""

import warnings
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from labs.contrastive.config import Config
from labs.contrastive.parts import Parts
from labs.contrastive.torch_gather import framework_all_gather, meet, own_rows
from labs.contrastive.torch_model import PARAMETERS, Encoders
from labs.contrastive.torch_parts import PARTS
from labs.contrastive.torch_routes import Route, Scene, in_two_passes, one_by_one, one_pass, travelled
from labs.contrastive.torch_uncompiled import uncompiled
from labs.core.place import Place

__all__ = ["PARTS", "STAGES"]

# Imported once, before processes are forked: nothing but definitions.
PRELOAD = ("labs.contrastive.torch_impl", "labs.contrastive.torch_faults")

ELSEWHERE = 1e-2  # relative distance of two directions from which on they are called different

Tensors = dict[str, Tensor]
Items = dict[str, Any]


def whole(config: Config, inputs: Tensors, parts: Parts, place: Place) -> Items:
    """The global batch in one process, without any gather."""
    model = Encoders(parts.encode, parts.scale, inputs)
    f_a, f_b, factor = model(inputs["x_a"], inputs["x_b"])
    f_a.retain_grad()
    f_b.retain_grad()
    loss = parts.global_loss(f_a, f_b, f_a, f_b, factor, torch.arange(len(f_a)))
    loss.backward()  # type: ignore[no-untyped-call]
    gradients = {"features_a": f_a.grad, "features_b": f_b.grad}
    gradients |= {name: getattr(model, name).grad for name in PARAMETERS}
    return {
        "whole/features_a": f_a,
        "whole/features_b": f_b,
        "whole/logit_scale": factor,
        "whole/loss": loss,
        **{f"whole/grad/{name}": gradient for name, gradient in gradients.items() if gradient is not None},
    }


def gather(config: Config, inputs: Tensors, parts: Parts, place: Place) -> Items:
    """What a rank knows of the others, and a gather's gradient when every rank's loss weighs differently."""
    counts = _counts(config, parts, place)
    own = _own(config, place.rank)
    f_a = parts.encode(inputs["x_a"][own], inputs["w_a"])
    f_b = parts.encode(inputs["x_b"][own], inputs["w_b"])
    keys_a, keys_b = parts.gather(torch.cat([f_a, f_b], 1), counts, place.rank).chunk(2, 1)
    items = {
        "counts": torch.tensor(counts),
        "labels": parts.labels(counts, place.rank),
        "weight": parts.weight("local", counts, place.rank),
        "own/features_a": f_a,
        "own/features_b": f_b,
        "gathered/ids": parts.gather(inputs["ids"][own].unsqueeze(1), counts, place.rank).squeeze(1),
        "gathered/features_a": keys_a,
        "gathered/features_b": keys_b,
        **_weighted("gather/ours", parts.gather, f_a, inputs, counts, place.rank),
    }
    if min(counts) == max(counts):
        items |= _weighted("gather/framework", parts.framework_gather, f_a, inputs, counts, place.rank)
    return {**_of(place.rank, items), **_facts(f_a, counts, place.rank)}


def direct(config: Config, inputs: Tensors, parts: Parts, place: Place) -> Items:
    """One pass from a rank's rows to its gradients: with remote gradients and without; leaves the parameters."""
    ways = {
        "global": one_pass("global", parts.gather),
        "local": one_pass("local", parts.gather),
        "detached_global": one_pass("global", parts.gather_detached),
        "detached_local": one_pass("local", parts.gather_detached),
    }
    counts = _counts(config, parts, place)
    items = _named(_travelled(config, inputs, parts, counts, place.rank, ways))
    if place.rank == 0:
        parts.save({name: items[f"global/updated/{name}"] for name in PARAMETERS}, place.checkpoints / "updated.pt")
    return _of(place.rank, {**items, **_compared(items)})


def alone(config: Config, inputs: Tensors, parts: Parts, place: Place) -> Items:
    """Micro-batches of one sample, without negatives; nobody asks how many the others have."""
    meet(place, config.world_size)
    return _of(place.rank, _named(_travelled(config, inputs, parts, [], place.rank, {"alone": one_by_one})))


def cached(config: Config, inputs: Tensors, parts: Parts, place: Place) -> Items:
    """The same loss through micro-batches of several sizes, the last of all rows."""
    ways = {str(size): in_two_passes(size) for size in (*config.micro_batches, 0)}
    counts = _counts(config, parts, place)
    found = _travelled(config, inputs, parts, counts, place.rank, ways)
    return _of(place.rank, _named({"cached": _stacked(list(found.values()))}))


def checkpoint(config: Config, inputs: Tensors, parts: Parts, place: Place) -> Items:
    """A new process reads the updated parameters."""
    return {f"checkpoint/{name}": value for name, value in parts.load(place.checkpoints / "updated.pt").items()}


STAGES = {
    "whole": whole,
    "gather": gather,
    "direct": direct,
    "alone": alone,
    "cached": cached,
    "checkpoint": checkpoint,
}


def _counts(config: Config, parts: Parts, place: Place) -> list[int]:
    meet(place, config.world_size)
    own = _own(config, place.rank)
    return parts.exchange_counts(own.stop - own.start)


def _own(config: Config, rank: int) -> slice:
    """The rows of the batch that a rank is given."""
    each, more = divmod(config.batch, config.world_size)
    return own_rows(list(config.shares) or [each + (r < more) for r in range(config.world_size)], rank)


def _of(rank: int, items: Items) -> Items:
    return {f"rank{rank}/{name}": value for name, value in items.items()}


def _weighted(name: str, gather: Any, x: Tensor, inputs: Tensors, counts: list[int], rank: int) -> Items:
    """This rank's loss is c_r <upstream, all rows>."""
    mine = x.detach().clone().requires_grad_()
    loss = inputs["rank_weights"][rank] * (inputs["upstream"] * gather(mine, counts, rank)).sum()
    loss.backward()
    return {f"{name}/loss": loss, **({} if mine.grad is None else {f"{name}/grad": mine.grad})}


def _facts(x: Tensor, counts: list[int], rank: int) -> Items:
    """What this torch offers itself, tried on one row a rank; rank 0 says it for all."""
    all_gather = framework_all_gather()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        if all_gather is not None:
            all_gather(x[:1].detach(), group=dist.group.WORLD)
    used = all_gather is not None and min(counts) == max(counts)
    deprecated = any("deprecated" in str(warning.message) for warning in told)
    return {"gather/framework_used": used, "gather/framework_deprecated": deprecated} if rank == 0 else {}


def _travelled(
    config: Config, inputs: Tensors, parts: Parts, counts: list[int], rank: int, ways: dict[str, Route]
) -> dict[str, Tensors]:
    """Each of these ways from the same start, through one model that averages gradients."""
    own = _own(config, rank)
    with uncompiled():
        model = parts.average(Encoders(parts.encode, parts.scale, inputs))
        scene = Scene(parts, model, inputs["x_a"][own], inputs["x_b"][own], counts, rank)
        return {name: travelled(scene, way, inputs, config.lr) for name, way in ways.items()}


def _named(found: dict[str, Tensors]) -> Items:
    return {f"{route}/{item}": value for route, items in found.items() for item, value in items.items()}


def _stacked(found: list[Tensors]) -> Tensors:
    """Each item on a leading axis of micro-batch sizes; one that is absent at a size is absent."""
    return {name: torch.stack([one[name] for one in found]) for name in found[0] if all(name in one for one in found)}


def _compared(items: Items) -> Items:
    """How the averaged gradients without remote gradients stand to those with them."""
    right, whole_loss, rows_loss = (_encoder(items, name) for name in ("global", "detached_global", "detached_local"))
    cosine = (rows_loss @ right) / (rows_loss.norm() * right.norm())
    temperature = items["detached_global/averaged/log_scale"] / items["global/averaged/log_scale"]
    return {
        "detached_global/encoder_share": (whole_loss @ right) / (right @ right),
        "detached_global/temperature_share": temperature,
        "detached_local/cosine": cosine,
        "detached_local/elsewhere": (rows_loss / rows_loss.norm() - right / right.norm()).norm() >= ELSEWHERE,
    }


def _encoder(items: Items, route: str) -> Tensor:
    return torch.cat([items[f"{route}/averaged/{name}"].flatten() for name in ("w_a", "w_b")])
