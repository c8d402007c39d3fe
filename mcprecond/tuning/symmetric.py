"""What CG is expected to take with each preconditioner; see `Forecast`.

The constants fit the matrices of `benchmarks/automatic.py`, but not those of `benchmarks/held_out.py`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial

from mcprecond.tuning.features import Features
from mcprecond.tuning.forecast import Forecast, Prediction

#: See `Forecast`. On grids, the residual of CG decreases slowly at first, and quickly in the last third of the
#: iterations.
MARGIN, MOST_SLOWER, PATIENCE = 2.0, 2.0, 1.0
#: How many iterations CG takes with Jacobi's preconditioner to reduce the residual by eight decimal digits, on grids of
#: one to three dimensions with n points: the first number times n to the second power. On graphs that are like no grid
#: it takes ELSEWHERE iterations.
ON_GRIDS, ELSEWHERE = {1: (10.0, 1 / 2), 2: (2.0, 1 / 2), 3: (2.3, 1 / 3)}, 40.0
#: This number is multiplied by 1 + OF_POSITIVE p, where p is `Features.positive`, and by 1 + OF_CONTRAST c^2, where c
#: is `Features.contrast`, or half of it in three dimensions. If rows sum to at least LEAST_SUM times their diagonal
#: entries, A is well conditioned, and CG takes at most OF_SUMS iterations for each digit. In a mass matrix the entries
#: whose sign is opposite to that of the diagonal add up to less than LEAST_NEGATIVE; CG takes at most OF_MASS then.
OF_POSITIVE, OF_CONTRAST, LEAST_SUM, OF_SUMS, LEAST_NEGATIVE, OF_MASS = 2.5, 0.6, 0.5, 8.0, 0.1, 3.0
#: With SGS or DILU, CG takes the share OF_SWEEPS of these iterations, as the theory of SSOR predicts for omega = 1 on
#: meshes. SGS takes fewer if there are positive entries, and DILU takes the share OF_DILU if the contrast is at least
#: CONTRAST. With ILU0 in the order of the rows, the share is OF_DROPPED times the square root of `Features.dropped`. If
#: the coefficients are smooth (the contrast is at most SMOOTH) and the anisotropy is not aligned with the axes
#: (`Features.positive` lies in the interval MIXED), the products that ILU0 drops cancel for smooth vectors, and the
#: share is multiplied by CANCELED.
OF_SWEEPS, OF_DILU, OF_DROPPED, CONTRAST = 0.5, 0.43, 0.9, 1.0
SMOOTH, MIXED, CANCELED = 0.1, (0.1, 0.5), 0.25
#: An iteration with ILU0 in the order of the rows takes ROW_ORDER times as long as an iteration with SGS, plus LEVEL
#: seconds for each level, that is for each set of rows that can be eliminated at once. The setup of ILU0 takes as long
#: as the setup of SGS, plus FACTORS seconds for each entry. The setup of DILU takes DILU times as long as the setup of
#: SGS. A graph with hubs needs many colors, and each color costs time. On such a graph a sweep is assumed to take HUBS
#: times as long as the cost model says.
ROW_ORDER, LEVEL, FACTORS, DILU, HUBS = 2.3, 0.3e-6, 50e-9, 1.15, 2.0
#: CG with multigrid takes PER_DIGIT iterations for each digit, plus AT_LEAST. If the user gives no near-null-space
#: candidates, this number is multiplied by 1 + f p, where p is `Features.positive`. In elasticity the nodes have
#: several unknowns: if `Features.in_nodes` is at least IN_NODES, f is OF_NODES. Otherwise f is OF_STIFF.
PER_DIGIT, AT_LEAST, OF_STIFF, OF_NODES, IN_NODES = 1.0, 1.0, 6.0, 14.0, 0.8
#: The cost model predicts the setup time of smoothed aggregation on a two-dimensional grid. On other graphs this time
#: is multiplied by a factor from SETUP, which depends on the dimension of the graph; the key None is for graphs that do
#: not resemble a grid. If the contrast is at least CONTRAST, classical multigrid is used, and its setup takes BY_POINTS
#: times as long.
SETUP = {"cpu": {1: 1.0, 2: 1.0, 3: 1.4, None: 4.0}, "gpu": {1: 1.0, 2: 1.0, 3: 1.1, None: 3.0}}
BY_POINTS = {"cpu": 1.6, "gpu": 1.8}


def forecast_cg(
    times: Mapping[str, Prediction], features: Features, plain: str, device: str, *, has_candidates: bool
) -> Forecast:
    """Predict CG.

    Parameters
    ----------
    times : mapping
        See `predict_times`.
    features : Features
    plain : {"none", "Jacobi"}
        The weakest candidate.
    device : {"cpu", "gpu"}
        On a GPU there is no sweep in the order of the rows; and there SGS in single precision, which gains less on a
        CPU, takes about as long as DILU where that needs fewer iterations.
    has_candidates : bool
        Whether there are candidates for the near-null space.
    """
    sweeps, multigrid = times["SGS"], times["multigrid"]
    if features.has_hubs:
        sweeps = Prediction(sweeps.setup, HUBS * sweeps.iteration)
    setup = SETUP[device][features.dimensions] * (BY_POINTS[device] if features.contrast >= CONTRAST else 1.0)
    predicted = {
        plain: times[plain],
        "SGS": sweeps,
        "multigrid": Prediction(setup * multigrid.setup, multigrid.iteration),
    }
    if device == "cpu":
        predicted["DILU"] = Prediction(DILU * sweeps.setup, sweeps.iteration)
    if device == "cpu" and not features.has_hubs:
        levels = 2 * features.n / max(features.width, 1.0)
        setup = sweeps.setup + FACTORS * features.entries
        predicted["ILU0"] = Prediction(setup, ROW_ORDER * sweeps.iteration + LEVEL * levels)
    of_jacobi, is_mass = iterations_of_jacobi(features), features.negative < LEAST_NEGATIVE
    per_digit = {name: of_jacobi * share_of_jacobi(name, features) for name in predicted}
    per_share = 0.0 if has_candidates or is_mass else OF_NODES if features.in_nodes >= IN_NODES else OF_STIFF
    expected = partial(expected_iterations, per_digit, 1 + per_share * features.positive)
    return Forecast(predicted, expected, ("multigrid",), False, MARGIN, MOST_SLOWER, PATIENCE)


def expected_iterations(per_digit: Mapping[str, float], of_multigrid: float, name: str, digits: float) -> float:
    """How many iterations a candidate is expected to take to reduce the residual by so many decimal digits, by those of
    each candidate for a digit, but for multigrid by how many times as many as usual it takes.
    """
    if name == "multigrid":
        return of_multigrid * (PER_DIGIT * digits + AT_LEAST)
    return max(per_digit[name] * digits, 1.0)


def iterations_of_jacobi(features: Features) -> float:
    """How many iterations are expected with Jacobi's preconditioner for each decimal digit."""
    factor, power = ON_GRIDS[features.dimensions] if features.dimensions else (ELSEWHERE, 0.0)
    contrast = features.contrast / 2 if features.dimensions == 3 else features.contrast
    harder = (1 + OF_POSITIVE * features.positive) * (1 + OF_CONTRAST * contrast**2)
    iterations = factor * features.n**power * harder / 8
    if features.surplus > 0 and features.contrast < CONTRAST:  # the condition is about 2 / surplus - 1
        condition = max(2 / features.surplus - 1, 1.0)
        iterations = min(iterations, math.log(10) * (1 + math.sqrt(condition)) / 4)
    if 1 + features.positive - features.negative >= LEAST_SUM:
        iterations = min(iterations, OF_MASS if features.negative < LEAST_NEGATIVE else OF_SUMS)
    return iterations


def share_of_jacobi(name: str, features: Features) -> float:
    """Iterations with a preconditioner, divided by those with Jacobi's."""
    if name == "SGS":
        return OF_SWEEPS / (1 + features.positive / 2)
    if name == "DILU":
        return OF_SWEEPS if features.contrast < CONTRAST else OF_DILU
    if name == "ILU0":
        is_smooth = features.contrast <= SMOOTH and features.in_nodes < IN_NODES
        canceled = CANCELED if is_smooth and MIXED[0] <= features.positive <= MIXED[1] else 1.0
        return min(canceled * OF_DROPPED * math.sqrt(features.dropped), OF_SWEEPS)
    return 1.0
