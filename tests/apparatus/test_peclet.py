"""The Péclet study."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.papers.peclet import CONDUCTIVITY, ORDERINGS, PRECONDITIONERS, SOLVERS, peclet
from mcprecond import problems


def test_small_study(device):
    rows = peclet(6, numbers=[0.0, 2.0], device=device).rows
    cases = {(row["peclet"], row["solver"], row["preconditioner"], row["ordering"]) for row in rows}
    assert len(cases) == len(rows) == 2 * len(SOLVERS) * (1 + (len(PRECONDITIONERS) - 1) * len(ORDERINGS))
    products = {(row["peclet"], row["solver"], row["preconditioner"], row["ordering"]): row["products"] for row in rows}
    assert all(row["verified"] for row in rows)
    assert all((row["colors"] == 0) == (row["preconditioner"] == "none") for row in rows)
    for number in (0.0, 2.0):
        fewer = [
            products[number, solver, "none", ""] - products[number, solver, "ILU0", "natural"] for solver in SOLVERS
        ]
        assert min(fewer) >= 0 and max(fewer) > 0  # CuPy's gmres counts whole restarts


def test_mesh_peclet_number_is_that_of_the_problem(monkeypatch):
    seen = []
    monkeypatch.setattr(problems, "fenl", lambda n, advection, device: seen.append(advection) or 1 / 0)
    with pytest.raises(ZeroDivisionError):
        peclet(10, numbers=[3.0])
    speed = np.sqrt(3) * seen[0]
    np.testing.assert_allclose(speed / 10 / (2 * CONDUCTIVITY), 3.0)
