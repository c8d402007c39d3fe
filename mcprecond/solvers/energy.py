"""The error of CG in the energy norm, ||x - x_k||_A, by the coefficients that CG computes anyway.

Step j of CG reduces the square of the error's energy norm by its gain, alpha_j r_j'z_j (Hestenes, Stiefel 1952). So the
gains of iterations l to k - 1 add up to ||x - x_l||_A^2 - ||x - x_k||_A^2, which is about ||x - x_l||_A^2 once the
delay k - l is long enough. How long that is, the gains themselves tell: let S be the largest ratio of
||x - x_i||_A^2 to the gain of iteration i, over iterations i before l since the error was a hundred times as large. If
S times the last gain is at most the share TAU of the sum, hardly anything is missing in the sum.

||x||_A^2 is the sum of all gains and (b + r_0)'x_0, where x_0 is the initial guess.

The square of the error of the last iterate is the sum of all later gains. It is estimated by the sum of a geometric
series that falls at the rate of the last gains, or, if the residual has fallen suddenly, by the next gain; see SUDDEN.
A solve by the energy norm finds a better estimate; see correction.py.

Strakos, Tichy: On error estimation in the conjugate gradient method and why it works in finite precision computations,
Electron. Trans. Numer. Anal. 13, 2002.
Meurant, Papez, Tichy: Accurate error estimation in CG, Numer. Algorithms 88, 2021: the rule for the delay. Here it
is applied only where CG stops, each delay that is tried is a quarter longer than the one before, and the error of the
last iterate is extrapolated.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigvalsh_tridiagonal

#: TAU is explained above. S is the maximum over the iterations since the squared error was 1 / SINCE times as large.
TAU, SINCE = 0.25, 1e-4
#: The error can be estimated after this many iterations, at the earliest.
LEAST = 3
#: The residual has fallen suddenly if the last iteration multiplied the square of its norm by less than SUDDEN. That
#: happens when CG has taken as many steps as the preconditioned matrix has distinct eigenvalues, or clusters of them.
#: Then the error is smaller than the earlier gains suggest, and the estimate is the next gain alone. The alpha of that
#: gain is not known yet; the largest alpha so far takes its place.
SUDDEN = 1e-4
#: An error of at most UNITS times the machine epsilon, relative to ||x||_A, counts as zero.
UNITS = 4


class ErrorEstimate(NamedTuple):
    """Squares of energy norms, in the units of the iteration.

    Attributes
    ----------
    bound : float
        Of the error `delay` iterations ago, which is larger than that of the last iterate.
    last : float
        Of the error of the last iterate, extrapolated.
    whole : float
        Of the solution.
    delay : int
    """

    bound: float
    last: float
    whole: float
    delay: int


class Squares(NamedTuple):
    """The squares of the energy norms of the error of x and of the solution."""

    error: float
    whole: float


class Coefficients:
    """The coefficients of the iterations of CG in a solve.

    Attributes
    ----------
    alphas, products : list of float
        alpha and r'z of each.
    of_guess : float
        (b + r_0)'x_0.
    starts : list of int
        After how many iterations CG has begun with a residual that was computed as b - A x.
    hidden, hidden_at : float, int
        What CG does not see of the square of the error, and after how many iterations that was found; see
        weak_parts.py.
    found : Squares, optional
        By the correction of x, if there is one; see correction.py.
    fall : float
        The factor by which the last iteration of a solve changed the square of the residual's norm; 1 before a solve.
    shift : int
        After a solve: all squares are those of the caller's b and x times 2^shift, where floats have room for them.
    """

    def __init__(self) -> None:
        self.alphas: list[float] = []
        self.products: list[float] = []
        self.of_guess, self.starts = 0.0, [0]
        self.hidden, self.hidden_at = 0.0, -1
        self.found: Squares | None = None
        self.fall, self.shift = 1.0, 0

    def rescale(self, shift: int) -> None:
        """Take note that b and x were multiplied by 2^shift."""
        if not shift:
            return
        with np.errstate(all="ignore"):
            self.products = np.ldexp(self.products, 2 * shift).tolist()
            self.of_guess = float(np.ldexp(self.of_guess, 2 * shift))
            self.hidden = float(np.ldexp(self.hidden, 2 * shift))

    def followed_by(self, later: Coefficients) -> Coefficients:
        """The coefficients of both solves, of which the later one has found a correction for the first."""
        both = Coefficients()
        both.shift = self.shift
        later.rescale(self.shift - later.shift)
        both.alphas, both.products = self.alphas + later.alphas, self.products + later.products
        both.of_guess, both.found = self.of_guess, self.found
        both.starts = self.starts + [len(self.alphas) + start for start in later.starts]
        both.hidden, both.fall = later.hidden, later.fall
        return both

    @property
    def gains(self) -> np.ndarray:
        """By how much each iteration has reduced the square of the error."""
        with np.errstate(all="ignore"):
            return np.multiply(self.alphas, self.products)

    def estimate(self) -> ErrorEstimate | None:
        """Return what is known of the error; None where the iterations are too few to tell."""
        gains = self.gains
        count = len(gains)
        if count < LEAST or not np.isfinite(gains).all():
            return None
        lefts = np.cumsum(gains[::-1])[::-1]  # about the squares of the errors before each iteration
        whole, delay = self.whole, 2
        with np.errstate(all="ignore"):
            while delay < count and not is_settled(gains, lefts, delay):
                delay += 1 + delay // 4
        if delay >= count:
            return None
        bound = float(lefts[count - delay])
        next_gain = max(self.alphas) * self.products[-1] * self.fall
        last = next_gain if self.fall < SUDDEN else extrapolate(gains, delay)
        return ErrorEstimate(bound, min(last, bound), whole, delay)

    @property
    def whole(self) -> float:
        """The square of the energy norm of the solution, but for what is still to come."""
        return max(float(np.sum(self.gains)) + self.of_guess, 0.0)

    def since_start(self) -> float:
        """By how much the iterations since the last start have reduced the square of the error."""
        return float(np.sum(self.gains[self.starts[-1] :]))

    def condition(self) -> float:
        """The condition number of the Lanczos matrix of the longest run of iterations; NaN if there was none."""
        pairs = zip(self.starts, [*self.starts[1:], len(self.alphas)], strict=True)
        begin, end = max(pairs, key=lambda pair: pair[1] - pair[0])
        alphas, products = np.array(self.alphas[begin:end]), np.array(self.products[begin:end])
        if not (len(alphas) and np.all(alphas > 0) and np.all(products > 0)):
            return math.nan
        betas = products[1:] / products[:-1]
        diagonal = 1 / alphas
        diagonal[1:] += betas / alphas[:-1]
        eigenvalues = eigvalsh_tridiagonal(diagonal, np.sqrt(betas) / alphas[:-1])
        return float(eigenvalues[-1] / eigenvalues[0]) if eigenvalues[0] > 0 else math.inf


def is_settled(gains: np.ndarray, lefts: np.ndarray, delay: int) -> bool:
    """Whether the gains of the last iterations, as many as the delay says, are nearly all of the error before them."""
    first = len(gains) - delay
    if not lefts[first] > 0:
        return True
    larger = np.flatnonzero(lefts[first] <= SINCE * lefts[:first])
    since = larger[-1] if len(larger) else 0
    most = float(np.max(lefts[since:first] / gains[since:first]))
    return most * float(gains[-1]) <= TAU * float(np.sum(gains[first:-1]))


def extrapolate(gains: np.ndarray, delay: int) -> float:
    """The square of the error after the last iteration: the sum of the series that goes on as the last gains."""
    latest = np.log(np.maximum(gains[-max(delay, LEAST + 1) :], np.finfo(np.float64).tiny))
    slope, end = np.polyfit(np.arange(1 - len(latest), 1), latest, 1)
    fall = math.exp(min(slope, 0.0))
    return math.exp(end) * fall / (1 - fall) if fall < 1 else math.inf
