"""One kernel for the small levels of a V cycle on a GPU, from the finest of them to the coarsest and back.

A barrier of the blocks that work on a level takes the place of the end of a kernel, which takes about as long; but the
host captures one launch in place of some dozens. Fewer blocks work on a coarser level, and the others wait for these.
Sums have the same order as in the kernels of one step, so that results have the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mcprecond.backends import Backend, KernelSet
from mcprecond.backends.cuda_source import BLOCK
from mcprecond.linalg.csr import Csr
from mcprecond.linalg.dense import Dense
from mcprecond.multigrid.polynomial import Polynomial

KERNELS = KernelSet(__file__, "OFFSET VALUE STORED COARSE")

#: On larger levels a kernel for each step is faster.
MOST_ROWS, MOST_BLOCKS = 60_000, 512
MOST_LEVELS = 16  # a kernel's arguments have 4 KiB at most
CUDA_CONSTANTS = {"MOST_LEVELS": MOST_LEVELS, "PER_LANE": 8}  # PER_LANE: entries that a thread loads at once


class SmallLevels:
    """The part of a V cycle from a level on, for one right-hand side.

    Updates write into the arrays whose addresses it keeps.

    Parameters
    ----------
    levels : sequence of Level
        Those of hierarchy.py from `first_small` on.
    spaces : sequence of Space
        Theirs.
    coarse : Dense or None
        The inverse on the last one, if there is one.
    """

    def __init__(self, levels: Sequence[Any], spaces: Sequence[Any], coarse: Dense | None, backend: Backend) -> None:
        smoothers = [level.smoother for level in levels if isinstance(level.smoother, Polynomial)]
        count, first, fields, blocks = len(smoothers), smoothers[0].A, list[Any](), MOST_BLOCKS
        counters = backend.zeros(count, np.uint32)
        self._kept = [counters]  # a record keeps no array alive
        for number, (level, own, smoother) in enumerate(zip(levels, spaces, smoothers, strict=False)):
            _, d, other = own.smoothing
            coefficients = backend.xp.asarray(smoother.coefficients)
            self._kept.append(coefficients)
            blocks = min(blocks, -(-smoother.A.rows * smoother.A.lanes // BLOCK))
            for A in (smoother.A, level.prolongation, level.restriction):
                fields += [0] * 5 if A is None else [A.indptr, A.indices, A.values, A.rows, A.lanes]
            fields += [smoother.dinv, coefficients, smoother.degree]
            fields += [0 if v is None else v for v in (own.b, own.x)]  # the first level has what the cycle is given
            fields += [own.r, d, other, counters[number:], blocks]
        fields += [0] * (len(fields) // count * (MOST_LEVELS - count))
        below = (0, 0, 0) if coarse is None else (coarse.matrix, spaces[-1].b, spaces[-1].x)
        self._arguments = (*backend.record(tuple(fields)), count, *below)
        self._threads = min(MOST_BLOCKS * BLOCK, first.rows * first.lanes)
        self._run = backend.kernels(KERNELS, **choices_of(first), COARSE=levels[-1].dtype)

    def enqueue(self, presweeps: int, postsweeps: int, b: Any, x: Any) -> None:
        """Compute x = inv(M) b for the hierarchy that begins with the first of these levels."""
        self._run.cycle(self._threads, *self._arguments, presweeps, postsweeps, b, x)


def first_small(
    levels: Sequence[Any], coarse: Dense | None, twice: Sequence[bool], sweeps: int, backend: Backend
) -> int | None:
    """Return the number of the level from which on one kernel does all of a V cycle; None where there is none.

    Parameters
    ----------
    twice : sequence of bool
        The levels with a second correction.
    sweeps : int
        Before or after the correction, whichever are fewer.
    """
    end = len(levels) - (coarse is not None)
    if not backend.resident_warps or not sweeps or (coarse is not None and coarse.dtype != levels[-1].dtype):
        return None
    first = end
    while (
        first > 0
        and end - first < MOST_LEVELS
        and fits(levels[first - 1], levels[end - 1])
        and not (first < len(levels) and twice[first])
    ):
        first -= 1
    return first if first < end else None


def fits(level: Any, last: Any) -> bool:
    """Whether the kernel can work on a level, in the types of the last one."""
    smoother, of_last = level.smoother, last.smoother
    if not isinstance(smoother, Polynomial) or not isinstance(of_last, Polynomial) or smoother.degree < 2:
        return False
    choices = of_last.A.own_macros | {"LONG_ROWS": 0}
    return (
        smoother.A.rows <= MOST_ROWS
        and choices_of(smoother.A) == choices_of(of_last.A)
        and all(A is None or A.own_macros == choices for A in (smoother.A, level.prolongation, level.restriction))
    )


def choices_of(A: Csr) -> dict[str, Any]:
    """What the kernel is compiled for, by the matrix of a level."""
    return {"OFFSET": A.offset, "VALUE": A.dtype, "STORED": A.values.dtype}


@KERNELS.resident
def cycle(threads, *arguments):
    """Nothing: on a CPU each step is a loop of its own."""
