"""Smoothers: what a level does before and after the correction from the coarser one, behind one interface."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from mcprecond.matrix import AdmittedMatrix
from mcprecond.preconditioners.choice import chosen
from mcprecond.preconditioners.sweeps import Sweeps
from mcprecond.reordering import ColorBlocks, NodeBlocks


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
