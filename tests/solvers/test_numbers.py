"""What solvers say is true, and M is definite where it says so, on systems of known condition in any units."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from accuracy import inverse_diagonal, judged_solves, spectrum
from reference.systems import draw

from mcprecond import (
    ILU0,
    ClassicalAMG,
    MulticolorDILU,
    MulticolorGS,
    MulticolorSGS,
    SmoothedAggregation,
    bicgstab,
    gmres,
    minres,
    pcg,
)

NEVER = "false_converged", "residual_off", "false_reasons", "indefinite", "unsymmetric"
#: Systems with at most 60 unknowns that between them have all dtypes, kinds and scalings.
SEEDS = 2, 11, 13, 22, 24, 31, 32, 35, 38, 50, 53
#: Their definite ones.
DEFINITE = 2, 11, 22, 24, 32, 35, 38, 53

PRECONDITIONERS = {
    "SGS": MulticolorSGS,
    "SSOR": lambda A: MulticolorSGS(A, omega=1.5),
    "two sweeps": lambda A: MulticolorSGS(A, sweeps=2),
    "DILU": MulticolorDILU,
    "ILU0, color": lambda A: ILU0(A, ordering="color"),
    "ILU0, natural": lambda A: ILU0(A, ordering="natural"),
    "classical multigrid": lambda A: ClassicalAMG(A, max_coarse=3),
    **{
        f"multigrid, {smoother}, {cycle}": lambda A, s=smoother, c=cycle: SmoothedAggregation(
            A, smoother=s, cycle=c, max_coarse=3
        )
        for smoother, cycle in (("chebyshev", "V"), ("chebyshev", "W"), ("gauss_seidel", "V"), ("sgs", "W"))
    },
}


@pytest.mark.parametrize("seed", SEEDS)
def test_what_solvers_say_is_true(seed, backend):
    """And `pcg` is as accurate as the dtype allows wherever it says that it cannot reduce the residual further."""
    for way, found in judged_solves(seed, backend, 60):
        assert not any(found.get(name) for name in NEVER), (way, found)
        assert way[0] != "pcg" or not found.get("inaccurate"), (way, found)


@pytest.mark.parametrize("name", PRECONDITIONERS)
@pytest.mark.parametrize("seed", DEFINITE)
def test_M_is_symmetric_and_definite_where_it_says_so(seed, name, backend, to_device):
    system = draw(seed, 30)
    M = PRECONDITIONERS[name](to_device(system.A))
    assert M.symmetric
    least, asymmetry = spectrum(system, M, backend)
    assert asymmetry <= 1
    assert least > 0 or not system.is_regular


@pytest.mark.parametrize("sweep", ["forward", "backward"])
def test_an_M_that_is_not_symmetric_says_so(sweep, backend, to_device):
    system = draw(11, 30)
    M = MulticolorGS(to_device(system.A), sweep=sweep)
    assert not M.symmetric and spectrum(system, M, backend)[1] > 1
    cycle = SmoothedAggregation(to_device(system.A), smoother="gauss_seidel", presweeps=2, postsweeps=1, max_coarse=3)
    assert not cycle.symmetric


@pytest.mark.parametrize("solve", [pcg, minres, bicgstab, gmres], ids=lambda solve: solve.__name__)
def test_jacobi_where_units_differ(solve, to_device):
    """The largest entries of A and of M are in different rows."""
    scales = np.logspace(-120, 120, 8)
    A = sp.diags_array([-1.0, 2.5, -1.0], offsets=[-1, 0, 1], shape=(8, 8))
    A = to_device(sp.csr_matrix(sp.diags_array(scales) @ A @ sp.diags_array(scales)))
    result = solve(A, to_device(scales), M=inverse_diagonal(A), rtol=1e-10)
    assert result.converged


@pytest.mark.parametrize(("columns", "form"), [(1, "plain"), (1, "eisenstat"), (3, "plain")])
def test_a_guess_where_units_differ(columns, form, backend, to_device):
    """A times the guess is far below the product of their magnitudes, which must not choose the unit of b."""
    system = draw(484)
    A, B = to_device(system.A), to_device(system.B)
    X = to_device(system.solution.astype(system.dtype))
    B, X = (B[:, 0].copy(), X[:, 0].copy()) if columns == 1 else (B, X)
    again = pcg(A, B, X, M=MulticolorSGS(A), rtol=0, form=form)
    for column, x in enumerate(np.atleast_2d(backend.to_host(again.x).T)):
        assert system.error(column, x) <= 10 * system.best_error(column)
