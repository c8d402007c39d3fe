"""Relaxation: sweeps of SOR from a given vector, or from zero, and the residual of the result."""

from __future__ import annotations

from typing import Any

import numpy as np

from mcprecond.storage import ColorBlocks
from mcprecond.sweeps.substitution import SweepVectors

#: The halves of a sweep by its direction: whether each goes backwards.
HALVES = {"forward": (False,), "backward": (True,), "symmetric": (False, True)}


def store_sentinel(values: Any) -> None:
    """Mark all values as not ready: all bits set, a NaN, the sentinel of sweeps/syncfree.cuh."""
    values.view(np.int32).fill(-1)


class Relaxation(SweepVectors):
    """Sweeps of SOR on A x = b. Each solve begins by `start` or `start_from_zero`, which return an `Iterate`.

    On a GPU a sweep reads one vector in color order and writes another, where values begin as sentinels; on the CPU it
    works in place.

    Parameters
    ----------
    blocks, columns, pitch
        As for `SweepVectors`.
    """

    def __init__(self, blocks: ColorBlocks, columns: int = 1, pitch: int | None = None) -> None:
        super().__init__(blocks, columns, pitch)
        self._next = blocks.backend.xp.empty_like(self._y) if blocks.backend.resident_warps else self._y
        self._move()  # loaded now: nothing may be compiled while kernels are captured

    def start(self, x: Any) -> Iterate:
        """Begin with the values of x, which the next sweeps change."""
        inverse = self.blocks.inverse
        self._move().to_color_order(len(inverse), inverse, self._pitch, self._rows(x), self._y)
        return Iterate(self, x)

    def start_from_zero(self, b: Any, x: Any, direction: str, *, omega: float = 1.0, scale: float = 1.0) -> Iterate:
        """Begin with one sweep from zero, whatever x holds: it reads each triangle once at most.

        x becomes ``scale inv(T + w L) b`` for "forward", with U in place of L for "backward", and with both for
        "symmetric", as `Substitution.solve` has it.
        """
        self._y.fill(0)  # the epochs
        if direction == "symmetric":
            self._solve(b, x, omega, scale)
        else:
            rows, backwards = len(self.blocks.perm), direction == "backward"
            self._substitute(b, self._rows(x), omega, scale, last=rows, backwards=backwards, finish=True)
        solves_lower = direction == "forward" and omega == scale == 1
        return Iterate(self, x, solves_lower=solves_lower)

    def sweep(
        self, x: Any, b: Any, direction: str, *, sweeps: int = 1, omega: float = 1.0, from_zero: bool = False
    ) -> None:
        """So many sweeps on A x = b in place. From zero, what x holds does not count."""
        if from_zero and sweeps:
            scale = omega * (2 - omega) if direction == "symmetric" else omega
            iterate = self.start_from_zero(b, x, direction, omega=omega, scale=scale)
            sweeps -= 1
        else:
            iterate = self.start(x)
        for _ in range(sweeps):
            iterate.sweep(b, direction, omega=omega)


class Iterate:
    """x, and in color order the values that the next sweep needs; until the relaxation starts again.

    Parameters
    ----------
    relaxation : Relaxation
    x : array
        Has the values, in the order of the matrix.
    solves_lower : bool
        Whether (D + L) x = b.
    """

    def __init__(self, relaxation: Relaxation, x: Any, *, solves_lower: bool = False) -> None:
        self._relaxation, self._x, self._solves_lower = relaxation, x, solves_lower
        self._y, self._next = relaxation._y, relaxation._next

    def sweep(self, b: Any, direction: str, *, omega: float = 1.0) -> None:
        """One more sweep, forwards, backwards or both."""
        relaxation, blocks = self._relaxation, self._relaxation.blocks
        matrix = *blocks.lower.rows, *blocks.upper.rows, blocks.dinv, blocks.perm
        b = relaxation._rows(b)
        for backwards in HALVES[direction]:
            if self._next is not self._y:
                store_sentinel(self._next)
            vectors = relaxation._pitch, b, omega, self._y, self._next, relaxation._rows(self._x)
            relaxation._run.relax(*relaxation._slices, int(backwards), *matrix, *vectors)
            self._y, self._next = self._next, self._y
        self._solves_lower = False

    def residual(self, b: Any, r: Any) -> None:
        """r = b - A x. Where (D + L) x = b, r is -U x, and only U is read."""
        relaxation, blocks = self._relaxation, self._relaxation.blocks
        pivots = blocks.diagonal if blocks.pivots is None else blocks.pivots
        matrix = *blocks.lower.rows, *blocks.upper.rows, blocks.diagonal, pivots, blocks.perm
        relaxation._run.residual(
            *relaxation._slices,
            int(self._solves_lower),
            *matrix,
            relaxation._pitch,
            relaxation._rows(b),
            self._y,
            relaxation._rows(r),
        )
