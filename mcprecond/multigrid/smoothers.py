"""Smoothers: what a level does before and after the correction from the coarser one, behind one interface."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from mcprecond.matrix import AdmittedMatrix
from mcprecond.multigrid.cycle import KERNELS
from mcprecond.multigrid.spectral_radius import start_vector
from mcprecond.preconditioners.dilu import MulticolorDILU
from mcprecond.storage import ColorBlocks, NodeBlocks
from mcprecond.sweeps.plan import Sweeps
from mcprecond.tuning.least_time import chosen


class Smoother(ABC):
    """The smoothing of one level, for A x = b. What an application writes is in a state of its own."""

    #: The number of colors, if there are any.
    n_colors: int | None = None

    @abstractmethod
    def new_state(self) -> Any:
        """What an application writes, beside its vectors."""

    @abstractmethod
    def before(self, state: Any, b: Any, x: Any, r: Any, sweeps: int) -> None:
        """So many sweeps from zero: x, and the residual r = b - A x."""

    @abstractmethod
    def after(self, state: Any, b: Any, x: Any, sweeps: int) -> None:
        """So many sweeps from x, each the adjoint of one of those before, in the opposite order."""

    @abstractmethod
    def residual(self, state: Any, b: Any, x: Any, r: Any) -> None:
        """r = b - A x."""

    @abstractmethod
    def update(self, matrix: AdmittedMatrix) -> None:
        """Take new values from a matrix with the same pattern."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Memory of what an application reads, in bytes."""


class GaussSeidel(Smoother):
    """Multicolor Gauss-Seidel: forward sweeps before, backward sweeps after; or symmetric ones both times.

    The first forward sweep starts from zero and reads the lower triangle only; the residual after it is that of the
    upper one.
    """

    def __init__(
        self, matrix: AdmittedMatrix, coloring: Any, block_size: int, dtype: Any, *, symmetric: bool = False
    ) -> None:
        self.symmetric = symmetric
        coloring, _ = chosen(matrix, coloring, block_size)
        self.blocks = (
            ColorBlocks(matrix, coloring, dtype=dtype, divides=True)
            if block_size == 1
            else NodeBlocks(matrix, coloring, block_size=block_size, dtype=dtype)
        )
        self.blocks.refuse_singular_diagonal()
        self.n_colors = self.blocks.n_colors

    def new_state(self) -> Sweeps:
        """See `Smoother`."""
        return Sweeps(self.blocks, relaxes=True)

    def before(self, state: Sweeps, b: Any, x: Any, r: Any, sweeps: int) -> None:
        """See `Smoother`."""
        if sweeps == 0:
            x.fill(0)
            r[...] = b
            return
        state.forget()
        state.solve_triangle(b, x, omega=1.0, scale=1.0, backwards=False)
        for sweep in range(sweeps):
            if sweep:
                state.relax(b, x, omega=1.0, backwards=False)
            if self.symmetric:
                state.relax(b, x, omega=1.0, backwards=True)
        state.residual(b, r, substituted=sweeps == 1 and not self.symmetric)

    def after(self, state: Sweeps, b: Any, x: Any, sweeps: int) -> None:
        """See `Smoother`."""
        if sweeps:
            state.begin(x)
        for _ in range(sweeps):
            if self.symmetric:
                state.relax(b, x, omega=1.0, backwards=False)
            state.relax(b, x, omega=1.0, backwards=True)

    def residual(self, state: Sweeps, b: Any, x: Any, r: Any) -> None:
        """See `Smoother`."""
        state.begin(x)
        state.residual(b, r)

    def update(self, matrix: AdmittedMatrix) -> None:
        """See `Smoother`."""
        self.blocks.update(matrix)
        self.blocks.refuse_singular_diagonal()

    @property
    def nbytes(self) -> int:
        """See `Smoother`."""
        return self.blocks.nbytes


#: Steps of the power method, which finds less than the spectral radius: as much as this times more is expected.
POWER_STEPS, MARGIN = 12, 1.1


class DILU(Smoother):
    """``x += w inv(M) (b - A x)`` with the symmetric M of `MulticolorDILU`, before and after.

    The factor w is below 1 where eigenvalues of inv(M) A are so large that the step would not converge.
    """

    def __init__(self, matrix: AdmittedMatrix, coloring: Any, dtype: Any) -> None:
        self.M = MulticolorDILU(matrix.csr, coloring, dtype=dtype)
        self.n_colors = self.M.n_colors
        self._run = matrix.backend.kernels(KERNELS, VALUE=matrix.dtype, LANES=1)
        self.factor = self._convergent_factor(matrix)

    def _convergent_factor(self, matrix: AdmittedMatrix) -> float:
        """1, or a smaller factor that makes the largest eigenvalue of inv(M) A about 4/3 where it is above 5/3."""
        xp, n, sweeps = self.M.backend.xp, self.M.shape[0], Sweeps(self.M.blocks)
        if n == 0:
            return 1.0
        v, z, norm = start_vector(n, matrix.dtype, self.M.backend), xp.empty(n, matrix.dtype), 0.0
        for _ in range(POWER_STEPS):
            sweeps.solve(matrix.csr @ v, z)
            norm = float(xp.sqrt(xp.sum(abs(z) ** 2) / xp.sum(abs(v) ** 2)))
            v = z / (norm or 1.0)
        radius = MARGIN * norm
        return 1.0 if radius <= 5 / 3 else 4 / (3 * radius)

    def new_state(self) -> tuple[Sweeps, Any, Any]:
        """See `Smoother`: the sweeps, a residual and a correction."""
        xp, blocks = self.M.backend.xp, self.M.blocks
        return Sweeps(blocks), *(xp.empty(self.M.shape[0], self.M.dtype) for _ in range(2))

    def before(self, state: tuple[Sweeps, Any, Any], b: Any, x: Any, r: Any, sweeps: int) -> None:
        """See `Smoother`."""
        if sweeps == 0:
            x.fill(0)
            r[...] = b
            return
        state[0].forget()
        state[0].solve(b, x, scale=self.factor)
        self.after(state, b, x, sweeps - 1)
        self.residual(state, b, x, r)

    def after(self, state: tuple[Sweeps, Any, Any], b: Any, x: Any, sweeps: int) -> None:
        """See `Smoother`."""
        own, r, z = state
        for _ in range(sweeps):
            self.residual(state, b, x, r)
            own.forget()
            own.solve(r, z, scale=self.factor)
            self._run.add(len(x), 1.0, z, x)

    def residual(self, state: tuple[Sweeps, Any, Any], b: Any, x: Any, r: Any) -> None:
        """See `Smoother`."""
        state[0].begin(x)
        state[0].residual(b, r)

    def update(self, matrix: AdmittedMatrix) -> None:
        """See `Smoother`."""
        self.M.update(matrix.csr)
        self.factor = self._convergent_factor(matrix)

    @property
    def nbytes(self) -> int:
        """See `Smoother`."""
        return self.M.nbytes
