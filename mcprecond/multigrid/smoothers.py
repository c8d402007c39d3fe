"""Smoothers: what a level does before and after the correction from the coarser one, behind one interface."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from mcprecond.linalg.csr import product_with
from mcprecond.linalg.operator import Operator, operator_for
from mcprecond.linalg.sums import norm
from mcprecond.linalg.vectors import KERNELS
from mcprecond.matrix import AdmittedMatrix
from mcprecond.preconditioners import Preconditioner
from mcprecond.preconditioners.setup import color_and_store
from mcprecond.sweeps.relaxation import Relaxation
from mcprecond.sweeps.substitution import Chunks


class Smoother(Operator):
    """A smoother of A x = b on one level. As an operator it maps b to x after one sweep from zero."""

    #: Whether the level has eliminated points, so that `enqueue` completes the correction and there is no sweep.
    is_exact = False
    #: The number of colors, if there are any.
    n_colors: int | None = None
    #: Memory of what an application reads, in bytes.
    nbytes: int

    @property
    @abstractmethod
    def description(self) -> str:
        """What it is, in a few words."""

    @abstractmethod
    def before(self, state: Any, b: Any, x: Any, r: Any, sweeps: int) -> None:
        """Make `sweeps` sweeps from zero, at least one, and compute the residual r = b - A x."""

    @abstractmethod
    def after(self, state: Any, b: Any, x: Any, sweeps: int) -> None:
        """Make `sweeps` sweeps from x: the adjoints of those of `before`, in the opposite order."""

    @abstractmethod
    def residual(self, state: Any, b: Any, x: Any, r: Any) -> None:
        """r = b - A x."""

    def spare(self, state: Any) -> Any:
        """Return a vector of a state that is free but within sweeps, so that `before` and `residual` may write r there;
        None if there is none.
        """
        return None

    @abstractmethod
    def update(self, matrix: AdmittedMatrix) -> None:
        """Take new values from a matrix with the same pattern."""

    def adjoint(self) -> Smoother:
        """Return the smoother of the adjoint system, whose sweeps are the adjoints of these, in the opposite order."""
        raise TypeError(f"the adjoint of M is not available with this smoother ({self.description})")


class GaussSeidel(Smoother):
    """Multicolor Gauss-Seidel: forward sweeps before, backward sweeps after; or symmetric ones both times.

    The first forward sweep starts from zero and reads the lower triangle only; the residual after it is that of the
    upper one.
    """

    def __init__(self, matrix: AdmittedMatrix, coloring: Any, block_size: int, *, both_ways: bool = False) -> None:
        self.shape, self.dtype, self._both_ways = matrix.shape, matrix.dtype, both_ways
        self.blocks, _ = color_and_store(matrix, coloring, block_size=block_size)
        self.blocks.refuse_singular_diagonal()
        self.n_colors = self.blocks.n_colors

    def new_state(self, columns: int = 1) -> Chunks:
        return Chunks(Relaxation, self.blocks, columns)

    def enqueue(self, state: Chunks, b: Any, x: Any) -> None:
        for relaxation, own_b, own_x in state.of(b, x):
            self._before(relaxation, own_b, own_x, 1)

    def before(self, state: Chunks, b: Any, x: Any, r: Any, sweeps: int) -> None:
        for relaxation, own_b, own_x, own_r in state.of(b, x, r):
            self._before(relaxation, own_b, own_x, sweeps).residual(own_b, own_r)

    def _before(self, state: Relaxation, b: Any, x: Any, sweeps: int) -> Any:
        iterate = state.start_from_zero(b, x, "forward")
        for sweep in range(sweeps):
            if sweep:
                iterate.sweep(b, "forward")
            if self._both_ways:
                iterate.sweep(b, "backward")
        return iterate

    def after(self, state: Chunks, b: Any, x: Any, sweeps: int) -> None:
        for relaxation, own_b, own_x in state.of(b, x):
            iterate = relaxation.start(own_x)
            for _ in range(sweeps):
                iterate.sweep(own_b, "symmetric" if self._both_ways else "backward")

    def residual(self, state: Chunks, b: Any, x: Any, r: Any) -> None:
        for relaxation, own_b, own_x, own_r in state.of(b, x, r):
            relaxation.start(own_x).residual(own_b, own_r)

    def update(self, matrix: AdmittedMatrix) -> None:
        self.blocks.take(matrix)
        self.blocks.refuse_singular_diagonal()
        self.blocks.is_halfway = False

    @property
    def description(self) -> str:
        return f"{'symmetric ' if self._both_ways else ''}Gauss-Seidel, {self.n_colors} colors"

    @property
    def nbytes(self) -> int:  # type: ignore[override]
        return self.blocks.nbytes


#: Steps of the power method, which finds less than the spectral radius: as much as this times more is expected.
POWER_STEPS, MARGIN = 12, 1.1


class Correction(Smoother):
    """``x += w M (b - A x)`` with any operator M; for a symmetric A with its adjoint after the correction from the
    coarser level.

    The factor w is below 1 where eigenvalues of M A are so large that the step would not converge.

    Parameters
    ----------
    matrix : AdmittedMatrix
    build : function of a sparse matrix
        Returns M: an `Operator`, as the preconditioners of this package are, or anything that has ``@``. It is called
        again for new values; but M is updated if the function is one of these classes, or a `functools.partial` of one.
    is_symmetric : bool
        Whether the matrix is.
    """

    def __init__(self, matrix: AdmittedMatrix, build: Callable[[Any], Any], is_symmetric: bool = True) -> None:
        self.shape, self.dtype, self._backend, self._build = matrix.shape, matrix.dtype, matrix.backend, build
        self._is_symmetric = is_symmetric
        self.A = product_with(matrix, copies=not matrix.is_ours)
        self._run = matrix.backend.kernels(KERNELS, VALUE=matrix.dtype)
        builder = getattr(build, "func", build)
        self._is_updated = isinstance(builder, type) and issubclass(builder, Preconditioner)
        self._take(build(matrix if self._is_updated else matrix.csr))

    def _take(self, M: Any) -> None:
        if not isinstance(M, Operator) and not hasattr(M, "__matmul__"):
            raise TypeError(f"smoother must be a function that returns an operator, got {type(M).__name__} from it")
        if M.shape != self.shape:
            raise ValueError(f"smoother must return an operator of the shape {self.shape} of its matrix, got {M.shape}")
        self._given, self.M = M, operator_for(M, self.dtype, self._backend)
        self.n_colors, self.captures = getattr(M, "n_colors", None), self.M.captures
        stays = not self._is_symmetric or getattr(M, "symmetric", True)
        self.M_after = self.M if stays else operator_for(M.H, self.dtype, self._backend)
        self.factor = self._convergent_factor()

    def _convergent_factor(self) -> float:
        """1, or a smaller factor that makes the largest eigenvalue of M A about 4/3 where it is above 5/3."""
        xp, n = self._backend.xp, self.shape[0]
        if n == 0:
            return 1.0
        v = xp.asarray(np.random.default_rng(0).uniform(-1, 1, n).astype(self.dtype))
        z, Av, of_A, of_M = xp.empty_like(v), xp.empty_like(v), self.A.new_state(), self.M.new_state()
        size = norm(v, self._backend)
        for _ in range(POWER_STEPS):  # the host waits for the last norm only
            v = v / xp.where(size > 0, size, 1).astype(v.real.dtype)
            self.A.enqueue(of_A, v, Av)
            self.M.enqueue(of_M, Av, z)
            size, v = norm(z, self._backend), z
        radius = MARGIN * float(size)
        return 1.0 if radius <= 5 / 3 else 4 / (3 * radius)

    def new_state(self, columns: int = 1) -> tuple[Any, ...]:
        """See `Operator`: those of A and of both M, a residual and a correction."""
        xp, n = self._backend.xp, self.shape[0]
        operators, shape = (self.A, self.M, self.M_after), (n, columns) if columns > 1 else n
        states = (operator.new_state(columns) for operator in operators)
        return *states, xp.empty(shape, self.dtype), xp.empty(shape, self.dtype)

    def enqueue(self, state: Any, b: Any, x: Any) -> None:
        self.M.enqueue(state[1], b, x)
        if self.factor != 1:
            x *= self.factor

    def _correct(self, M: Operator, of_M: Any, state: Any, rest: Any, x: Any) -> None:
        """x += w M rest."""
        M.enqueue(of_M, rest, state[4])
        self._run.add(x.size, self.factor, state[4].reshape(-1), x.reshape(-1))

    def before(self, state: Any, b: Any, x: Any, r: Any, sweeps: int) -> None:
        self.enqueue(state, b, x)
        self.residual(state, b, x, r)
        for _ in range(sweeps - 1):
            self._correct(self.M, state[1], state, r, x)
            self.residual(state, b, x, r)

    def after(self, state: Any, b: Any, x: Any, sweeps: int) -> None:
        for _ in range(sweeps):
            self.residual(state, b, x, state[3])
            self._correct(self.M_after, state[2], state, state[3], x)

    def residual(self, state: Any, b: Any, x: Any, r: Any) -> None:
        self.A.enqueue_residual(state[0], b, x, r)

    def spare(self, state: Any) -> Any:
        return state[3]

    def update(self, matrix: AdmittedMatrix) -> None:
        self.A.replace(matrix.csr)
        if self._is_updated:
            self._given.update(matrix.csr)
        self._take(self._given if self._is_updated else self._build(matrix.csr))

    @property
    def description(self) -> str:
        return f"{type(self._given).__name__}, damped by {self.factor:.3g}"

    @property
    def nbytes(self) -> int:  # type: ignore[override]
        return self.A.nbytes + getattr(self._given, "nbytes", 0)
