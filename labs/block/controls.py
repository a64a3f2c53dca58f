"""Known faults that every run of the lab has to catch: what is wrong, and which checks have to say so."""

from labs.core.lab import Control

# What a fault in the layer shows, training would only repeat; a counter in bfloat16 can't go past 256.
PASS = {"steps": 0}
TRAINING = {"steps": 3, "checkpoint_after": 1, "steps_done": 255, "dropout": 0.25}

# Values that a fault reaches on the way to the loss, each group with all that come after it.
OUTPUT = ("forward/logits", "forward/mean_loss", "forward/loss")
FROM_RESIDUAL_1 = (
    "forward/residual_[12]",
    "forward/normed_2",
    "forward/gate*",
    "forward/up",
    "forward/down",
    "causality/before",
    "causality/after:close",
    *OUTPUT,
)
FROM_PROBS = ("forward/probs", "forward/heads", "forward/attended", "padded/probs", "padded/heads", *FROM_RESIDUAL_1)
FROM_SCORES = ("forward/scores", *FROM_PROBS)

# Gradients that a fault reaches on the way back from the loss, each group with all that come after it.
TO_X = ("grad/normed_1", "grad/gamma_1", "grad/x")
BELOW_ROPE = ("grad/[qk]", "grad/w_[qk]", *TO_X)
BELOW_SCORES = ("grad/scores", "grad/[qk]_turned", *BELOW_ROPE)
BELOW_RESIDUAL_1 = (
    "grad/residual_1",
    "grad/attended",
    "grad/w_o",
    "grad/heads",
    "grad/probs",
    "grad/v",
    "grad/w_v",
    "fused/grad/*",
    "padded/grad/*",
    *BELOW_SCORES,
)
BELOW_GATE = ("grad/gate", "grad/w_gate", "grad/normed_2", "grad/gamma_2", *BELOW_RESIDUAL_1)
BELOW_LOGITS = (
    "grad/logits",
    "grad/w_head",
    "grad/residual_2",
    "grad/down",
    "grad/w_down",
    "grad/gated",
    "grad/up",
    "grad/w_up",
    *BELOW_GATE,
)

TRAJECTORY = ("train/loss", "train/grad/*", "train/param/*", "train/exp_avg*")
# A resumed value is compared twice: with the reference, and bit by bit with the run that was not stopped.
RESUMED = ("resume/loss", "resume/grad", "resume/param/*", "resume/exp_avg*")
RESUMED_WRONG = tuple(f"{pattern}:close" for pattern in RESUMED)
RANDOM = ("stochastic/resumed/loss", "stochastic/resumed/param")

NORMS_AND_ROPE = (
    Control(
        name="rms_constant_r",
        why="hand-written norms: the backward pass takes r for a constant and loses its second term",
        swap={"norm": "norm_constant_r"},
        at=PASS,
        must=BELOW_RESIDUAL_1,
    ),
    Control(
        name="rms_weight_gradient_missing",
        why="unsloth 4533: the norm's weight never gets a gradient",
        swap={"norm": "norm_weight_without_gradient"},
        at=PASS,
        must=("grad/gamma_[12]",),
    ),
    Control(
        name="rows_from_first_axis",
        why="FlagGems 5392: the weight's gradient is summed over as many rows as the first axis is long",
        swap={"norm": "norm_rows_from_first_axis"},
        at=PASS,
        must=("grad/gamma_[12]",),
    ),
    Control(
        name="rms_offset",
        why="Liger-Kernel 74: the weight is taken for an offset from 1",
        swap={"norm": "norm_offset"},
        at=PASS,
        must=("forward/normed_1", "forward/[qkv]*", *FROM_SCORES, "fused/heads", *BELOW_LOGITS),
    ),
    Control(
        name="rope_neighbours",
        why="common: weights made for one pairing of the rotated elements run with the other",
        swap={"rope": "rope_neighbours"},
        at=PASS,
        must=("forward/[qk]_turned", *FROM_SCORES, "fused/heads", *BELOW_LOGITS),
    ),
    Control(
        name="rope_backward_forward",
        why="hand-written rotations: the gradient is turned forward again, not back",
        swap={"rope": "rope_backward_forward"},
        at=PASS,
        must=BELOW_ROPE,
    ),
)

ATTENTION = (
    Control(
        name="scale_missing",
        why="common: the scores are not divided by sqrt(D)",
        swap={"scores": "scores_unscaled"},
        at=PASS,
        must=(*FROM_SCORES, "grouped/*", *BELOW_LOGITS),
    ),
    Control(
        name="causal_off",
        why="common: every position sees the whole sequence",
        swap={"causal": "everything_visible"},
        at=PASS,
        must=(*FROM_PROBS, "grouped/*", "causality/after:identical", *BELOW_LOGITS),
    ),
    Control(
        name="fused_causal_off",
        why="common: the fused kernel is called without its causal flag",
        swap={"attention": "attention_not_causal"},
        at=PASS,
        must=("fused/*",),
    ),
    Control(
        name="heads_tiled",
        why="common: key/value heads are repeated in turn, so that query heads read the wrong ones",
        swap={"scores": "scores_tiled", "mix": "mix_tiled"},
        at=PASS,
        must=("grouped/*",),
        may=(*FROM_SCORES, *BELOW_LOGITS),  # where the layer itself has such groups
    ),
    Control(
        name="fused_heads_tiled",
        why="common: the same before a fused kernel, which is given repeated heads",
        swap={"attention": "attention_tiled"},
        at=PASS,
        must=("fused/grouped/*",),
        may=("fused/heads", "fused/grad/*"),
    ),
    Control(
        name="prefix_detached",
        why="common: the prompt's keys and values come from a cache that was filled without a graph",
        swap={"scores": "scores_of_detached_prefix", "mix": "mix_of_detached_prefix"},
        at=PASS,
        must=("grad/[kv]", "grad/k_turned", "grad/w_[kv]", *TO_X, "grouped/grad/[kv]", "first/reached/*"),
    ),
    Control(
        name="softmax_backward_no_sum",
        why="TinyTorch mutants: dS = P * G, as if softmax were elementwise",
        swap={"softmax": "softmax_without_row_sum"},
        at=PASS,
        must=(*BELOW_SCORES, "padded/grad/scores", "padded/grad/[qk]", "grouped/grad/[qk]"),
    ),
    Control(
        name="masked_row_nan",
        why="pytorch 103749: a query that sees nothing is NaN",
        swap={"softmax": "softmax_infinite"},
        at=PASS,
        must=("padded/probs", "padded/heads", "padded/grad/v"),
    ),
)

PATHS_AND_LOSS = (
    Control(
        name="silu_derivative",
        why="gate kernels: sigma(a) for the derivative of a sigma(a)",
        swap={"gate": "gate_sigmoid_derivative"},
        at=PASS,
        must=BELOW_GATE,
    ),
    Control(
        name="residual_dropped",
        why="common: the branch replaces the stream, where it should be added",
        swap={"residual": "residual_dropped"},
        at=PASS,
        must=(*FROM_RESIDUAL_1, *BELOW_LOGITS),
    ),
    Control(
        name="residual_gradient_dropped",
        why="common: the gradient returns through the branch alone",
        swap={"residual": "residual_without_gradient"},
        at=PASS,
        must=BELOW_RESIDUAL_1,
    ),
    Control(
        name="upstream_ignored",
        why="Liger-Kernel 968: a fused loss hands on its own gradient, whatever comes from above",
        swap={"loss": "loss_upstream_ignored"},
        at=PASS,
        must=BELOW_LOGITS,
    ),
    Control(
        name="first_position_supervised",
        why="common: the label that marks a position as unsupervised is read as class 0",
        swap={"loss": "loss_of_unsupervised"},
        at=PASS,
        must=("forward/mean_loss", "forward/loss", "first/grad/logits", *BELOW_LOGITS),
    ),
    Control(
        name="loss_unweighted",
        why="common: weights are read as a mask",
        swap={"loss": "loss_unweighted"},
        at=PASS,
        must=("forward/mean_loss", "forward/loss", *BELOW_LOGITS),
    ),
)

OPTIMIZER = (
    Control(
        name="loss_factor_lost",
        why="common: a constant factor of the loss is lost; Adam nearly hides it, the gradients and SGD do not",
        lie={"loss_scale": 1.0},
        at=TRAINING,
        must=("forward/loss", "grad/mean_loss", *BELOW_LOGITS, "sgd/param/*", *TRAJECTORY, *RESUMED_WRONG),
    ),
    Control(
        name="adam_eps_scaled",
        why="pytorch PR 22628, nanochat PR 353: epsilon joins v before the bias correction",
        swap={"optimizer": "adam_eps_scaled"},
        at=TRAINING,
        must=(*TRAJECTORY, *RESUMED_WRONG),
    ),
    Control(
        name="adam_l2",
        why="FlagGems 4988: the decay is added to the gradient, and so to the moments",
        swap={"optimizer": "adam_l2"},
        at=TRAINING,
        must=(*TRAJECTORY, *RESUMED_WRONG),
    ),
    Control(
        name="adam_bias_correction_missing",
        why="DeepSpeed PR 8496: the moments are used as they are",
        swap={"optimizer": "adam_bias_correction_missing"},
        at=TRAINING,
        must=(*TRAJECTORY, *RESUMED_WRONG),
    ),
    Control(
        name="adam_step_stuck",
        why="DeepSpeed PR 8496: the counter is kept in bfloat16, and 256 + 1 is 256",
        swap={"optimizer": "adam_step_stuck"},
        at=TRAINING,
        must=(*TRAJECTORY, "train/step", *RESUMED_WRONG, "resume/step:exact"),
    ),
)

RESUMPTION = (
    Control(
        name="resume_weights_only",
        why="tinker-feedback 127: parameters are restored, the optimizer starts anew",
        swap={"load": "load_weights_only"},
        at=TRAINING,
        must=(*RESUMED, "resume/step", "reloaded/exp_avg*", "reloaded/step", *RANDOM),
    ),
    Control(
        name="resume_without_second_moment",
        why="tinker-feedback 127: the second moment is not restored",
        swap={"load": "load_without_second_moment"},
        at=TRAINING,
        must=(*RESUMED, "reloaded/exp_avg_sq", *RANDOM),
    ),
    Control(
        name="resume_step_zero",
        why="tinker-feedback 127: the moments are restored and the count of updates is not",
        swap={"load": "load_step_zero"},
        at=TRAINING,
        must=(*RESUMED, "resume/step", "reloaded/step", *RANDOM),
    ),
    Control(
        name="resume_by_position",
        why="common: moments are restored by number, to a model that lists its parameters in another order",
        swap={"load": "load_by_position"},
        at=TRAINING,
        must=(*RESUMED, "reloaded/exp_avg*", *RANDOM),
    ),
    Control(
        name="resume_moments_cast",
        why="torchtitan PR 4615: the checkpoint holds the moments in bfloat16",
        swap={"save": "save_moments_as_bfloat16", "load": "load_moments_as_float64"},
        at=TRAINING,
        must=(*RESUMED, "reloaded/exp_avg*", *RANDOM),
    ),
    Control(
        name="checkpoint_cast",
        why="common: parameters are saved in float32 and loaded as if nothing had happened",
        swap={"save": "save_parameters_as_float32", "load": "load_parameters_as_float64"},
        at=TRAINING,
        must=(*(f"{pattern}:identical" for pattern in RESUMED), "resume/param/*", "reloaded/param", *RANDOM),
        may=RESUMED_WRONG,  # the rounding of float32 may stay inside the tolerance
    ),
    Control(
        name="resume_rng_lost",
        why="transformers 17032: dropout and shuffling go on from the seed",
        swap={"load": "load_random_state_lost"},
        at=TRAINING,
        must=("stochastic/resumed/batch", *RANDOM),
    ),
    Control(
        name="resume_data_position_lost",
        why="transformers 17032: the epoch begins again, so samples are seen twice and others never",
        swap={"load": "load_data_position_lost"},
        at=TRAINING,
        must=("stochastic/resumed/batch", *RANDOM),
    ),
)

CHANCE = (
    Control(
        name="dropout_off",
        why="common: dropout is left in evaluation mode",
        swap={"dropout": "dropout_off"},
        at=TRAINING,
        must=("stochastic/dropout/kept", "stochastic/dropout/excess", "stochastic/dropout/again"),
    ),
    Control(
        name="dropout_unscaled",
        why="common: what is kept is not scaled up",
        swap={"dropout": "dropout_unscaled"},
        at=TRAINING,
        must=("stochastic/dropout/kept",),
    ),
    Control(
        name="dropout_mask_redrawn",
        why="common: a layer recomputed for its backward pass draws another mask than the one it was run with",
        swap={"dropout": "dropout_redrawn"},
        at=TRAINING,
        must=("stochastic/dropout/grad",),
    ),
    Control(
        name="dropout_seeded",
        why="common: the generator is seeded at every call, so every step drops the same features",
        swap={"dropout": "dropout_seeded"},
        at=TRAINING,
        must=("stochastic/dropout/again",),
    ),
    Control(
        name="shuffle_off",
        why="common: every epoch has the order of the file",
        swap={"shuffle": "shuffle_off"},
        at=TRAINING,
        must=("stochastic/shuffle/successors", "stochastic/shuffle/again"),
    ),
    Control(
        name="shuffle_with_replacement",
        why="common: samples are drawn independently, some twice in an epoch and others never",
        swap={"shuffle": "shuffle_with_replacement"},
        at=TRAINING,
        must=("stochastic/shuffle/sorted",),
    ),
    Control(
        name="shuffle_unseeded",
        why="common: the order comes from a generator of its own, that no checkpoint holds",
        swap={"shuffle": "shuffle_unseeded"},
        at=TRAINING,
        must=("stochastic/shuffle/repeats",),
        may=("stochastic/resumed/batch", *RANDOM),  # few samples can fall into the same order twice
    ),
)

CONTROLS = (*NORMS_AND_ROPE, *ATTENTION, *PATHS_AND_LOSS, *OPTIMIZER, *RESUMPTION, *CHANCE)
