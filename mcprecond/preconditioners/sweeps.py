"""Sweeps over color blocks: substitution with the lower and the upper triangle, and relaxation.

A sweep is one kernel. Rows do not wait for colors but for values: the warps take the slices in color order and look at
the values that their rows need until these are there. Substitution tells by the last bit of a number: a forward sweep
turns it from 0 to 1, and the backward sweep, whose results take the places of these, back to 0. So symmetric
substitution, which is what CG needs, leaves everything ready for the next one. Relaxation needs the old values, too: it
has a second array, which starts out empty. See cuda/syncfree.cuh for both.

With pivots T, symmetric substitution solves with (T + w L) (I + w V), V = inv(T) U. V is what is stored of the upper
triangle, so that the way back reads no pivots.

Sweeps read and write vectors in the order of the matrix, one color after another. Where lines of memory do not stay in
L2 from color to color, so that each would be written for many colors, the result is left in color order and put into
the other one by a pass of its own.

On the CPU nothing is waited for: colors follow one another.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
from numba import prange

from mcprecond.backends import KernelSet, compile_inlined, compile_loop
from mcprecond.preconditioners.block_sweeps import KERNELS as BLOCK_KERNELS
from mcprecond.reordering import ColorBlocks
from mcprecond.reordering.vectors import KERNELS as VECTOR_KERNELS

KERNELS = KernelSet(__file__)

NULL = 0  # for a kernel's array argument
SECTOR = 32  # bytes that memory gives at a time


def make_empty(values: Any) -> None:
    """Mark all values as not there yet: all bits set, a NaN."""
    values.view(np.int32).fill(-1)


class Sweeps:
    """Sweeps with the triangles of color blocks and a diagonal, on vectors in the order of the matrix.

    The blocks are only read; what a sweep writes for itself is in this object, which serves one application at a time.
    Several right-hand sides are the columns of an array in C order: what a row needs of a neighbor lies together.

    Parameters
    ----------
    blocks : ColorBlocks
        With the upper triangle divided, but for blocks of nodes. Values and the inverses of pivots are read at each
        sweep, so they may change.
    columns : int
        How many right-hand sides there are.
    relaxes : bool
        Whether there has to be room for `relax` from the start. Otherwise `begin` makes it.
    """

    def __init__(self, blocks: ColorBlocks, columns: int = 1, *, relaxes: bool = False) -> None:
        self.blocks = blocks
        backend, dtype, stored = blocks.backend, blocks.dtype, blocks.lower.values.dtype
        shape = (*blocks.vector_shape, columns)
        # On a GPU, where looks at vectors take much of the time, they have as few bytes as the values stored.
        kept = stored if backend.resident_warps and stored.itemsize < dtype.itemsize else dtype
        # What the last sweep has found, in color order. Before `solve` all last bits are 0.
        self._y = backend.xp.zeros(shape, kept)
        self._spare = backend.xp.empty_like(self._y) if relaxes else None
        macros: dict[str, Any] = {**blocks.macros, "VALUE": dtype, "RHS": columns}
        if kept != dtype:
            macros["TRUNCATED_VECTORS"] = 1
        # Whether the result stays in color order at first: a sweep reads and writes three vectors, and one of its own.
        row_bytes = dtype.itemsize * math.prod(shape[1:])
        self._orders = row_bytes < SECTOR and 0 < backend.shared_cache < 3 * row_bytes * shape[0] + self._y.nbytes
        if self._orders:
            macros["LARGE_VECTORS"] = 1
        self._move = partial(backend.kernels, VECTOR_KERNELS, **macros)
        if self._orders:
            self._move()  # loaded now: nothing may be compiled while kernels are captured
        self._slices = (len(blocks.slices) - 1, blocks.slices)
        # Rows of the last color have no entries above the diagonal.
        self._last_rows = int(blocks.offsets[-2:][0])
        self._before_last = (int(blocks.color_slices[-2:][0]), blocks.slices)
        # Whether the matrix passes through L2 with nothing left of it. (Blocks of the diagonal are read piece by piece,
        # for which they have to be in L1.)
        entries = sum(triangle.columns.nbytes + triangle.values.nbytes for triangle in (blocks.lower, blocks.upper))
        passes = blocks.block_size == 1 and 0 < backend.shared_cache < entries
        self._run = backend.kernels(
            BLOCK_KERNELS if blocks.block_size > 1 else KERNELS,
            **macros,
            **({"LARGE_MATRIX": 1} if passes else {}),
            OFFSET=blocks.lower.indptr.dtype,
            STORED=stored,
            LANES=32,
        )

    def solve(self, r: Any, z: Any, *, omega: float = 1.0, scale: float = 1.0) -> None:
        """z = inv(T + w U) T inv(T + w L) (scale r)."""
        blocks, n = self.blocks, len(self.blocks.perm)
        result = NULL if self._orders else self._rows(z)
        self._substitute(blocks.lower, r, result, omega, scale, self._last_rows)
        self._run.back_substitute(
            *self._before_last, *blocks.upper.rows, blocks.dinv, blocks.perm, omega, self._y, result
        )  # fmt: skip
        if self._orders:
            self._move().to_row_order(n, blocks.inverse, self._y, z)

    def forget(self) -> None:
        """To be called before the first sweep, unless all that came before were calls of `solve`."""
        self._y.fill(0)

    def begin(self, x: Any) -> None:
        """Let `relax` start from x; then, before anything else is solved for, call `forget`."""
        if self._spare is None:
            self._spare = self.blocks.backend.xp.empty_like(self._y)
        self._move().to_color_order(len(self.blocks.inverse), self.blocks.inverse, self._rows(x), self._y)

    def solve_triangle(self, r: Any, z: Any, *, omega: float, scale: float, backwards: bool) -> None:
        """z = inv(T + w L) (scale r), or backwards with U in place of L."""
        triangle = self.blocks.upper if backwards else self.blocks.lower
        self._substitute(triangle, r, self._rows(z), omega, scale, len(self.blocks.perm), backwards, finish=True)

    def relax(self, r: Any, z: Any, *, omega: float, backwards: bool) -> None:
        """One more sweep of SOR on the result of the last one, forwards or backwards."""
        lower, upper = self.blocks.lower, self.blocks.upper
        make_empty(self._spare)
        self._run.relax(
            *self._slices, int(backwards), *lower.rows, *upper.rows, self.blocks.dinv, self.blocks.perm, self._rows(r),
            omega, self._y, self._spare, self._rows(z),
        )  # fmt: skip
        self._y, self._spare = self._spare, self._y

    def residual(self, b: Any, r: Any, *, substituted: bool = False) -> None:
        """r = b - A y for what the last sweep has found. After ``solve_triangle(b, z, omega=1, scale=1,
        backwards=False)`` that is -U y, for which `substituted` says that U alone has to be read.
        """
        blocks = self.blocks
        pivots = blocks.diagonal if blocks.pivots is None else blocks.pivots
        self._run.residual(
            *self._slices, int(substituted), *blocks.lower.rows, *blocks.upper.rows, blocks.diagonal, pivots,
            blocks.perm, self._rows(b), self._y, self._rows(r),
        )  # fmt: skip

    def _rows(self, x: Any) -> Any:
        """A vector in the shape of the sweeps' own."""
        return x.reshape(self._y.shape)

    def _substitute(
        self, triangle: Any, r: Any, z: Any, omega: float, scale: float, last: int, backwards: bool = False,
        finish: bool = False,
    ) -> None:  # fmt: skip
        self._run.substitute(
            *self._slices, int(backwards), *triangle.rows, self.blocks.dinv, self.blocks.perm, self._rows(r), omega,
            scale, self._y, last, int(finish), z,
        )  # fmt: skip


# The twins; c counts right-hand sides. They know no turns, and empty nothing; see the note on the CPU above. To them
# z is not null, and has room for sums.


@compile_inlined
def product(i, c, indptr, columns, values, y):
    """Row i of a triangle times right-hand side c."""
    total = y.dtype.type(0)
    for k in range(indptr[i], indptr[i + 1]):
        total += values[k] * y[columns[k], c]
    return total


@compile_inlined
def four_products(i, indptr, columns, values, y, sums):
    """The same of four right-hand sides in one pass."""
    s0 = s1 = s2 = s3 = y.dtype.type(0)
    for k in range(indptr[i], indptr[i + 1]):
        a, j = values[k], columns[k]
        s0 += a * y[j, 0]
        s1 += a * y[j, 1]
        s2 += a * y[j, 2]
        s3 += a * y[j, 3]
    sums[0], sums[1], sums[2], sums[3] = s0, s1, s2, s3


@compile_loop
def substitute_rows(first, end, backwards, indptr, columns, values, dinv, perm, r, omega, scale, y, finish, z):
    """The rows of one color."""
    for i in prange(first, end):
        four = y.shape[1] == 4
        if four:
            four_products(i, indptr, columns, values, y, y[i])
        for c in range(y.shape[1]):
            total = omega * (y[i, c] if four else product(i, c, indptr, columns, values, y))
            b = scale * r[perm[i], c]
            y[i, c] = b * dinv[i] - total if backwards else (b - total) * dinv[i]
            if finish:
                z[perm[i], c] = y[i, c]


@KERNELS.resident_twin
def substitute(
    n_slices, slices, backwards, indptr, columns, values, dinv, perm, r, omega, scale, y, last, finish, z
):  # fmt: skip
    """y_i = inv(T_i) (scale r_i - w sum_j L_ij y_j), to z as well if this finishes the sweep; a turn from 0 to 1.

    Backwards, U is in place of L, and stored as V = inv(T) U. From row `last` on, this is the result of symmetric
    substitution, and goes to z, too; these rows stay at 0.
    """
    for c in range(n_slices):
        k = n_slices - 1 - c if backwards else c
        first, end = slices[k], slices[k + 1]
        substitute_rows(
            first, end, backwards, indptr, columns, values, dinv, perm, r, omega, scale, y, finish or first >= last, z
        )  # fmt: skip


@compile_loop
def back_substitute_rows(first, end, indptr, columns, values, perm, omega, y, z):
    """The rows of one color."""
    for i in prange(first, end):
        four = y.shape[1] == 4
        if four:
            four_products(i, indptr, columns, values, y, z[perm[i]])
        for c in range(y.shape[1]):
            total = z[perm[i], c] if four else product(i, c, indptr, columns, values, y)
            y[i, c] -= omega * total
            z[perm[i], c] = y[i, c]


@KERNELS.resident_twin
def back_substitute(n_slices, slices, indptr, columns, values, dinv, perm, omega, y, z):
    """t_i = y_i - w sum_j V_ij t_j, in place of y, and to z in the order of the matrix; back to turn 0."""
    for k in range(n_slices - 1, -1, -1):
        back_substitute_rows(slices[k], slices[k + 1], indptr, columns, values, perm, omega, y, z)


@compile_loop
def relax_rows(
    first, end, backwards, lower_indptr, lower_columns, lower, upper_indptr, upper_columns, upper, dinv, perm, r, omega,
    old, new, z,
):  # fmt: skip
    """The rows of one color."""
    for i in prange(first, end):
        for c in range(new.shape[1]):
            below, above = new.dtype.type(0), new.dtype.type(0)
            for k in range(lower_indptr[i], lower_indptr[i + 1]):
                below += lower[k] * (old if backwards else new)[lower_columns[k], c]
            for k in range(upper_indptr[i], upper_indptr[i + 1]):
                above += upper[k] * (new if backwards else old)[upper_columns[k], c]
            new[i, c] = (1 - omega) * old[i, c] + omega * (dinv[i] * (r[perm[i], c] - below) - above)
            z[perm[i], c] = new[i, c]


@KERNELS.resident_twin
def relax(
    n_slices, slices, backwards, lower_indptr, lower_columns, lower, upper_indptr, upper_columns, upper, dinv, perm, r,
    omega, old, new, z,
):  # fmt: skip
    """new_i = (1 - w) old_i + w (inv(T_i) (r_i - sum_j L_ij y_j) - sum_j V_ij y_j), y new where the sweep was."""
    for c in range(n_slices):
        k = n_slices - 1 - c if backwards else c
        relax_rows(
            slices[k], slices[k + 1], backwards, lower_indptr, lower_columns, lower, upper_indptr, upper_columns, upper,
            dinv, perm, r, omega, old, new, z,
        )  # fmt: skip


@compile_loop
def residual_rows(
    n, substituted, lower_indptr, lower_columns, lower, upper_indptr, upper_columns, upper, diagonal, pivots, perm, b,
    y, r,
):  # fmt: skip
    """All rows at once."""
    for i in prange(n):
        for c in range(y.shape[1]):
            total = pivots[i] * product(i, c, upper_indptr, upper_columns, upper, y)
            if substituted:
                r[perm[i], c] = -total
            else:
                below = product(i, c, lower_indptr, lower_columns, lower, y)
                r[perm[i], c] = b[perm[i], c] - below - diagonal[i] * y[i, c] - total


@KERNELS.resident_twin
def residual(
    n_slices, slices, substituted, lower_indptr, lower_columns, lower, upper_indptr, upper_columns, upper, diagonal,
    pivots, perm, b, y, r,
):  # fmt: skip
    """r_i = b_i - sum_j L_ij y_j - D_i y_i - T_i sum_j V_ij y_j, in the order of the matrix; all but the last term is
    known to be zero if y is what substitution with D + L gives.
    """
    residual_rows(
        slices[n_slices], substituted, lower_indptr, lower_columns, lower, upper_indptr, upper_columns, upper, diagonal,
        pivots, perm, b, y, r,
    )  # fmt: skip
