"""Very large inputs a complex step away from where they are, and the random directions that they go along.

A matrix W goes along a direction of rank one, d = u vᵀ: <g, d> = uᵀ g v weighs every element of a gradient g by
u_i v_j, and no matrix but W is needed. Its factors are between 1/2 and 1 in size, with random signs, so no element
weighs less than a quarter of another. (Freivalds 1977 checks products of matrices that way.) Whatever is no matrix goes
along a direction with a number of its own for each element.
"""

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from labs.core.inputs import Draw
from labs.core.lab import Array

PANEL = 1 << 16  # elements of a gradient whose magnitudes are held at once
COLUMNS = 1024  # of a product that are made at once


@dataclass(frozen=True)
class Dense:
    """A direction that has a number for each element."""

    values: Array

    def sums(self, gradient: Array) -> tuple[float, float]:
        """<g, d>, and the sum of the magnitudes that it adds up."""
        parts = np.asarray(gradient * self.values)
        return float(np.sum(parts)), float(np.sum(np.abs(parts, out=parts)))

    def step(self, array: Array, size: float) -> Array:
        """The array that far along this direction in the imaginary, complex128."""
        moved = array.astype(np.complex128)
        moved.imag = size * self.values
        return moved


@dataclass(frozen=True)
class RankOne:
    """The direction u vᵀ through a matrix [d, k]."""

    u: Array  # [d]
    v: Array  # [k]

    def sums(self, gradient: Array) -> tuple[float, float]:
        """<g, d>, and the sum of the magnitudes that it adds up."""
        height = max(1, PANEL // max(1, self.v.size))
        magnitudes = np.empty_like(self.u)
        for start in range(0, self.u.size, height):
            panel = slice(start, start + height)
            magnitudes[panel] = np.abs(gradient[panel]) @ np.abs(self.v)
        return float(self.u @ (gradient @ self.v)), float(np.abs(self.u) @ magnitudes)

    def step(self, array: Array, size: float) -> "Stepped":
        """The matrix that far along this direction in the imaginary."""
        return Stepped(array, self.u, size * self.v)


Direction: TypeAlias = Dense | RankOne


def direction(draw: Draw, name: str, shape: tuple[int, ...]) -> Direction:
    """The seeded direction of an input of this name and shape."""
    if len(shape) != 2:  # noqa: PLR2004 - a matrix
        return Dense(draw.uniform(f"witness/{name}", shape, -1.0, 1.0))
    u, v = (draw.uniform(f"witness/{name}/{end}", (n,), -1.0, 1.0) for end, n in zip("uv", shape, strict=True))
    return RankOne(*(np.copysign((1.0 + np.abs(drawn)) / 2.0, drawn) for drawn in (u, v)))


class Stepped(NDArrayOperatorsMixin):
    """The complex matrix W + i u vᵀ, [d, k], that is never made where it is only multiplied by rows x.

    x (W + i u vᵀ) = (Re x) W + i (Im x) W + i (x u) vᵀ: two products where complex numbers take four, on two threads.
    To all other operations it is the complex array, made for each of them. (The mixin is NumPy's own way to give a
    class its operators.)
    """

    def __init__(self, matrix: Array, u: Array, v: Array) -> None:
        self._matrix, self._u, self._v = matrix, u, v
        self.shape, self.ndim, self.size, self.dtype = matrix.shape, 2, matrix.size, np.dtype(np.complex128)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """The complex array."""
        whole = self._matrix.astype(np.complex128)
        whole.imag = np.multiply.outer(self._u, self._v)
        return whole if dtype is None else whole.astype(dtype)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *operands: Any, **options: Any) -> Any:
        """A product of rows with this matrix by the formula above; everything else as NumPy has it."""
        if ufunc is np.matmul and method == "__call__" and not options and self._takes(operands[0]):
            return self._behind(operands[0])
        plain = [np.asarray(operand) if isinstance(operand, Stepped) else operand for operand in operands]
        return getattr(ufunc, method)(*plain, **options)

    def __getattr__(self, name: str) -> Any:
        """Attributes of the complex array; there are none of those that NumPy asks for to see what it has before it."""
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(np.asarray(self), name)

    def __getitem__(self, index: Any) -> Any:
        """Elements of the complex array."""
        return np.asarray(self)[index]

    def __len__(self) -> int:
        """The number of rows."""
        return len(self._matrix)

    def _takes(self, rows: Any) -> bool:
        return isinstance(rows, np.ndarray) and rows.ndim > 1 and rows.dtype.kind in "fc"

    def _behind(self, rows: Array) -> Array:
        """Rows [..., n, d] times this matrix, [..., n, k] complex128."""
        from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - 13 ms that only the largest runs need

        product: Array = np.multiply.outer(rows @ self._u, 1j * self._v)
        sides = [(rows.real, product.real), (rows.imag, product.imag)][: 1 + np.iscomplexobj(rows)]
        with ThreadPoolExecutor(max_workers=2) as pool:
            for done in [pool.submit(self._add, *side) for side in sides]:
                done.result()
        return product

    def _add(self, rows: Array, product: Array) -> None:
        """Add rows times W to what is there, some columns at a time: BLAS can't write between the other halves."""
        plain = np.ascontiguousarray(rows)
        for start in range(0, product.shape[-1], COLUMNS):
            some = slice(start, start + COLUMNS)
            product[..., some] += plain @ self._matrix[:, some]
