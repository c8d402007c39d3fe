"""Preconditioned conjugate gradients with a given M: which form and which iteration fit."""

from __future__ import annotations

import math
from contextlib import ExitStack
from typing import Any

import numpy as np

from mcprecond.backends.arguments import one_of
from mcprecond.backends.inputs import promoted, refuse_not_finite
from mcprecond.linalg.columns import MOST_COLUMNS
from mcprecond.linalg.csr import Csr
from mcprecond.linalg.hermitian import is_hermitian
from mcprecond.linalg.operator import Operator
from mcprecond.linalg.powers import times_power
from mcprecond.matrix import admitted
from mcprecond.preconditioners import Preconditioner
from mcprecond.solvers.cg import ConjugateGradients
from mcprecond.solvers.columns import ColumnsIteration, joined
from mcprecond.solvers.diagnosis import is_unsymmetric
from mcprecond.solvers.eisenstat import EisenstatIteration, eisenstat_incompatibility
from mcprecond.solvers.iteration import Iteration
from mcprecond.solvers.nullspace import Projected, ProjectedColumns, ProjectedConjugateGradients, null_space_basis
from mcprecond.solvers.result import Reason, SolveResult
from mcprecond.solvers.solver import Solver
from mcprecond.tuning.cost_model import ROW_VALUES
from mcprecond.typing import Form, NullSpace

FORMS = ("auto", "plain", "eisenstat")
#: Numbers for each row and column that an iteration of the plain form reads and writes, with sweeps for M.
VALUES_OF_PLAIN = 24


class PreconditionedCG(Solver):
    """CG with M. The arguments are those of `PCG`, and `basis` is that of the null space, where it is known already."""

    most_columns = MOST_COLUMNS

    def __init__(
        self, A: Any, M: Any = None, *, form: Form = "auto", nullspace: NullSpace = None, basis: Any = None
    ) -> None:
        super().__init__(A, M)
        if isinstance(self._M, Preconditioner) and not self._M.symmetric:
            raise ValueError(f"M is not symmetric, which CG needs; {self._M.remedy_for_asymmetry}, or another solver")
        self._form = one_of(form, "form", FORMS)
        self._is_projected, self._basis = nullspace is not None, basis
        if incompatibility := self._incompatibility():
            self._refuse_eisenstat(incompatibility)
            if nullspace is not None and basis is None:
                if self.A_is_operator:
                    raise TypeError("nullspace needs a sparse or dense A, got an operator")
                self._basis = null_space_basis(nullspace, self.matrix)
            elif not self.A_is_operator:
                self.matrix  # noqa: B018 - checked now
        #: For another solver of the same system.
        self.options: dict[str, Any] = {"form": form, "nullspace": nullspace, "basis": self._basis}

    def run(self, b: Any, x0: Any, *limits: Any, **hooks: Any) -> SolveResult[Any]:
        """See `Solver`. Systems with several right-hand sides are solved one after the other in Eisenstat's form where
        that reads and writes fewer bytes.
        """
        b = self._shaped(b, "b")
        if b.ndim == 1 or any(hooks.values()) or not self._goes_one_by_one(b, x0):
            return super().run(b, x0, *limits, **hooks)
        refuse_not_finite(b, self._backend)
        guess, results = self._guess(x0, b), []
        if guess is not None:
            refuse_not_finite(guess, self._backend, "x0")
        for column in range(b.shape[1]):
            own = None if guess is None else guess[:, column].copy()
            results.append(super().run(b[:, column].copy(), own, *limits))
        setup, solve = (sum(getattr(result, f"{part}_seconds") for result in results) for part in ("setup", "solve"))
        return joined(results, self._backend, setup, solve)

    def _goes_one_by_one(self, b: Any, x0: Any) -> bool:
        """Whether Eisenstat's form, for one column after the other, reads and writes fewer bytes than the plain form
        for all at once: the first reads A once for each column, the second once and for each pass of M.
        """
        if self._form != "auto" or self._incompatibility(
            promoted(self._A.dtype, b.dtype, getattr(x0, "dtype", b.dtype))
        ):
            return False
        (n, columns), item = b.shape, self._A.dtype.itemsize
        matrix, vector = self._A.indices.size * (item + 4), n * item
        passes = 1 + math.ceil(columns / self._M.columns_at_once)
        rest = 1 - 1 / max(self._M.n_colors, 2)  # of the rows, which Eisenstat's form does not keep apart
        one_by_one = columns * (matrix + ROW_VALUES * vector * rest)
        return one_by_one < passes * matrix + VALUES_OF_PLAIN * columns * vector

    def _borrow(self, dtype: np.dtype[Any], columns: int) -> tuple[tuple[Any, ...], Iteration, ExitStack, int]:
        """See `Solver`: in Eisenstat's form where it fits."""
        self._take_note_of_updates()
        incompatibility = f"b has {columns} columns" if columns > 1 else self._incompatibility(dtype)
        if not incompatibility:
            backend, M = self._backend, self._M
            was_built_from_A = M.blocks.compared_with(self._A)  # while the rest is made ready
            key = backend.stream, dtype, "eisenstat"
            iteration, stack = self._free_one(key) or (EisenstatIteration(self._A, M, backend), ExitStack())
            if was_built_from_A():
                return key, iteration, stack, M.blocks.exponent
            incompatibility = "M was built from another matrix"
        self._refuse_eisenstat(incompatibility)
        return super()._borrow(dtype, columns)

    def _new_iteration(self, A: Operator, M: Operator | None, columns: int, stack: ExitStack) -> Iteration:
        """See `Solver`."""
        if self._is_projected:
            M = Projected(M, self._basis, A.dtype, self._backend)
        state = None if M is None else stack.enter_context(M.lend_state(columns))
        if columns > 1:
            if not isinstance(A, Csr):
                raise TypeError(f"b has {columns} columns, which needs a sparse or dense A, got an operator")
            of_columns = ProjectedColumns if self._is_projected else ColumnsIteration
            return of_columns(A, self._backend, columns, M, state)
        method = ProjectedConjugateGradients if self._is_projected else ConjugateGradients
        return method(A, self._backend, M, state)

    def _projected(self, b: Any, iteration: Iteration) -> Any:
        """See `Solver`."""
        return times_power(iteration.b, -iteration.shift, self._backend.xp) if self._is_projected else b

    def _incompatibility(self, dtype: Any = None) -> str | None:
        """Why Eisenstat's form does not fit, or is not wanted; None if it fits, provided that M was built from A."""
        if self._form == "plain":
            return "form='plain'"
        if self._is_projected:
            return "nullspace is given"
        if self.A_is_operator:
            return "A is no matrix"
        if found := eisenstat_incompatibility(self._A, self._M):
            return found
        if dtype is None or dtype == self._A.dtype:  # to NumPy None is float64
            return None
        return f"the system is solved in {dtype}, as b or x0 needs it"

    def _refuse_eisenstat(self, incompatibility: str) -> None:
        """Raise ValueError if Eisenstat's form is asked for."""
        if self._form == "eisenstat":
            unfit = "nullspace" if self._is_projected else "several columns" if "columns" in incompatibility else "M"
            raise ValueError(f"form='eisenstat' does not fit {unfit}: {incompatibility}; use form='plain'")

    def _cause(self, b: Any, iteration: Iteration, limit: float, reason: Reason | None = None) -> Reason | None:
        """See `Solver`; A may not be symmetric, too."""
        if self.A_is_operator:
            return None
        matrix = admitted(self._A)
        if reason is None:
            unsymmetric = is_unsymmetric(matrix)
        else:
            unsymmetric = reason is not Reason.NOT_FINITE and not is_hermitian(matrix)
        return Reason.UNSYMMETRIC_A if unsymmetric else super()._cause(b, iteration, limit, reason)
