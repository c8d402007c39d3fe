"""The residual b - A x as accurate as if it were computed with twice the digits of double precision.

A sum of products is accumulated together with all of its rounding errors. A fused multiply-add gives the error of a
product, and six additions give the error of a sum. So the result is right to its last digits, also where b - A x is far
smaller than the rounding errors of A x.

Ogita, Rump, Oishi: Accurate Sum and Dot Product, SIAM J. Sci. Comput. 26, 2005, Algorithm 5.3.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mcprecond.backends import Backend, KernelSet, compile_row, unsigned
from mcprecond.backends.team.arithmetic import fma
from mcprecond.linalg.csr import Csr

KERNELS = KernelSet(__file__, "OFFSET VALUE LANES")


def find_accurate_residual(A: Csr, x: Any, b: Any, r: Any, backend: Backend) -> None:
    """r = b - A x, rounded once.

    Parameters
    ----------
    A : Csr
        Its values have the dtype of the vectors.
    x, b, r : array, shape (n,)
        Contiguous.
    """
    run = backend.kernels(KERNELS, OFFSET=A.offset, VALUE=A.dtype, LANES=A.lanes_of_longest)
    values, x, b, r = (real_parts(v) for v in (A.values, x, b, r))
    run.residual(len(r), unsigned(A.indptr), unsigned(A.indices), values, x, b, r)


def real_parts(v: Any) -> Any:
    """A contiguous vector as an array with a row for each number: its real part and, if complex, its imaginary part."""
    return v.view(v.real.dtype).reshape(len(v), -1) if len(v) else v.real.reshape(0, 1)


# On the CPU.


@compile_row
def add_product(a, x, total, error):
    """The sum of a total and a x, and what has been rounded off so far."""
    product = a * x
    error += fma(a, x, -product)
    moved = total + product
    taken = moved - total
    return moved, error + ((total - (moved - taken)) + (product - taken))


@KERNELS.per_item
def residual(first, end, indptr, indices, values, x, b, r):
    """r = b - A x; each number is a row of its real parts."""
    parts = x.shape[1]
    for i in range(first, end):
        for part in range(parts):
            total = error = 0.0
            for k in range(indptr[i], indptr[i + 1]):
                for other in range(parts):
                    a = np.float64(values[k, other])
                    total, error = add_product(
                        a if part >= other else -a, np.float64(x[indices[k], part ^ other]), total, error
                    )
            # Minus one times the total.
            rest, error = add_product(1.0, -total, np.float64(b[i, part]), -error)
            r[i, part] = rest + error
