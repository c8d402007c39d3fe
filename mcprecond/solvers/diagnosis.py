"""Why CG does not converge: A is not symmetric, it is singular and b does not fit, or the rest is rounding.

A test that runs while CG goes on costs a product with A or two.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mcprecond.backends.inputs import first_place
from mcprecond.linalg.csr import product_with
from mcprecond.linalg.hermitian import is_hermitian
from mcprecond.linalg.sums import norm, norm_of, total, wide
from mcprecond.linalg.vectors import signs
from mcprecond.matrix import AdmittedMatrix

#: How many units of rounding may add up in sums over all rows, and in sums over a row.
ROUNDING, ROUNDING_OF_ROW = 100, 8
SINGLE = 1e-10  # units of rounding above this are those of single precision


def is_unsymmetric(matrix: AdmittedMatrix) -> bool:
    """Whether A is not Hermitian up to rounding.

    Where x'Ay and the conjugate of y'Ax agree for two random vectors, nothing else is read: a matrix that is
    symmetric costs two products.
    """
    if not matrix.data.size:
        return False
    A, scales = product_with(matrix), _scales(matrix)
    with np.errstate(all="ignore"):
        x, y = ((scales * signs(len(scales), seed, matrix.backend)).astype(matrix.dtype) for seed in (1, 2))
        one, other = x * A.times(y), y * A.times(x)
        difference = abs(total(one, matrix.backend) - total(other, matrix.backend).conj())
        size = total(abs(one) + abs(other), matrix.backend)
        agree = bool(difference <= ROUNDING * float(np.finfo(matrix.dtype).eps) * size)  # the only number that is read
    return not agree and not is_hermitian(matrix)


def unsolvable_row(matrix: AdmittedMatrix, b: Any, limit: float) -> int | None:
    """The row with the largest entry of b among the rows of A that are zero, if they keep residuals above the limit."""
    xp, n = matrix.backend.xp, len(b)
    if not n:
        return None
    with np.errstate(all="ignore"):
        rest = xp.where(matrix.magnitudes() @ xp.ones(n, matrix.data.real.dtype) == 0, abs(b), 0)
        return int(xp.argmax(rest)) if norm_of(rest, matrix.backend) > limit else None


def does_not_fit(matrix: AdmittedMatrix, b: Any, limit: float) -> bool:
    """Whether no residual is below the limit: because of rows of A that are zero, or since constants are in the null
    space of the adjoint of A, up to rounding, and b has a large part in them.
    """
    if unsolvable_row(matrix, b, limit) is not None:
        return True
    xp, n = matrix.backend.xp, len(b)
    eps = float(np.finfo(matrix.dtype).eps)
    with np.errstate(all="ignore"):
        part = float(abs(total(b, matrix.backend)))
        # Where every column of A sums to 0, b - A x and b have the same sum for any x.
        if not part > max(limit * math.sqrt(n), ROUNDING * eps * float(total(abs(b), matrix.backend))):
            return False
        sums, sizes = _of_adjoint(matrix, xp.ones(n, matrix.dtype))
        return first_place(sums > ROUNDING_OF_ROW * eps * sizes, xp) is None


def is_rounding(matrix: AdmittedMatrix, x: Any, residual: float) -> bool:
    """Whether a norm of b - A x is at most what rounding of A x makes of it."""
    with np.errstate(all="ignore"):
        sizes = norm_of(matrix.magnitudes() @ abs(wide(x)), matrix.backend)
    return residual <= ROUNDING * float(np.finfo(matrix.dtype).eps) * sizes < math.inf


def is_positive_along(matrix: AdmittedMatrix, p: Any) -> bool:
    """Whether p'A p, computed from the entries of A in double precision, is positive by more than rounding.

    Eisenstat's form finds it from a sum in which the triangles of M cancel: where these are ill-conditioned, rounding
    may make it negative for a positive definite A.
    """
    largest = _largest(p)
    if not 0 < largest < math.inf:
        return False
    p = wide(p / largest)
    with np.errstate(all="ignore"):
        product = float(total(p.conj() * (matrix.operand() @ p), matrix.backend).real)
        size = float(total(abs(p) * (matrix.magnitudes() @ abs(p)), matrix.backend))
    return ROUNDING * float(np.finfo(np.float64).eps) * size < product < math.inf


def is_near_null_space(matrix: AdmittedMatrix, x: Any, b: Any, limit: float, residual: float, tolerance: float) -> bool:
    """Whether the adjoint of A times x is zero but for this share of what cancels in it, and b has so large a part in x
    that no residual is below the limit.

    Where a Hermitian A is singular and b does not fit, the iterates of CG grow, and become a vector of the null space.
    For any y, ||b - A y|| is at least |x'b| / ||x||, unless y is even larger. Single precision cannot tell this from an
    A with a large condition number: there it is never found.
    """
    eps = float(np.finfo(matrix.dtype).eps)
    with np.errstate(all="ignore"):
        largest = _largest(x)
        if eps > SINGLE or not 0 < largest < math.inf:
            return False
        v = (x / largest).astype(matrix.dtype)
        v /= norm(v, matrix.backend)
        part, size = float(abs(total(v.conj() * b, matrix.backend))), norm_of(b, matrix.backend)
        if not max(2 * limit, ROUNDING * eps * size) < part < 2 * residual:
            return False
        products, sizes = _of_adjoint(matrix, v)
        scales = _scales(matrix)
        return norm_of(scales * products, matrix.backend) <= tolerance * norm_of(scales * sizes, matrix.backend)


def _scales(matrix: AdmittedMatrix) -> Any:
    """Factors that scale rows and columns of A alike so that the diagonal is 1 where it is not zero."""
    xp, diagonal = matrix.backend.xp, abs(matrix.canonical().diagonal())
    with np.errstate(all="ignore"):
        largest = abs(matrix.data).max()
        return 1 / xp.sqrt(xp.where(diagonal > 0, diagonal, xp.where(largest > 0, largest, 1)))


def _of_adjoint(matrix: AdmittedMatrix, v: Any) -> tuple[Any, Any]:
    """The magnitudes of the numbers of the adjoint of A times v, and the sums of the magnitudes that they consist of;
    in double precision.
    """
    v = wide(v)
    return abs(matrix.operand().T @ v.conj()), matrix.magnitudes().T @ abs(v)


def _largest(v: Any) -> float:
    """The largest magnitude; 0 if there is none."""
    return float(abs(v).max()) if v.size else 0.0
