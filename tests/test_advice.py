"""Advice for a matrix, in Python and on the command line."""

from __future__ import annotations

import json

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from graphs import grid5, spd

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
    assert rows["ILU0 row order"]["colors"] == 59 > rows["ILU0 colors"]["colors"]
    assert rows["SGS greedy"]["colors"] == 2 and rows["none"]["application"] == 0
    assert rows["SGS eb"]["iterations"] < rows["none"]["iterations"]
    predicted = {name for name, row in rows.items() if row["predicted_seconds"] is not None}
    assert predicted == {"none", "Jacobi", "SGS", "multigrid"}
    assert all(rows[name]["predicted_seconds"] > 0 for name in predicted)

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


def test_rounding_on_one_side_of_the_diagonal_is_no_asymmetry(to_device):
    A = grid2d(8).tolil()
    A[0, 60], A[50, 3] = 1e-17, -2e-17
    table = studies.advise(to_device(A.tocsr()))
    assert all(row["verified"] for row in table.rows)


@pytest.mark.parametrize("error", [ValueError, np.linalg.LinAlgError, MemoryError, ZeroDivisionError])
@pytest.mark.parametrize("where", ["in the constructor", "in an application"])
def test_a_candidate_that_refuses_is_a_row_with_its_reason(error, where, monkeypatch):
    class Refusing:
        shape, dtype = (64, 64), np.dtype(float)

        def __matmul__(self, r):
            raise error("not this one")

    def build(A):
        if where == "in the constructor":
            raise error("not this one")
        return Refusing()

    monkeypatch.setitem(CANDIDATES, "SGS eb", (build, "nothing"))
    table = studies.advise(grid2d(8))
    *good, last = table.rows
    assert last["method"] == "SGS eb" and "not this one" in last["reason"]
    assert len(good) == len(CANDIDATES) - 1 and all(row["verified"] for row in good)


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


def test_the_command(tmp_path, here):
    path = tmp_path / "grid.mtx"
    scipy.io.mmwrite(path, grid2d(12), symmetry="symmetric")
    code, said, complaint = here("advise", path)
    assert code == 0, complaint
    for word in ("grid.mtx: 144 rows", "SGS eb", "Jacobi", "none", "iterations", "colors", "Use: pcg(A, b"):
        assert word in said
    rows = json.loads(here("advise", path, "--json")[1])
    assert len(rows) == len(CANDIDATES) and all(row["verified"] for row in rows)


def test_nothing_converges_is_exit_code_1(tmp_path, here):
    scipy.io.mmwrite(tmp_path / "negative.mtx", -grid2d(4))
    code, said, complaint = here("advise", tmp_path / "negative.mtx")
    assert code == 1 and "none of them converged" in complaint and "Use:" not in said
    assert "none failed: indefinite_a" in said and "Jacobi failed: no prec" in said


def test_files_that_cannot_be_used(tmp_path, here):
    code, _, complaint = here("advise", tmp_path / "no.mtx")
    assert code == 2 and "no file" in complaint and "Traceback" not in complaint
    scipy.io.mmwrite(tmp_path / "dense.mtx", np.eye(2))
    code, _, complaint = here("advise", tmp_path / "dense.mtx")
    assert code == 2 and "holds a dense matrix" in " ".join(complaint.split())
