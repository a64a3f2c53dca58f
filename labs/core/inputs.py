"""Inputs drawn from a seed, bit-identical on every platform and NumPy version.

One stream per tensor name: PCG64 seeded with the SHA-256 of (seed, name), and only its raw 64-bit outputs are used,
because NumPy keeps the raw generator stable across versions but not the distributions on top of it. A uniform is the
top 53 bits; a normal-like value is a sum of 12 uniforms in fixed order, minus 6 (mean 0, variance 1).

Drawn piece by piece into the result, each piece small enough to stay in the cache: no other array of its size is made.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]
U64 = NDArray[np.uint64]
Shape = tuple[int, ...]

PIECE = 8_192  # numbers drawn at once: their bits and values are 128 KiB


@dataclass(frozen=True)
class Draw:
    """Named random arrays; the same (seed, name, shape) always gives the same bits."""

    seed: int

    def bits(self, name: str, count: int) -> Iterator[tuple[slice, U64]]:
        """`count` raw 64-bit outputs of the stream called `name`, in pieces, each with its place."""
        digest = hashlib.sha256(f"{self.seed}:{name}".encode()).digest()
        generator = np.random.PCG64(int.from_bytes(digest, "little"))
        for start in range(0, count, PIECE):
            place = slice(start, min(start + PIECE, count))
            yield place, generator.random_raw(place.stop - start).astype(np.uint64, copy=False)

    def uniform(self, name: str, shape: Shape, low: float = 0.0, high: float = 1.0) -> F64:
        """Uniform on [low, high), 53 random bits each."""
        drawn = np.empty(_count(shape))
        for place, bits in self.bits(name, drawn.size):
            piece = drawn[place]
            np.right_shift(bits, np.uint64(11), out=bits)
            np.multiply(bits, 2.0**-53, out=piece)
            piece *= high - low
            piece += low
        return drawn.reshape(shape)

    def normal(self, name: str, shape: Shape, scale: float = 1.0) -> F64:
        """Normal-like: `scale` times the sum of 12 uniforms minus 6."""
        count = _count(shape)
        total = np.zeros(count)
        for row in range(12):  # one stream per term keeps the memory at two arrays
            total += self.uniform(f"{name}#{row}", (count,))
        return (scale * (total - 6.0)).reshape(shape)

    def integers(self, name: str, shape: Shape, high: int) -> NDArray[np.int64]:
        """Integers in [0, high): the top bits of each output, multiplied down."""
        return np.floor(self.uniform(name, shape) * high).astype(np.int64)

    def permutation(self, name: str, count: int) -> NDArray[np.int64]:
        """A permutation of 0 … count-1: the order of `count` uniforms."""
        order: NDArray[Any] = np.argsort(self.uniform(name, (count,)), kind="stable")
        return order.astype(np.int64)


def _count(shape: Shape) -> int:
    return int(np.prod(shape, dtype=np.int64))
