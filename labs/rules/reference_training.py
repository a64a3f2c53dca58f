"""Rows about training, by the kernels: optimizer steps, what a checkpoint has to keep, clipping, recomputation."""
# ruff: noqa: D103 (a row's function is described by its entry in the table)

import io
from typing import Any

import numpy as np

from labs.core.lab import Array
from labs.kernels import adamw, clip


def adam_eps_scaled(g: Array, lr: Array, eps: Array) -> Any:
    p, _ = adamw.update(np.zeros_like(g), g, adamw.start(g), lr=float(lr), eps=float(eps), weight_decay=0.0)
    return -p


def adam_l2(p: Array, g: Array, lr: Array, weight_decay: Array) -> Array:
    after, state = adamw.update(p, g, adamw.start(p), lr=float(lr), eps=0.0, weight_decay=float(weight_decay))
    return np.stack([after, state.exp_avg])


def adam_bias_correction_missing(g: Array, lr: Array) -> Any:
    p, _ = adamw.update(np.zeros_like(g), g, adamw.start(g), lr=float(lr), eps=0.0, weight_decay=0.0)
    return -p


def adam_step_stuck(g: Array, steps: Array) -> Any:
    # exp_avg_sq stays g², so that a step of lr 1 has the length of the root of the correction.
    state = adamw.State(np.zeros_like(g), g * g, int(steps) - 1)
    p, _ = adamw.update(np.zeros_like(g), g, state, lr=1.0, betas=(0.0, 0.999), eps=0.0, weight_decay=0.0)
    return p * p


def resume_weights_only(g: Array, lr: Array) -> Array:
    p: Array = np.zeros_like(g[0])
    state = adamw.start(p)
    for gradient in g:
        p, state = adamw.update(p, gradient, state, lr=float(lr), eps=0.0, weight_decay=0.0)
    return p


resume_without_second_moment = resume_weights_only
resume_step_zero = resume_weights_only


def resume_moments_cast(moment: Array) -> Array:
    file = io.BytesIO()
    np.save(file, moment)
    file.seek(0)
    loaded: Array = np.load(file)
    return loaded


def clip_before_unscale(g: Array, max_norm: Array, loss_scale: Array) -> Array:
    scaled = g * loss_scale
    return clip.clip([scaled / loss_scale], float(max_norm)).grads[0]


def clip_before_unscale_torch(g: Array, max_norm: Array, loss_scale: Array) -> Array:
    scaled = g * loss_scale
    return clip.clip([scaled / loss_scale], float(max_norm), clip.TORCH_ADDED).grads[0]


def clip_per_micro_batch(g: Array, max_norm: Array) -> Array:
    return clip.clip([np.sum(g, axis=0)], float(max_norm)).grads[0]


def recompute_random_state(elements: Array, keep: Array) -> Any:
    generator = np.random.PCG64(0)
    before = generator.state
    first = _mask(generator, elements, keep)
    generator.state = before
    return np.mean(first == _mask(generator, elements, keep))


def _mask(generator: np.random.PCG64, elements: Array, keep: Array) -> Array:
    kept: Array = np.random.Generator(generator).random(int(elements)) < keep
    return kept
