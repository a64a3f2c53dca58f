"""Rounding to bfloat16, the value kept in the caller's own dtype.

forward   x to float32, then to the nearest number with 8 significant bits, ties to even; infinities and NaN stay
          (through float32, as storage does: a direct rounding differs where float32 lands on a tie)
backward  none: a staircase; the imaginary part of a complex x is dropped
shapes    x and the result [...]
source    bfloat16 is the upper half of a binary32 word (IEEE 754), so rounding is an integer addition on the word
"""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]

UNIT_ROUNDOFF = 2.0**-8 + 2.0**-23
"""|nearest(x) − x| <= UNIT_ROUNDOFF |x| for normal numbers: half a bfloat16 step, and float32's before it."""


def nearest(x: Array) -> Array:
    """Every element rounded to bfloat16, as an array of x's dtype."""
    with np.errstate(over="ignore", under="ignore"):  # beyond the range it is an infinity, as in torch
        single = np.asarray(x.real).astype(np.float32)
    word = single.view(np.uint32)
    half = np.uint32(0x7FFF) + ((word >> np.uint32(16)) & np.uint32(1))  # just under half a step; on a tie, to even
    rounded = ((word + half) & np.uint32(0xFFFF0000)).view(np.float32)
    return np.where(np.isnan(single), single, rounded).astype(x.dtype)  # adding to a NaN's word could end anywhere
