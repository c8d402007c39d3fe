"""Smoothed aggregation across the ranks of PETSc: this package finds the levels, and PETSc's PCMG cycles over them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from mcprecond.backends import get_backend
from mcprecond.backends.arguments import integer, one_of, real
from mcprecond.interop import petsc_memory
from mcprecond.interop.petsc_coarsening import Step, matrix_of, new_step, set_values
from mcprecond.interop.petsc_cycle import CycleAcross, cycle_of
from mcprecond.interop.petsc_overlap import Rows, over
from mcprecond.matrix import PatternChangedError, canonical_csr
from mcprecond.multigrid.built import MAX_COARSE
from mcprecond.multigrid.hierarchy import MOST_DENSE
from mcprecond.multigrid.named_smoothers import POLYNOMIALS, SMOOTHERS, choose_smoother
from mcprecond.multigrid.setup import FALL
from mcprecond.preconditioners.gauss_seidel import LARGEST_BLOCK

#: PETSc has no name for the smoother of matrices that are not symmetric.
FOR_SYMMETRIC = tuple(name for name in SMOOTHERS if name != "damped_jacobi")
#: PCMG has no K cycle.
CYCLES = ("V", "W")
#: The polynomials of `mcprecond.multigrid.polynomial`, as options of PETSc. No diagonal entry is negative; where PETSc
#: 3.26 looks for such on several GPUs, it loses the sums of rows.
POLYNOMIAL = {
    "ksp_chebyshev_kind": "fourth",
    "ksp_chebyshev_eigenvalues": "0.1,1",
    "pc_jacobi_type": "rowl1",
    "pc_jacobi_fixdiagonal": "0",
}
#: Of the coarsest level, which may be singular.
FACTORS = {"redundant_pc_factor_shift_type": "inblocks"}


class Hierarchy:
    """The levels of a distributed matrix, and a PCMG over them.

    Parameters
    ----------
    A : PETSc.Mat
        Of type AIJ, assembled.
    B : array, shape (n, k), or None
        This rank's rows of the near-null-space candidates; by default one constant for each unknown of a node.
    new_smoother : function
        Called as ``new_smoother(name, **arguments)``; returns the context of a PC of type python.
    prefix : str
        Of the options of the PCMG.
    block_size, theta, smoother, coloring, presweeps, postsweeps, cycle, max_levels, max_coarse, dtype, device
        As in `mcprecond.SmoothedAggregation`. The dtype is that of sweeps; vectors and matrices are PETSc's.

    Attributes
    ----------
    mats : list of PETSc.Mat
        Those of the levels, the finest one first.
    steps : list of Step
        From each level to the next one.
    mg : PETSc.PC
        Of type mg.
    symmetric : bool
        Whether a cycle is a symmetric operator.

    Raises
    ------
    TypeError, ValueError
        On all ranks: as `mcprecond.SmoothedAggregation`, or if the numbers of PETSc are complex.
    """

    def __init__(
        self,
        A: Any,
        B: Any,
        new_smoother: Callable[..., Any],
        prefix: str = "",
        *,
        block_size: int = 1,
        theta: float | None = None,
        smoother: str = "auto",
        coloring: str = "auto",
        presweeps: int = 1,
        postsweeps: int = 1,
        cycle: str = "V",
        max_levels: int = 10,
        max_coarse: int | None = None,
        dtype: Any = None,
        device: str = "cpu",
    ) -> None:
        block_size = integer(block_size, "block_size", 1, LARGEST_BLOCK)
        theta = None if theta is None else real(theta, "theta", 0, 1)
        self.cycle = one_of(cycle, "cycle", CYCLES)
        self.smoother = choose_smoother(one_of(smoother, "smoother", FOR_SYMMETRIC), coloring)
        self.presweeps, self.postsweeps = integer(presweeps, "presweeps", 1), integer(postsweeps, "postsweeps", 1)
        self.symmetric = self.presweeps == self.postsweeps
        max_levels = integer(max_levels, "max_levels", 1)
        backend = self.backend = get_backend(one_of(device, "device", tuple(MAX_COARSE)))
        max_coarse = integer(MAX_COARSE[device] if max_coarse is None else max_coarse, "max_coarse", 0, MOST_DENSE)
        given = {"coloring": coloring, "dtype": dtype, "device": device}
        self.arguments = {name: value for name, value in given.items() if value is not None}
        self.new_smoother, self.prefix = new_smoother, prefix
        if petsc_memory.scalar_type().kind == "c":
            raise TypeError("PETSc has complex numbers; smoothed aggregation across ranks needs real ones")
        rows = Rows.of(A, backend)
        if over(A, "sum", rows.n % block_size):
            raise ValueError(f"block_size {block_size} does not divide the numbers of rows of all ranks")
        refuse_unfit(rows)
        if B is None:
            B = np.tile(np.eye(block_size), (rows.n // block_size, 1))
        if B.shape[1] > LARGEST_BLOCK or over(A, "sum", np.count_nonzero(~np.isfinite(B))):
            raise ValueError(f"the near null space must have {LARGEST_BLOCK} vectors at most, of finite numbers")
        B, self.pattern = backend.xp.asarray(np.ascontiguousarray(B.astype(rows.own.dtype))), rows.pattern
        self.first = rows.first
        self.mats, self.steps, self.block_sizes = [A], list[Step](), [block_size]
        #: What is swept on each level: see `Rows.damp`.
        self.swept: list[Any] = [self._swept(rows)]
        all_rows = [rows]
        while self.mats[-1].getSize()[0] > max_coarse and len(self.mats) < max_levels:
            limit = None if theta is None else theta * FALL ** len(self.steps)
            step = new_step(rows, B, self.block_sizes[-1], limit)
            if step is None:
                break
            self.steps.append(step)
            all_rows.append(step.compute(rows, len(self.steps)))
            rows, B = all_rows[-1], step.B
            self.mats.append(rows.A)
            self.block_sizes.append(B.shape[1])
            self.swept.append(self._swept(rows))
        #: Polynomials are applied by cycles of this package, and sweeps by those of PETSc.
        self.own_cycle: CycleAcross | None = None
        self.mg: Any = None
        if self.smoother in POLYNOMIALS:
            sweeps = POLYNOMIALS[self.smoother], self.presweeps, self.postsweeps
            self.own_cycle = cycle_of(self.steps, all_rows, *sweeps, self.cycle == "W", MOST_DENSE)
        else:
            self._open()

    def update(self, A: Any) -> None:
        """Take new values of a matrix with the same pattern: aggregates, tentative prolongators and colorings stay.

        Raises
        ------
        PatternChangedError
            On all ranks, if the pattern differs on one of them.
        ValueError
            As the constructor.
        """
        rows = Rows.of(A, self.backend)
        if over(A, "sum", rows.first != self.first or not all(map(are_equal, rows.pattern, self.pattern))):
            raise PatternChangedError("A has another pattern than before; build a new object for a new pattern")
        refuse_unfit(rows)
        self.mats[0] = A
        all_rows = [rows]
        self._swept(rows, self.swept[0])
        for number, step in enumerate(self.steps, start=1):
            all_rows.append(step.compute(all_rows[-1], number))
            self._swept(all_rows[-1], self.swept[number])
        if self.own_cycle is not None:
            self.own_cycle.update(self.steps, all_rows)
        else:
            self._give_matrices()
            self.mg.setUp()

    def _swept(self, rows: Rows, before: Any = None) -> Any:
        """What sweeps take for the rows of a level; None for polynomials, which take the matrix itself."""
        if self.smoother in POLYNOMIALS:
            return None
        own = canonical_csr(rows.damp(), rows.own.indices, rows.own.indptr, rows.own.shape, self.backend)
        if before is None:
            return matrix_of(rows.A, rows.A.getSizes(), own, None, rows.ghosts[:0], self.backend)
        set_values(before, own.data, None)
        return before

    def _open(self) -> None:
        """Make the PCMG. It numbers levels from the coarsest one on."""
        from petsc4py import PETSc

        self.mg = PETSc.PC().create(self.mats[0].getComm())
        self.mg.setOptionsPrefix(self.prefix)
        self.mg.setType("mg")
        self.mg.setMGLevels(len(self.mats))
        self.mg.setMGCycleType(getattr(PETSc.PC.MGCycleType, self.cycle))
        #: The solver of a level, and the number of that, from the finest one on.
        self.smoothers: list[tuple[Any, int]] = []
        for number, step in enumerate(self.steps):
            level = len(self.steps) - number
            self.mg.setMGInterpolation(level, step.P)
            if self.smoother == "gauss_seidel" or self.presweeps != self.postsweeps:
                self._smooth(self.mg.getMGSmootherDown(level), number, "forward", self.presweeps)
                self._smooth(self.mg.getMGSmootherUp(level), number, "backward", self.postsweeps)
            else:
                self._smooth(self.mg.getMGSmoother(level), number, "symmetric", self.presweeps)
        coarsest = self.mg.getMGCoarseSolve()
        if self.mats[-1].getSize()[0] <= MOST_DENSE:
            coarsest.setType("preonly")
            coarsest.getPC().setType("redundant")
            self.smoothers.append((coarsest, len(self.steps)))
        else:
            self._smooth(coarsest, len(self.steps), "symmetric", 2)
        self._give_matrices()
        with (
            defaults(f"{self.prefix}mg_levels_", POLYNOMIAL),
            defaults(f"{self.prefix}mg_coarse_", POLYNOMIAL | FACTORS),
        ):
            self.mg.setFromOptions()
            self.mg.setUp()

    def _smooth(self, ksp: Any, number: int, sweep: str, sweeps: int) -> None:
        """Make a KSP smooth on a level."""
        self.smoothers.append((ksp, number))
        if self.smoother in POLYNOMIALS:
            ksp.setType("chebyshev")
            ksp.setTolerances(max_it=sweeps * POLYNOMIALS[self.smoother])
            ksp.getPC().setType("jacobi")
            return
        ksp.setType("richardson")
        ksp.setTolerances(max_it=sweeps)
        arguments = self.arguments | {"block_size": self.block_sizes[number]}
        if self.smoother == "dilu":
            name = "MulticolorDILU"
            del arguments["block_size"]
        elif self.smoother == "sgs" or sweep == "symmetric":
            name = "MulticolorSGS"
        else:
            name, arguments["sweep"] = "MulticolorGS", sweep
        ksp.getPC().setType("python")
        ksp.getPC().setPythonContext(self.new_smoother(name, **arguments))

    def _give_matrices(self) -> None:
        """Tell the PCMG and its smoothers the matrices."""
        self.mg.setOperators(self.mats[0])
        for ksp, number in self.smoothers:
            A, swept = self.mats[number], self.swept[number]
            ksp.setOperators(A, A if swept is None or ksp.getType() == "preonly" else swept)

    def apply(self, x: Any, y: Any) -> None:
        """One cycle, of vectors of PETSc. Collective."""
        if self.own_cycle is None:
            self.mg.apply(x, y)
        elif self.backend.name == "gpu" and petsc_memory.is_on_gpu(x) and petsc_memory.is_on_gpu(y):
            with petsc_memory.addresses_of((x, "r"), (y, "w")) as addresses, petsc_memory.stream():
                self.own_cycle.apply(*map(petsc_memory.array_of, (x, y), addresses))
        else:
            found = self.backend.xp.empty(y.getLocalSize(), petsc_memory.scalar_type())
            self.own_cycle.apply(self.backend.xp.asarray(x.array_r), found)
            y.setArray(self.backend.to_host(found))

    def destroy(self) -> None:
        """Free the PCMG and the matrices that belong to it."""
        if self.mg is not None:
            self.mg.destroy()
        for step in self.steps:
            step.destroy()
        for swept in self.swept:
            if swept is not None:
                swept.destroy()

    @property
    def entries(self) -> list[int]:
        """Of the matrices of the levels, over all ranks."""
        from petsc4py import PETSc

        return [int(A.getInfo(PETSc.Mat.InfoType.GLOBAL_SUM)["nz_used"]) for A in self.mats]

    def __str__(self) -> str:
        entries = self.entries
        lines = [f"levels {len(self.mats)}, operator complexity {sum(entries) / max(entries[0], 1):.3g}"]
        for number, (A, stored) in enumerate(zip(self.mats, entries, strict=True)):
            lines.append(f"level {number}: unknowns {A.getSize()[0]}, entries {stored}")
        return "\n".join(lines)


def are_equal(a: Any, b: Any) -> bool:
    """Whether two arrays have the same shape and values."""
    return a.shape == b.shape and bool((a == b).all())


def refuse_unfit(rows: Rows) -> None:
    """Raise, on all ranks, unless the matrix is real, finite and symmetric up to rounding with a positive diagonal."""
    A, xp, values = rows.A, rows.backend.xp, (rows.own.data, rows.other.data)
    if over(A, "sum", sum(int(xp.count_nonzero(~xp.isfinite(each))) for each in values)):
        raise ValueError("A holds NaN or infinity; every value must be finite")
    bad, n = xp.flatnonzero(~(rows.diagonal > 0)), A.getSize()[0]
    row = int(over(A, "min", rows.first + int(bad[0]) if len(bad) else n))
    if row < n:
        raise ValueError(
            f"A has no positive diagonal entry in row {row}; smoothed aggregation needs a positive definite A"
        )
    if not is_symmetric(rows):
        raise ValueError("A is not symmetric; smoothed aggregation needs a symmetric A; use ILU0 with gmres or bcgs")


def is_symmetric(rows: Rows) -> bool:
    """Whether ``x^T A y`` is ``y^T A x`` for random vectors, up to rounding. They are scaled as the diagonal of A is.

    An entry that differs from that across by more than roundings do makes both differ, with certainty but for rounding.
    """
    A, xp, scales = rows.A, rows.backend.xp, rows.diagonal**-0.5
    rng = xp.random.default_rng(rows.first)
    x, y, z = (A.createVecLeft() for _ in range(3))
    for v in (x, y):
        petsc_memory.take_numbers(v, (2 * rng.random(rows.n) - 1) * scales)
    products = []
    for v, w in ((x, y), (y, x)):
        A.mult(w, z)
        products.append(v.dot(z))
    entries = over(A, "sum", rows.own.nnz + rows.other.nnz)
    for v in (x, y, z):
        v.destroy()
    return bool(abs(products[0] - products[1]) <= np.sqrt(np.finfo(rows.own.dtype).eps * entries))


@contextmanager
def defaults(prefix: str, options: dict[str, str]) -> Iterator[None]:
    """Let these be options of PETSc where there are no others with that prefix."""
    from petsc4py import PETSc

    database = PETSc.Options(prefix)
    added = {name: value for name, value in options.items() if not database.hasName(name)}
    for name, value in added.items():
        database.setValue(name, value)
    try:
        yield
    finally:
        for name in added:
            database.delValue(name)
