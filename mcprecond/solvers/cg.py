"""Preconditioned conjugate gradients in the order of A, with any M."""

from __future__ import annotations

from typing import Any

from mcprecond.linalg.powers import exponent_of, power_times
from mcprecond.matrix import AdmittedMatrix
from mcprecond.solvers.iteration import (
    BETA_OF_QZ,
    BETA_OF_RZ,
    FRESH_RESIDUAL,
    FRESH_RZ,
    PAP,
    RESIDUAL,
    RESIDUAL_IS_RZ,
    UNIT,
    Iteration,
)


class ConjugateGradients(Iteration):
    """Algorithm 9.1 of Saad, in the order of A, with any M: an `Applier`, or None for the identity.

    Where M is not linear, z need not be orthogonal to the residual before, as beta = r'z / r'z of before has it; then
    beta is that of Notay's flexible CG, (r - r of before)'z / r'z of before, where the difference is -alpha q.

    Notay: Flexible conjugate gradients, SIAM J. Sci. Comput. 22, 2000.
    """

    def __init__(self, matrix: AdmittedMatrix, M: Any) -> None:
        csr, backend = matrix.csr, matrix.backend
        super().__init__(csr, matrix.max_degree + 1, backend)
        self.b, self.x, self.r, self.p, self.q = (backend.xp.empty(self.n, csr.dtype) for _ in range(5))
        self.z = self.r if M is None else backend.xp.empty(self.n, csr.dtype)
        self.M, self.captures = M, M is None or M.captures
        if M is not None and M.has_many_kernels:
            self.bundle = 1

    def iterate(self) -> Any:
        """See `Iteration`."""
        return self.x

    def _in_own_order(self, v: Any) -> Any:
        """See `Iteration`."""
        return v

    def choose_units(self, exponent_of_A: int, exponent: int) -> None:
        """See `Iteration`; also those of z, if the magnitude of M is known."""
        super().choose_units(exponent_of_A, exponent)
        self.exponent_of_A = exponent_of_A
        exponent_of_M = 0 if self.M is None else self.M.exponent
        if exponent_of_M is not None:
            self.choose_unit_of_z(exponent_of_M)

    def choose_unit_of_z(self, exponent_of_M: int) -> None:
        """Let z be about inv(A) r, where M has another magnitude than inv(A)."""
        shift = -self.exponent_of_A - exponent_of_M
        if abs(shift) > self.near:
            self.scalars[UNIT] = power_times(1.0, shift)

    def find_residual(self) -> None:
        """See `Iteration`."""
        self.run.residual(self.n, *self.A, *self.long_rows, self.x, self.b, self.r, FRESH_RESIDUAL, *self.reduction)

    def precondition(self) -> None:
        """See `Iteration`: p = z = M r."""
        if self.M is not None:
            self.M.enqueue(self.r, self.z)
            if self.M.exponent is None:  # it is known now
                self.M.exponent = exponent_of(self.z, self.backend.xp) - exponent_of(self.r, self.backend.xp)
                self.choose_unit_of_z(self.M.exponent)
        self.run.inner_product(self.n, self.r, self.z, FRESH_RZ, *self.reduction)
        self.p.fill(0)
        self.run.turn(self.n, self.z, self.p, self.control, self.scalars)

    def _step(self) -> None:
        run, n, workspace = self.run, self.n, self.reduction
        run.multiply(n, *self.A, *self.long_rows, self.p, self.q, PAP, *workspace)
        run.advance(n, self.p, self.q, self.x, self.r, RESIDUAL_IS_RZ if self.M is None else RESIDUAL, *workspace)
        if self.M is not None:
            self.M.enqueue(self.r, self.z)
            run.inner_product(n, self.r, self.z, BETA_OF_RZ, *workspace)
            if not self.M.linear:
                run.inner_product(n, self.q, self.z, BETA_OF_QZ, *workspace)
        run.turn(n, self.z, self.p, self.control, self.scalars)
