"""The example of a nonlinear problem on a distributed grid."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from distributed import COMM, python_type, set_options

from mcprecond import problems

EXAMPLE = Path(__file__).parents[2] / "examples/petsc_fenl.py"


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("petsc_fenl", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("advection", [0.0, 1.0])
def test_newton_finds_what_one_process_finds(example, advection):
    """The blocks of later steps are updated, not built anew."""
    set_options("")
    problem = example.DistributedFENL(6, advection)
    T, snes = problem.solve()
    assert snes.getConvergedReason() > 0
    expected, steps = problems.fenl(6, advection=advection).solve(rtol=1e-9)
    assert abs(snes.getIterationNumber() - len(steps)) <= 1
    np.testing.assert_allclose(problem.in_rows(T), expected, rtol=0, atol=1e-7)
    M = snes.getKSP().getPC().getBJacobiSubKSP()[0].getPC().getPythonContext()
    assert (M.builds, M.updates) == (1, snes.getIterationNumber() - 1)
    snes.destroy()


def test_gamg_under_newton(example):
    set_options(
        "-ksp_type cg -pc_type gamg -mg_levels_ksp_type richardson -snes_rtol 1e-9 -ksp_rtol 1e-8 "
        + python_type("MulticolorSGS", "mg_levels_")
    )
    problem = example.DistributedFENL(8)
    T, snes = problem.solve()
    assert snes.getConvergedReason() > 0
    exact = problems.fenl(8).solve(rtol=1e-9)[0]
    np.testing.assert_allclose(problem.in_rows(T), exact, rtol=0, atol=1e-7)
    snes.destroy()


def test_the_example_says_what_it_found(example, capsys, monkeypatch):
    set_options("-n 5 -check")
    monkeypatch.setattr("sys.argv", ["petsc_fenl.py"])
    example.main()
    if COMM.rank == 0:
        said = capsys.readouterr().out
        assert "216 unknowns" in said and ", converged" in said
        assert float(said.split()[-1]) < 1e-7
