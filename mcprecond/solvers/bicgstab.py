"""BiCGSTAB, for any A that is not singular: what users call, and its steps.

The preconditioner stands on the right, so that residuals are b - A x, whatever M is.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import numpy as np

from mcprecond.backends import NUMBERS, Backend, KernelSet, compile_loop, compile_part
from mcprecond.linalg.operator import Operator
from mcprecond.linalg.sums import total
from mcprecond.linalg.sums import wide as wide_vector
from mcprecond.linalg.vectors import signs
from mcprecond.solvers.automatic_general import GeneralSolver
from mcprecond.solvers.iteration import (
    ALPHA,
    BETA,
    BROKEN,
    BUNDLE,
    LEAST_RZ,
    RR,
    RUNNING,
    STATE,
    TOLERANCE,
    Iteration,
    conjugated_product,
    inner,
    is_finite,
    take_rr,
    wide,
    wide_dtype,
)
from mcprecond.solvers.result import SolveResult
from mcprecond.solvers.setup import in_unit_of

KERNELS = KernelSet(__file__, "VALUE")

# Places of the coefficients; ALPHA and BETA are the first two. They stay on the device in double precision, and
# are complex for complex vectors. RHO is the inner product of the shadow residual and r. If the inner product of the
# shadow residual and a vector is at most scalars[LEAST_RZ] times the norm of the vector, it is only rounding.
OMEGA, RHO = 2, 3
CUDA_CONSTANTS = {"OMEGA": OMEGA, "RHO": RHO}


def bicgstab(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    rtol: float = 1e-5,
    atol: float | None = 0.0,
    maxiter: int | None = None,
    M: Any = None,
    callback: Callable[[Any], object] | None = None,
    progress: Callable[[int, float], object] | None = None,
) -> SolveResult[Any]:
    """Solve A x = b by BiCGSTAB, for any A that is not singular, as systems with advection.

    An iteration takes two products with A and two with M. On a GPU an iteration is one CUDA graph.

    Solves are run-to-run deterministic, if A and M are of this package or stored as matrices; see `deterministic`.

    Parameters
    ----------
    A : sparse matrix or array of SciPy or CuPy, dense array, or LinearOperator, shape (n, n)
        As for `pcg`; it need not be symmetric.
    b : array, shape (n,), (n, 1) or (n, k)
        The right-hand side, on the device of A. If b has several columns, the systems are solved one after the other.
    x0 : array of the shape of b, or "Mb", optional
        Initial guess, zero by default. Not changed. "Mb" stands for M b.
    rtol, atol : float
        Converged when ``||b - A x|| <= max(rtol ||b||, atol)``, tested on the true residual. None
        stands for 0 in `atol`.
    maxiter : int, optional
        10 n by default.
    M : preconditioner, sparse matrix, dense array, LinearOperator or str, optional
        An approximation of inv(A), such as `ClassicalAMG`, `ILU0` or `MulticolorDILU`, or a name: "jacobi", "sgs",
        "dilu", "ilu0", "multigrid" for the multigrid that fits, see `multigrid.fitting_multigrid`, or on a CPU "spilu"
        for SciPy's incomplete LU with fill (ILUT). "auto" begins with the one that is predicted to be the fastest,
        setup included, and goes on with another one where it fails or takes long; `stages` of the result says what was
        used, and `M` is the last of them.
    callback : function of one array, optional
        Called as ``callback(xk)`` after every iteration, which makes the host wait for each of them.
    progress : function of an int and a float, optional
        Called as ``progress(iterations, residual_norm)`` whenever the host reads the residuals: after every iteration
        on a CPU, on a GPU after 8 of them and then whenever a tenth more have been done.

    Returns
    -------
    SolveResult
        Unpacks as ``x, info``. The reason is `BREAKDOWN` if the recurrence divides by about zero and new starts from
        the best x do not help. For several columns a `ColumnsResult`.

    Raises
    ------
    TypeError, ValueError
        As `pcg`, for these arguments.

    References
    ----------
    van der Vorst: Bi-CGSTAB: A Fast and Smoothly Converging Variant of Bi-CG for the Solution of Nonsymmetric Linear
    Systems, SIAM J. Sci. Stat. Comput. 13, 1992.
    Saad: Iterative Methods for Sparse Linear Systems, 2nd ed., Algorithm 7.7.

    Examples
    --------
    >>> import numpy as np, scipy.sparse
    >>> from mcprecond import ILU0, bicgstab
    >>> A = scipy.sparse.diags_array([-1.5, 2.0, -0.5], offsets=[-1, 0, 1], shape=(50, 50), format="csr")
    >>> result = bicgstab(A, np.ones(50), M=ILU0(A, ordering="natural"), rtol=1e-10)
    >>> result.reason.name, result.iterations
    ('CONVERGED', 1)
    """
    solver = BiCGStabSolver(A, M)
    result = solver.solve(b, x0, rtol=rtol, atol=atol, maxiter=maxiter, callback=callback, progress=progress)
    solver.release()
    return result


class BiCGStabSolver(GeneralSolver):
    """BiCGSTAB for A and M."""

    method = "bicgstab"
    products = 2

    def _new_iteration(self, A: Operator, M: Operator | None, columns: int, stack: ExitStack) -> Iteration:
        M = in_unit_of(A, M, self._backend)
        state = None if M is None else stack.enter_context(M.lend_state())
        return BiCGStab(A, self._backend, M, state)


#: The norm of the vector that is added to the shadow residual after a breakdown, relative to the norm of r.
SHADOW = 0.5


class BiCGStab(Iteration):
    """Algorithm 7.7 of Saad with a preconditioner on the right: an `Operator` and a state of it, or None.

    One step, where M stands for its application::

        p = r + beta (p - omega v),  y = M p,  v = A y,  alpha = rho / shadow'v
        s = r - alpha v,             z = M s,  t = A z,  omega = t's / t't
        x += alpha y + omega z,      r = s - omega t,    rho and beta from shadow'r

    s overwrites r. If s is small enough already, omega is 0. The shadow residual is the first r; after a
    breakdown, a vector of signs is added to it, another one each time.
    """

    most_breakdowns = 5
    bundle = BUNDLE // 2  # M is applied twice in each

    def __init__(self, A: Operator, backend: Backend, M: Operator | None = None, state: Any = None) -> None:
        super().__init__(A, backend)
        xp = backend.xp
        self.run = backend.kernels(KERNELS, VALUE=A.dtype)
        names = "b", "x", "r", "shadow", "p", "v", "t"
        self.b, self.x, self.r, self.shadow, self.p, self.v, self.t = (xp.empty(self.n, A.dtype) for _ in names)
        self.y, self.z = (self.p, self.r) if M is None else (xp.empty(self.n, A.dtype) for _ in range(2))
        self.coefficients = xp.empty(RHO + 1, wide_dtype(A.dtype))
        self._take_preconditioner(M, state)

    def begin(self) -> None:
        xp, norm = self.backend.xp, self.true_residual_norm
        rho = norm * norm
        self.shadow[...] = self.r
        if self.breakdowns and self._state == RUNNING:
            size = SHADOW * norm / math.sqrt(self.n)
            self.shadow += (size * signs(self.n, self.breakdowns, self.backend)).astype(self.dtype)
            rho = self.backend.to_host(total(self.shadow.conj() * wide_vector(self.r), self.backend)).item()
        self.p.fill(0)
        self.v.fill(0)
        first = np.zeros(RHO + 1, self.coefficients.dtype)
        first[RHO] = rho
        self.coefficients[...] = xp.asarray(first)
        self.scalars[LEAST_RZ] = norm * float(np.finfo(self.dtype).eps)

    def _step(self) -> None:
        run, n, c = self.run, self.n, self.coefficients
        run.change_direction(n, self.r, self.v, self.p, c, self.control)
        if self.M is not None:
            self.M.enqueue(self._of_M, self.p, self.y)
        self.A.enqueue(self._of_A, self.y, self.v)
        run.find_alpha(n, self.shadow, self.v, c, *self.reduction)
        run.advance_half(n, self.v, self.r, c, *self.reduction)
        if self.M is not None:
            self.M.enqueue(self._of_M, self.r, self.z)
        self.A.enqueue(self._of_A, self.z, self.t)
        run.find_omega(n, self.r, self.t, c, *self.reduction)
        run.advance(n, self.shadow, self.y, self.z, self.t, self.x, self.r, c, *self.reduction)


# On the CPU.


@KERNELS.strided
def change_direction(n, r, v, p, c, control):
    """p = r + beta (p - omega v)."""
    if control[STATE] == RUNNING:
        turn_numbers(0, n, p.dtype.type(c[BETA]), p.dtype.type(c[OMEGA]), r, v, p)


@compile_loop(grain=NUMBERS)
def turn_numbers(first, end, beta, omega, r, v, p):
    """The numbers of `change_direction`."""
    for i in range(first, end):
        p[i] = r[i] + beta * (p[i] - omega * v[i])


@KERNELS.strided
def find_alpha(n, shadow, v, c, control, scalars, history):
    """Alpha from shadow'v; if that is rounding, the recurrence breaks down."""
    if control[STATE] != RUNNING:
        return
    product, square = products(0, n, shadow, v)
    if is_finite(square, control):
        if abs(product) <= scalars[LEAST_RZ] * np.sqrt(square):
            control[STATE] = BROKEN
        else:
            c[ALPHA] = c[RHO] / product


@compile_loop(grain=NUMBERS)
def products(first, end, a, b):
    """The inner products of a and b, and of b and b."""
    product, square = wide(b.dtype.type(0)), 0.0
    for i in range(first, end):
        product += conjugated_product(a[i], b[i])
        square += inner(b[i], b[i])
    return product, square


@KERNELS.strided
def advance_half(n, v, r, c, control, scalars, history):
    """s = r - alpha v, which overwrites r, and the norm of s."""
    if control[STATE] == RUNNING:
        scalars[RR] = advance_half_numbers(0, n, r.dtype.type(c[ALPHA]), v, r)


@compile_loop(grain=NUMBERS)
def advance_half_numbers(first, end, alpha, v, r):
    """The numbers of `advance_half`."""
    square = 0.0
    for i in range(first, end):
        r[i] -= alpha * v[i]
        square += inner(r[i], r[i])
    return square


@KERNELS.strided
def find_omega(n, s, t, c, control, scalars, history):
    """Omega from t's and t't; 0 if s is small enough, or A M s = 0."""
    if control[STATE] != RUNNING:
        return
    product, square = products(0, n, s, t)
    if is_finite(square, control):
        c[OMEGA] = 0 if scalars[RR] <= scalars[TOLERANCE] or square == 0 else np.conj(product) / square


@KERNELS.strided
def advance(n, shadow, y, z, t, x, r, c, control, scalars, history):
    """x += alpha y + omega z, r = s - omega t, and beta from shadow'r."""
    if control[STATE] != RUNNING:
        return
    alpha, omega = r.dtype.type(c[ALPHA]), r.dtype.type(c[OMEGA])
    product, square = advance_numbers(0, n, alpha, omega, shadow, y, z, t, x, r)
    take_rr(square, control, scalars, history)
    take_rho(product, square, c, control, scalars)


@compile_loop(grain=NUMBERS)
def advance_numbers(first, end, alpha, omega, shadow, y, z, t, x, r):
    """The numbers of `advance`."""
    product, square = wide(r.dtype.type(0)), 0.0
    for i in range(first, end):
        x[i] += alpha * y[i] + omega * z[i]
        r[i] -= omega * t[i]
        product += conjugated_product(shadow[i], r[i])
        square += inner(r[i], r[i])
    return product, square


@compile_part
def take_rho(rho, square, c, control, scalars):
    """Set beta; if rho is rounding, or omega 0, the recurrence breaks down."""
    if control[STATE] != RUNNING:
        return
    if abs(rho) <= scalars[LEAST_RZ] * np.sqrt(square) or c[OMEGA] == 0:
        control[STATE] = BROKEN
    else:
        c[BETA] = rho / c[RHO] * (c[ALPHA] / c[OMEGA])
        c[RHO] = rho
