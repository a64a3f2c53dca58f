"""Known faults that every run of the lab has to catch: which part or value is wrong, and which checks have to say so."""

from labs.core.lab import Control

PASS = {"steps": 0}
TRAINING = {"steps": 4, "checkpoint_after": 2}
CONTROLS = tuple(
    Control(name=n, why="x", at=at, swap=s, lie=l, must=())
    for n, at, s, l in (
        ("rms_constant_r", PASS, {"norm": "norm_constant_r"}, {}),
        ("rms_weight_gradient_missing", PASS, {"norm": "norm_weight_without_gradient"}, {}),
        ("rows_from_first_axis", PASS, {"norm": "norm_rows_from_first_axis"}, {}),
        ("rms_offset", PASS, {"norm": "norm_offset"}, {}),
        ("scale_missing", PASS, {"scores": "scores_unscaled"}, {}),
        ("causal_off", PASS, {"causal": "everything_visible"}, {}),
        ("fused_causal_off", PASS, {"attention": "attention_not_causal"}, {}),
        ("softmax_backward_no_sum", PASS, {"softmax": "softmax_without_row_sum"}, {}),
        ("masked_row_nan", PASS, {"softmax": "softmax_infinite"}, {}),
        ("heads_tiled", {**PASS, "heads": 4, "kv_heads": 2}, {"scores": "scores_tiled", "mix": "mix_tiled"}, {}),
        ("rope_neighbours", PASS, {"rope": "rope_neighbours"}, {}),
        ("rope_backward_forward", PASS, {"rope": "rope_backward_forward"}, {}),
        ("silu_derivative", PASS, {"gate": "gate_sigmoid_derivative"}, {}),
        ("residual_dropped", PASS, {"residual": "residual_dropped"}, {}),
        ("residual_gradient_dropped", PASS, {"residual": "residual_without_gradient"}, {}),
        ("upstream_ignored", PASS, {"loss": "loss_upstream_ignored"}, {}),
        ("loss_unweighted", PASS, {"loss": "loss_unweighted"}, {}),
        ("loss_factor_lost", TRAINING, {}, {"loss_scale": 1.0}),
        ("adam_eps_scaled", TRAINING, {"optimizer": "adam_eps_scaled"}, {}),
        ("adam_l2", TRAINING, {"optimizer": "adam_l2"}, {}),
        ("adam_bias_correction_missing", TRAINING, {"optimizer": "adam_bias_correction_missing"}, {}),
        ("adam_step_stuck", {**TRAINING, "steps_done": 255}, {"optimizer": "adam_step_stuck"}, {}),
        ("resume_weights_only", TRAINING, {"load": "load_weights_only"}, {}),
        ("resume_without_second_moment", TRAINING, {"load": "load_without_second_moment"}, {}),
        ("resume_step_zero", TRAINING, {"load": "load_step_zero"}, {}),
        ("resume_by_position", TRAINING, {"load": "load_by_position"}, {}),
        ("resume_moments_cast", TRAINING, {"save": "save_moments_as_bfloat16", "load": "load_moments_as_float64"}, {}),
        ("resume_rng_lost", TRAINING, {"load": "load_random_state_lost"}, {}),
        ("resume_data_position_lost", TRAINING, {"load": "load_data_position_lost"}, {}),
    )
)
