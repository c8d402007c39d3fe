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

from mcprecond.backends import Backend, KernelSet, compile_loop, compile_part
from mcprecond.backends.cuda_source import BLOCK
from mcprecond.solvers.columns import MOST_PARTS, parts_of, total_of
from mcprecond.solvers.iteration import inner

KERNELS = KernelSet(__file__, "VALUE")

SHARE, FIRST, SECOND = range(3)  # of each column: 1 / c'A c, and the coefficients of c and d
#: The second step is skipped if d is nearly a multiple of c, that is, if the component of d that is A-orthogonal to c
#: has at most 1 / LEAST_SHARE of the energy d'A d.
LEAST_SHARE = 10**6
CUDA_CONSTANTS = {"SHARE": SHARE, "FIRST": FIRST, "SECOND": SECOND, "LEAST_SHARE": LEAST_SHARE}
MOST_BLOCKS = 2**14  # of a grid, each of which leaves three numbers


class TwoSteps:
    """The coefficients of two steps for vectors of n numbers in each of some columns, and what finds them.

    An application only launches kernels.
    """

    def __init__(self, n: int, dtype: Any, backend: Backend, columns: int = 1) -> None:
        xp, self._shape = backend.xp, (n, columns)
        self._run = backend.kernels(KERNELS, VALUE=dtype)
        self.scalars = xp.ones((columns, 3))
        blocks = max(MOST_PARTS, min(MOST_BLOCKS, n * columns // BLOCK + 1))
        self._reduction = self.scalars, xp.empty(3 * blocks * columns), xp.zeros(1, np.int32)

    def _vectors(self, *vectors: Any) -> tuple[Any, ...]:
        """What kernels take first: how many numbers and columns there are, and the vectors in the shape of columns."""
        n, k = self._shape
        return n * k, k, *(v.reshape(n, k) for v in vectors)

    def first(self, b: Any, c: Any, rest: Any) -> None:
        """Turn ``rest = b - A c`` into the residual of the first step, ``b - t A c``; b becomes A c."""
        self._run.find_first(*self._vectors(b, c, rest), *self._reduction)
        self._run.step(*self._vectors(b, rest), self.scalars)

    def second(self, product_of_c: Any, rest: Any, d: Any, last: Any, c: Any) -> None:
        """c becomes x. For the direction d of the second step, `last` is ``rest - A d``."""
        self._run.find_second(*self._vectors(product_of_c, rest, d, last), *self._reduction)
        self._run.combine(*self._vectors(d, c), self.scalars)


# The kernels on the CPU. If an inner product overflows or underflows, the first step takes the correction of the coarse
# level as it is, with the coefficient 1.


@compile_part
def parts_for(count, n, k, partials):
    """Room for `count` sums of each part of the rows."""
    room = len(partials) // count
    return [parts_of(n, k, partials[s * room :]) for s in range(count)]


@compile_loop(grain=1)
def first_products(first, end, b, c, rest, products, energies):
    """c'b and c'A c, for some parts of the rows."""
    n, parts = len(b), len(products)
    for part in range(first, end):
        products[part] = energies[part] = 0
        for i in range(part * n // parts, (part + 1) * n // parts):
            for q in range(b.shape[1]):
                products[part, q] += inner(c[i, q], b[i, q])
                energies[part, q] += inner(c[i, q], b[i, q] - rest[i, q])


@KERNELS.strided
def find_first(size, k, b, c, rest, scalars, partials, arrivals):
    """The length of the first step."""
    products, energies = parts_for(2, len(b), k, partials)
    first_products(0, len(products), b, c, rest, products, energies)
    for q in range(k):
        product, energy = total_of(products, q), total_of(energies, q)
        fits = energy > 0 and np.isfinite(energy) and np.isfinite(product)
        scalars[q, SHARE] = 1 / energy if fits else 0.0
        scalars[q, FIRST] = product / energy if fits else 1.0


@KERNELS.per_item_driver
def step(size, k, b, rest, scalars):
    """b becomes A c, and `rest` the residual of the first step."""
    step_rows(0, len(b), b, rest, scalars)


@compile_loop
def step_rows(first, end, b, rest, scalars):
    """The rows of `step`."""
    for i in range(first, end):
        for q in range(b.shape[1]):
            product = b[i, q] - rest[i, q]
            rest[i, q] = b[i, q] - b.real.dtype.type(scalars[q, FIRST]) * product
            b[i, q] = product


@compile_loop(grain=1)
def second_products(first, end, product_of_c, rest, d, last, products, between, energies):
    """d'rest, d'A c and d'A d, for some parts of the rows."""
    n, parts = len(d), len(products)
    for part in range(first, end):
        products[part] = between[part] = energies[part] = 0
        for i in range(part * n // parts, (part + 1) * n // parts):
            for q in range(d.shape[1]):
                products[part, q] += inner(d[i, q], rest[i, q])
                between[part, q] += inner(d[i, q], product_of_c[i, q])
                energies[part, q] += inner(d[i, q], rest[i, q] - last[i, q])


@KERNELS.strided
def find_second(size, k, product_of_c, rest, d, last, scalars, partials, arrivals):
    """The coefficients of c and d."""
    products, between, energies = parts_for(3, len(d), k, partials)
    second_products(0, len(products), product_of_c, rest, d, last, products, between, energies)
    for q in range(k):
        share = total_of(between, q) * scalars[q, SHARE]
        energy = total_of(energies, q)
        left = energy - share * total_of(between, q)
        second = total_of(products, q) / left if left * LEAST_SHARE > energy and np.isfinite(left) else 0.0
        scalars[q, SECOND] = second
        scalars[q, FIRST] -= second * share


@KERNELS.per_item_driver
def combine(size, k, d, c, scalars):
    """c becomes x."""
    combine_rows(0, len(c), d, c, scalars)


@compile_loop
def combine_rows(first, end, d, c, scalars):
    """The rows of `combine`."""
    real = c.real.dtype.type
    for i in range(first, end):
        for q in range(c.shape[1]):
            c[i, q] = real(scalars[q, FIRST]) * c[i, q] + real(scalars[q, SECOND]) * d[i, q]
