"""Known faults that every run of the lab has to catch: what is wrong in each, and which checks have to say so.

One table, longer than a module usually is: thirty faults at ten lines each.
"""

from dataclasses import replace

from labs.core.lab import Control

# Items that fail together. A route's loss reaches its gradients and both of its updates.
ROUTES = ("alone", "padded", "packed")
LOSSES = {route: (f"{route}/loss", f"{route}/loss_sum") for route in ROUTES}
UPDATES = {route: (f"{route}/grad/*", f"{route}/sgd/*", f"{route}/adamw/*") for route in ROUTES}
TARGETS = {route: (f"{route}/targets", f"{route}/supervised", f"{route}/count") for route in ROUTES}
LAYOUT = ("ids", "positions", "cu_seqlens", "[qk]", "logits/doc2")
LATER_LOGITS = "packed/logits/doc[12]"  # the first document has nothing before it to see
IN_ROWS = ("ranks/*", "accumulate/*", "windows/*")  # ranks and micro-batches are packed rows themselves
UNAFFECTED = ("unaffected/loss", "unaffected/document_mean", "unaffected/grad/*")
LEAKED = (
    *LOSSES["packed"],
    *UPDATES["packed"],
    LATER_LOGITS,
    "isolation/*",
    *IN_ROWS,
    "shards/loss",
    "wrong/double_shift/loss",
    "wrong/positions_continue/loss",
)
RIGHT_LOSSES = (
    *(name for route in ROUTES for name in (*LOSSES[route], *UPDATES[route])),
    "normaliser/*",
    *IN_ROWS,
    *UNAFFECTED,
    "shards/loss",
)
EVERY_LOSS = (*RIGHT_LOSSES, "wrong/*/loss")

VISIBILITY = (
    Control(
        name="mask_leak",
        why="trl 784: the mask of a packed row is causal and nothing else, so documents see the ones before them",
        swap={"mask": "mask_leak"},
        must=("packed/mask", "padded/mask", "padded/padding/logits", *LEAKED),
    ),
    Control(
        name="mask_all_ones",
        why="transformers PR 46634: nothing is padded, so the mask is taken for all ones and isolation is switched off",
        swap={"attention": "attention_without_padding"},
        must=LEAKED,
    ),
    Control(
        name="mask_not_causal",
        why="common: the documents' own mask takes the place of the causal one instead of narrowing it",
        swap={"mask": "mask_not_causal"},
        must=(
            *(f"{route}/{name}" for route in ROUTES for name in ("mask*", "logits/*")),
            *RIGHT_LOSSES,
            "isolation/inside",
            "prompted/left/loss",
            "turns/*/loss",
            "wrong/double_shift/loss",
            "wrong/positions_continue/loss",
        ),
    ),
    Control(
        name="masked_row_nan",
        why="pytorch 103749: a query that sees nothing is a softmax over minus infinities: NaN, and it spreads",
        swap={"attention": "attention_minus_infinity"},
        must=(
            *(f"padded/{kind}/{name}" for kind in ("grad", "sgd", "adamw") for name in ("embedding", "w_[vo]", "head")),
            "padded/grad/x",
            "padded/padding/*",
            "normaliser/*/grad/x",
            "unaffected/grad/embedding",
            "unaffected/grad/w_[vo]",
            "unaffected/grad/head",
            "unaffected/added/grad",
        ),
    ),
    Control(
        name="boundaries_lost",
        why="trl 784: documents are joined and nobody is told where one ends",
        swap={"pack": "pack_without_boundaries"},
        must=(
            *TARGETS["packed"],
            "packed/positions",
            "packed/mask",
            "packed/cu_seqlens",
            "packed/[qk]",
            "packed/logits/*",
            *LOSSES["packed"],
            *UPDATES["packed"],
            "isolation/*",
            *IN_ROWS,
            "shards/*",
            "wrong/leak/logits",
            "wrong/leak/loss",
            "wrong/double_shift/*",
            "wrong/positions_continue/loss",
        ),
    ),
    Control(
        name="positions_continue",
        why="nanoVLM 201: positions run on over the packed row; with the right mask no output can show it",
        swap={"positions": "positions_continue"},
        must=("packed/positions", "packed/[qk]", "wrong/leak/logits", "wrong/leak/loss"),
    ),
    Control(
        name="positions_from_one",
        why="common: positions are counted from 1; outputs depend on differences alone, so only q and k show it",
        swap={"positions": "positions_from_one"},
        must=(*(f"{route}/{name}" for route in ROUTES for name in ("positions", "[qk]")),),
    ),
    Control(
        name="rope_neighbours",
        why="common: rotary pairs are neighbours in one code base and halves in the other",
        swap={"rope": "rope_neighbours"},
        must=(
            *(f"{route}/{name}" for route in ROUTES for name in ("[qk]", "logits/*")),
            *EVERY_LOSS,
            "isolation/inside",
            "prompted/left/loss",
            "turns/*/loss",
            "wrong/leak/logits",
            "wrong/positions_continue/[qk]",
        ),
    ),
    Control(
        name="cu_seqlens_without_start",
        why="common: cumulative lengths lack the leading 0 that variable-length kernels expect",
        swap={"cu_seqlens": "cu_seqlens_without_start"},
        must=("*/cu_seqlens",),
    ),
)

LABELS = (
    Control(
        name="label_double_shift",
        why="transformers 47394: the collator has shifted the labels and the loss shifts them again",
        swap={"losses": "losses_shifted_again"},
        must=(*EVERY_LOSS, "prompted/left/loss", "turns/*/loss"),
    ),
    Control(
        name="label_across_boundary",
        why="torchtitan PR 4075: the last token of a document is to predict the first of the next",
        swap={"shift": "shift_across"},
        must=(
            *TARGETS["packed"],
            *LOSSES["packed"],
            *UPDATES["packed"],
            *IN_ROWS,
            "wrong/double_shift/*",
            "wrong/leak/loss",
            "wrong/positions_continue/loss",
        ),
    ),
    Control(
        name="eos_masked_by_id",
        why="transformers 23530: padding is masked by its id, which end-of-sequence shares, so no end is ever learned",
        swap={"labels": "labels_not_padding"},
        must=(
            *(name for route in ROUTES for name in TARGETS[route]),
            *EVERY_LOSS,
            "shards/*",
            "truncate/*/targets",
            "truncate/*/labels",
            "truncate/*/count",
            "unaffected/count",
            "wrong/double_shift/*",
        ),
    ),
    Control(
        name="pad_supervised",
        why="common: labels are padded with the padding id, and padding is learned",
        swap={"pad": "pad_learned"},
        must=(
            *TARGETS["padded"],
            *LOSSES["padded"],
            *UPDATES["padded"],
            "padded/padding/grad",
            "normaliser/*",
            *UNAFFECTED,
            "unaffected/count",
            "unaffected/added/grad",
        ),
    ),
    Control(
        name="wrong_turn",
        why="oumi PR 2369: all from an assistant turn to the next user turn is learned, tool output included",
        swap={"supervise": "supervise_until_user"},
        must=("turns/all/*",),
    ),
    Control(
        name="final_turn_ignored",
        why="common: every assistant turn is learned where only the final one was asked for",
        swap={"supervise": "supervise_every_turn"},
        must=("turns/final/*",),
    ),
    Control(
        name="truncation_side_ignored",
        why="common: the right side is cut whatever the setting says",
        swap={"truncate": "truncate_right_always"},
        must=("prompted/left/*", "truncate/left/ids", "truncate/left/targets"),
    ),
    Control(
        name="truncation_one_short",
        why="common: the limit keeps a place free for an end that is there already, and the last target is lost",
        swap={"truncate": "truncate_one_short"},
        must=(
            *(f"{route}/{name}" for route in ROUTES for name in LAYOUT),
            "alone/mask/doc2",
            "padded/mask",
            "packed/mask",
            *(name for route in ROUTES for name in TARGETS[route]),
            *EVERY_LOSS,
            "padded/padding/*",
            "isolation/*",
            "shards/*",
            "prompted/left/loss",
            "prompted/*/targets",
            "truncate/*",
            "unaffected/count",
            "unaffected/tokens",
            "unaffected/added/grad",
            "wrong/*",
            "zero/grad/x",
        ),
    ),
    Control(
        name="truncation_misaligned",
        why="common: ids are cut on one side and labels on the other",
        swap={"truncate": "truncate_labels_elsewhere"},
        must=("prompted/*", *UNAFFECTED, "unaffected/count", "unaffected/added/grad"),
    ),
    Control(
        name="truncation_silent_empty",
        why="trl 6668: a document that lost all its targets counts as trained, with loss 0",
        swap={"is_empty": "never_empty", "mean_of_means": "mean_over_empty"},
        must=("prompted/right/empty", "unaffected/document_mean"),
    ),
    Control(
        name="shard_edge_target_lost",
        why="transformers PR 36607: the row is sharded before labels are shifted, so each shard loses its last target",
        swap={"shard": "shard_before_shift"},
        must=("shards/*",),
    ),
)

NORMALISERS = (
    Control(
        name="zero_labels_nan",
        why="pytorch 70348: a mean over no labels is 0/0",
        swap={"mean": "mean_unguarded"},
        must=("zero/loss", "prompted/right/loss"),
    ),
    Control(
        name="zero_labels_constant",
        why="trl 6548: without labels the loss is a constant zero that nothing can be back-propagated from",
        swap={"mean": "mean_constant"},
        must=("zero/connected", "zero/grad/*"),
    ),
    Control(
        name="count_unshifted",
        why="transformers PR 46204: the denominator counts labels before the shift, also those without a predictor",
        swap={"count": "count_labels"},
        must=(
            *(name for route in ROUTES for name in (f"{route}/count", f"{route}/loss", *UPDATES[route])),
            "normaliser/*",
            *IN_ROWS,
            *UNAFFECTED,
            "unaffected/count",
            "truncate/*/count",
            "wrong/double_shift/count",
            "wrong/*/loss",
        ),
    ),
    Control(
        name="count_all_tokens",
        why="common: the mean is taken over all tokens; those without a target have loss 0 and are counted",
        swap={"count": "count_tokens"},
        must=(
            *(name for route in ROUTES for name in (f"{route}/count", f"{route}/loss", *UPDATES[route])),
            "normaliser/*",
            *IN_ROWS,
            *UNAFFECTED,
            "unaffected/count",
            "zero/count",
            "truncate/*/count",
            "prompted/*/count",
            "prompted/left/loss",
            "prompted/right/empty",
            "turns/*/count",
            "turns/*/loss",
            "wrong/double_shift/count",
            "wrong/*/loss",
        ),
    ),
    Control(
        name="mean_of_means",
        why="transformers PR 34191: micro-batches of unequal counts are accumulated as means of means",
        swap={"accumulation": "accumulate_means"},
        must=("accumulate/*", "windows/*"),
    ),
    Control(
        name="mean_of_rank_means",
        why="transformers 34242: each rank divides by its own count, then the ranks are averaged",
        swap={"rank_loss": "rank_mean"},
        must=("ranks/*",),
    ),
    Control(
        name="accumulation_not_divided",
        why="nanoGPT 168: the means of the micro-batches are added up and not divided; Adam hides the factor",
        swap={"accumulation": "accumulate_undivided"},
        must=("accumulate/*", "windows/*"),
    ),
    Control(
        name="last_window_divided_by_k",
        why="Lightning 19987: the last window of an epoch has fewer micro-batches and is divided by the full number",
        swap={"accumulation": "accumulate_full_window"},
        must=("windows/*",),
    ),
)

UPDATE = (
    Control(
        name="adam_l2",
        why="FlagGems 4988: weight decay is added to the gradient instead of being taken off the parameter",
        swap={"adamw": "adamw_decay_in_gradient"},
        must=("*/adamw/*:close",),
    ),
    Control(
        name="checkpoint_cast",
        why="common: parameters are saved in a lower precision and loaded as if nothing had happened",
        swap={"save": "save_as_float32", "load": "load_as_float64"},
        must=("checkpoint/*",),
    ),
)

# Three documents show what four show: one alone and two in one micro-batch, the longest truncated, a window that is
# not full. At this width no fault comes closer to its limit than at the default config.
SMALL = {"lengths": (3, 5, 9), "d_model": 4, "micro_batches": (1, 2), "window": 3, "ranks": (2, 1)}

CONTROLS = tuple(replace(control, at=SMALL) for control in (*VISIBILITY, *LABELS, *NORMALISERS, *UPDATE))
