"""Preconditioned conjugate gradients in the order of A, with any M."""

from __future__ import annotations

from typing import Any

from mcprecond.backends import NUMBERS, Backend, KernelSet, compile_loop
from mcprecond.linalg.csr import Csr, row_product
from mcprecond.linalg.diagonal import Diagonal
from mcprecond.linalg.operator import Operator
from mcprecond.linalg.powers import exponent_of, power_times
from mcprecond.solvers.iteration import (
    ALPHA,
    BETA,
    RUNNING,
    RZ,
    STATE,
    UNIT,
    Iteration,
    end_iteration,
    inner,
    is_finite,
    multiply_numbers,
    take_pAp,
    take_rz,
)

KERNELS = KernelSet(__file__, "OFFSET VALUE LANES")


class ConjugateGradients(Iteration):
    """Algorithm 9.1 of Saad, in the order of A, with any M: an `Operator` and a state of it, or None for the identity.

    Where M is not linear, z need not be orthogonal to the old residual, as beta = r'z / (old r'z) assumes. Then beta is
    Notay's for flexible CG, (r - old r)'z / (old r'z), where r - old r is -alpha q.

    Notay: Flexible conjugate gradients, SIAM J. Sci. Comput. 22, 2000.
    """

    is_symmetric = is_cg = True

    def __init__(self, A: Operator, backend: Backend, M: Operator | None = None, state: Any = None) -> None:
        super().__init__(A, backend)
        self.run = backend.kernels(KERNELS, **self.macros)
        self.b, self.x, self.r, self.p, self.q = (backend.xp.empty(self.n, A.dtype) for _ in range(5))
        self.z = self.r if M is None else backend.xp.empty(self.n, A.dtype)
        #: The numbers of a diagonal M, which the last kernel of a step multiplies by.
        self._diagonal = M.numbers if isinstance(M, Diagonal) else None
        self._begins_with_M = M is not None and self._diagonal is None
        self._exponent_of_M = 0 if M is None else M.exponent
        self._take_preconditioner(M, state)

    def choose_units(self, exponent_of_A: int, exponent: int) -> None:
        """See `Iteration`; chooses the unit of z, too, if the magnitude of M is known."""
        super().choose_units(exponent_of_A, exponent)
        self.exponent_of_A = exponent_of_A
        if self._exponent_of_M is not None:
            self._choose_unit_of_z(self._exponent_of_M)

    def _choose_unit_of_z(self, exponent_of_M: int) -> None:
        """Let z be about inv(A) r, where M has another magnitude than inv(A)."""
        shift = -self.exponent_of_A - exponent_of_M
        if abs(shift) > self.near:
            self.scalars[UNIT] = power_times(1.0, shift)

    def begin(self) -> None:
        """See `Iteration`. The first r'z is computed here, unless steps begin with M."""
        self.p.fill(0)
        self.scalars[RZ : RZ + 1].fill(0)
        if not self._begins_with_M:
            if self.M is not None:
                self.M.enqueue(self._of_M, self.r, self.z)
            self.run.find_beta(self.n, self.r, self.z, *self.reduction)
        elif self._exponent_of_M is None:
            self.M.enqueue(self._of_M, self.r, self.z)
            self._exponent_of_M = exponent_of(self.z, self.backend.xp) - exponent_of(self.r, self.backend.xp)
            self._choose_unit_of_z(self._exponent_of_M)

    def _step(self) -> None:
        """See `Iteration`. It begins with M, which is therefore not applied to the last residual. A diagonal M costs so
        little that z belongs to the end of the step instead, where no kernel of its own has to find it.
        """
        run, n, workspace = self.run, self.n, self.reduction
        if self._begins_with_M:
            self.M.enqueue(self._of_M, self.r, self.z)
            run.find_beta(n, self.r, self.z, *workspace)
            if not self.M.linear:
                run.find_flexible_beta(n, self.q, self.z, *workspace)
        run.change_direction(n, self.z, self.p, self.control, self.scalars)
        # If A has long rows, some blocks of threads have much more work than others. A grid with a block for each group
        # of rows balances that better than a few blocks that stride over all rows.
        if isinstance(self.A, Csr) and not self.A.cuts_rows:
            run.multiply(n, *self.A.arrays(self._of_A), self.p, self.q, *workspace)
        else:
            self.A.enqueue(self._of_A, self.p, self.q)
            run.find_alpha(n, self.p, self.q, *workspace)
        if self._diagonal is None:
            run.advance(n, self.p, self.q, self.x, self.r, int(self._begins_with_M), *workspace)
        else:
            run.advance_with_diagonal(n, self.p, self.q, self.x, self.r, self._diagonal, self.z, *workspace)


# On the CPU.


@KERNELS.strided
def multiply(n, indptr, indices, values, p, q, control, scalars, history):
    """q = A p, and alpha from p'q."""
    if control[STATE] == RUNNING:
        take_pAp(multiply_rows(0, n, indptr, indices, values, p, q), control, scalars)


@compile_loop
def multiply_rows(first, end, indptr, indices, values, p, q):
    """The rows of `multiply`."""
    product = 0.0
    for i in range(first, end):
        total = row_product(i, indptr, indices, values, p)
        q[i] = total
        product += inner(total, p[i])
    return product


@KERNELS.strided
def find_alpha(n, p, q, control, scalars, history):
    """Alpha from p'q."""
    if control[STATE] == RUNNING:
        take_pAp(multiply_numbers(0, n, p, q, q.dtype.type(1)), control, scalars)


@KERNELS.strided
def advance(n, p, q, x, r, begins_with_M, control, scalars, history):
    """x += alpha p, r -= alpha q, and r'r; without M, beta from that."""
    if control[STATE] != RUNNING:
        return
    rr = advance_numbers(0, n, r.dtype.type(scalars[ALPHA]), p, q, x, r)
    end_iteration(rr, control, scalars, history)
    if not begins_with_M:
        take_rz(rr * scalars[UNIT], control, scalars)


@compile_loop(grain=NUMBERS)
def advance_numbers(first, end, alpha, p, q, x, r):
    """The numbers of `advance`."""
    square = 0.0
    for i in range(first, end):
        x[i] += alpha * p[i]
        r[i] -= alpha * q[i]
        square += inner(r[i], r[i])
    return square


@KERNELS.strided
def advance_with_diagonal(n, p, q, x, r, diagonal, z, control, scalars, history):
    """x += alpha p, r -= alpha q and z = M r for a diagonal M; r'r, and beta from r'z."""
    if control[STATE] != RUNNING:
        return
    alpha, unit = r.dtype.type(scalars[ALPHA]), r.dtype.type(scalars[UNIT])
    rr, rz = advance_numbers_with_diagonal(0, n, alpha, unit, p, q, x, r, diagonal, z)
    end_iteration(rr, control, scalars, history)
    take_rz(rz, control, scalars)


@compile_loop(grain=NUMBERS)
def advance_numbers_with_diagonal(first, end, alpha, unit, p, q, x, r, diagonal, z):
    """The numbers of `advance_with_diagonal`."""
    square = product = 0.0
    for i in range(first, end):
        x[i] += alpha * p[i]
        r[i] -= alpha * q[i]
        z[i] = diagonal[i] * r[i]
        square += inner(r[i], r[i])
        product += inner(r[i], unit * z[i])
    return square, product


@KERNELS.strided
def find_beta(n, r, z, control, scalars, history):
    """Beta from r'z, with z in its unit."""
    if control[STATE] == RUNNING:
        take_rz(multiply_numbers(0, n, r, z, z.dtype.type(scalars[UNIT])), control, scalars)


@KERNELS.strided
def find_flexible_beta(n, q, z, control, scalars, history):
    """Beta of flexible CG, from q'z and the usual one."""
    if control[STATE] != RUNNING or scalars[BETA] == 0:  # there is no q before the first product
        return
    qz = multiply_numbers(0, n, q, z, z.dtype.type(scalars[UNIT]))
    if is_finite(qz, control):
        scalars[BETA] *= -scalars[ALPHA] * qz / scalars[RZ]


@KERNELS.strided
def change_direction(n, z, p, control, scalars):
    """p = z + beta p, with z in its unit."""
    if control[STATE] != RUNNING:
        return
    turn_numbers(0, n, p.dtype.type(scalars[BETA]), p.dtype.type(scalars[UNIT]), z, p)


@compile_loop(grain=NUMBERS)
def turn_numbers(first, end, beta, unit, z, p):
    """The numbers of `change_direction`."""
    for i in range(first, end):
        p[i] = unit * z[i] + beta * p[i]
