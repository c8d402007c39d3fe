"""Two steps of CG on a level, preconditioned by the cycle of the levels from there on: what makes a K cycle.

The first cycle finds the direction c for the right-hand side b, and the second finds the direction d for the residual
of the first step. Of all vectors s c + t d with real s and t, these steps give the one that is nearest to the solution
in the norm of A. Inner products are real parts. Scalars stay on the device.

Notay, Vassilevski: Recursive Krylov-based multigrid cycles, Numerical Linear Algebra with Applications 15, 2008,
Algorithm 3.1. It leaves the second step out where the first was good enough. Here it is always done, since the host
would have to wait for the numbers to decide that.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mcprecond.backends import NUMBERS, Backend, KernelSet, compile_loop
from mcprecond.backends.cuda_source import BLOCK
from mcprecond.solvers.iteration import inner

KERNELS = KernelSet(__file__, "VALUE")

SHARE, FIRST, SECOND = range(3)  # 1 / c'A c, and the coefficients of c and d
#: The second step is skipped if d is nearly a multiple of c, that is, if the component of d that is A-orthogonal to c
#: has at most 1 / LEAST_SHARE of the energy d'A d.
LEAST_SHARE = 10**6
CUDA_CONSTANTS = {"SHARE": SHARE, "FIRST": FIRST, "SECOND": SECOND, "LEAST_SHARE": LEAST_SHARE}
MOST_BLOCKS = 2**14  # of a grid, each of which leaves three numbers


class TwoSteps:
    """The coefficients of two steps for vectors of n numbers, and what finds them.

    An application only launches kernels.
    """

    def __init__(self, n: int, dtype: Any, backend: Backend) -> None:
        xp = backend.xp
        self.n, self._run = n, backend.kernels(KERNELS, VALUE=dtype)
        self.scalars = xp.ones(3)
        self._reduction = self.scalars, xp.empty(3 * min(MOST_BLOCKS, n // BLOCK + 1)), xp.zeros(1, np.int32)

    def first(self, b: Any, c: Any, rest: Any) -> None:
        """Turn ``rest = b - A c`` into the residual of the first step, ``b - t A c``; b becomes A c."""
        self._run.find_first(self.n, b, c, rest, *self._reduction)
        self._run.step(self.n, self.scalars, b, rest)

    def second(self, product_of_c: Any, rest: Any, d: Any, last: Any, c: Any) -> None:
        """c becomes x. For the direction d of the second step, `last` is ``rest - A d``."""
        self._run.find_second(self.n, product_of_c, rest, d, last, *self._reduction)
        self._run.combine(self.n, self.scalars, d, c)


# The kernels on the CPU. If an inner product overflows or underflows, the first step takes the correction of the coarse
# level as it is, with the coefficient 1.


@compile_loop(grain=NUMBERS)
def first_products(first, end, b, c, rest):
    """c'b and c'A c."""
    product, energy = 0.0, 0.0
    for i in range(first, end):
        product += inner(c[i], b[i])
        energy += inner(c[i], b[i] - rest[i])
    return product, energy


@KERNELS.strided
def find_first(n, b, c, rest, scalars, partials, arrivals):
    """The length of the first step."""
    product, energy = first_products(0, n, b, c, rest)
    fits = energy > 0 and np.isfinite(energy) and np.isfinite(product)
    scalars[SHARE] = 1 / energy if fits else 0.0
    scalars[FIRST] = product / energy if fits else 1.0


@KERNELS.per_item
def step(first, end, scalars, b, rest):
    """b becomes A c, and `rest` the residual of the first step."""
    factor = b.real.dtype.type(scalars[FIRST])
    for i in range(first, end):
        product = b[i] - rest[i]
        rest[i] = b[i] - factor * product
        b[i] = product


@compile_loop(grain=NUMBERS)
def second_products(first, end, product_of_c, rest, d, last):
    """d'rest, d'A c and d'A d."""
    product, between, energy = 0.0, 0.0, 0.0
    for i in range(first, end):
        product += inner(d[i], rest[i])
        between += inner(d[i], product_of_c[i])
        energy += inner(d[i], rest[i] - last[i])
    return product, between, energy


@KERNELS.strided
def find_second(n, product_of_c, rest, d, last, scalars, partials, arrivals):
    """The coefficients of c and d."""
    product, between, energy = second_products(0, n, product_of_c, rest, d, last)
    share = between * scalars[SHARE]
    left = energy - share * between
    second = product / left if left * LEAST_SHARE > energy and np.isfinite(left) else 0.0
    scalars[SECOND] = second
    scalars[FIRST] -= second * share


@KERNELS.per_item
def combine(first, end, scalars, d, c):
    """c becomes x."""
    of_c, of_d = c.real.dtype.type(scalars[FIRST]), c.real.dtype.type(scalars[SECOND])
    for i in range(first, end):
        c[i] = of_c * c[i] + of_d * d[i]
