"""Symmetric absmax quantisation of a matrix to integer codes, in groups along the rows' axis d.

forward   per group (g rows of one column): scale = max|w| / qmax, qmax = 2^(bits−1) − 1;
          code = w / scale, rounded to an integer, ties to even;
          a group of zeros has scale 0 and codes 0
          (scales are taken to be normal numbers: a subnormal one is too coarse to divide by)
inverse   w ≈ code · scale
bound     |w − code · scale| <= scale/2 + 2u max|w|, u = 2⁻⁵³: half a step, the quotient's rounding and the product's
backward  none: codes are steps, their derivative is 0 wherever it exists; the imaginary part of a complex w is dropped
shapes    w, codes, bound [d, k]; scales [d/g, k]
source    Dettmers et al. 2022 (arXiv 2110.02861), block-wise absmax, here with a uniform grid
"""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
Codes: TypeAlias = NDArray[np.int8]


def quantize(w: Array, bits: int, group: int) -> tuple[Codes, Array]:
    """Codes of w's shape and one scale for each group; `group` has to divide d."""
    groups = _groups(w.real, group)  # [d/g, g, k]
    scales = np.max(np.abs(groups), axis=1) / _qmax(bits)  # [d/g, k]
    step = np.where(scales == 0, 1, scales)  # 0/0 would be NaN
    codes = np.rint(groups / step[:, None, :]).astype(np.int8)
    return codes.reshape(w.shape), scales


def dequantize(codes: Codes, scales: Array, group: int) -> Array:
    """The matrix that the codes stand for, in the precision of the scales."""
    return (_groups(codes, group) * scales[:, None, :]).reshape(codes.shape)


def error_bound(w: Array, bits: int, group: int) -> Array:
    """What quantisation in float64 may move each element by, [d, k]; exactly 0 in a group of zeros."""
    absmax = np.max(np.abs(_groups(w.real, group)), axis=1)  # [d/g, k]
    bound = absmax / _qmax(bits) / 2 + np.finfo(np.float64).eps * absmax  # eps = 2u
    return np.repeat(bound, group, axis=0)


def _groups(w: Array, group: int) -> Array:
    return w.reshape(w.shape[0] // group, group, w.shape[1])


def _qmax(bits: int) -> int:
    return int(2 ** (bits - 1) - 1)
