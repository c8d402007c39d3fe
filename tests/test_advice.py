"""Advice for a matrix, in Python and on the command line."""

from __future__ import annotations

import json

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from graphs import grid5, spd
from test_cli import run

import mcprecond
from mcprecond import studies
from mcprecond.problems.graphs import grid2d
from mcprecond.studies.advice import CANDIDATES

NAMES = ("pcg", "MulticolorSGS", "MulticolorDILU", "ILU0", "SmoothedAggregation", "color")


def test_best_first_and_runnable(to_device, backend):
    A = to_device(grid2d(30))
    table = studies.advise(A)
    assert sorted(row["method"] for row in table.rows) == sorted(CANDIDATES)
    seconds = [row["seconds"] for row in table.rows]
    assert seconds == sorted(seconds)
    rows = {row["method"]: row for row in table.rows}
    assert all(row["verified"] and row["residual"] <= 1e-6 for row in table.rows)
    assert rows["ILU0 row order"]["colors"] == 59 > rows["ILU0 eb"]["colors"]
    assert rows["SGS greedy"]["colors"] == 2 and rows["none"]["application"] == 0
    assert rows["SGS eb"]["iterations"] < rows["none"]["iterations"]

    names = {name: getattr(mcprecond, name) for name in NAMES}
    names |= {"A": A, "b": A @ backend.xp.ones(900), "scipy": __import__("scipy.sparse")}
    if backend.name == "gpu":
        names["cupyx"] = __import__("cupyx.scipy.sparse")
    for row in table.rows:
        assert eval(row["python"], names).converged


def test_hermitian_matrices(to_device):
    table = studies.advise(to_device(spd(grid5(8), dtype=np.complex128)))
    assert len(table.rows) == len(CANDIDATES) and all(row["verified"] for row in table.rows)


def test_what_fails_comes_last():
    table = studies.advise(-grid2d(8))
    assert not any(row["verified"] for row in table.rows)
    rows = {row["method"]: row for row in table.rows}
    assert rows["none"]["reason"] == "indefinite_a" and "not positive" in rows["Jacobi"]["reason"]


@pytest.mark.parametrize(
    ("A", "message"),
    [
        (sp.csr_matrix([[1.0, 2.0], [0.0, 1.0]]), "A is not symmetric"),
        (sp.csr_matrix([[2.0, 1j], [1j, 2.0]]), "A is not Hermitian"),
        (sp.csr_matrix((0, 0)), "A has no rows"),
        (sp.csr_matrix((2, 3)), "A must be square"),
    ],
)
def test_bad_matrices(A, message):
    with pytest.raises(ValueError, match=message):
        studies.advise(A)


def test_the_command(tmp_path):
    path = tmp_path / "grid.mtx"
    scipy.io.mmwrite(path, grid2d(12), symmetry="symmetric")
    result = run("advise", str(path))
    assert result.returncode == 0, result.stderr
    for word in ("grid.mtx: 144 rows", "SGS eb", "Jacobi", "none", "iterations", "colors", "Use: pcg(A, b"):
        assert word in result.stdout
    rows = json.loads(run("advise", str(path), "--json").stdout)
    assert len(rows) == len(CANDIDATES) and all(row["verified"] for row in rows)


def test_nothing_converges_is_exit_code_1(tmp_path):
    scipy.io.mmwrite(tmp_path / "negative.mtx", -grid2d(4))
    result = run("advise", str(tmp_path / "negative.mtx"))
    assert result.returncode == 1 and "none of them converged" in result.stderr and "Use:" not in result.stdout
    assert "none failed: indefinite_a" in result.stdout and "Jacobi failed: no prec" in result.stdout


def test_files_that_cannot_be_used(tmp_path):
    missing = run("advise", str(tmp_path / "no.mtx"))
    assert missing.returncode == 2 and "no file" in missing.stderr and "Traceback" not in missing.stderr
    scipy.io.mmwrite(tmp_path / "dense.mtx", np.eye(2))
    dense = run("advise", str(tmp_path / "dense.mtx"))
    assert dense.returncode == 2 and "holds a dense matrix" in " ".join(dense.stderr.split())
