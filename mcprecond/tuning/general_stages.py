"""Which preconditioner a solve with a matrix that is not symmetric begins with, and when it is left for another one.

For each candidate the cost model tells how long its setup and an iteration take, and features of the matrix how many
iterations there may be. The candidate that is predicted to be the fastest begins. After some iterations the residuals
tell how many are left. If these take MARGIN times as long as the fastest of the candidates that have not been tried,
with its setup, and the current one has been used for the share SPENT of that time, the solve goes on with that one.
The clock has no influence, so that all runs make the same choice.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from mcprecond.tuning.stages import Prediction

#: A stage is left only if it has taken at least the share SPENT of the time that the next stage is predicted to take,
#: and if its remaining iterations are predicted to take more than MARGIN times as long as the next stage.
SPENT, MARGIN = 0.2, 1.2
#: If residuals have begun to fall more slowly, they are expected to slow down further, by this factor at most.
MOST_SLOWER = 2.0
#: How many iterations BiCGSTAB takes to reduce the residual by 8 decimal digits if the diagonal does not dominate: a
#: multiple of the number of points along a side of a square grid with n points. The multiples fit flows with streamline
#: diffusion. In three dimensions they are multiplied by IN_SPACE, which fits FENL. If the flow follows the order of the
#: rows or the reverse order, ILU0 drops little. Then the number of points along a side is raised to a power below 1,
#: which depends on `Features.dropped`.
ALONG_A_SIDE = {"none": 6.0, "Jacobi": 6.0, "DILU": 2.5, "ILU0": 1.5}
IN_SPACE = 0.4
#: Some preconditioners need about the same number of iterations on grids of all sizes: the first number times the
#: decimal digits that the residual has to fall, plus the second number. For multigrid this is multiplied by 1 plus
#: OF_POSITIVE times `Features.positive`.
OF_ANY_SIZE = {"multigrid": (1.0, 1.0), "spilu": (0.25, 1.0)}
OF_POSITIVE = 6.0
#: A grid is taken to be three-dimensional if its rows have at least this many entries on average, or if its width is
#: between these powers of n. The width of a grid is n^(1/2) in a plane and n^(2/3) in space if the rows are in order,
#: and nearly n if they are numbered at random.
ROW_IN_SPACE, WIDTH_IN_SPACE = 12, (7 / 12, 5 / 6)
#: If A is not symmetric, the setup of multigrid takes SETUP times as long as for a symmetric matrix of the same size,
#: and a cycle takes CYCLE times as long.
SETUP, CYCLE = 2.5, 1.8
#: The setup of spilu takes SPILU[0] seconds, plus SPILU[1] seconds times the number of entries of A times the width to
#: the power 3/4; this fits grids in two and three dimensions. A solve with its factors takes as long as SOLVE products
#: with A.
SPILU, SOLVE = (0.3e-3, 6.5e-9), 20


class Features(NamedTuple):
    """What the predictions depend on.

    Attributes
    ----------
    n, entries : int
        Rows of the matrix, and its entries.
    surplus : float
        The median of ``(2 |a_ii| - sum_j |a_ij|) / |a_ii|``: how much the diagonal dominates.
    positive : float
        For each row, the sum of the off-diagonal entries that have the sign of the diagonal entry, divided by that
        entry; the mean over all rows. It is 0 for upwind differences, and up to 1/3 for streamline diffusion, where it
        grows as the diffusion becomes smaller.
    products : int
        Products with A in an iteration.
    width : float or None
        The distance from the diagonal to the farthest entry of a row, averaged over the rows. None on a GPU, where no
        candidate depends on the order of the rows.
    dropped : float or None
        A bound of the entries that ILU0 drops in a row, if it factors A in the order of the rows: the sum of
        ``|l_ik u_kj|`` over k and j, divided by the diagonal entry. This is the 0.9 quantile over all rows. It is about
        1/4 for Laplace's equation. None on a GPU.
    """

    n: int
    entries: int
    surplus: float
    positive: float
    products: int
    width: float | None = None
    dropped: float | None = None

    @property
    def side(self) -> float:
        """Points along a side of a square grid. If the grid is three-dimensional, IN_SPACE times those of a cube."""
        least, most = (self.n**power for power in WIDTH_IN_SPACE)
        if self.entries >= ROW_IN_SPACE * self.n or (self.width is not None and least < self.width < most):
            return IN_SPACE * self.n ** (1 / 3)
        return self.n ** (1 / 2)


def predict_general(predicted: dict[str, Prediction], features: Features, plain: str) -> dict[str, Prediction]:
    """Predict the times of the candidates from those of CG. `plain` is the weakest candidate, "none" or "Jacobi"."""
    product, sweeps, multigrid = predicted["none"].iteration, predicted["SGS"], predicted["multigrid"]
    found = {
        plain: predicted[plain],
        "DILU" if features.width is None else "ILU0": Prediction(sweeps.setup, product + sweeps.iteration),
        "multigrid": Prediction(SETUP * multigrid.setup, CYCLE * multigrid.iteration),
    }
    if features.width is not None:
        start, per_entry = SPILU
        setup = start + per_entry * features.entries * features.width**0.75
        found["spilu"] = Prediction(setup, (1 + SOLVE) * product)
    return {name: Prediction(one.setup, features.products * one.iteration) for name, one in found.items()}


def digits_of(rtol: float) -> float:
    """Decimal digits by which the residual has to fall, at most those of double precision."""
    return -math.log10(min(max(rtol, 1e-15), 0.1))


def expected_iterations(name: str, digits: float, features: Features) -> float:
    """How many iterations a candidate is expected to take to lower the residual by so many decimal digits."""
    of_bicgstab = 2 / features.products
    if name in OF_ANY_SIZE:
        per_digit, at_least = OF_ANY_SIZE[name]
        growth = 1 + OF_POSITIVE * features.positive if name == "multigrid" else 1.0
        return of_bicgstab * growth * (per_digit * digits + at_least)
    power = 1.0 if name != "ILU0" or features.dropped is None else min(2 * math.sqrt(features.dropped), 1.0)
    iterations = ALONG_A_SIDE[name] * features.side**power * digits / 8
    if features.surplus > 0:  # the condition is about 2 / surplus - 1, and the method about as fast as CG
        condition = max(2 / features.surplus - 1, 1.0)
        of_dominant = digits * math.log(10) * math.sqrt(condition) / 4
        iterations = min(iterations, of_dominant * ALONG_A_SIDE[name] / ALONG_A_SIDE["none"])
    return of_bicgstab * max(iterations, 1.0)


def fastest(
    predicted: dict[str, Prediction], features: Features, digits: float, slower: float = 1.0
) -> tuple[str, float]:
    """The candidate that is predicted to be the fastest, and the seconds that it takes, setup included, if sweeps take
    so many times as many iterations as expected.
    """

    def seconds(name: str) -> float:
        factor = 1.0 if name in OF_ANY_SIZE else slower
        return predicted[name].setup + factor * expected_iterations(name, digits, features) * predicted[name].iteration

    best = min(predicted, key=seconds)
    return best, seconds(best)


def next_stage(
    current: str,
    done: int,
    left: float,
    digits: float,
    untried: dict[str, Prediction],
    predicted: dict[str, Prediction],
    features: Features,
) -> str | None:
    """The candidate to go on with; None to stay.

    Parameters
    ----------
    current : str
    done, left : int, float
        Iterations with it that there were, and that are left.
    digits : float
        Decimal digits that the residual still has to fall.
    untried, predicted : dict
        The candidates that have not been tried, and all of them.
    features : Features
    """
    if not untried:
        return None
    # If the current preconditioner needs more iterations than expected, the system is hard for sweeps in general.
    slower = max((done + left) / (done + expected_iterations(current, digits, features)), 1.0)
    best, seconds = fastest(untried, features, digits, slower)
    iteration = predicted[current].iteration
    return best if done * iteration > SPENT * seconds and left * iteration > MARGIN * seconds else None
