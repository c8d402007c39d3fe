"""What a sweep needs beside the triangles: its own vectors, its kernels, and the order of calls.

Sweeps read and write vectors in the order of the matrix, one color after another, so that a line of memory is written
by many colors. Where vectors are so large that the line does not stay in L2 meanwhile, the result is left in color
order, and a pass of its own puts it into the order of the matrix.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from mcprecond.storage import ColorBlocks
from mcprecond.sweeps.triangular import KERNELS
from mcprecond.sweeps.vectors import KERNELS as VECTOR_KERNELS

NULL = 0  # for a kernel's array argument
SECTOR = 32  # bytes that memory gives at a time


def make_empty(values: Any) -> None:
    """Mark all values as not ready: all bits set, a NaN, the sentinel of cuda/syncfree.cuh."""
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
        # On a GPU, where polling takes much of the time, vectors have as few bytes as the values stored.
        own = stored if backend.resident_warps and stored.itemsize < dtype.itemsize else dtype
        # What the last sweep has found, in color order. Before `solve` all last bits are 0.
        self._y = backend.xp.zeros(shape, own)
        self._spare = self._new_spare() if relaxes else None
        self._flat = shape[0], math.prod(shape[1:])  # one row for all numbers of a node
        # Whether the result stays in color order at first: a sweep's three vectors and its own do not fit into L2.
        row_bytes = dtype.itemsize * math.prod(shape[1:])
        self._orders = row_bytes < SECTOR and 0 < backend.shared_cache < 3 * row_bytes * shape[0] + self._y.nbytes
        of_vectors = {
            "VALUE": dtype,
            "RHS": columns,
            "BLOCK_SIZE": blocks.block_size,
            "TRUNCATED_VECTORS": int(own != dtype),
        }
        self._move = partial(backend.kernels, VECTOR_KERNELS, **of_vectors)
        if self._orders:
            self._move()  # loaded now: nothing may be compiled while kernels are captured
        sums = blocks.new_sums(columns)
        self._slices = (blocks.n_slices, blocks.slices, sums)
        # Rows of the last color have no entries above the diagonal.
        self._last_rows = int(blocks.offsets[-2:][0])
        self._before_last = (int(blocks.color_slices[-2:][0]), blocks.slices, sums)
        # Whether the matrix passes through L2 with nothing left of it. (Blocks of the diagonal are read piece by piece,
        # for which they have to be in L1.)
        entries = sum(triangle.columns.nbytes + triangle.values.nbytes for triangle in (blocks.lower, blocks.upper))
        passes = blocks.block_size == 1 and 0 < backend.shared_cache < entries
        self._run = backend.kernels(
            KERNELS,
            **of_vectors | blocks.macros,
            OFFSET=blocks.lower.indptr.dtype,
            STORED=stored,
            LARGE_VECTORS=int(self._orders),
            LARGE_MATRIX=int(passes),
            LANES=32,
        )

    def solve(self, r: Any, z: Any, *, omega: float = 1.0, scale: float = 1.0) -> None:
        """z = inv(T + w U) T inv(T + w L) (scale r)."""
        blocks, n = self.blocks, len(self.blocks.perm)
        result = NULL if self._orders else self._rows(z)
        self._substitute(blocks.lower, r, result, omega, scale, self._last_rows)
        self._run.back_substitute(
            *self._before_last, *blocks.upper.rows, blocks.dinv, blocks.perm, omega, self._y, result
        )
        if self._orders:
            self._move().to_row_order(n, blocks.inverse, self._y.reshape(self._flat), z.reshape(self._flat))

    def _new_spare(self) -> Any:
        """Where relaxation writes: on the CPU, in place."""
        return self.blocks.backend.xp.empty_like(self._y) if self.blocks.backend.resident_warps else self._y

    def forget(self) -> None:
        """To be called before the first sweep, unless all that came before were calls of `solve`."""
        self._y.fill(0)

    def begin(self, x: Any) -> None:
        """Let `relax` start from x; then, before anything else is solved for, call `forget`."""
        if self._spare is None:
            self._spare = self._new_spare()
        self._move().to_color_order(
            len(self.blocks.inverse), self.blocks.inverse, x.reshape(self._flat), self._y.reshape(self._flat)
        )

    def solve_triangle(self, r: Any, z: Any, *, omega: float, scale: float, backwards: bool) -> None:
        """z = inv(T + w L) (scale r), or backwards with U in place of L."""
        triangle = self.blocks.upper if backwards else self.blocks.lower
        self._substitute(triangle, r, self._rows(z), omega, scale, len(self.blocks.perm), backwards, finish=True)

    def relax(self, r: Any, z: Any, *, omega: float, backwards: bool) -> None:
        """One more sweep of SOR on the result of the last one, forwards or backwards."""
        lower, upper = self.blocks.lower, self.blocks.upper
        if self._spare is not self._y:
            make_empty(self._spare)
        self._run.relax(
            *self._slices,
            int(backwards),
            *lower.rows,
            *upper.rows,
            self.blocks.dinv,
            self.blocks.perm,
            self._rows(r),
            omega,
            self._y,
            self._spare,
            self._rows(z),
        )
        self._y, self._spare = self._spare, self._y

    def sweep(
        self,
        x: Any,
        b: Any,
        direction: str = "forward",
        *,
        sweeps: int = 1,
        omega: float = 1.0,
        from_zero: bool = False,
    ) -> None:
        """So many sweeps of SOR on A x = b in place: "forward", "backward", or "symmetric", which is both.

        From zero, what x holds does not count, and the first sweep reads each triangle once at most. Before anything
        else is solved for, `forget` is to be called.
        """
        if from_zero and sweeps:
            self.forget()
            if direction == "symmetric":
                self.solve(b, x, omega=omega, scale=omega * (2 - omega))
            else:
                self.solve_triangle(b, x, omega=omega, scale=omega, backwards=direction == "backward")
            sweeps -= 1
        else:
            self.begin(x)
        for backwards in {"forward": [False], "backward": [True], "symmetric": [False, True]}[direction] * sweeps:
            self.relax(b, x, omega=omega, backwards=backwards)

    def residual(self, b: Any, r: Any, *, substituted: bool = False) -> None:
        """r = b - A y for what the last sweep has found. After ``solve_triangle(b, z, omega=1, scale=1,
        backwards=False)`` that is -U y, for which `substituted` says that U alone has to be read.
        """
        blocks = self.blocks
        pivots = blocks.diagonal if blocks.pivots is None else blocks.pivots
        self._run.residual(
            *self._slices,
            int(substituted),
            *blocks.lower.rows,
            *blocks.upper.rows,
            blocks.diagonal,
            pivots,
            blocks.perm,
            self._rows(b),
            self._y,
            self._rows(r),
        )

    def _rows(self, x: Any) -> Any:
        """A vector in the shape of the sweeps' own."""
        return x.reshape(self._y.shape)

    def _substitute(
        self,
        triangle: Any,
        r: Any,
        z: Any,
        omega: float,
        scale: float,
        last: int,
        backwards: bool = False,
        finish: bool = False,
    ) -> None:
        self._run.substitute(
            *self._slices,
            int(backwards),
            *triangle.rows,
            self.blocks.dinv,
            self.blocks.perm,
            self._rows(r),
            omega,
            scale,
            self._y,
            last,
            int(finish),
            z,
        )
