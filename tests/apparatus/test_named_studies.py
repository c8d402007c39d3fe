"""Studies by name, small: every case is verified, and says what the study is about."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks.papers import __main__ as command
from benchmarks.papers import level_sizes, studies
from benchmarks.papers.mesh_families import jumping
from benchmarks.papers.studies import STUDIES, VARIANTS
from mcprecond import problems
from mcprecond.coloring import COLORINGS
from mcprecond.preconditioners import ILU0
from mcprecond.studies.table import Record, Table

ROOT = Path(__file__).resolve().parents[2]


@functools.cache
def table(name: str, device: str) -> Table:
    return studies.run(name, device=device, small=True)


def by_case(name: str) -> dict[tuple[str, str], dict]:
    return {(row["matrix"], row["method"]): row for row in table(name, "cpu").rows}


@pytest.mark.nightly
@pytest.mark.parametrize("name", STUDIES)
def test_all_cases_are_verified(name, device):
    rows = table(name, device).rows
    assert rows and all(row["verified"] for row in rows)
    assert {row["device"] for row in rows} == {device}
    cases = [(row["matrix"], row["method"]) for row in rows]
    assert len(set(cases)) == len(cases)
    assert all(row["seconds"] > 0 and row["spread"] >= 0 for row in rows)
    # ILU(0) in natural order is solved only twice, since on a circuit of full size one solve takes over 20 seconds.
    assert all(row["repeats"] >= (2 if row["method"] == "natural" else 5) for row in rows)


def test_table_v_has_newton_and_linear_systems_with_all_columns():
    rows = by_case("table-v")
    matrices = list(dict.fromkeys(matrix for matrix, _ in rows))
    assert len(matrices) == 12 and all("stand-in" in name for name in matrices[8:])
    sgs = {f"SGS {name}{order}" for name in ("eb", "cc") for order in ("", ", ordered")}
    assert {method for _, method in rows} == {"CG", "Jacobi", "multigrid", *sgs}
    for (matrix, method), row in rows.items():
        assert (row["steps"] > 1) == ("Fenl" in matrix)
        assert (row["atol"] > 0) == matrix.startswith("absolute")
        assert row["assembly_seconds"] > 0 and row["setup_seconds"] >= 0 and row["residual"] <= 1.1e-7
        if method == "CG":
            assert row["colors"] is None and row["sgs_seconds"] is None
        else:
            assert row["sgs_seconds"] > 0
        if method in sgs:
            assert row["iterations"] < rows[matrix, "CG"]["iterations"]
        assert rows[matrix, "SGS eb"]["colors"] < rows[matrix, "SGS cc"]["colors"]


def test_all_methods_on_all_families():
    cases = set(by_case("table-ii-iii"))
    families = {matrix.split("_")[0] for matrix, _ in cases}
    assert families == {"fenl", "circuit", "delaunay", "rgg", "road", "rmat"}
    matrices = {matrix for matrix, _ in cases}
    assert cases == {(matrix, method) for matrix in matrices for method in (*COLORINGS, *VARIANTS)}


def test_shortcuts_change_no_color():
    rows = by_case("ecl-shortcuts")
    for matrix in {matrix for matrix, _ in rows}:
        four = [rows[matrix, method] for method in ("baseline", "+SC1", "+SC2", "+SC1+SC2")]
        assert len({row["colors"] for row in four}) == 1


def test_coloring_leaves_fewer_levels():
    for (matrix, method), row in by_case("level-histogram").items():
        if method == "CG":
            assert "levels" not in row and row["setup_seconds"] == 0
            continue
        natural = by_case("level-histogram")[matrix, "natural"]
        assert row["mean_level"] == pytest.approx(row["vertices"] / row["levels"])
        assert sum(count for column, count in row.items() if column.endswith("+")) == row["levels"]
        assert row["smallest_level"] <= row["mean_level"] <= row["largest_level"]
        assert method == "natural" or row["levels"] < natural["levels"]


def test_levels_of_the_circuit_depend_on_its_numbering():
    """In the numbering of the mesh there are about as many levels as the mesh has diagonals. In row order there are
    more, and narrower ones; in that of the whole graph, in which long wires shorten the ways, fewer and wider ones.
    """
    n = 150
    made = [problems.circuit(n), level_sizes.circuit_in_rcm(n), level_sizes.circuit_in_rcm_of_its_mesh(n)]
    assert len({(A.nnz, round(A.sum(), 6)) for A in made}) == 1
    own, whole, mesh = (level_sizes.histogram(ILU0(A, ordering="natural").levels) for A in made)
    assert 2 * n - 20 <= mesh["levels"] <= 2 * n and mesh["largest_level"] <= 1.5 * n
    assert own["levels"] > 3 * mesh["levels"] and own["largest_level"] < mesh["largest_level"] / 2
    assert whole["levels"] < mesh["levels"] / 3 and whole["largest_level"] > 10 * mesh["largest_level"]


def test_natural_order_takes_fewer_iterations_than_by_color_on_a_grid():
    rows = by_case("ordering")
    natural, greedy = rows["grid natural", "in row order"], rows["grid natural", "greedy"]
    assert natural["colors"] == 2 * 16 - 1 and natural["iterations"] < greedy["iterations"]
    # Rows sorted by color are swept in the order of colors.
    assert rows["grid colored", "in row order"]["iterations"] == greedy["iterations"]


def test_parts_of_colors_leave_the_iterations_as_they_are():
    rows = {row["method"]: row for row in table("coloring-effect", "cpu").rows}
    base = rows["SGS greedy"]
    for parts in (2, 8, 32):
        row = rows[f"SGS greedy in {parts} parts"]
        assert row["colors"] == 8 * parts and abs(row["iterations"] - base["iterations"]) <= 1


def test_multigrid_takes_fewer_iterations_on_every_family():
    rows = by_case("multigrid")
    matrices = list(dict.fromkeys(matrix for matrix, _ in rows))
    kinds = ("poisson2d", "poisson3d", "fenl", "anisotropy", "jumps", "elasticity")
    assert [matrix.split()[0] for matrix in matrices] == [kind for kind in kinds for _ in range(2)]
    for kind in kinds:
        coarse, fine = (matrix for matrix in matrices if matrix.split()[0] == kind)
        assert rows[fine, "multigrid"]["iterations"] < rows[fine, "SGS"]["iterations"]
        growth = [rows[fine, m]["iterations"] / rows[coarse, m]["iterations"] for m in ("multigrid", "SGS")]
        assert growth[0] < growth[1]


def test_jumping_coefficients():
    """Symmetric and positive definite; rows add up to what leaves through the boundary, which is zero inside."""
    A = jumping(20).toarray()
    np.testing.assert_array_equal(A, A.T)
    np.testing.assert_allclose(A.sum(axis=1).reshape(20, 20)[1:-1, 1:-1], 0, atol=1e-8)
    assert np.linalg.eigvalsh(A).min() > 0
    assert 0.99 < abs(A - np.diag(np.diag(A))).max() / 1e4 <= 1


@pytest.fixture
def here(monkeypatch, capsys):
    """Run the command in this process: the exit code or message, and what was printed."""

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["benchmarks.papers", *map(str, arguments)])
        try:
            code = command.main() or 0
        except SystemExit as exit_:
            code = exit_.code
        said = capsys.readouterr()
        return code, said.out, said.err

    return call


def test_the_command(tmp_path):
    program = [sys.executable, "-m", "benchmarks.papers", "sirg-ablation", "--small", "--json", "--matrix", "road"]
    result = subprocess.run([*program, "--output", tmp_path / "new"], capture_output=True, text=True, cwd=ROOT)
    assert result.returncode == 0, result.stderr
    document = json.loads((tmp_path / "new" / "sirg-ablation-cpu-small.json").read_text())
    assert document["study"] == "sirg-ablation" and document["cases"] == json.loads(result.stdout)
    assert document["command"].startswith("python -m benchmarks.papers sirg-ablation --small")
    lines = (tmp_path / "new" / "sirg-ablation-cpu-small.csv").read_text().splitlines()
    assert len(lines) == 1 + len(document["cases"]) and lines[0].startswith("matrix,method,")


def test_an_interrupted_study_goes_on(here, tmp_path, monkeypatch):
    """What was measured before the interruption stays as it is."""
    name = "level-histogram"
    table(name, "cpu")  # nothing is left to compile
    told = []

    def stop_later(self, row):
        told.append(row)
        if len(told) == 3:
            raise KeyboardInterrupt
        add(self, row)

    add = Record.add
    monkeypatch.setattr(Record, "add", stop_later)
    arguments = (name, "--small", "--output", tmp_path)
    code, said, complaint = here(*arguments)
    assert (code, said) == (130, "")
    assert "interrupted" in complaint and "call again to go on" in complaint
    path = tmp_path / f"{name}-cpu-small.json"
    before = json.loads(path.read_text())["cases"]
    assert len(before) == 2
    monkeypatch.setattr(Record, "add", add)
    code, said, _ = here(*arguments, "--json")
    assert code == 0
    after = json.loads(said)
    assert after[:2] == before and json.loads(path.read_text())["cases"] == after
    assert [(row["matrix"], row["method"]) for row in after] == list(by_case(name))


def test_the_page_has_every_study():
    from report import studies as page

    assert [study["name"] for study in page.STUDIES] == list(STUDIES)
    assert set(page.DRAWN) < set(STUDIES) and all(study["tables"] for study in page.STUDIES)
    assert "Not run yet" not in page.page({name: document_of(name) for name in STUDIES})
    assert all(f"python -m benchmarks.papers {name} --gpu" in page.page({}) for name in STUDIES)


def document_of(name: str) -> dict:
    facts = {"machine": {"gpu": "a GPU", "cpu": "a processor"}, "date": "2026-11-21T00:00"}
    return facts | {"versions": {"mcprecond": "0.1.0", "numpy": "2"}, "cases": table(name, "cpu").rows}
