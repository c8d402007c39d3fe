"""The steps of CG on one device. Every inner product is finished by the kernel that computes it: it derives the next
coefficient, records the residual and decides whether to go on, so scalars never leave the device.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from numba import prange

from mcprecond.backends import Backend, KernelSet, compile_part, offset_type, unsigned

KERNELS = KernelSet(__file__)

# Slots of `control` (int64) and `scalars` (float64), and their values; mirrored in books.cuh.
STATE, ITERATION, MAXITER, ARRIVALS = range(4)
RUNNING, REACHED, EXHAUSTED, BAD_A, BAD_M, NAN = range(6)
ALPHA, BETA, RZ, RR, TOLERANCE, ROUNDING, LEAST_RZ, LEFT, STEP, FIRST_RR, FIRST_RZ = range(SCALARS := 11)
# What an inner product is for: p'Ap gives alpha; r'r ends an iteration (and gives beta if M is the identity); r'z gives
# beta; a fresh r'r starts over. At `LEAST_RZ`, the first r'z times the square of the rounding unit, the recurrence has
# nothing more to say: the state becomes REACHED, so that the host measures the residual. The last four scalars and the
# last two products are about the rows that eisenstat.py keeps apart: what is left of their first r, their part in q,
# and their first r'r and r'z. Elsewhere these are 0.
PAP, RESIDUAL, RESIDUAL_IS_RZ, BETA_OF_RZ, FRESH_RESIDUAL, FRESH_RZ, OF_FIRST_RR, OF_FIRST_RZ, NOTHING = range(9)

HISTORY = 1024  # residuals kept on the device between two looks
BUNDLE = 4  # iterations in one captured graph: from kernel to kernel it is not as far as from graph to graph


class Operator:
    """A foreign M: called for each product, not captured."""

    def __init__(self, M: Any, backend: Backend) -> None:
        self.M, self.xp = M, backend.xp

    def enqueue(self, r: Any, z: Any) -> None:
        """Put M r into z."""
        z[...] = self.xp.asarray(self.M @ r)


class Matrix:
    """A sparse M."""

    def __init__(self, csr: Any, books: tuple[Any, ...], backend: Backend) -> None:
        n, entries = csr.shape[0], csr.indices.size
        offset = offset_type(entries)
        self.run = backend.kernels(KERNELS, OFFSET=offset, VALUE=csr.dtype, LANES=_lanes(entries / max(n, 1)))
        self.n, self.arrays, self.books = n, _csr_arrays(csr, offset, backend.xp), books

    def enqueue(self, r: Any, z: Any) -> None:
        """Put M r into z."""
        self.run.multiply(self.n, *self.arrays, r, z, NOTHING, *self.books)


class Iteration:
    """The scalars of a CG run on one device, and how it starts, goes on and is looked at.

    A subclass holds the vectors, and defines `solution`, `find_residual`, `precondition` and `_step`.
    """

    #: Whether iterations may be captured.
    captures = True
    #: The right-hand side and the residual, in the order of the subclass.
    b: Any
    r: Any

    def __init__(self, csr: Any, backend: Backend) -> None:
        xp, entries = backend.xp, csr.indices.size
        self.backend, self.n = backend, csr.shape[0]
        offset = offset_type(entries)
        self.A = _csr_arrays(csr, offset, xp)
        self.run = backend.kernels(KERNELS, OFFSET=offset, VALUE=csr.dtype, LANES=_lanes(entries / max(self.n, 1)))
        # Side by side, so that one look fetches all that the host wants to know.
        page = np.zeros(4 + SCALARS + HISTORY, np.int64)
        page[4:].view(np.float64)[ROUNDING] = (float(np.finfo(csr.dtype).eps) / 2) ** 2
        page[STATE] = self._state = RUNNING
        self._page = xp.asarray(page)
        self._ask_for_page = backend.fetcher(self._page)
        self.control = self._page[:4]
        self.scalars, self.history = (part.view(np.float64) for part in np.split(self._page[4:], [SCALARS]))
        self.books = (self.control, self.scalars, self.history, xp.empty(16384, np.float64))
        self.count = 0
        self.residuals: list[float] = []
        self.true_residual_norm = math.inf

    @abstractmethod
    def solution(self) -> Any:
        """The iterate, in the order of A."""

    @abstractmethod
    def find_residual(self) -> None:
        """r = b - A x from scratch, and r'r into the scalars."""

    @abstractmethod
    def precondition(self) -> None:
        """The first direction from the residual, and r'z into the scalars."""

    def dot(self, a: Any) -> float:
        """a'a, as a number on the host."""
        self.run.inner_product(self.n, a, a, FRESH_RESIDUAL, *self.books)
        return float(self.scalars[RR])

    def start(self, limit: float, maxiter: int, norm: float | None = None) -> None:
        """The residual of the initial guess and the first direction; where x = 0 its norm is known, that of b."""
        self.limit, self.maxiter = limit, min(maxiter, 2**62)
        self.control[MAXITER] = self.maxiter
        self.scalars[TOLERANCE] = limit**2
        if norm is None:
            self.measure_residual()
        else:
            self.r[...] = self.b
            self.true_residual_norm = norm
        self.residuals = [self.true_residual_norm]
        self.start_over()

    def measure_residual(self) -> None:
        """The residual from scratch; its norm."""
        self._go_to(RUNNING)
        self.find_residual()
        self.true_residual_norm = math.sqrt(float(self.scalars[RR]))

    def start_over(self) -> None:
        """Steepest descent from the residual. Nothing to do if it is small enough, or not finite."""
        self._go_to(
            NAN if not math.isfinite(self.true_residual_norm)
            else REACHED if self.true_residual_norm <= self.limit
            else EXHAUSTED if self.count >= self.maxiter
            else RUNNING
        )  # fmt: skip
        self.precondition()

    def _go_to(self, state: int) -> None:
        """Set the state, unless it is that already: only a look finds out what iterations make of it."""
        if state != self._state:
            self.control[STATE] = self._state = state

    @abstractmethod
    def _step(self) -> None:
        """One iteration; does nothing once the state is no longer RUNNING."""

    @cached_property
    def _one(self) -> Callable[[], None]:
        return self._captured(1)

    @cached_property
    def _several(self) -> Callable[[], None]:
        return self._captured(BUNDLE)

    def _captured(self, iterations: int) -> Callable[[], None]:
        def run() -> None:
            for _ in range(iterations):
                self._step()

        return self.backend.repeatable(run) if self.captures else run

    def enqueue(self, iterations: int) -> None:
        """Run so many iterations, or until the state is no longer RUNNING."""
        for _ in range(iterations % BUNDLE):
            self._one()
        for _ in range(iterations // BUNDLE):
            self._several()  # captured while the device works on those before

    def look(self, ahead: int = 0) -> int:
        """Wait, take note of the new residuals, and return the state; so many iterations go on meanwhile."""
        page = self._ask_for_page()
        self.enqueue(ahead)
        control, history = page()[:4], page()[4 + SCALARS :].view(np.float64)
        count = int(control[ITERATION])
        self.residuals += [float(history[k % HISTORY]) for k in range(self.count + 1, count + 1)]
        self.count, self._state = count, int(control[STATE])
        return self._state


class PlainIteration(Iteration):
    """Algorithm 9.1 of Saad, in the order of A, with any M."""

    def __init__(self, csr: Any, b: Any, x0: Any, M: Any, backend: Backend) -> None:
        super().__init__(csr, backend)
        xp, n = backend.xp, self.n
        self.b, self.x = b, xp.zeros(n, csr.dtype) if x0 is None else x0
        self.r, self.p, self.q = (xp.empty(n, csr.dtype) for _ in range(3))
        self.z = self.r if M is None else xp.empty(n, csr.dtype)
        self.M = Matrix(M, self.books, backend) if backend.sparse.issparse(M) else M
        self.captures = not isinstance(M, Operator)

    def solution(self) -> Any:
        """The iterate, in the order of A."""
        return self.x

    def find_residual(self) -> None:
        """See `Iteration`."""
        self.run.residual(self.n, *self.A, self.x, self.b, self.r, FRESH_RESIDUAL, *self.books)

    def precondition(self) -> None:
        """See `Iteration`: p = z = M r."""
        if self.M is not None:
            self.M.enqueue(self.r, self.z)
        self.run.inner_product(self.n, self.r, self.z, FRESH_RZ, *self.books)
        self.p[...] = self.z

    def _step(self) -> None:
        run, n, books = self.run, self.n, self.books
        run.multiply(n, *self.A, self.p, self.q, PAP, *books)
        run.advance(n, self.p, self.q, self.x, self.r, RESIDUAL_IS_RZ if self.M is None else RESIDUAL, *books)
        if self.M is not None:
            self.M.enqueue(self.r, self.z)
            run.inner_product(n, self.r, self.z, BETA_OF_RZ, *books)
        run.turn(n, self.z, self.p, self.control, self.scalars)


def _csr_arrays(csr: Any, offset: Any, xp: Any) -> tuple[Any, Any, Any]:
    return unsigned(xp.asarray(csr.indptr, dtype=offset)), unsigned(xp.asarray(csr.indices, dtype=np.int32)), csr.data


def _lanes(per_row: float) -> int:
    """How many threads of a GPU share a row of the matrix product."""
    lanes = 1
    while lanes < 32 and lanes < per_row / 4:
        lanes *= 2
    return lanes


@compile_part
def close(role, total, control, scalars, history):
    """What follows from an inner product; in CUDA the last block to arrive does this."""
    if role == NOTHING:
        return
    if role == FRESH_RESIDUAL:
        scalars[RR] = total
        scalars[LEFT] = 1
        return
    if role in (OF_FIRST_RR, OF_FIRST_RZ):
        scalars[FIRST_RR if role == OF_FIRST_RR else FIRST_RZ] = total
        return
    left, step = scalars[LEFT], scalars[STEP]
    if role == PAP:
        total += step**2 * scalars[FIRST_RZ]
    if role == RESIDUAL:
        total += left**2 * scalars[FIRST_RR]
    if role == BETA_OF_RZ:
        total += left**2 * scalars[FIRST_RZ]
    if not np.isfinite(total):
        control[STATE] = NAN
        return
    if role == PAP:
        if total <= 0:
            control[STATE] = BAD_A
        else:
            scalars[ALPHA] = scalars[RZ] / total
            scalars[LEFT] = left - scalars[ALPHA] * step
    elif role in (RESIDUAL, RESIDUAL_IS_RZ):
        scalars[RR] = total
        control[ITERATION] += 1
        history[control[ITERATION] % HISTORY] = np.sqrt(total)
        if total <= scalars[TOLERANCE]:
            control[STATE] = REACHED
        elif control[ITERATION] >= control[MAXITER]:
            control[STATE] = EXHAUSTED
    if role in (RESIDUAL_IS_RZ, BETA_OF_RZ):
        scalars[BETA] = total / scalars[RZ]
        scalars[STEP] = left + scalars[BETA] * step
    if role == FRESH_RZ:
        scalars[LEFT] = scalars[STEP] = np.float64(scalars[FIRST_RZ] > 0)
    if role in (RESIDUAL_IS_RZ, BETA_OF_RZ, FRESH_RZ):
        scalars[RZ] = total
        if role == FRESH_RZ:
            scalars[BETA] = 0
            scalars[LEAST_RZ] = total * scalars[ROUNDING]
        if control[STATE] == RUNNING:
            if total < 0 or (total == 0 and role == FRESH_RZ):
                control[STATE] = BAD_M
            elif total <= scalars[LEAST_RZ]:
                control[STATE] = REACHED


@compile_part
def inner(a, b):
    """The real part of a conj(b), in double precision."""
    return np.float64(a.real) * b.real + np.float64(a.imag) * b.imag


@KERNELS.strided_twin
def multiply(n, indptr, indices, values, p, q, role, control, scalars, history, partials):
    """q = A p, and p'q."""
    if control[STATE] != RUNNING:
        return
    product = 0.0
    for i in prange(n):
        total = p.dtype.type(0)
        for k in range(indptr[i], indptr[i + 1]):
            total += values[k] * p[indices[k]]
        q[i] = total
        product += inner(total, p[i])
    close(role, product, control, scalars, history)


@KERNELS.strided_twin
def residual(n, indptr, indices, values, x, b, r, role, control, scalars, history, partials):
    """r = b - A x, and r'r."""
    square = 0.0
    for i in prange(n):
        total = b[i]
        for k in range(indptr[i], indptr[i + 1]):
            total -= values[k] * x[indices[k]]
        r[i] = total
        square += inner(total, total)
    close(role, square, control, scalars, history)


@KERNELS.strided_twin
def inner_product(n, a, b, role, control, scalars, history, partials):
    """a'b."""
    if control[STATE] != RUNNING:
        return
    product = 0.0
    for i in prange(n):
        product += inner(a[i], b[i])
    close(role, product, control, scalars, history)


@KERNELS.strided_twin
def advance(n, p, q, x, r, role, control, scalars, history, partials):
    """x += alpha p, r -= alpha q, and r'r."""
    if control[STATE] != RUNNING:
        return
    alpha = r.dtype.type(scalars[ALPHA])
    square = 0.0
    for i in prange(n):
        x[i] += alpha * p[i]
        r[i] -= alpha * q[i]
        square += inner(r[i], r[i])
    close(role, square, control, scalars, history)


@KERNELS.strided_twin
def turn(n, z, p, control, scalars):
    """p = z + beta p."""
    if control[STATE] != RUNNING:
        return
    beta = p.dtype.type(scalars[BETA])
    for i in prange(n):
        p[i] = z[i] + beta * p[i]
