"""Cross-entropy of labelled rows, a weighted mean over the supervised ones.

forward   L = Σ_i w_i (−log softmax(l_i)[y_i]) / Σ_i w_i over rows i with y_i >= 0; without weight in total, exactly 0
backward  dl_i = dL · w_i (softmax(l_i) − onehot(y_i)) / Σ w on supervised rows, exactly 0 on the others
shapes    l, dl [..., V]; labels y [...] integers below V, negative: not supervised; w [...] real, >= 0; L scalar
saved     exp(l − row maximum), its sum over the row, w / Σ w, y; from these the gradient for dL = 1
source    the derivative of log Σ exp is softmax; row maximum taken off before exp (Goodfellow et al. 2016, §4.1)
"""

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
Labels: TypeAlias = NDArray[np.int64]


class Saved(NamedTuple):
    """What the backward pass reads."""

    e: Array  # [..., V]
    total: Array  # [..., 1]
    share: Array  # [..., 1]
    labels: Labels  # [...]

    @property
    def unit(self) -> Array:
        """The gradient of the logits for dL = 1; 0 in an unsupervised row, which may hold anything, [..., V]."""
        gradient: Array = self.e / self.total
        gradient -= np.arange(self.e.shape[-1]) == self.labels[..., None]
        gradient *= self.share
        np.copyto(gradient, 0, where=~(self.share > 0))  # the product alone may be 0 · inf
        return gradient


def forward(logits: Array, labels: Labels, weights: Array | None = None) -> tuple[Array, Saved]:
    """The loss; without weights every supervised row counts once."""
    share = _shares(logits, labels, weights)[..., None]  # [..., 1], sums to 1, or all 0
    shifted = logits - np.max(logits.real, axis=-1, keepdims=True)
    label = np.maximum(labels, 0)[..., None]  # any column will do in an unsupervised row
    picked = np.take_along_axis(shifted, label, axis=-1)
    e = np.exp(shifted, out=shifted)
    total = np.sum(e, axis=-1, keepdims=True)  # [..., 1], real part >= 1
    # where, not product: an unsupervised row may hold anything, and must not reach the sum as 0 · inf.
    loss = np.sum(np.where(share > 0, share * (np.log(total) - picked), 0))
    return loss, Saved(e, total, share, labels)


def backward(dloss: Any, saved: Saved) -> Array:
    """The gradient of the logits."""
    dlogits: Array = dloss * saved.unit
    return dlogits


def _shares(logits: Array, labels: Labels, weights: Array | None) -> Array:
    """What part of the mean each row is, in the precision of the logits, [...]."""
    ones = np.ones(labels.shape, logits.real.dtype)
    w = np.where(labels >= 0, ones if weights is None else weights, 0)
    total = np.sum(w)
    return w / np.where(total == 0, 1, total)
