"""Known faults that every run of the lab has to catch: what is wrong in each, and which checks have to say so."""

from labs.core.lab import Control

CONTROLS: tuple[Control, ...] = tuple(
    Control(name=n, why="", must=("*",), swap=s)
    for n, s in {
        "mask_leak": {"mask": "mask_leak"},
        "mask_all_ones": {"attention": "attention_without_padding"},
        "masked_row_nan": {"attention": "attention_minus_infinity"},
        "positions_continue": {"positions": "positions_continue"},
        "rope_neighbours": {"rope": "rope_neighbours"},
        "label_double_shift": {"losses": "losses_shifted_again"},
        "label_across_boundary": {"shift": "shift_across"},
        "eos_masked_by_id": {"labels": "labels_not_padding"},
        "wrong_turn": {"supervise": "supervise_until_user"},
        "final_turn_ignored": {"supervise": "supervise_every_turn"},
        "pad_supervised": {"pad": "pad_learned"},
        "truncation_side_ignored": {"truncate": "truncate_right_always"},
        "truncation_misaligned": {"truncate": "truncate_labels_elsewhere"},
        "truncation_silent_empty": {"is_empty": "never_empty", "mean_of_means": "mean_over_empty"},
        "zero_labels_nan": {"mean": "mean_unguarded"},
        "zero_labels_constant": {"mean": "mean_constant"},
        "count_unshifted": {"count": "count_labels"},
        "mean_of_means": {"accumulation": "accumulate_means"},
        "mean_of_rank_means": {"rank_loss": "rank_mean"},
        "accumulation_not_divided": {"accumulation": "accumulate_undivided"},
        "last_window_divided_by_k": {"accumulation": "accumulate_full_window"},
        "shard_edge_target_lost": {"shard": "shard_before_shift"},
        "cu_seqlens_lengths": {"cu_seqlens": "cu_seqlens_lengths"},
        "adam_l2": {"adamw": "adamw_decay_in_gradient"},
        "checkpoint_cast": {"save": "save_as_float32", "load": "load_as_float64"},
    }.items()
)
