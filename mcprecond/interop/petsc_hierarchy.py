"""Multigrid across ranks: one hierarchy, by aggregates or by points, and cycles over it."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from mcprecond.backends.arguments import integer, one_of, real, single, stored_dtype
from mcprecond.backends.inputs import any_of
from mcprecond.interop import petsc_memory
from mcprecond.interop.petsc_coarsening import Step, new_step
from mcprecond.interop.petsc_cycle import CycleAcross, LevelAcross, Whole
from mcprecond.interop.petsc_matrix import Rows
from mcprecond.interop.petsc_overlap import Overlap
from mcprecond.interop.petsc_points import PointsCoarsening
from mcprecond.interop.petsc_smoothers import MatrixAround, PolynomialAcross, SmootherAcross, SweepsAcross
from mcprecond.matrix import PatternChangedError
from mcprecond.multigrid.built import MAX_COARSE
from mcprecond.multigrid.classical import ClassicalAMG
from mcprecond.multigrid.hierarchy import MOST_DENSE
from mcprecond.multigrid.named_smoothers import POLYNOMIALS, choose_smoother
from mcprecond.multigrid.setup import FALL
from mcprecond.multigrid.smoothed_aggregation import SmoothedAggregation
from mcprecond.multigrid.splitting import THETA
from mcprecond.multigrid.units import MOST_CONTRAST
from mcprecond.preconditioners import MulticolorGS, MulticolorSGS
from mcprecond.preconditioners.gauss_seidel import LARGEST_BLOCK

#: The smoothers whose sweeps converge on any number of ranks, and the cycles.
FOR_RANKS = ("auto", "gauss_seidel", "sgs", "jacobi", "chebyshev")
CYCLES = ("V", "W")
#: The default of max_levels for aggregates (False) and for points (True), the same as on one device.
MAX_LEVELS = {False: 10, True: 25}
#: By default every rank stores all rows of levels with at most so many unknowns: there messages between ranks are
#: expected to take longer than the work that they save.
MAX_WHOLE = {"cpu": 2_000, "gpu": 50_000}


class Hierarchy:
    """The levels of a distributed matrix, and cycles over them.

    Parameters
    ----------
    rows : Rows
        The rows of this rank.
    B : array, shape (n, k), or None
        This rank's rows of the near-null-space candidates; by default one constant for each unknown of a node.
    by_points : bool
        Whether to coarsen by points, as classical multigrid does, in place of aggregates; without B, and with one
        unknown to a node.
    max_whole : int, optional
        The first level of so many unknowns or fewer, and all levels below, are on all ranks alike, as one process has
        them; by default 2,000 on CPUs and 50,000 on GPUs.
    block_size, theta, smoother, coloring, presweeps, postsweeps, cycle, max_levels, max_coarse, dtype
        As for `mcprecond.SmoothedAggregation`, or for `mcprecond.ClassicalAMG` if `by_points` is True.

    Attributes
    ----------
    rows : list of Rows
        The rows of this rank on the levels that ranks share, the finest one first, and on the first level that every
        rank has as a whole.
    steps : list of Step
        The steps from each of these levels to the next one.
    cycle : CycleAcross
    by_points : bool
    symmetric : bool
        Whether a cycle is a symmetric operator.

    Raises
    ------
    TypeError, ValueError
        On all ranks: as `mcprecond.SmoothedAggregation`, or if the numbers of PETSc are complex.
    """

    def __init__(
        self,
        rows: Rows,
        B: Any = None,
        *,
        by_points: bool = False,
        block_size: int = 1,
        theta: float | None = None,
        smoother: str = "auto",
        coloring: str = "auto",
        presweeps: int = 1,
        postsweeps: int = 1,
        cycle: str = "V",
        max_levels: int | None = None,
        max_coarse: int | None = None,
        max_whole: int | None = None,
        dtype: Any = None,
    ) -> None:
        block_size = integer(block_size, "block_size", 1, LARGEST_BLOCK)
        theta = None if theta is None else real(theta, "theta", 0, 1)
        twice = one_of(cycle, "cycle", CYCLES) == "W"
        self.smoother = choose_smoother(one_of(smoother, "smoother", FOR_RANKS), coloring)
        presweeps, postsweeps = integer(presweeps, "presweeps", 1), integer(postsweeps, "postsweeps", 1)
        self.symmetric, self.by_points = presweeps == postsweeps, by_points
        max_levels = integer(MAX_LEVELS[by_points] if max_levels is None else max_levels, "max_levels", 1)
        backend, ranks = rows.backend, rows.ranks
        self.backend, self.ranks, device = backend, ranks, backend.name
        max_coarse = integer(MAX_COARSE[device] if max_coarse is None else max_coarse, "max_coarse", 0, MOST_DENSE)
        max_whole = integer(MAX_WHOLE[device] if max_whole is None else max_whole, "max_whole", 0)
        self._sweeps: dict[str, Any] = {"coloring": coloring, "dtype": dtype}
        stored = stored_dtype(dtype, rows.dtype)
        if ranks.sum(rows.n % block_size):
            raise ValueError(f"block_size {block_size} does not divide the numbers of rows of all ranks")
        refuse_unfit(rows)
        is_alone = ranks.comm.size == 1
        if B is not None:
            if ranks.sum(int(B.shape[1] > LARGEST_BLOCK or not np.isfinite(B).all())):
                raise ValueError(f"the near null space must have {LARGEST_BLOCK} vectors at most, of finite numbers")
            B = backend.xp.ascontiguousarray(backend.xp.asarray(B, dtype=rows.dtype))
        elif not is_alone and not by_points:
            B = backend.xp.tile(backend.xp.eye(block_size, dtype=rows.dtype), (rows.n // block_size, 1))
        self.rows, self.steps, self.block_sizes = [rows], list[Step](), [block_size]
        points = PointsCoarsening(rows, THETA if theta is None else theta) if by_points else None
        while not is_alone and rows.size > max(max_coarse, max_whole) and len(self.rows) < max_levels:
            step = points.new_step(rows) if points else new_step(rows, B, self.block_sizes[-1], self._limit(theta))
            if step is None:
                break
            self.steps.append(step)
            rows, B = step.compute(rows, len(self.steps)), step.B
            self.rows.append(rows)
            self.block_sizes.append(1 if B is None else B.shape[1])
        if dtype is None and self.smoother in POLYNOMIALS and not has_contrasts(self.rows[0]):
            stored = single(stored)
        whole_below = is_alone or rows.size <= max(max_coarse, max_whole, MOST_DENSE)
        levels = self._levels(self.rows[: len(self.rows) - whole_below], stored, twice=twice)
        whole = None
        if whole_below:
            of_process = self._sweeps | {
                **{"smoother": smoother, "presweeps": presweeps, "postsweeps": postsweeps, "cycle": cycle},
                **{"max_levels": max_levels - len(self.steps), "max_coarse": max_coarse},
                "theta": theta if by_points else self._limit(theta),
            }
            if not by_points:
                of_process["B"] = B if is_alone else ranks.gather(B)
                of_process["block_size"] = self.block_sizes[-1]
            new = partial(ClassicalAMG if by_points else SmoothedAggregation, **of_process)
            whole = Whole(rows, new, self._read_above(len(self.steps)))
        for number, step in enumerate(self.steps):
            levels[number].connect(step, levels[number + 1] if number + 1 < len(levels) else whole, stored)
        self.cycle = CycleAcross(ranks, levels, whole, presweeps, postsweeps, twice=twice)
        self._captured: dict[tuple[int, ...], Any] = {}

    def _limit(self, theta: float | None) -> float | None:
        """The limit of strength of the next step by aggregates."""
        return None if theta is None else theta * FALL ** len(self.steps)

    def _levels(self, shared: list[Rows], stored: Any, *, twice: bool) -> list[LevelAcross]:
        """The levels that ranks share."""
        levels = []
        for number, rows in enumerate(shared):
            dtype = rows.dtype if number == 0 or self.smoother not in POLYNOMIALS else stored
            in_products = stored if self.smoother in POLYNOMIALS else dtype
            if number < len(self.steps):
                around, reach = self.steps[number].around, self.steps[number].reach
            else:
                around, reach = Overlap(rows, self.block_sizes[number]), 0
            A = MatrixAround(around, reach + 2, self._read_above(number), dtype, in_products)
            levels.append(LevelAcross(A, self._smoother_of(A, rows, self.block_sizes[number]), twice=twice))
        return levels

    def _read_above(self, number: int) -> Any:
        """The global numbers of the unknowns of other ranks that the prolongator to the next finer level reads."""
        return self.steps[number - 1].numbers if number else np.empty(0, np.int64)

    def _smoother_of(self, A: MatrixAround, rows: Rows, block_size: int) -> SmootherAcross:
        if self.smoother in POLYNOMIALS:
            return PolynomialAcross(A, POLYNOMIALS[self.smoother])
        damped, arguments = rows.damped(), self._sweeps | {"block_size": block_size}
        if self.smoother == "sgs":
            M = MulticolorSGS(damped, **arguments)
            return SweepsAcross(A, M, M)
        return SweepsAcross(A, *(MulticolorGS(damped, sweep=sweep, **arguments) for sweep in ("forward", "backward")))

    def update(self, rows: Rows) -> None:
        """Take new values of a matrix with the same pattern: aggregates, tentative prolongators and colorings stay.

        Raises
        ------
        PatternChangedError
            On all ranks, if the pattern differs on one of them.
        ValueError
            As the constructor.
        """
        before = self.rows[0]
        if self.ranks.sum(rows.first != before.first or not all(map(are_equal, rows.pattern, before.pattern))):
            raise PatternChangedError("A has another pattern than before; build a new object for a new pattern")
        refuse_unfit(rows)
        self.rows = [rows]
        for number, step in enumerate(self.steps, start=1):
            self.rows.append(step.compute(self.rows[-1], number))
        self.cycle.update(self.steps, self.rows)
        self._captured = {}

    def apply(self, x: Any, y: Any) -> None:
        """One cycle, of vectors of PETSc. Collective."""
        if self.backend.name == "gpu" and petsc_memory.is_on_gpu(x) and petsc_memory.is_on_gpu(y):
            with petsc_memory.addresses_of((x, "r"), (y, "w")) as addresses, petsc_memory.stream():
                (self._captured.get(addresses) or self._capture(x, y, addresses))()
        else:
            found = self.backend.xp.empty(y.getLocalSize(), petsc_memory.scalar_type())
            self.cycle.enqueue(self.backend.xp.asarray(x.array_r), found)
            y.setArray(self.backend.to_host(found))

    def _capture(self, x: Any, y: Any, addresses: tuple[int, ...]) -> Any:
        """The launches of a cycle for vectors at two addresses: solvers use few vectors."""
        if len(self._captured) == petsc_memory.MOST_CAPTURED:
            self._captured.clear()
        run = partial(self.cycle.enqueue, *map(petsc_memory.array_of, (x, y), addresses))
        run()  # which compiles what it needs
        self._captured[addresses] = self.backend.repeatable(run) if self.cycle.captures else run
        return self._captured[addresses]

    @property
    def sizes(self) -> list[tuple[int, int]]:
        """The unknowns and the entries of each level, over all ranks. Collective."""
        whole = self.cycle.whole
        shared = self.rows if whole is None else self.rows[:-1]
        sizes = [(rows.size, self.ranks.sum(rows.entries)) for rows in shared]
        of_whole = [] if whole is None else whole.M.levels
        return sizes + [(level.A.shape[0], int(level.A.indices.size)) for level in of_whole]

    def __str__(self) -> str:
        sizes = self.sizes
        complexity = sum(size[1] for size in sizes) / max(sizes[0][1], 1)
        lines = [f"levels {len(sizes)}{self.by_points * ' by points'}, operator complexity {complexity:.3g}"]
        for number, (unknowns, entries) in enumerate(sizes):
            lines.append(f"level {number}: unknowns {unknowns}, entries {entries}")
        return "\n".join(lines)


def has_contrasts(rows: Rows) -> bool:
    """Whether entries of the diagonal differ so much that levels should have the dtype of A. Collective."""
    diagonal, some = rows.diagonal, rows.n > 0
    smallest = rows.ranks.least(float(diagonal.min()) if some else np.inf)
    largest = -rows.ranks.least(-float(diagonal.max()) if some else np.inf)
    return bool(largest > MOST_CONTRAST * smallest)


def are_equal(a: Any, b: Any) -> bool:
    """Whether two arrays have the same shape and values."""
    return a.shape == b.shape and not any_of(a != b)


def refuse_unfit(rows: Rows) -> None:
    """Raise, on all ranks, unless the matrix is real, finite and symmetric up to rounding with a positive diagonal."""
    if rows.dtype.kind == "c":
        raise TypeError("PETSc has complex numbers; smoothed aggregation across ranks needs real ones")
    if not rows.is_finite:
        raise ValueError("A holds NaN or infinity; every value must be finite")
    bad = rows.backend.xp.flatnonzero(~(rows.diagonal > 0))
    row = rows.ranks.least(rows.first + int(bad[0]) if len(bad) else rows.size)
    if row < rows.size:
        raise ValueError(
            f"A has no positive diagonal entry in row {row}; smoothed aggregation needs a positive definite A"
        )
    if not rows.is_symmetric:
        raise ValueError("A is not symmetric; smoothed aggregation needs a symmetric A; use ILU0 with gmres or bcgs")
