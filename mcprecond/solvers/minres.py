"""MINRES, for symmetric or Hermitian A that need not be definite: what users call, and its steps."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import numpy as np

from mcprecond.backends import NUMBERS, Backend, KernelSet, compile_loop, compile_part
from mcprecond.backends.arguments import flag, real
from mcprecond.backends.inputs import any_of
from mcprecond.linalg.hermitian import first_unsymmetric
from mcprecond.linalg.operator import Operator
from mcprecond.matrix import AdmittedMatrix, admit_matrix
from mcprecond.preconditioners import Preconditioner
from mcprecond.solvers.automatic import weakest_for
from mcprecond.solvers.diagnosis import is_near_null_space
from mcprecond.solvers.iteration import (
    BAD_M,
    CYCLE_ENDED,
    REACHED,
    ROUNDING,
    RUNNING,
    SHARED,
    STATE,
    Iteration,
    inner,
    is_finite,
    multiply_numbers,
    take_rr,
)
from mcprecond.solvers.named import NAMES
from mcprecond.solvers.result import Reason, SolveResult
from mcprecond.solvers.setup import admit_system, in_unit_of
from mcprecond.solvers.solver import Solver

KERNELS = KernelSet(__file__, "VALUE")

# The coefficients stay on the device, in double precision, at these places:
# START: r'M r of the first residual.
# DIAGONAL, BESIDE: the last diagonal and subdiagonal entry of the Lanczos process's tridiagonal matrix. BESIDE is zero
#     before the first step and after the last one.
# COSINE, SINE, LAST_COSINE, LAST_SINE: the last two Givens rotations.
# FIRST, SECOND, INVERSE: the last column after these rotations. INVERSE is one over its diagonal entry.
# STEP: the factor of w in the update of x.
# LEFT: the norm of r relative to that of the first residual.
# LOWEST: if the square of ||A r|| / ||r|| is less, x is a least-squares solution.
# `scalars` has LARGEST, the largest sum of the squares of a row of the tridiagonal matrix in this solve. The norm of a
# residual r is sqrt(r'M r) here.
START, DIAGONAL, BESIDE, COSINE, SINE, LAST_COSINE, LAST_SINE = range(7)
FIRST, SECOND, INVERSE, STEP, LEFT, LOWEST = range(7, PLACES := 13)
LARGEST = SHARED
#: A number is rounding if it is at most UNITS times the unit of rounding. If ||A r|| / ||r|| falls below the share
#: FALLEN of its first value, the method starts over. Otherwise x could grow in the null space of a singular A until
#: the rounding errors of A x are as large as the residual.
UNITS, FALLEN = 10, 1e-7
#: If a solve took k iterations, the solve that refines a vector of the null space takes at most MORE k.
MORE = 2
CUDA_CONSTANTS = {
    **{"UNITS": UNITS, "FALLEN": FALLEN, "LOWEST": LOWEST},
    **{"START": START, "DIAGONAL": DIAGONAL, "BESIDE": BESIDE, "COSINE": COSINE, "SINE": SINE},
    **{"LAST_COSINE": LAST_COSINE, "LAST_SINE": LAST_SINE, "FIRST": FIRST, "SECOND": SECOND, "INVERSE": INVERSE},
    **{"STEP": STEP, "LEFT": LEFT, "LARGEST": LARGEST},
}


def minres(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    rtol: float = 1e-5,
    atol: float | None = 0.0,
    shift: float = 0.0,
    maxiter: int | None = None,
    M: Any = None,
    callback: Callable[[Any], object] | None = None,
    progress: Callable[[int, float], object] | None = None,
    show: bool = False,
    check: bool = False,
) -> SolveResult[Any]:
    """Solve (A - shift I) x = b by MINRES. A is symmetric or Hermitian, and may be indefinite, as in saddle points.

    An iteration takes one product with A and one with M. Its residual r is the one with the least r'M r in the Krylov
    space: this norm never grows. On a GPU an iteration is one CUDA graph.

    Solves are run-to-run deterministic, if A and M are of this package or stored as matrices; see `deterministic`.

    Parameters
    ----------
    A : sparse matrix or array of SciPy or CuPy, dense array, or LinearOperator, shape (n, n)
        As for `pcg`; it need not be definite.
    b : array, shape (n,) or (n, 1)
        On the device of A.
    x0 : array, shape (n,), or "Mb", optional
        Initial guess, zero by default. Not changed. "Mb" stands for M b.
    rtol, atol : float
        Converged when ``||b - (A - shift I) x|| <= max(rtol ||b||, atol)``, tested on the true residual. None stands
        for 0 in `atol`. SciPy's `minres` has another rule: its residual is relative to ``||A|| ||x||``, and is measured
        in the norm of M.
    shift : float
        What is subtracted from the diagonal of A, as for Helmholtz equations. M does not follow it.
    maxiter : int, optional
        5 n by default.
    M : preconditioner, sparse matrix, dense array, LinearOperator or str, optional
        An approximation of inv(A), or of the inverse of a matrix with the same eigenvectors and the magnitudes of the
        eigenvalues of A. It has to be linear, symmetric or Hermitian, and positive definite, also where A is not.
        You can also pass a name: with "jacobi", "sgs", "dilu", "ilu0" or "multigrid" `minres` builds that
        preconditioner from A - shift I. "auto" is "jacobi" if all diagonal entries are positive and they differ, and
        no preconditioner otherwise: nothing better is known to be positive definite.
    callback : function of one array, optional
        Called as ``callback(xk)`` after every iteration, which makes the host wait for each of them.
    progress : function of an int and a float, optional
        Called as ``progress(iterations, residual_norm)`` whenever the host reads the residuals: after every iteration
        on a CPU, on a GPU after 8 of them and then whenever a tenth more have been done.
    show : bool
        Print the result.
    check : bool
        Refuse an A or M that is stored as a matrix and is not symmetric, or Hermitian, up to rounding. Without it
        `minres` tests A where it fails, and `reason` says so.

    Returns
    -------
    SolveResult
        Unpacks as ``x, info``. If A is singular and b does not fit, the reason is `INCONSISTENT` or `NO_PROGRESS`.

    Raises
    ------
    TypeError, ValueError
        As `pcg`, for these arguments; with `check` also as it says, with the place of the first entry that has another
        one across. An M that is known not to be linear or symmetric is refused in any case.

    References
    ----------
    Paige, Saunders: Solution of Sparse Indefinite Systems of Linear Equations, SIAM J. Numer. Anal. 12, 1975.
    Elman, Silvester, Wathen: Finite Elements and Fast Iterative Solvers, 2nd edition, Oxford University Press, 2014,
    section 4.1.

    Examples
    --------
    >>> import numpy as np, scipy.sparse
    >>> from mcprecond import minres
    >>> A = scipy.sparse.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(50, 50), format="csr")
    >>> result = minres(A, np.ones(50), shift=0.1, rtol=1e-10)  # five eigenvalues of A are less than 0.1
    >>> result.reason.name, result.iterations
    ('CONVERGED', 25)
    """
    shift, show, check = real(shift, "shift"), flag(show, "show"), flag(check, "check")
    solver = MINRESSolver(subtract_shift(A, shift) if shift else A, M)
    if check:
        solver.refuse_unsymmetric()
    maxiter = 5 * solver.shape[0] if maxiter is None else maxiter
    result = solver.solve(b, x0, rtol=rtol, atol=atol, maxiter=maxiter, callback=callback, progress=progress)
    solver.release()
    if show:
        print(result)
    return result


def subtract_shift(A: Any, shift: float) -> Any:
    """A - shift I, as a sparse matrix or as an operator, as A is."""
    A, backend = admit_system(A)
    identity = backend.sparse.eye(A.shape[0], dtype=A.dtype, format="csr")
    if hasattr(A, "indptr"):
        return A - A.dtype.type(shift) * identity
    return A - shift * backend.linalg.aslinearoperator(identity)


def choose_preconditioner(A: Any) -> tuple[Any, str | None]:
    """Return A, admitted, and the name of a preconditioner that is positive definite whatever A is; None for none."""
    system, _ = admit_system(A)
    if not hasattr(system, "indptr"):
        return system, None
    matrix = admit_matrix(system, finite=True)
    return matrix, "jacobi" if weakest_for(matrix) == "Jacobi" else None


class MINRESSolver(Solver):
    """MINRES for A and M."""

    method = "minres"
    names, symmetric_method = NAMES, "MINRES"
    #: Whether this is the solve that refines a vector of the null space.
    _is_refining = False

    def __init__(self, A: Any, M: Any = None) -> None:
        if isinstance(M, str) and M == "auto":
            A, M = choose_preconditioner(A)
        super().__init__(A, M)
        if isinstance(self._M, Preconditioner) and not self._M.linear:
            raise ValueError("M is not linear, which MINRES needs; take cycle='V' or cycle='W', or gmres")

    def refuse_unsymmetric(self) -> None:
        """Raise ValueError if A or M is a matrix and not Hermitian up to rounding."""
        matrices = {} if self.A_is_operator else {"A": self.matrix}
        if isinstance(self._M, AdmittedMatrix):
            matrices["M"] = self._M
        for name, matrix in matrices.items():
            if (place := first_unsymmetric(matrix)) is not None:
                row, column = place
                entry, across = (matrix.csr[k].item() for k in ((row, column), (column, row)))
                raise ValueError(
                    f"{name} is not symmetric (or Hermitian): it holds {entry} in row {row}, column {column}, and "
                    f"{across} across; MINRES needs symmetric A and M; use gmres or bicgstab"
                )

    def _new_iteration(self, A: Operator, M: Operator | None, columns: int, stack: ExitStack) -> Iteration:
        M = in_unit_of(A, M, self._backend)
        state = None if M is None else stack.enter_context(M.lend_state())
        return MINRES(A, self._backend, M, state)

    def _cause(self, b: Any, iteration: Iteration, limit: float, reason: Reason | None = None) -> Reason | None:
        """See `Solver`. If b does not fit a singular A, and r is the least residual, M r is in the null space but for a
        part whose square is rounding. Another solve takes that part away: A times it is A M r.
        """
        cause = super()._cause(b, iteration, limit, reason)
        if cause is not None or reason is not Reason.NO_PROGRESS or self.A_is_operator or self._is_refining:
            return cause
        M = self._M.csr if isinstance(self._M, AdmittedMatrix) else self._M
        v, eps = iteration.r if M is None else M @ iteration.r, float(np.finfo(self.matrix.dtype).eps)
        with np.errstate(all="ignore"):
            v = v / abs(v).max()
            product = self.matrix.operand() @ v
        if any_of(~self._backend.xp.isfinite(product)):
            return None
        solver = MINRESSolver(self.matrix, self.M)
        solver._is_refining = True
        v = v - solver.solve(product, rtol=math.sqrt(eps), maxiter=MORE * iteration.count).x
        residual = iteration.norm_in_units(iteration.true_residual_norm)
        return Reason.INCONSISTENT if is_near_null_space(self.matrix, v, b, limit, residual, 100 * eps) else None


class MINRES(Iteration):
    """The Lanczos process with M, an `Operator` and a state of it, or None, and Givens rotations.

    One step, where M stands for its application, and all v have the v'M v of the first, which is r::

        q = A z - beta (last v),  delta = z'q / v'z,       next v = q - delta v
        next z = M (next v),      beta = sqrt(next v'next z / v'z)
        w = (z - first (last but one w) - second (last w)) / pivot
        x += step w,              r -= step A w

    beta and delta are the entries of a tridiagonal matrix, and rotations bring its new column to first, second and
    pivot. A w is not computed by a product: it obeys the recurrence of w, with A z in the place of z. So r is the
    residual, and not only its norm is known. Since v is not normalized to 1, powers of two in A, b and M change no
    digit.
    """

    def __init__(self, A: Operator, backend: Backend, M: Operator | None = None, state: Any = None) -> None:
        super().__init__(A, backend)
        xp = backend.xp
        self.run = backend.kernels(KERNELS, VALUE=A.dtype)
        self.b, self.x, self.r, self.q, self.z, self.v = (xp.empty(self.n, A.dtype) for _ in range(6))
        self.next_z = self.v if M is None else xp.empty(self.n, A.dtype)
        #: v of the step before; then w, w of the step before, A w and A w of the step before.
        self.last_v, *self.directions = (xp.empty(self.n, A.dtype) for _ in range(5))
        first = np.zeros(PLACES)
        first[[COSINE, LAST_COSINE, LEFT]] = 1
        self._first_coefficients, self.coefficients = xp.asarray(first), xp.empty(PLACES)
        self._take_preconditioner(M, state)

    def begin(self) -> None:
        """See `Iteration`: the Lanczos process begins with r."""
        if self._state != RUNNING:
            return
        for vector in (self.last_v, *self.directions):
            vector.fill(0)
        self.coefficients[...] = self._first_coefficients
        self.v[...] = self.r
        self._apply_preconditioner()
        self.z[...] = self.next_z

    def _apply_preconditioner(self) -> None:
        """next z = M v, and the coefficients that follow from v'M v."""
        if self.M is not None:
            self.M.enqueue(self._of_M, self.v, self.next_z)
        self.run.rotate(self.n, self.v, self.next_z, self.coefficients, *self.reduction)

    def _step(self) -> None:
        run, n, c = self.run, self.n, self.coefficients
        self.A.enqueue(self._of_A, self.z, self.q)
        run.find_diagonal(n, self.last_v, self.z, self.q, c, *self.reduction)
        run.make_orthogonal(n, self.q, self.v, self.last_v, c, self.control)
        self._apply_preconditioner()
        vectors = self.next_z, self.q, self.z, self.v, *self.directions, self.x, self.r
        run.advance(n, *vectors, c, *self.reduction)


# On the CPU.


@KERNELS.strided
def find_diagonal(n, last_v, z, q, c, control, scalars, history):
    """Delta from z'(q - beta (last v))."""
    if control[STATE] != RUNNING:
        return
    product = multiply_difference(0, n, q.real.dtype.type(c[BESIDE]), last_v, z, q)
    if is_finite(product, control):
        c[DIAGONAL] = product / c[START]


@compile_loop(grain=NUMBERS)
def multiply_difference(first, end, beta, last_v, z, q):
    """The numbers of `find_diagonal`."""
    product = 0.0
    for i in range(first, end):
        product += inner(z[i], q[i] - beta * last_v[i])
    return product


@KERNELS.strided
def make_orthogonal(n, q, v, last_v, c, control):
    """The next v = q - delta v - beta (last v), before it is normalized."""
    if control[STATE] == RUNNING:
        real = v.real.dtype.type
        orthogonalize_numbers(0, n, real(c[DIAGONAL]), real(c[BESIDE]), q, v, last_v)


@compile_loop(grain=NUMBERS)
def orthogonalize_numbers(first, end, delta, beta, q, v, last_v):
    """The numbers of `make_orthogonal`."""
    for i in range(first, end):
        rest = q[i] - delta * v[i] - beta * last_v[i]
        last_v[i] = v[i]
        v[i] = rest


@KERNELS.strided
def rotate(n, v, next_z, c, control, scalars, history):
    """Compute beta from v'M v, and apply the Givens rotations to the new column of the tridiagonal matrix."""
    if control[STATE] == RUNNING:
        take_vMv(multiply_numbers(0, n, v, next_z, v.dtype.type(1)), c, control, scalars)


@compile_part
def take_vMv(vMv, c, control, scalars):
    """Take v'M v. The first one starts the recurrence; each later one completes a column of the tridiagonal matrix, to
    which the Givens rotations are applied.

    If v'M v is rounding, the Krylov space is exhausted. If A r of the step before is about zero, x is a solution of
    least squares: w is left out, and the solve starts over from the true residual. If A r is about zero at a start
    already, and r'A r about the square of that, r is near the null space of A: the start ends at once.
    """
    if not is_finite(vMv, control):
        return
    if c[START] == 0:
        c[START] = vMv
        if vMv <= 0:
            control[STATE] = BAD_M
        return
    delta, beta, square = c[DIAGONAL], c[BESIDE], vMv / c[START]
    scalars[LARGEST] = max(scalars[LARGEST], delta * delta + beta * beta + abs(square))
    least = 4 * UNITS * UNITS * scalars[ROUNDING] * scalars[LARGEST]
    if square < -least:
        control[STATE] = BAD_M
        return
    if beta == 0:
        image, fallen = delta * delta + square, FALLEN * FALLEN * scalars[LARGEST]
        is_null = image <= fallen and delta * delta <= UNITS * UNITS * FALLEN * FALLEN * fallen
        c[LOWEST] = image if is_null else FALLEN * FALLEN * image
    below = np.sqrt(square) if square > least else 0.0
    c[FIRST] = c[LAST_SINE] * beta
    c[SECOND] = c[SINE] * delta + c[LAST_COSINE] * c[COSINE] * beta
    rotated = c[COSINE] * delta - c[LAST_COSINE] * c[SINE] * beta
    image = rotated * rotated + c[COSINE] * c[COSINE] * below * below
    goes_on = image > max(least, c[LOWEST])
    c[BESIDE] = below if goes_on else 0.0
    c[INVERSE] = 1 / np.sqrt(rotated * rotated + below * below) if goes_on else 0.0
    c[LAST_COSINE], c[LAST_SINE] = c[COSINE], c[SINE]
    c[COSINE], c[SINE] = rotated * c[INVERSE], below * c[INVERSE]
    c[STEP] = c[COSINE] * c[LEFT]
    c[LEFT] *= -c[SINE]


@KERNELS.strided
def advance(n, next_z, q, z, v, w, last_w, Aw, last_Aw, x, r, c, control, scalars, history):
    """The new w and A w, x += step w, r -= step A w; and v and z for the next step."""
    if control[STATE] != RUNNING:
        return
    real = r.real.dtype.type
    scale = 1 / c[BESIDE] if c[BESIDE] else 0.0
    column = real(c[FIRST]), real(c[SECOND]), real(c[INVERSE]), real(c[STEP]), real(scale)
    take_rr(advance_numbers(0, n, *column, next_z, q, z, v, w, last_w, Aw, last_Aw, x, r), control, scalars, history)
    if control[STATE] == RUNNING:
        if scale == 0:
            control[STATE] = CYCLE_ENDED
        elif c[LEFT] * c[LEFT] <= scalars[ROUNDING]:  # the recurrence has nothing more to say
            control[STATE] = REACHED


@compile_loop(grain=NUMBERS)
def advance_numbers(first, end, above, beside, inverse, step, scale, next_z, q, z, v, w, last_w, Aw, last_Aw, x, r):
    """The numbers of `advance`."""
    square = 0.0
    for i in range(first, end):
        direction = inverse * (z[i] - above * last_w[i] - beside * w[i])
        image = inverse * (q[i] - above * last_Aw[i] - beside * Aw[i])
        last_w[i], w[i] = w[i], direction
        last_Aw[i], Aw[i] = Aw[i], image
        x[i] += step * direction
        r[i] -= step * image
        square += inner(r[i], r[i])
        z[i] = scale * next_z[i]
        v[i] = scale * v[i]
    return square
