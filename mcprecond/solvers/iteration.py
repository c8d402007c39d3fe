"""The steps of a Krylov method on one device.

Every inner product is finished by the kernel that computes it: it derives the next coefficient, records the residual
and decides whether to go on, so scalars never leave the device.

Squares must neither overflow nor underflow, whatever the units of A and b. Let 2^a be the magnitude of A. Where a or
the exponent of b is far from 0, the iteration works on a system in other units: b and x0 times a power of two that
makes the residual about 2^(a / 3), and z times one that makes it about inv(A) r. Then r'r is about 2^(2 a / 3), r'z and
p'A p about 2^(-a / 3), and x about 2^(-2 a / 3). Powers of two change no digit, so that the iterates have the digits of
the iterates of the given system, wherever those are in range.
"""

from __future__ import annotations

import math
import weakref
from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, cast

import numpy as np

from mcprecond.backends import NUMBERS, Backend, KernelSet, compile_loop, compile_part, compile_row
from mcprecond.backends.inputs import any_of
from mcprecond.linalg.accurate import find_accurate_residual
from mcprecond.linalg.csr import Csr
from mcprecond.linalg.operator import Operator
from mcprecond.linalg.powers import power_times, times_power
from mcprecond.solvers.energy import Coefficients
from mcprecond.solvers.result import Reason
from mcprecond.solvers.target import EnergyTarget, Target

KERNELS = KernelSet(__file__, "OFFSET VALUE LANES")

# Slots of the control block, `control` (int64) and `scalars` (float64), and the values of STATE. At `LEAST_RZ`, the
# first r'z times the square of the rounding unit, the recurrence has nothing more to say: the state becomes REACHED, so
# that the host measures the residual. `UNIT` is the power of two that z is multiplied by.
#
# Each step of CG reduces the square of the error's energy norm by its gain, alpha r'z. `ENERGY` is the sum of the gains
# and of (b + r_0)'x_0, which the initial guess contributes. A solve that ends by another norm than that of the residual
# sets the state to REACHED when a gain falls below `SHARE` times `ENERGY` or below `LEAST_GAIN`, or when r'z falls to
# `LIMIT_RZ`.
STATE, ITERATION, MAXITER, ARRIVALS = range(4)
RUNNING, REACHED, EXHAUSTED, BAD_A, BAD_M, NAN, BROKEN, CYCLE_ENDED = range(8)
ALPHA, BETA, RZ, RR, TOLERANCE, ROUNDING, LEAST_RZ, UNIT, ENERGY, SHARE, LEAST_GAIN, LIMIT_RZ = range(SHARED := 12)
SCALARS = SHARED + 4  # as many more as a method has of its own

# Iterations of which the device keeps the norm of the residual, alpha and r'z until the host reads them; one after the
# other in an array of three parts.
HISTORY = 1024
# How many iterations a pass of the captured loop has. Each pass takes some 4 us in addition to its iterations. If a
# solve ends within a pass, the kernels of the iterations that are left return at once, but those of M do not.
BUNDLE = 4
CUDA_CONSTANTS = {
    **{"STATE": STATE, "ITERATION": ITERATION, "MAXITER": MAXITER, "ARRIVALS": ARRIVALS},
    **{"RUNNING": RUNNING, "REACHED": REACHED, "EXHAUSTED": EXHAUSTED},
    **{"BAD_A": BAD_A, "BAD_M": BAD_M, "NOT_A_NUMBER": NAN, "BROKEN": BROKEN, "CYCLE_ENDED": CYCLE_ENDED},
    **{"ALPHA": ALPHA, "BETA": BETA, "RZ": RZ, "RR": RR, "TOLERANCE": TOLERANCE, "ROUNDING": ROUNDING},
    **{"LEAST_RZ": LEAST_RZ, "UNIT": UNIT, "HISTORY": HISTORY, "ENERGY": ENERGY, "SHARE": SHARE},
    **{"LEAST_GAIN": LEAST_GAIN, "LIMIT_RZ": LIMIT_RZ},
}

#: Exponents up to this share of the largest one of a dtype are near enough to 0 to be left as they are.
NEAR = 1 / 8
#: Sums of squares between these two have lost nothing to overflow or underflow.
SAFE_SQUARES = 1e-270, 1e290


def wide_dtype(dtype: Any) -> np.dtype[Any]:
    """Double precision, complex if a dtype is."""
    return np.dtype(np.complex128 if np.dtype(dtype).kind == "c" else np.float64)


def near_exponent(dtype: Any) -> int:
    """The largest exponent that is left as it is, for numbers of a dtype."""
    return int(np.finfo(dtype).maxexp * NEAR)


class Iteration:
    """The scalars of a Krylov method on one device, and how a solve starts, goes on and is read by the host; one after
    the other.

    Subclasses hold the vectors and implement `begin` and `_step`; those with an order of their own also `iterate`,
    `in_own_order` and `find_residual`.

    Parameters
    ----------
    A : Operator
    backend : Backend
    """

    #: Whether iterations may be captured, and how many of them are one pass of the loop.
    captures: bool
    bundle = BUNDLE
    #: For targets: r'z and its unit, as they were read last.
    rz: float
    unit: float
    #: The right-hand side and the residual, in the order of the subclass.
    b: Any
    r: Any
    #: The iterate, in the order of the subclass.
    x: Any
    #: The preconditioner, or None.
    M: Any = None
    #: The dtype of the vectors of the steps, where it is narrower than the dtype of A.
    dtype_of_steps: np.dtype[Any] | None = None
    #: Whether A is symmetric or Hermitian, as far as the method knows.
    is_symmetric = False
    #: Whether the method is CG, whose coefficients tell how large the error is.
    is_cg = False
    #: How many times in a solve the method may go back to the best iterate after a breakdown, and start in another way.
    most_breakdowns = 0

    def __init__(self, A: Operator, backend: Backend) -> None:
        xp = backend.xp
        self.backend, self.n, self.dtype = backend, A.shape[0], A.dtype
        self.A, self._of_A = A, A.new_state()
        #: The macros of kernels; those of kernels that multiply rows matter only where A is a `Csr`.
        self.macros = A.macros if isinstance(A, Csr) else {"OFFSET": np.int32, "VALUE": A.dtype, "LANES": 1}
        self.captures = A.captures
        self.near = self.near_of_r = near_exponent(A.dtype)
        self._run = backend.kernels(KERNELS, **self.macros)
        # Side by side, so that one copy brings the host everything that it reads.
        block = np.zeros(4 + SCALARS + 3 * HISTORY, np.int64)
        block[4:].view(np.float64)[ROUNDING] = (float(np.finfo(A.dtype).eps) / 2) ** 2
        block[4:].view(np.float64)[UNIT] = 1
        block[4:].view(np.float64)[[SHARE, LEAST_GAIN]] = -1
        block[STATE] = RUNNING
        self._first_block, self._control_block = xp.asarray(block), xp.empty(len(block), np.int64)
        self._fetch_control_block = backend.fetcher(self._control_block)
        self.control = self._control_block[:4]
        self.scalars, self.history = (part.view(np.float64) for part in np.split(self._control_block[4:], [SCALARS]))
        self._partials = xp.empty(16384, np.float64)  # does not stay alive for the record
        self.reduction = backend.record((self.control, self.scalars, self.history), (self._partials,))

    def _take_preconditioner(self, M: Operator | None, state: Any) -> None:
        """Note how M, or None for the identity, is applied, and what that means for the other steps."""
        self.M, self._of_M = M, state
        if M is not None:
            self.captures = self.captures and M.captures
            self.near_of_r = min(self.near, near_exponent(M.narrowest))
            if M.takes_long:
                self.bundle = 1

    def load(self, b: Any, x0: Any) -> None:
        """Begin a solve: take the right-hand side and the initial guess, zero for None, in the order of A."""
        self.reset()
        self.guess = x0
        self.b[...] = self._in_own_order(b)
        if x0 is None:
            self.x.fill(0)
        else:
            self.x[...] = self._in_own_order(x0)

    def reset(self) -> None:
        """Begin a solve, whose vectors are taken later."""
        # The block is copied as floats: CuPy has compiled a kernel that copies floats.
        self._control_block.view(np.float64)[...] = self._first_block.view(np.float64)
        self._state, self.count = RUNNING, 0
        #: The state as the driver knows it, and why the solve has ended, once it has.
        self.state, self.reason = RUNNING, None
        self.residuals: list[float] = []
        self._forget_target()
        self.true_residual_norm = math.inf
        # b, x and r are the caller's times 2^shift; the residual is kept near 2^home.
        self.shift = self.home = 0
        #: In the caller's units: the iterate with the least true residual that was measured, None for zero; its norm.
        #: It may be the initial guess as it was given, which is kept as long as the iteration begins with it.
        self.best: Any = None
        self.guess = None
        self.best_norm = self.largest_norm = math.inf
        self.breakdowns = 0

    # A solve may end by another norm than that of the residual.

    def _forget_target(self) -> None:
        """End by the norm of the residual, which is `limit`."""
        self.energy, self.target = Coefficients(), Target()

    def end_by(self, target: Target, of_guess: float = 0.0) -> None:
        """End by another norm; ``(b + r_0)'x_0`` of the guess is given. Called before `start`."""
        self.target, self.energy.of_guess = target, of_guess
        self._write_target()

    def _write_target(self) -> None:
        """Let the device know when to end."""
        if self.target.norm != "residual":
            self.scalars[ENERGY] = self.energy.whole
            self.scalars[SHARE], self.scalars[LEAST_GAIN], self.scalars[LIMIT_RZ] = self.target.on_device

    @property
    def is_converged(self) -> bool:
        """Whether the norm that the solve is to end by is small enough, the true residual measured."""
        return self.true_residual_norm <= self.limit or self.target.is_confirmed(self)

    @property
    def aim(self) -> float:
        """The norm of the residual at about which the solve will end."""
        return self.target.residual_at_end(self)

    @property
    def wins_nothing(self) -> bool:
        """Whether CG, which has begun again with the true residual, has found that the norm was small enough then."""
        return 0 < self.energy.starts[-1] < self.count and self.target.was_met_at_start(self)

    # What the driver sees: systems with one matrix, which advance together. Here it is a single one.

    #: Why the solve has ended; None while it goes on.
    reason: Reason | None = None

    @property
    def systems(self) -> Sequence[Iteration]:
        """The systems."""
        return [self]

    def part_of(self, v: Any) -> Any:
        """The part of an array for all systems that belongs to this one; None for None."""
        return v

    def stop(self, systems: Sequence[Iteration], state: int) -> None:
        """Let systems end in a state, although they could go on."""
        for system in systems:
            system.state = state

    def find_residuals(self) -> None:
        """Find the residuals of systems that have stopped, where `measure_residual` does not find them one by one."""

    def begin_together(self) -> None:
        """Begin what systems have prepared by `begin`, where they begin together."""

    def iterate(self) -> Any:
        """The iterate in the units of the iteration, in the order of A."""
        return self.x

    def direction(self) -> Any:
        """The last direction of CG, in the order of A and in any unit; None if it is not known."""
        return None

    def _in_own_order(self, v: Any) -> Any:
        """A vector in the order of A as the iteration has it."""
        return v

    def replace_iterate(self, x: Any) -> None:
        """Take another iterate, in the order of A; to be called before `measure_residual` only."""
        self.x[...] = self._in_own_order(x)

    def solution(self) -> Any:
        """The iterate in the caller's units, in the order of A, as an array of its own."""
        x = self.iterate()
        return x.copy() if self.shift == 0 else times_power(x, -self.shift, self.backend.xp)

    def is_iterate(self, x: Any) -> bool:
        """Whether a vector in the caller's units, where digits may be lost to underflow, is the iterate."""
        return not self.shift or not any_of(times_power(x, self.shift, self.backend.xp) != self.iterate())

    def norm_in_units(self, norm: float) -> float:
        """A norm of residuals in the caller's units; infinite where it overflows."""
        return power_times(norm, -self.shift)

    def is_near(self, exponent_of_A: int, exponent: int) -> bool:
        """Whether the units may stay, by the exponents of A and of the residual."""
        return abs(exponent_of_A) <= self.near and abs(exponent) <= self.near_of_r

    def home_of(self, exponent_of_A: int, exponent: int) -> int:
        """The exponent that the residual is to have, by the exponents of A and of the residual."""
        if self.is_near(exponent_of_A, exponent):
            return exponent
        home = exponent_of_A // 3
        return max(-self.near_of_r, min(home, self.near_of_r)) if self.near_of_r < self.near else home

    def choose_units(self, exponent_of_A: int, exponent: int) -> None:
        """Choose the units by the exponents of A and of the first residual, or of the larger of b and A x."""
        self.home = self.home_of(exponent_of_A, exponent)
        if self.home != exponent:
            self._rescale(self.home - exponent, self.b, self.x)

    def _rescale(self, shift: int, *vectors: Any) -> None:
        """Multiply vectors by 2^shift."""
        for v in vectors:
            v[...] = times_power(v, shift, self.backend.xp)
        self.shift += shift

    def find_residual(self, accurately: bool = False) -> None:
        """r = b - A x from scratch, and r'r into the scalars.

        With `accurately`, rounding of A x leaves no error in r, and r'r is not computed; A has to be a `Csr`.
        """
        self._residual(self.x, self.b, self.r, accurately)

    def _residual(self, x: Any, b: Any, r: Any, accurately: bool = False) -> None:
        """r = b - A x, as `find_residual` computes it, for vectors in the order of A."""
        if accurately:
            find_accurate_residual(cast(Csr, self.A), x, b, r, self.backend)
        elif isinstance(self.A, Csr):
            self._run.residual(self.n, *self.A.arrays(self._of_A), x, b, r, *self.reduction)
        else:
            self.A.enqueue(self._of_A, x, r)
            self._run.subtract_from(self.n, b, r, *self.reduction)

    @abstractmethod
    def begin(self) -> None:
        """Prepare the first step, which starts from the residual."""

    def dot(self, a: Any) -> float:
        """a'a, as a number on the host."""
        a = a.reshape(-1)
        self._run.square(self.n, a, *self.reduction)
        return float(self.scalars[RR])

    def size(self, v: Any) -> tuple[float, int]:
        """The norm of a vector, as a number and the exponent of a power of two that it is multiplied by.

        The exponent is 0 unless squares may have been lost to overflow or underflow. The number is not finite if the
        vector is not.
        """
        return self._size(v, self.dot(v))

    def _size(self, v: Any, square: float) -> tuple[float, int]:
        """`size` of a vector by the sum of its squares, which may have overflowed or underflowed."""
        if SAFE_SQUARES[0] < square < SAFE_SQUARES[1]:
            return math.sqrt(square), 0
        largest = max(float(abs(part).max()) for part in (v.real, v.imag)) if v.size else 0.0
        if largest == 0 or not math.isfinite(largest):
            return largest, 0
        exponent = math.frexp(largest)[1]
        return math.sqrt(self.dot(times_power(v, -exponent, self.backend.xp))), exponent

    def start(self, limit: float, maxiter: int, norm: float, is_zero: bool) -> None:
        """The residual of the initial guess and the first direction; the norm of b is known, and whether x = 0."""
        self.maxiter = maxiter
        self.control[MAXITER] = self.maxiter
        self.change_limit(limit)
        if is_zero:
            self.r[...] = self.b
            self.true_residual_norm, self.guess = norm, None
        else:
            self.measure_residual()
        if is_zero or self.guess is not None:
            norm = self.norm_in_units(self.true_residual_norm)
            self.best, self.best_norm = self.guess, norm if math.isfinite(norm) else math.inf
        else:
            self.keep_best()
        self.residuals = [self.true_residual_norm]
        largest = max(norm, self.true_residual_norm) / float(np.finfo(self.dtype).eps)
        self.largest_norm = self.norm_in_units(largest)
        self.start_over()

    @property
    def has_diverged(self) -> bool:
        """Whether the residual has grown so much that nothing of b is left in it."""
        return self.norm_in_units(self.residuals[-1]) > self.largest_norm

    def keep_best(self) -> None:
        """Keep the iterate if its residual, which has been measured, is the least one so far."""
        norm = self.norm_in_units(self.true_residual_norm)
        if norm < self.best_norm and self.is_iterate(x := self.solution()) and not any_of(~self.backend.xp.isfinite(x)):
            self.best, self.best_norm = x, norm

    def best_solution(self) -> Any:
        """The best iterate, as an array of its own."""
        xp = self.backend.xp
        return xp.zeros(self.n, self.dtype) if self.best is None else xp.array(self.best, self.dtype)

    def return_to_best(self) -> None:
        """Take the best iterate; to be followed by `start_over`."""
        self.replace_iterate(times_power(self.best_solution(), self.shift, self.backend.xp))
        self.measure_residual()

    def lengthen_cycles(self) -> bool:
        """Make the following cycles longer, if possible, after one that did not reduce the residual. Return whether
        they are longer.
        """
        return False

    def change_limit(self, limit: float) -> None:
        """Stop where the norm of the residual is at most this one."""
        self.limit = limit
        self.scalars[TOLERANCE] = limit * limit

    def measure_residual(self) -> None:
        """The residual from scratch; its norm."""
        self._go_to(RUNNING)
        self.find_residual()
        self._measure_found_residual()

    def leave(self) -> None:
        """End where another solve goes on from the iterate: the residual is what the recurrence says."""
        self.true_residual_norm, self.reason = self.residuals[-1], Reason.LEFT

    def _measure_found_residual(self) -> None:
        """Take the norm of a residual with a known r'r; where rounding might hide a larger one, find it accurately."""
        self.true_residual_norm = norm = power_times(*self._size(self.r, float(self.scalars[RR])))
        if norm <= self.limit and self._rounding() > min(norm, self.limit - norm):
            self.find_residual(accurately=True)
            self.true_residual_norm = power_times(*self.size(self.r))

    def _rounding(self) -> float:
        """A bound of the norm of what rounding takes off A x, whose sums are in double precision; 0 if A is unknown."""
        if not isinstance(self.A, Csr):
            return 0.0
        norm, exponent = self.size(self.x)
        # The norm of the magnitudes of A is at most that of a row times that of a column.
        longest_column = self.A.longest_row if self.is_symmetric else self.n
        largest = math.sqrt(self.A.longest_row * longest_column)
        of_A = math.inf if self.A.exponent is None else power_times(largest, self.A.exponent)
        return power_times(float(np.finfo(np.float64).eps) * norm * of_A, exponent) if norm else 0.0

    def start_over(self) -> None:
        """Let the next step be one of steepest descent, unless the residual is small enough or not finite."""
        if self.limit < self.true_residual_norm < math.inf:
            shift = self.home - math.frexp(self.true_residual_norm)[1]
        else:
            shift = 0
        if abs(shift) > self.near_of_r:
            self._rescale(shift, self.b, self.x, self.r)
            self.energy.rescale(shift)
            self.target = self.target.rescale(shift)
            self._write_target()
            self.change_limit(power_times(self.limit, shift))
            self.residuals = [power_times(norm, shift) for norm in self.residuals]
            self.true_residual_norm = power_times(self.true_residual_norm, shift)
        self._begin_run()
        self._go_to(
            NAN
            if not math.isfinite(self.true_residual_norm)
            else REACHED
            if self.true_residual_norm <= self.limit
            else EXHAUSTED
            if self.count >= self.maxiter
            else RUNNING
        )
        self.begin()

    def _begin_run(self) -> None:
        """Note that CG begins with a residual that was computed as b - A x."""
        if self.count > self.energy.starts[-1]:
            self.energy.starts.append(self.count)

    def _go_to(self, state: int) -> None:
        """Set the state, unless the host has read that it is so already; iterations change it on the device."""
        self.state = state
        if state != self._state:
            self.control[STATE] = self._state = state

    @abstractmethod
    def _step(self) -> None:
        """Run one iteration. It changes nothing once the state is no longer RUNNING."""

    @property
    def _states(self) -> Any:
        """On the device: iterations run as long as one of these is RUNNING."""
        return self.control[STATE : STATE + 1]

    @cached_property
    def _loop(self) -> Callable[[int], None]:
        weak = weakref.proxy(self)  # a cycle of references would keep memory
        return self.backend.loop(lambda: weak._step(), self._states, self.captures, self.bundle)

    def enqueue(self, most: int) -> None:
        """Run so many iterations, or until the state is no longer RUNNING."""
        self._loop(most)

    def read_state(self) -> int:
        """Wait, take note of the new residuals, and return the state."""
        block = self._fetch_control_block()
        floats, count = block[4:].view(np.float64), int(block[ITERATION])
        lists = (self.residuals, self.energy.alphas, self.energy.products) if self.is_cg else (self.residuals,)
        if count == self.count + 1:  # as on a CPU, in less time
            for part, kept in enumerate(lists):
                kept.append(float(floats[SCALARS + part * HISTORY + count % HISTORY]))
        else:
            places = SCALARS + np.arange(self.count + 1, count + 1) % HISTORY
            for part, kept in enumerate(lists):
                kept += floats[places + part * HISTORY].tolist()
        self.count, self._state = count, int(block[STATE])
        if self.target.norm != "residual":
            self.rz, self.unit = float(floats[RZ]), float(floats[UNIT])
            ended_by_gain = floats[RR] > floats[TOLERANCE] and floats[RZ] > floats[LEAST_RZ]
            if isinstance(self.target, EnergyTarget) and self._state == REACHED and ended_by_gain:
                self._go_on_unless_met(self.target)
        return self._state

    def _go_on_unless_met(self, target: EnergyTarget) -> None:
        """After a gain that was small by chance, go on until one is as small as the error asks for."""
        if target.is_met(self):
            return
        if self.count >= self.maxiter:
            self._state = EXHAUSTED
            return
        share = target.next_share(self)
        if share is not None:
            self.scalars[SHARE], self.scalars[LEAST_GAIN] = share, -1
        self._go_to(RUNNING)


# On the CPU: the coefficients that follow from an inner product. In CUDA `Recurrence` of iteration.cuh has it.


@compile_part
def is_finite(total, control):
    """Whether a sum is finite; if it is not, the iteration ends."""
    if not np.isfinite(total):
        control[STATE] = NAN
    return np.isfinite(total)


@compile_part
def take_pAp(pAp, control, scalars):
    """Set alpha = r'z / p'A p."""
    if not is_finite(pAp, control):
        return
    if pAp <= 0:
        control[STATE] = BAD_A
    else:
        scalars[ALPHA] = scalars[RZ] / pAp


@compile_part
def take_rr(rr, control, scalars, history):
    """End an iteration."""
    if not is_finite(rr, control):
        return
    scalars[RR] = rr
    control[ITERATION] += 1
    history[control[ITERATION] % HISTORY] = np.sqrt(rr)
    if rr <= scalars[TOLERANCE]:
        control[STATE] = REACHED
    elif control[ITERATION] >= control[MAXITER]:
        control[STATE] = EXHAUSTED


@compile_part
def end_iteration(rr, control, scalars, history):
    """End an iteration of CG."""
    gain = scalars[ALPHA] * scalars[RZ]
    place = (control[ITERATION] + 1) % HISTORY
    history[HISTORY + place], history[2 * HISTORY + place] = scalars[ALPHA], scalars[RZ]
    scalars[ENERGY] += gain
    take_rr(rr, control, scalars, history)
    if control[STATE] == RUNNING and gain < max(scalars[SHARE] * scalars[ENERGY], scalars[LEAST_GAIN]):
        control[STATE] = REACHED


@compile_part
def take_first_rz(rz, control, scalars):
    """Begin with the direction z."""
    if not is_finite(rz, control):
        return
    scalars[BETA] = 0
    scalars[RZ] = rz
    scalars[LEAST_RZ] = max(rz * scalars[ROUNDING], scalars[LIMIT_RZ] * scalars[UNIT])
    if control[STATE] == RUNNING:
        if rz <= 0:
            control[STATE] = BAD_M
        elif rz <= scalars[LEAST_RZ]:
            control[STATE] = REACHED


@compile_part
def take_rz(rz, control, scalars):
    """Set beta = r'z / r'z of the iteration before; the first iteration has 0 for that."""
    if scalars[RZ] == 0:
        take_first_rz(rz, control, scalars)
        return
    if not is_finite(rz, control):
        return
    scalars[BETA] = rz / scalars[RZ]
    scalars[RZ] = rz
    if control[STATE] == RUNNING:
        if rz < 0:
            control[STATE] = BAD_M
        elif rz <= scalars[LEAST_RZ]:
            control[STATE] = REACHED


@compile_row
def inner(a, b):
    """The real part of a conj(b), in double precision."""
    return np.float64(a.real) * b.real + np.float64(a.imag) * b.imag


@compile_row
def conjugated_product(a, b):
    """conj(a) b, in double precision."""
    return wide(np.conj(a)) * b


@compile_row
def wide(x):
    """x in double precision."""
    return x + np.float64(0)


@KERNELS.strided
def residual(n, indptr, indices, values, x, b, r, control, scalars, history):
    """r = b - A x, and r'r, both summed in double precision."""
    scalars[RR] = residual_rows(0, n, indptr, indices, values, x, b, r)


@compile_loop
def residual_rows(first, end, indptr, indices, values, x, b, r):
    """The rows of `residual`."""
    square = 0.0
    for i in range(first, end):
        total = wide(x.dtype.type(0))  # not b[i], whose digits would be lost among large products
        for k in range(indptr[i], indptr[i + 1]):
            total += wide(values[k]) * x[indices[k]]
        rest = b[i] - total
        r[i] = rest
        square += inner(rest, rest)
    return square


@KERNELS.strided
def subtract_from(n, b, r, control, scalars, history):
    """r = b - r, and r'r."""
    scalars[RR] = subtract_numbers(0, n, b, r)


@compile_loop(grain=NUMBERS)
def subtract_numbers(first, end, b, r):
    """The numbers of `subtract_from`."""
    square = 0.0
    for i in range(first, end):
        r[i] = b[i] - r[i]
        square += inner(r[i], r[i])
    return square


@KERNELS.strided
def square(n, v, control, scalars, history):
    """v'v."""
    if control[STATE] == RUNNING:
        scalars[RR] = multiply_numbers(0, n, v, v, v.dtype.type(1))


@compile_loop(grain=NUMBERS)
def multiply_numbers(first, end, a, b, unit):
    """The inner product of a and of b times a power of two."""
    product = 0.0
    for i in range(first, end):
        product += inner(a[i], unit * b[i])
    return product
