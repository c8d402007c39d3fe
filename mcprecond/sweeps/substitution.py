"""Substitution with the triangles of color blocks: a sweep from zero, or a sweep with both triangles for CG.

Sweeps read and write vectors in the order of the matrix, one color after another, so that a line of memory is written
by many colors. Where vectors are so large that the line does not stay in L2 meanwhile, the result is left in color
order, and a pass of its own puts it into the order of the matrix.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from mcprecond.storage import ColorBlocks
from mcprecond.sweeps.triangular import KERNELS
from mcprecond.sweeps.vectors import KERNELS as VECTOR_KERNELS

NULL = 0  # for a kernel's array argument
SECTOR = 32  # bytes that memory gives at a time


def columns_at_once(blocks: ColorBlocks) -> int:
    """How many right-hand sides one pass serves: registers hold no more, nor as many where nodes are large."""
    if blocks.block_size > 2:
        return 2
    return 4 if blocks.backend.resident_warps or blocks.block_size == 2 else 8


class SweepVectors:
    """The kernels of sweeps with color blocks, and a vector in color order.

    The blocks are only read; a sweep writes to arrays of this object, which serves one application at a time. Several
    right-hand sides are the columns of an array in C order, where the numbers that a row needs of a neighbor lie
    together.

    Parameters
    ----------
    blocks : ColorBlocks
        With the upper triangle divided, but for blocks of nodes. Values and the inverses of pivots are read at each
        sweep, so they may change.
    columns : int
        How many right-hand sides there are.
    pitch : int, optional
        How many columns the vectors in the order of the matrix have, of which these are some; `columns` by default.
    """

    def __init__(self, blocks: ColorBlocks, columns: int = 1, pitch: int | None = None) -> None:
        self.blocks = blocks
        backend, dtype, stored = blocks.backend, blocks.dtype, blocks.lower.values.dtype
        shape = (*blocks.vector_shape, columns)
        # On a GPU, where polling takes much of the time, vectors have as few bytes as the values stored.
        vector_dtype = stored if backend.resident_warps and stored.itemsize < dtype.itemsize else dtype
        self._y = backend.xp.zeros(shape, vector_dtype)
        self._pitch = pitch or columns
        # Whether the result stays in color order at first: a sweep's three vectors and its own do not fit into L2.
        row_bytes = dtype.itemsize * math.prod(shape[1:])
        self._orders = row_bytes < SECTOR and 0 < backend.shared_cache < 3 * row_bytes * shape[0] + self._y.nbytes
        of_vectors = {
            "VALUE": dtype,
            "RHS": columns,
            "BLOCK_SIZE": blocks.block_size,
            "TRUNCATED_VECTORS": int(vector_dtype != dtype),
            "PITCHED": int(self._pitch != columns),
        }
        self._move = partial(backend.kernels, VECTOR_KERNELS, **of_vectors)
        if self._orders:
            self._move()  # loaded now: nothing may be compiled while kernels are captured
        self._slices = blocks.schedule(columns)
        self._last_rows = int(blocks.free_rows[1])
        last_slice = int(blocks.color_slices[np.searchsorted(blocks.offsets, self._last_rows)])
        self._before_last = (last_slice, *self._slices[1:])
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

    def _rows(self, x: Any) -> Any:
        """A vector in the shape of the sweeps' own."""
        return x.reshape(self._y.shape)

    def _solve(self, r: Any, z: Any, omega: float, scale: float) -> None:
        """z = inv(T + w U) T inv(T + w L) (scale r), with all epochs at 0 before and after."""
        blocks = self.blocks
        result = NULL if self._orders else self._rows(z)
        self._substitute(r, result, omega, scale, last=self._last_rows)
        self._run.back_substitute(
            *self._before_last, *blocks.upper.rows, blocks.dinv, blocks.perm, self._pitch, omega, self._y, result
        )
        if self._orders:
            self._move().to_row_order(len(blocks.perm), blocks.inverse, self._y, self._pitch, self._rows(z))

    def _substitute(
        self, r: Any, z: Any, omega: float, scale: float, *, last: int, backwards: bool = False, finish: bool = False
    ) -> None:
        """Half of that, forwards or backwards: epochs become 1, but for the rows from `last` on."""
        blocks = self.blocks
        triangle = blocks.upper if backwards else blocks.lower
        scalars = self._pitch, self._rows(r), omega, scale, self._y, last, int(finish), z
        self._run.substitute(*self._slices, int(backwards), *triangle.rows, blocks.dinv, blocks.perm, *scalars)


class Substitution(SweepVectors):
    """Symmetric substitution: a forward sweep turns epochs from 0 to 1, and the backward sweep turns them back to 0, so
    that the next one can begin.
    """

    def solve(self, r: Any, z: Any, *, omega: float = 1.0, scale: float = 1.0) -> None:
        """z = inv(T + w U) T inv(T + w L) (scale r)."""
        self._solve(r, z, omega, scale)


class Chunks:
    """Sweeps over any number of columns: one pass after another, each for as many columns as a pass takes.

    Parameters
    ----------
    make : function
        ``make(blocks, columns, pitch)`` returns the sweeps of one pass, such as a `Substitution`.
    blocks : ColorBlocks
    columns : int
        How many right-hand sides there are.
    """

    def __init__(self, make: Callable[[ColorBlocks, int, int], Any], blocks: ColorBlocks, columns: int) -> None:
        most = columns_at_once(blocks)
        self._parts = [slice(first, min(first + most, columns)) for first in range(0, columns, most)]
        self.sweeps = [make(blocks, part.stop - part.start, columns) for part in self._parts]

    def of(self, *vectors: Any) -> Iterator[tuple[Any, ...]]:
        """Yield the sweeps of each pass, and the columns of the vectors that they are for."""
        if len(self.sweeps) == 1:
            yield self.sweeps[0], *vectors
            return
        for part, sweeps in zip(self._parts, self.sweeps, strict=True):
            yield sweeps, *(v[:, part] for v in vectors)
