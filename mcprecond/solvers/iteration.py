"""The steps of CG on one device. Every inner product is finished by the kernel that computes it: it derives the next
coefficient, records the residual and decides whether to go on, so scalars never leave the device.

Squares must neither overflow nor underflow, whatever the units of A and b. Let 2^a be the magnitude of A. Where a or
the exponent of b is far from 0, the iteration works on a system in other units: b and x0 times a power of two that
makes the residual about 2^(a / 3), and z times one that makes it about inv(A) r. Then r'r is about 2^(2 a / 3), r'z and
p'A p about 2^(-a / 3), and x about 2^(-2 a / 3). Powers of two change no digit, so that the iterates are those of the
system as it was given, wherever these are in range.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from mcprecond.backends import NUMBERS, Backend, KernelSet, compile_loop, compile_part, offset_type, unsigned
from mcprecond.matrix import AdmittedMatrix
from mcprecond.solvers.long_rows import long_rows

KERNELS = KernelSet(__file__, "OFFSET VALUE LANES")

# Slots of the control block, `control` (int64) and `scalars` (float64), and the values of STATE.
STATE, ITERATION, MAXITER, ARRIVALS = range(4)
RUNNING, REACHED, EXHAUSTED, BAD_A, BAD_M, NAN = range(6)
ALPHA, BETA, RZ, RR, TOLERANCE, ROUNDING, LEAST_RZ, LEFT, STEP, FIRST_RR, FIRST_RZ, UNIT = range(SCALARS := 12)
# What an inner product is for: p'Ap gives alpha; r'r ends an iteration (and gives beta if M is the identity); r'z gives
# beta, and after it q'z that of flexible CG; a fresh r'r starts over. At `LEAST_RZ`, the first r'z times the square of
# the rounding unit, the recurrence has nothing more to say: the state becomes REACHED, so that the host measures the
# residual. The last four scalars and the last two products are about the rows that eisenstat.py keeps apart: what is
# left of their first r, their part in q, and their first r'r and r'z. Elsewhere these are 0. `UNIT` is the power of two
# that z is multiplied by.
# Numba has a type for each int of Python that a module defines, and would compile for each what is called with it.
PAP, RESIDUAL, RESIDUAL_IS_RZ, BETA_OF_RZ, BETA_OF_QZ, FRESH_RESIDUAL, FRESH_RZ, OF_FIRST_RR, OF_FIRST_RZ, NOTHING = (
    map(np.int64, range(10))
)

HISTORY = 1024  # residuals kept on the device between two looks
# Iterations in one captured graph, unless M has many kernels. Between graphs a GPU pauses longer than between kernels.
BUNDLE = 4
CUDA_CONSTANTS = {
    **{"STATE": STATE, "ITERATION": ITERATION, "MAXITER": MAXITER, "ARRIVALS": ARRIVALS},
    **{"RUNNING": RUNNING, "REACHED": REACHED, "EXHAUSTED": EXHAUSTED},
    **{"BAD_A": BAD_A, "BAD_M": BAD_M, "NOT_A_NUMBER": NAN},
    **{"ALPHA": ALPHA, "BETA": BETA, "RZ": RZ, "RR": RR, "TOLERANCE": TOLERANCE, "ROUNDING": ROUNDING},
    **{"LEAST_RZ": LEAST_RZ, "LEFT": LEFT, "STEP": STEP, "FIRST_RR": FIRST_RR, "FIRST_RZ": FIRST_RZ, "UNIT": UNIT},
    **{"PAP": PAP, "RESIDUAL": RESIDUAL, "RESIDUAL_IS_RZ": RESIDUAL_IS_RZ, "BETA_OF_RZ": BETA_OF_RZ},
    **{"BETA_OF_QZ": BETA_OF_QZ, "FRESH_RESIDUAL": FRESH_RESIDUAL, "FRESH_RZ": FRESH_RZ},
    **{"OF_FIRST_RR": OF_FIRST_RR, "OF_FIRST_RZ": OF_FIRST_RZ, "NOTHING": NOTHING, "HISTORY": HISTORY},
}

#: Exponents up to this share of the largest one of a dtype are near enough to 0 to be left as they are.
NEAR = 1 / 8
#: Sums of squares in between have lost nothing to overflow or underflow.
SAFE_SQUARES = 1e-270, 1e290


class Product:
    """A product with a sparse matrix, which may be captured."""

    def __init__(self, matrix: AdmittedMatrix) -> None:
        csr, backend = matrix.csr, matrix.backend
        n, entries, xp = csr.shape[0], csr.indices.size, backend.xp
        offset, lanes = offset_type(entries), _lanes(entries / max(n, 1))
        self.run = backend.kernels(KERNELS, OFFSET=offset, VALUE=csr.dtype, LANES=lanes)
        rows = _csr_arrays(csr, offset, xp)
        self.n, self.arrays = n, (*rows, *long_rows(rows[0], matrix.max_degree + 1, lanes, backend))
        # The kernel asks for the scalars of a run, which this role leaves alone.
        self.reduction = (xp.zeros(4, np.int64), *(xp.zeros(size, np.float64) for size in (SCALARS, 1, 1)))

    def enqueue(self, x: Any, y: Any) -> None:
        """y = A x."""
        self.run.multiply(self.n, *self.arrays, x, y, NOTHING, *self.reduction)


class Iteration:
    """The scalars of a CG run on one device, and how the run starts, goes on and is read by the host.

    A subclass holds the vectors, and defines `solution`, `find_residual`, `precondition` and `_step`.
    """

    #: Whether iterations may be captured, and how many in one graph.
    captures, bundle = True, BUNDLE
    #: The right-hand side and the residual, in the order of the subclass.
    b: Any
    r: Any
    #: The iterate, likewise.
    x: Any

    def __init__(self, csr: Any, longest_row: int, backend: Backend) -> None:
        xp, entries = backend.xp, csr.indices.size
        self.backend, self.n = backend, csr.shape[0]
        offset = offset_type(entries)
        self.A, self.dtype = _csr_arrays(csr, offset, xp), csr.dtype
        self.near = int(np.finfo(csr.dtype).maxexp * NEAR)
        lanes = _lanes(entries / max(self.n, 1))
        self.long_rows = long_rows(self.A[0], longest_row, lanes, backend)
        self.run = backend.kernels(KERNELS, OFFSET=offset, VALUE=csr.dtype, LANES=lanes)
        # Side by side, so that one copy to the host has all that it reads.
        block = np.zeros(4 + SCALARS + HISTORY, np.int64)
        block[4:].view(np.float64)[ROUNDING] = (float(np.finfo(csr.dtype).eps) / 2) ** 2
        block[4:].view(np.float64)[UNIT] = 1
        block[STATE] = self._state = RUNNING
        self._control_block = xp.asarray(block)
        self._fetch_control_block = backend.fetcher(self._control_block)
        self.control = self._control_block[:4]
        self.scalars, self.history = (part.view(np.float64) for part in np.split(self._control_block[4:], [SCALARS]))
        self.reduction = (self.control, self.scalars, self.history, xp.empty(16384, np.float64))
        self.count = 0
        self.residuals: list[float] = []
        self.true_residual_norm = math.inf
        # Of b, x and r here, in those of the caller: 2^shift; and the exponent that the residual is to be near.
        self.shift = self.home = 0

    @abstractmethod
    def iterate(self) -> Any:
        """The iterate in the units of the iteration, in the order of A."""

    @abstractmethod
    def replace_iterate(self, x: Any) -> None:
        """Take another iterate, in the order of A; to be called before `measure_residual` only."""

    def solution(self) -> Any:
        """The iterate in the caller's units, in the order of A."""
        x = self.iterate()
        return x if self.shift == 0 else times_power(x, -self.shift, self.backend.xp)

    def norm_in_units(self, norm: float) -> float:
        """A norm of residuals in the caller's units; infinite where it overflows."""
        return power_times(norm, -self.shift)

    def choose_units(self, exponent_of_A: int, exponent: int) -> None:
        """Choose the units by the exponents of A and of the first residual, or of what it is a difference of."""
        if abs(exponent_of_A) <= self.near and abs(exponent) <= self.near:
            self.home = exponent
        else:
            self.home = exponent_of_A // 3
            self._rescale(self.home - exponent, self.b, self.x)

    def _rescale(self, shift: int, *vectors: Any) -> None:
        """Multiply vectors by 2^shift."""
        for v in vectors:
            v[...] = times_power(v, shift, self.backend.xp)
        self.shift += shift

    @abstractmethod
    def find_residual(self) -> None:
        """r = b - A x from scratch, and r'r into the scalars."""

    @abstractmethod
    def precondition(self) -> None:
        """The first direction from the residual, and r'z into the scalars."""

    def dot(self, a: Any) -> float:
        """a'a, as a number on the host."""
        a = a.reshape(-1)
        self.run.inner_product(self.n, a, a, FRESH_RESIDUAL, *self.reduction)
        return float(self.scalars[RR])

    def size(self, v: Any) -> tuple[float, int]:
        """The norm of a vector, as a number and the exponent of a power of two that it is multiplied by.

        The exponent is 0 unless squares may have been lost to overflow or underflow. The number is not finite if the
        vector is not.
        """
        return self._size(v, self.dot(v))

    def _size(self, v: Any, square: float) -> tuple[float, int]:
        """The same where the square of the norm has been computed, as well as that goes."""
        if SAFE_SQUARES[0] < square < SAFE_SQUARES[1]:
            return math.sqrt(square), 0
        largest = max(float(abs(part).max()) for part in (v.real, v.imag)) if v.size else 0.0
        if largest == 0 or not math.isfinite(largest):
            return largest, 0
        exponent = math.frexp(largest)[1]
        return math.sqrt(self.dot(times_power(v, -exponent, self.backend.xp))), exponent

    def start(self, limit: float, maxiter: int, norm: float | None = None) -> None:
        """The residual of the initial guess and the first direction; where x = 0 its norm is known, that of b."""
        self.limit, self.maxiter = limit, min(maxiter, 2**62)
        self.control[MAXITER] = self.maxiter
        self.scalars[TOLERANCE] = limit * limit
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
        self.true_residual_norm = power_times(*self._size(self.r, float(self.scalars[RR])))

    def start_over(self) -> None:
        """Steepest descent from the residual. Nothing to do if it is small enough, or not finite."""
        if self.limit < self.true_residual_norm < math.inf:
            shift = self.home - math.frexp(self.true_residual_norm)[1]
        else:
            shift = 0
        if abs(shift) > self.near:
            self._rescale(shift, self.b, self.x, self.r)
            self.limit = power_times(self.limit, shift)
            self.scalars[TOLERANCE] = self.limit * self.limit
            self.residuals = [power_times(norm, shift) for norm in self.residuals]
            self.true_residual_norm = power_times(self.true_residual_norm, shift)
        self._go_to(
            NAN
            if not math.isfinite(self.true_residual_norm)
            else REACHED
            if self.true_residual_norm <= self.limit
            else EXHAUSTED
            if self.count >= self.maxiter
            else RUNNING
        )
        self.precondition()

    def _go_to(self, state: int) -> None:
        """Set the state, unless the host has read that it is so already; iterations change it on the device."""
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
        return self._captured(self.bundle)

    def _captured(self, iterations: int) -> Callable[[], None]:
        def run() -> None:
            for _ in range(iterations):
                self._step()

        return self.backend.repeatable(run) if self.captures else run

    def enqueue(self, iterations: int) -> None:
        """Run so many iterations, or until the state is no longer RUNNING."""
        for _ in range(iterations % self.bundle):
            self._one()
        for _ in range(iterations // self.bundle):
            self._several()  # captured while the device works on those before

    def read_state(self, ahead: int = 0) -> int:
        """Wait, take note of the new residuals, and return the state; `ahead` iterations run while it waits."""
        fetched = self._fetch_control_block()
        self.enqueue(ahead)
        control, history = fetched()[:4], fetched()[4 + SCALARS :].view(np.float64)
        count = int(control[ITERATION])
        self.residuals += [float(history[k % HISTORY]) for k in range(self.count + 1, count + 1)]
        self.count, self._state = count, int(control[STATE])
        return self._state


class PlainIteration(Iteration):
    """Algorithm 9.1 of Saad, in the order of A, with any M: an `Applier`, or None for the identity.

    Where M is not linear, z need not be orthogonal to the residual before, as beta = r'z / r'z of before has it; then
    beta is that of Notay's flexible CG, (r - r of before)'z / r'z of before, where the difference is -alpha q.

    Notay: Flexible conjugate gradients, SIAM J. Sci. Comput. 22, 2000.
    """

    def __init__(self, matrix: AdmittedMatrix, b: Any, x0: Any, M: Any) -> None:
        csr, backend = matrix.csr, matrix.backend
        super().__init__(csr, matrix.max_degree + 1, backend)
        xp, n = backend.xp, self.n
        self.b, self.x = b.astype(csr.dtype), xp.zeros(n, csr.dtype) if x0 is None else x0.astype(csr.dtype)
        self.r, self.p, self.q = (xp.empty(n, csr.dtype) for _ in range(3))
        self.z = self.r if M is None else xp.empty(n, csr.dtype)
        self.M, self.captures = M, M is None or M.captures
        if M is not None and M.has_many_kernels:
            self.bundle = 1

    def iterate(self) -> Any:
        """See `Iteration`."""
        return self.x

    def replace_iterate(self, x: Any) -> None:
        """See `Iteration`."""
        self.x = x

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


def power_times(number: float, exponent: int) -> float:
    """2^exponent times a number that is not negative; infinite where that overflows."""
    try:
        return math.ldexp(number, exponent)
    except OverflowError:
        return math.inf


def times_power(v: Any, exponent: int, xp: Any) -> Any:
    """2^exponent times a vector, in steps that a float has room for."""
    real, most = np.finfo(v.dtype), np.finfo(v.dtype).maxexp - 2
    with np.errstate(all="ignore"):
        while exponent:
            step = max(min(exponent, most), -most)
            v = v * real.dtype.type(math.ldexp(1.0, step))
            exponent -= step
    return v


def exponent_of(v: Any, xp: Any) -> int:
    """The exponent of the largest magnitude in a vector; 0 if that is zero or not finite."""
    largest = float(abs(v).max()) if v.size else 0.0
    return math.frexp(largest)[1] if math.isfinite(largest) else 0


def _csr_arrays(csr: Any, offset: Any, xp: Any) -> tuple[Any, Any, Any]:
    return unsigned(xp.asarray(csr.indptr, dtype=offset)), unsigned(xp.asarray(csr.indices, dtype=np.int32)), csr.data


def _lanes(per_row: float) -> int:
    """How many threads of a GPU share a row of the matrix product."""
    lanes = 1
    while lanes < 32 and lanes < per_row / 4:
        lanes *= 2
    return lanes


@compile_part
def apply_reduction(role, total, control, scalars, history):
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
    if role == BETA_OF_QZ:
        scalars[BETA] *= -scalars[ALPHA] * total / scalars[RZ]
    if role in (RESIDUAL_IS_RZ, BETA_OF_RZ):
        if role == RESIDUAL_IS_RZ:
            total *= scalars[UNIT]
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


@compile_part
def wide(x):
    """x in double precision."""
    return x + np.float64(0)


@KERNELS.strided
def multiply(
    n, indptr, indices, values, longest, n_long, n_pieces, plan, work, p, q, role, control, scalars, history, partials
):
    """q = A p, and p'q."""
    if control[STATE] != RUNNING:
        return
    product = multiply_rows(0, n, indptr, indices, values, p, q)
    apply_reduction(role, product, control, scalars, history)


@compile_loop
def multiply_rows(first, end, indptr, indices, values, p, q):
    """The rows of `multiply`."""
    product = 0.0
    for i in range(first, end):
        total = p.dtype.type(0)
        for k in range(indptr[i], indptr[i + 1]):
            total += values[k] * p[indices[k]]
        q[i] = total
        product += inner(total, p[i])
    return product


@KERNELS.strided
def residual(
    n,
    indptr,
    indices,
    values,
    longest,
    n_long,
    n_pieces,
    plan,
    work,
    x,
    b,
    r,
    role,
    control,
    scalars,
    history,
    partials,
):
    """r = b - A x, and r'r, both summed in double precision."""
    square = residual_rows(0, n, indptr, indices, values, x, b, r)
    apply_reduction(role, square, control, scalars, history)


@compile_loop
def residual_rows(first, end, indptr, indices, values, x, b, r):
    """The rows of `residual`."""
    square = 0.0
    for i in range(first, end):
        total = wide(b[i])
        for k in range(indptr[i], indptr[i + 1]):
            total -= wide(values[k]) * x[indices[k]]
        r[i] = total
        square += inner(total, total)
    return square


@KERNELS.strided
def inner_product(n, a, b, role, control, scalars, history, partials):
    """a'b; where b is z, in its unit."""
    if control[STATE] != RUNNING:
        return
    product = multiply_numbers(0, n, a, b, b.dtype.type(1 if role == FRESH_RESIDUAL else scalars[UNIT]))
    apply_reduction(role, product, control, scalars, history)


@compile_loop(grain=NUMBERS)
def multiply_numbers(first, end, a, b, unit):
    """The numbers of `inner_product`."""
    product = 0.0
    for i in range(first, end):
        product += inner(a[i], unit * b[i])
    return product


@KERNELS.strided
def advance(n, p, q, x, r, role, control, scalars, history, partials):
    """x += alpha p, r -= alpha q, and r'r."""
    if control[STATE] != RUNNING:
        return
    square = advance_numbers(0, n, r.dtype.type(scalars[ALPHA]), p, q, x, r)
    apply_reduction(role, square, control, scalars, history)


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
def turn(n, z, p, control, scalars):
    """p = z + beta p, with z in its unit."""
    if control[STATE] != RUNNING:
        return
    turn_numbers(0, n, p.dtype.type(scalars[BETA]), p.dtype.type(scalars[UNIT]), z, p)


@compile_loop(grain=NUMBERS)
def turn_numbers(first, end, beta, unit, z, p):
    """The numbers of `turn`."""
    for i in range(first, end):
        p[i] = unit * z[i] + beta * p[i]
