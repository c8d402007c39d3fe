"""What BiCGSTAB and GMRES are expected to take with each preconditioner, if A is not symmetric; see `Forecast`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial

from mcprecond.tuning.features import Features
from mcprecond.tuning.forecast import Forecast, Prediction

#: See `Forecast`.
MARGIN, MOST_SLOWER, PATIENCE = 1.2, 2.0, 0.5
#: How many iterations BiCGSTAB takes to reduce the residual by 8 decimal digits if the diagonal does not dominate: a
#: multiple of the number of points along a side of a square grid with n points. The multiples fit flows with streamline
#: diffusion. In three dimensions they are multiplied by IN_SPACE, which fits FENL. If the flow follows the order of the
#: rows or the reverse order, ILU0 drops little. Then the number of points along a side is raised to a power below 1,
#: which depends on `Features.products`.
ALONG_A_SIDE = {"none": 6.0, "Jacobi": 6.0, "DILU": 2.5, "ILU0": 1.5}
IN_SPACE = 0.4
#: Some preconditioners need about the same number of iterations on grids of all sizes: the first number times the
#: decimal digits that the residual has to fall, plus the second number. For multigrid this is multiplied by 1 plus
#: OF_POSITIVE times `Features.positive`.
OF_ANY_SIZE = {"multigrid": (1.0, 1.0), "spilu": (0.25, 1.0)}
OF_POSITIVE = 6.0
#: If A is not symmetric, the setup of multigrid takes SETUP times as long as for a symmetric matrix of the same size,
#: and a cycle takes CYCLE times as long.
SETUP, CYCLE = {"cpu": 2.5, "gpu": 4.0}, 1.8
#: The setup of spilu takes SPILU[0] seconds, plus SPILU[1] seconds times the number of entries of A times the width to
#: the power 3/4; this fits grids in two and three dimensions. A solve with its factors takes as long as SOLVE products
#: with A.
SPILU, SOLVE = (0.3e-3, 6.5e-9), 14


def forecast_general(
    times: Mapping[str, Prediction], features: Features, plain: str, device: str, products: int
) -> Forecast:
    """Predict a method that takes so many products with A in an iteration.

    Parameters
    ----------
    times : mapping
        Of CG; see `predict_times`.
    features : Features
    plain : {"none", "Jacobi"}
        The weakest candidate.
    device : {"cpu", "gpu"}
        On a GPU sweeps need colors, and there is no spilu.
    products : int
    """
    product, sweeps, multigrid = times["none"].iteration, times["SGS"], times["multigrid"]
    found = {
        plain: times[plain],
        "DILU" if device == "gpu" else "ILU0": Prediction(sweeps.setup, product + sweeps.iteration),
        "multigrid": Prediction(SETUP[device] * multigrid.setup, CYCLE * multigrid.iteration),
    }
    if device == "cpu":
        start, per_entry = SPILU
        setup = start + per_entry * features.entries * features.width**0.75
        found["spilu"] = Prediction(setup, (1 + SOLVE) * product)
    predicted = {name: Prediction(setup, products * iteration) for name, (setup, iteration) in found.items()}
    expected = partial(expected_iterations, features=features, products=products)
    return Forecast(predicted, expected, tuple(OF_ANY_SIZE), True, MARGIN, MOST_SLOWER, PATIENCE)


def expected_iterations(name: str, digits: float, features: Features, products: int) -> float:
    """How many iterations a candidate is expected to take to reduce the residual by so many decimal digits."""
    of_bicgstab = 2 / products
    if name in OF_ANY_SIZE:
        per_digit, at_least = OF_ANY_SIZE[name]
        growth = 1 + OF_POSITIVE * features.positive if name == "multigrid" else 1.0
        return of_bicgstab * growth * (per_digit * digits + at_least)
    power = min(2 * math.sqrt(features.products), 1.0) if name == "ILU0" else 1.0
    iterations = ALONG_A_SIDE[name] * side_of(features) ** power * digits / 8
    if features.surplus > 0:  # the condition is about 2 / surplus - 1, and the method about as fast as CG
        condition = max(2 / features.surplus - 1, 1.0)
        of_dominant = digits * math.log(10) * math.sqrt(condition) / 4
        iterations = min(iterations, of_dominant * ALONG_A_SIDE[name] / ALONG_A_SIDE["none"])
    return of_bicgstab * max(iterations, 1.0)


def side_of(features: Features) -> float:
    """Points along a side of a square grid. If the grid is three-dimensional, IN_SPACE times those of a cube."""
    return IN_SPACE * features.n ** (1 / 3) if features.dimensions == 3 else features.n ** (1 / 2)
