"""Preconditioned conjugate gradients with a given M: which form and which iteration fit."""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import Any

import numpy as np

from mcprecond.backends.arguments import one_of
from mcprecond.backends.inputs import promote
from mcprecond.linalg.columns import MOST_COLUMNS
from mcprecond.linalg.csr import Csr
from mcprecond.linalg.operator import Operator
from mcprecond.linalg.powers import times_power
from mcprecond.matrix import AdmittedMatrix
from mcprecond.solvers.cg import ConjugateGradients
from mcprecond.solvers.columns import ColumnsIteration
from mcprecond.solvers.correction import verify
from mcprecond.solvers.iteration import Iteration
from mcprecond.solvers.named import NAMES
from mcprecond.solvers.nullspace import Projected, ProjectedColumns, ProjectedConjugateGradients, null_space_basis
from mcprecond.solvers.result import CAUSES, SUCCESSES, Reason, SolveResult, Stage, merge
from mcprecond.solvers.setup import columns_pay_one_by_one, eisenstat_iteration, eisenstat_obstacle
from mcprecond.solvers.solver import Solver
from mcprecond.typing import Form, Norm, NullSpace

NORMS: tuple[Norm, ...] = ("residual", "energy", "preconditioned")
FORMS = ("auto", "plain", "eisenstat")


class PreconditionedCG(Solver):
    """CG with M.

    The arguments are those of `PCG`, and `basis` is a basis of the null space, where one is known already. `narrows`
    says whether to iterate in the dtype that M is stored in where this is narrower than the dtype of the system.
    """

    method = "pcg"
    most_columns = MOST_COLUMNS
    names = NAMES
    symmetric_method = "CG"

    def __init__(
        self,
        A: Any,
        M: Any = None,
        *,
        form: Form = "auto",
        nullspace: NullSpace = None,
        B: Any = None,
        block_size: Any = 1,
        norm: Norm = "residual",
        basis: Any = None,
        narrows: bool = True,
    ) -> None:
        super().__init__(A, M, B=B, block_size=block_size)
        self.norm = one_of(norm, "norm", NORMS)
        self._narrows = narrows
        #: The solvers that take over where a narrow dtype fails, by the dtype of the system.
        self._wide_solvers: dict[np.dtype[Any], PreconditionedCG] = {}
        self._form = one_of(form, "form", FORMS)
        if nullspace is not None and basis is None:
            if self.A_is_operator:
                raise TypeError("nullspace needs a sparse or dense A, got an operator")
            basis = null_space_basis(nullspace, self.matrix)
        self._take_basis(basis)
        if incompatibility := self._incompatibility():
            self._refuse_eisenstat(incompatibility)
            if not self.A_is_operator:
                self.matrix  # noqa: B018 - checked now
        #: The arguments for another solver of the same system.
        self._options: dict[str, Any] = {"form": form, "nullspace": nullspace, "basis": self._basis, "norm": norm}

    def with_preconditioner(self, M: Any) -> PreconditionedCG:
        """CG for the same system with another M."""
        return PreconditionedCG(self.matrix, M, **self._options)

    def replace_matrix(self, matrix: AdmittedMatrix) -> None:
        if (nullspace := self._options["nullspace"]) is not None:
            self._options["basis"] = null_space_basis(nullspace, matrix)
            self._take_basis(self._options["basis"])
        super().replace_matrix(matrix)

    def _take_basis(self, basis: Any) -> None:
        """Project onto the complement of a null space from now on, if there is one."""
        self._basis, self.null_space_dimension = basis, 0 if basis is None else int(basis.shape[0])
        self._is_projected = self.null_space_dimension > 0

    def run(self, b: Any, x0: Any, *limits: Any, **hooks: Any) -> SolveResult[Any]:
        """See `Solver`. Systems with several right-hand sides are solved one after the other in Eisenstat's form where
        it reads and writes fewer bytes.
        """
        b = self._shape(b, "b")
        if b.ndim == 1 or any(hooks.values()) or not self._goes_one_by_one(b, x0):
            return self._run_together(b, x0, *limits, **hooks)
        return self.run_one_by_one(self._run_together, b, x0, *limits)

    def _run_together(self, b: Any, x0: Any, *limits: Any, **hooks: Any) -> SolveResult[Any]:
        """Solve for one right-hand side, or for several at once. By the energy norm a solve ends where the error is
        found to be small.
        """
        result = self._run_to_estimate(b, x0, *limits, **hooks)
        if self.norm != "energy":
            return result
        *_, rtol, atol, maxiter = self.admit_arguments(b, None, *limits)
        return verify(result, self._run_to_estimate, rtol, atol, maxiter, self._backend)

    def _run_to_estimate(
        self, b: Any, x0: Any, rtol: Any, atol: Any, maxiter: int | None, *, progress: Any = None, **hooks: Any
    ) -> SolveResult[Any]:
        """Solve until the norm is small enough as far as CG knows. Where single precision fails, double precision
        completes the solve.
        """
        first = super().run(b, x0, rtol, atol, maxiter, progress=progress, **hooks)
        is_over = first.reason in (*SUCCESSES, *CAUSES, Reason.LEFT) or first.iterations == maxiter
        if not first.stages or is_over:
            return first
        done, left = first.iterations, None if maxiter is None else maxiter - first.iterations
        told = None if progress is None else lambda count, norm: progress(done + count, norm)
        best, dtype = first.x if first.residual_norm < first.residuals[0] else x0, first.x.dtype
        second = self._wide_solver(dtype)._run_to_estimate(b, best, rtol, atol, left, progress=told, **hooks)
        stages = [*first.stages, Stage(str(dtype), second.iterations)]
        reason = Reason.CONVERGED_IN_DOUBLE if second.converged else second.reason
        return merge([first, second], stages, reason=reason)

    def _wide_solver(self, dtype: np.dtype[Any]) -> PreconditionedCG:
        """The same method with everything in one dtype, also the values that M stores."""
        if dtype not in self._wide_solvers:
            started, A = time.perf_counter(), self._A.astype(dtype, copy=False)
            self._wide_solvers[dtype] = PreconditionedCG(A, self._M.built_for(A), norm=self.norm, narrows=False)
            self._wide_solvers[dtype].started = started
        return self._wide_solvers[dtype]

    def release(self) -> None:
        super().release()
        self._wide_solvers = {}

    def _forget(self) -> None:
        super()._forget()
        self._wide_solvers = {}

    def _goes_one_by_one(self, b: Any, x0: Any) -> bool:
        """Whether Eisenstat's form, for one column after the other, fits and pays."""
        dtype = promote(self._A.dtype, b.dtype, getattr(x0, "dtype", b.dtype))
        if self._form != "auto" or self._incompatibility(dtype):
            return False
        return columns_pay_one_by_one(self._A, self._M, b.shape[1])

    def _borrow(self, dtype: np.dtype[Any], columns: int) -> tuple[tuple[Any, ...], Iteration, ExitStack, int]:
        """See `Solver`: in Eisenstat's form where it fits."""
        self._take_note_of_updates()
        incompatibility = f"b has {columns} columns" if columns > 1 else self._incompatibility(dtype)
        if not incompatibility:
            backend, M = self._backend, self._M
            was_built_from_A = M.blocks.compared_with(self._A)  # while the rest is made ready
            key = backend.stream, dtype, "eisenstat"
            iteration, stack = self._free_one(key) or (eisenstat_iteration(self._A, M, dtype, backend), ExitStack())
            if was_built_from_A():
                return key, iteration, stack, M.blocks.exponent
            incompatibility = "M was built from another matrix"
        self._refuse_eisenstat(incompatibility)
        return super()._borrow(dtype, columns)

    def _new_iteration(self, A: Operator, M: Operator | None, columns: int, stack: ExitStack) -> Iteration:
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

    def _project_b(self, b: Any, iteration: Iteration) -> Any:
        # The result refers to this vector, and the next solve overwrites iteration.b. So the vector is a copy.
        return times_power(iteration.b.copy(), -iteration.shift, self._backend.xp) if self._is_projected else b

    def _incompatibility(self, dtype: Any = None) -> str | None:
        """Why Eisenstat's form does not fit, or is not wanted; None if it fits, provided that M was built from A."""
        if self._form == "plain":
            return "form='plain'"
        if self._is_projected:
            return "nullspace is given"
        if self.A_is_operator:
            return "A is no matrix"
        return eisenstat_obstacle(self._A, self._M, self._A.dtype if dtype is None else dtype, self._narrows)

    def _refuse_eisenstat(self, incompatibility: str) -> None:
        """Raise ValueError if Eisenstat's form is asked for."""
        if self._form == "eisenstat":
            unfit = "nullspace" if self._is_projected else "several columns" if "columns" in incompatibility else "M"
            raise ValueError(f"form='eisenstat' does not fit {unfit}: {incompatibility}; use form='plain'")
