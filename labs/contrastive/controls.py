"""Known faults that every run of the lab has to catch: what is wrong in each, and which checks have to say so."""

from labs.core.lab import Control

ENCODERS = "*_[ab]"  # features and weights of both encoders
EVERYTHING = "*"


def _spoiled(names: str, *routes: str) -> tuple[str, ...]:
    """Gradients of these names on some routes, and the parameters after them, which still agree between ranks."""
    kinds = ("grad/{}", "averaged/{}", "updated/{}:close")
    return tuple(f"rank*/{route}/{kind.format(names)}" for route in routes for kind in kinds)


def _mislabelled(*routes: str) -> tuple[str, ...]:
    """Local losses of which rank 1's alone is wrong, and with it what all ranks share."""
    shared = tuple(f"rank*/{route}/{kind}" for route in routes for kind in ("averaged/*", "updated/*:close"))
    own = tuple(f"rank1/{route}/{kind}" for route in routes for kind in ("loss", "grad/*"))
    return (*shared, *own)


# Unequal shares, which show what equal ones show and more, and on each rank two micro-batches of one size.
UNEVEN = {"batch": 7, "shares": (4, 3), "micro_batches": (2,)}
LOCAL = ("local", "cached")  # every rank sees rank 1's wrong loss through its features
LABELS = (
    "rank1/labels",
    *_mislabelled("local", "cached", "detached_local"),
    *(f"rank0/{route}/grad/{ENCODERS}" for route in LOCAL),
    "rank*/detached_local/cosine",
)

CONTROLS = (
    Control(
        name="gather_detached_global",
        why="open_clip 616, DeCLUTR PR 212: the gather has no gradient; averaging leaves 1/W of the encoders' gradient",
        swap={"global_loss": "global_loss_detached"},
        at=UNEVEN,
        must=(*_spoiled(ENCODERS, "global"), "rank*/detached_global/encoder_share"),
    ),
    Control(
        name="gather_detached_local",
        why="SLIP 31: as above with the local loss, which is another direction and not a factor",
        swap={"local_loss": "local_loss_detached"},
        at=UNEVEN,
        must=_spoiled(ENCODERS, *LOCAL),
    ),
    Control(
        name="gather_own_slice",
        why="lightly 1528: the gather's backward returns the own slice instead of the sum over ranks",
        swap={"gather": "gather_own_slice"},
        at=UNEVEN,
        must=(
            *_spoiled(ENCODERS, "global", *LOCAL),
            "rank*/gather/ours/grad",
            "rank*/detached_global/encoder_share",
        ),
    ),
    Control(
        name="gather_own_first",
        why="common: the own rows are put first, so keys and labels are in another order on every rank",
        swap={"gather": "gather_own_first"},
        at=UNEVEN,
        must=(
            "rank1/gathered/*",
            "rank1/gather/ours/loss",
            "rank*/gather/ours/grad",
            *_mislabelled(*LOCAL),
            *(f"rank0/{route}/grad/{ENCODERS}" for route in LOCAL),
        ),
    ),
    Control(
        name="loss_times_world",
        why="tevatron 30: no gradient in the gather, repaired by W times the loss: so is the temperature's gradient",
        swap={"global_loss": "global_loss_detached", "weight": "times_world"},
        at=UNEVEN,
        must=(
            *_spoiled("log_scale", "global"),
            *_spoiled(EVERYTHING, "detached_global"),
            "rank*/detached_global/encoder_share",
        ),
    ),
    Control(
        name="labels_without_offset",
        why="lightly PR 1177: every rank labels its rows 0, 1, ... although their partners stand further down",
        swap={"labels": "labels_without_offset"},
        at=UNEVEN,
        must=LABELS,
    ),
    Control(
        name="microbatch_without_negatives",
        why="common: accumulating over micro-batches of one is said to be the full batch; it has no negatives",
        swap={"micro_batches": "one_micro_batch"},
        at=UNEVEN,
        must=("rank*/alone/loss", *_spoiled(EVERYTHING, "alone")),
    ),
    Control(
        name="cached_last_only",
        why="sentence-transformers PR 3862: only the last micro-batch back-propagates",
        swap={"replay": "replay_last_only"},
        at=UNEVEN,
        must=_spoiled("w_[ab]", "cached"),
    ),
    Control(
        name="temperature_without_exp",
        why="common: the learned log-temperature multiplies the cosines itself: 2.6593 instead of 14.2857",
        swap={"scale": "scale_itself"},
        at=UNEVEN,
        must=(
            "whole/logit_scale",
            "whole/loss",
            "whole/grad/*",
            "rank*/*al/loss",
            "rank*/cached/loss",
            *_spoiled(EVERYTHING, "*al", "cached"),
            "rank*/detached_local/cosine",
        ),
    ),
    Control(
        name="ranks_diverge",
        why="pytorch 109191: a parameter is left out of the averaging, so ranks train different models",
        swap={"average": "average_but_one"},
        at=UNEVEN,
        must=(
            *(f"rank*/{route}/{kind}/w_b" for route in ("*al", "cached") for kind in ("averaged", "updated")),
            "rank*/detached_local/cosine",
        ),
    ),
    Control(
        name="checkpoint_cast",
        why="common: parameters are saved in a lower precision and loaded as if nothing had happened",
        swap={"save": "save_as_float32", "load": "load_as_float64"},
        at=UNEVEN,
        must=("checkpoint/*",),
    ),
    Control(
        name="uneven_equal_weight",
        why="common: means over unequal shares are averaged as if they were equal",
        swap={"weight": "weight_one"},
        at=UNEVEN,
        must=("rank*/weight", *_spoiled(EVERYTHING, *LOCAL, "detached_local"), "rank*/detached_local/cosine"),
    ),
    Control(
        name="uneven_offset",
        why="common: the labels' offset is rank times the own count, right on even shares only",
        swap={"labels": "labels_by_own_count"},
        at=UNEVEN,
        must=LABELS,
    ),
    Control(
        name="uneven_slice",
        why="common: the gather's backward takes the slice at rank times the own count, right on even shares only",
        swap={"gather": "gather_even_slice"},
        at=UNEVEN,
        must=(
            "rank1/gather/ours/grad",
            *(f"rank1/{route}/grad/{ENCODERS}" for route in ("global", *LOCAL)),
            *(f"rank*/{route}/averaged/{ENCODERS}" for route in ("global", *LOCAL)),
            *(f"rank*/{route}/updated/{ENCODERS}:close" for route in ("global", *LOCAL)),
            "rank*/detached_global/encoder_share",
            "rank*/detached_local/cosine",
        ),
    ),
)
