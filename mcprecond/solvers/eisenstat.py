"""PCG with symmetric Gauss-Seidel in Eisenstat's form: one pass over the matrix per iteration.

In the order of the colors let A = L + D + U and M = (T + L) inv(T) (T + U) with a diagonal T: T = D for symmetric
Gauss-Seidel, T = D / w for SSOR (whose constant factor does not matter to CG). For q = (T + U) p and t = p,

    A t = q + L t + (D - T) t,
    inv(T + L) A t = t + inv(T + L) (q - (2 T - D) t),

so one sweep over U gives t from q, and one over L gives both the product A t, which the residual needs, and the
transformed residual's direction. CG runs on rho = inv(T + L) r with the weight T: its iterates x and its scalars are
those of PCG with M.

Eisenstat: Efficient Implementation of a Class of Preconditioned Conjugate Gradient Methods, SIAM J. Sci. Stat. Comput.
2, 1981.
"""

from __future__ import annotations

from typing import Any

from numba import prange

from mcprecond.backends import Backend, KernelSet
from mcprecond.preconditioners import MulticolorGS
from mcprecond.solvers.iteration import (
    ALPHA,
    BETA_OF_RZ,
    FRESH_RESIDUAL,
    FRESH_RZ,
    PAP,
    RESIDUAL,
    RUNNING,
    STATE,
    Iteration,
)

KERNELS = KernelSet(__file__)


def why_not(csr: Any, M: Any) -> str | None:
    """Say why the form does not fit A and M, or return None if it does."""
    if not isinstance(M, MulticolorGS):
        return "M is no multicolor Gauss-Seidel preconditioner on the device and of the dtype of A"
    if M.sweeps != 1:
        return "M makes several sweeps"
    if M.blocks.lower.values.dtype != csr.dtype:
        return "M is stored in another dtype than A"
    if not M.blocks.holds(csr):
        return "M was built from another matrix"
    return None


class EisenstatIteration(Iteration):
    """CG on the transformed system; all vectors in the order of the colors."""

    def __init__(self, csr: Any, b: Any, x: Any, M: MulticolorGS, backend: Backend) -> None:
        xp, blocks = backend.xp, M.blocks
        n, offset = csr.shape[0], blocks.lower.indptr.dtype
        super().__init__(n, csr.dtype, offset, M.lanes, backend)
        self.sweep = backend.kernels(KERNELS, OFFSET=offset, VALUE=csr.dtype, LANES=M.lanes)
        self.M, self.blocks = M, blocks
        self.b, self.x = b[blocks.perm], x[blocks.perm]
        self.T = blocks.diagonal / csr.dtype.type(M.omega)
        self.Tinv = 1 / self.T
        self.r, self.rho, self.z, self.q, self.t, self.s, self.At, self.w = (xp.empty(n, csr.dtype) for _ in range(8))
        self.step = backend.repeatable(self._step)

    def solution(self) -> Any:
        """The iterate, in the order of A."""
        return self.x[self.blocks.inverse]

    def find_residual(self) -> None:
        """See `Iteration`."""
        lower, upper = self.blocks.lower, self.blocks.upper
        self.sweep.residual_of_blocks(
            self.n, lower.indptr, lower.indices, lower.values, upper.indptr, upper.indices, upper.values,
            self.blocks.diagonal, self.x, self.b, self.r,
        )  # fmt: skip
        self.run.inner_product(self.n, self.r, self.r, FRESH_RESIDUAL, *self.books)

    def precondition(self) -> None:
        """See `Iteration`: rho = inv(T + L) r, q = z = T rho."""
        lower = self.blocks.lower
        for c in range(self.blocks.n_colors):
            self.sweep.solve_color(
                *self.blocks.rows_of(c), lower.indptr, lower.indices, lower.values, self.Tinv, self.r, self.rho
            )
        self.backend.xp.multiply(self.T, self.rho, out=self.z)
        self.run.inner_product(self.n, self.z, self.rho, FRESH_RZ, *self.books)
        self.q[...] = self.z

    def _step(self) -> None:
        run, n, books, blocks = self.run, self.n, self.books, self.blocks
        lower, upper = blocks.lower, blocks.upper
        for c in reversed(range(blocks.n_colors)):
            self.sweep.solve_color(
                *blocks.rows_of(c), upper.indptr, upper.indices, upper.values, self.Tinv, self.q, self.t
            )
        for c in range(blocks.n_colors):
            self.sweep.product_of_color(
                *blocks.rows_of(c), lower.indptr, lower.indices, lower.values, self.T, self.Tinv, blocks.diagonal,
                self.q, self.t, self.s, self.At, self.w,
            )  # fmt: skip
        run.inner_product(n, self.q, self.w, PAP, *books)
        self.sweep.advance_all(
            n, self.t, self.At, self.w, self.T, self.x, self.r, self.rho, self.z, self.control, self.scalars
        )
        run.inner_product(n, self.r, self.r, RESIDUAL, *books)
        run.inner_product(n, self.z, self.rho, BETA_OF_RZ, *books)
        run.turn(n, self.z, self.q, self.control, self.scalars)


@KERNELS.twin
def solve_color(rows, first, indptr, indices, values, Tinv, b, y):
    """y = inv(T + triangle) b for the rows of one color."""
    for row in prange(rows):
        i = first + row
        total = y.dtype.type(0)
        for k in range(indptr[i], indptr[i + 1]):
            total += values[k] * y[indices[k]]
        y[i] = (b[i] - total) * Tinv[i]


@KERNELS.twin
def product_of_color(rows, first, indptr, indices, values, T, Tinv, diagonal, q, t, s, At, w):
    """For the rows of one color: s = inv(T + L) (q - (2 T - D) t), w = t + s, and A t."""
    for row in prange(rows):
        i = first + row
        L_t, L_s = t.dtype.type(0), t.dtype.type(0)
        for k in range(indptr[i], indptr[i + 1]):
            L_t += values[k] * t[indices[k]]
            L_s += values[k] * s[indices[k]]
        s[i] = (q[i] - (2 * T[i] - diagonal[i]) * t[i] - L_s) * Tinv[i]
        w[i] = t[i] + s[i]
        At[i] = q[i] + L_t + (diagonal[i] - T[i]) * t[i]


@KERNELS.twin
def advance_all(n, t, At, w, T, x, r, rho, z, control, scalars):
    """x += alpha t, r -= alpha A t, rho -= alpha w, z = T rho."""
    if control[STATE] != RUNNING:
        return
    alpha = r.dtype.type(scalars[ALPHA])
    for i in prange(n):
        x[i] += alpha * t[i]
        r[i] -= alpha * At[i]
        rho[i] -= alpha * w[i]
        z[i] = T[i] * rho[i]


@KERNELS.twin
def residual_of_blocks(n, lower_indptr, lower_indices, lower, upper_indptr, upper_indices, upper, diagonal, x, b, r):
    """r = b - (L + D + U) x."""
    for i in prange(n):
        total = diagonal[i] * x[i]
        for k in range(lower_indptr[i], lower_indptr[i + 1]):
            total += lower[k] * x[lower_indices[k]]
        for k in range(upper_indptr[i], upper_indptr[i + 1]):
            total += upper[k] * x[upper_indices[k]]
        r[i] = b[i] - total
