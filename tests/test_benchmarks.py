"""The benchmarks run, small, and record what the pages need."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "benchmarks"))

from cases import SOLVED  # noqa: E402
from measure import Times, save  # noqa: E402

from mcprecond.studies.sources import code  # noqa: E402


@pytest.fixture
def benchmark(tmp_path):
    """Run a script of benchmarks with --small and return what it wrote."""

    def run(script: str, *arguments: str) -> dict:
        output = tmp_path / "run.json"
        command = [sys.executable, ROOT / "benchmarks" / script, *arguments, "--small", "--output", output]
        subprocess.run(command, check=True, capture_output=True, env=os.environ | {"PYTHONPATH": str(ROOT)})
        document = json.loads(output.read_text())
        assert {"benchmark", "machine", "versions", "date", "seed", "small", "cases"} <= document.keys()
        assert (
            document["command"].startswith(f"python benchmarks/{script}") and str(tmp_path) not in document["command"]
        )
        assert {"commit", "others"} <= document.keys()
        assert document["code"].items() <= code().items() and "coloring/published/eb" in document["code"]
        return document

    return run


def test_times_carry_their_quartiles(tmp_path):
    first, second = Times([3.0, 1.0, 2.0]), Times([5.0])
    assert (first, first.quartiles, first.repeats) == (2.0, (1.5, 2.5), 3)
    document = {"rows": [{"setup_ms": first, "sum_ms": sum([first, second]), "more": first + 1}], "twice": 2 * first}
    save(document, tmp_path / "run.json")
    assert json.loads((tmp_path / "run.json").read_text()) == {
        "rows": [
            {
                "setup_ms": 2.0,
                "setup_ms_quartiles": [1.5, 2.5],
                "setup_ms_repeats": 3,
                "sum_ms": 7.0,
                "sum_ms_quartiles": [6.5, 7.5],
                "sum_ms_repeats": 1,
                "more": 3.0,
                "more_quartiles": [2.5, 3.5],
                "more_repeats": 3,
            }
        ],
        "twice": 4.0,
    }


def test_methods_on_families(benchmark):
    document = benchmark("coloring.py", "cpu", "--families", "rgg20", "--methods", "eb", "vb_bit ef", "jp")
    methods = document["cases"][0]["methods"]
    assert list(methods) == ["eb", "vb_bit ef", "jp"]
    assert all(row["ms"] > 0 and row["spread_ms"] >= 0 and row["ms_repeats"] >= 2 for row in methods.values())


def test_growing_graphs(benchmark):
    cases = benchmark("coloring_scaling.py", "cpu", "--rgg", "8", "9", "--rmat", "8")["cases"]
    assert [case["name"] for case in cases] == ["rgg8", "rgg9", "rmat8"]
    assert [case["vertices"] for case in cases] == [256, 512, 256]
    assert {"eb", "ecl_gc", "sirg", "vb_bit", "jp"} == cases[0]["methods"].keys()


def test_opponents_on_the_cpu(benchmark):
    document = benchmark("coloring_cpu.py", "--families", "grid2d")
    assert {"pyamg", "networkx", "numba"} <= document["versions"].keys()
    methods = document["cases"][0]["methods"]
    assert {"PyAMG JP", "PyAMG LDF", "PyAMG MIS", "NetworkX greedy", "eb", "vb_bit", "jp"} <= methods.keys()
    assert methods["greedy"]["colors"] == 2


def test_shortcuts_never_take_more_steps(benchmark):
    cases = benchmark("experiments/coloring_steps.py")["cases"]
    assert all(case["colors"] <= case["steps"] for case in cases)
    assert all(case["steps_with_shortcuts"] <= case["steps"] for case in cases)
    assert any(case["steps_with_shortcuts"] < case["steps"] for case in cases)


def test_every_vertex_is_colored_in_one_of_three_ways(benchmark):
    for case in benchmark("experiments/coloring_steps.py", "--families", "rgg20", "road22")["cases"]:
        assert case["at_first"] + case["by_shortcut"] + case["conventionally"] == case["vertices"]
        assert sum(case["colored"]) == sum(case["colored_with_shortcuts"]) == case["vertices"]
        assert case["at_first"] == case["colored"][0] <= case["colored_with_shortcuts"][0]


def test_one_thread_has_no_conflicts_and_chunks_take_fewer_rounds(benchmark):
    serial = benchmark("experiments/coloring_rounds.py", "--families", "rgg20", "--threads", "1")["cases"][0]
    assert all((row["rounds"], row["colored_again"]) == (1, 0) for row in serial["rounds"])
    (case,) = benchmark("experiments/coloring_rounds.py", "--families", "rgg20")["cases"]
    rounds = {(row["resolution"], row["chunk_size"]): row["rounds"] for row in case["rounds"]}
    assert rounds["index", 1] > rounds["index", 8] and rounds["index", 1] > rounds["degree", 1]


def test_choices(benchmark):
    cases = benchmark("choices.py", "gpu", "grid2d_300", "rmat_18")["cases"]
    assert [case["name"] for case in cases] == ["grid2d_300", "rmat_18"]
    for row in (row for case in cases for row in case["candidates"]):
        assert row["total_ms"] == pytest.approx(row["coloring_ms"] + 100 * row["iteration_ms"], rel=1e-3)


def test_advice(benchmark):
    (case,) = benchmark("advice.py", "cpu", "grid2d_300", "--repeats", "1")["cases"]
    rows = {row["name"]: row for row in case["solvers"]}
    assert case["advised"] in rows and {"SGS", "Jacobi", "none"} <= rows.keys()
    assert all(row["verified"] and row["seconds"] > 0 for row in rows.values())


def test_multigrid(benchmark):
    cases = benchmark("multigrid.py", "cpu", "--repeats", "2", "--cases", "triangulation", "elasticity")["cases"]
    for case in cases:
        rows = {row["name"]: row for row in case["solvers"]}
        assert {"library Jacobi", "CG", "Jacobi", "SGS", "DILU", "ILU0", "multigrid", "PyAMG"} <= rows.keys()
        assert all(row["relative_residual"] <= 1e-7 and row["setup"]["ms"] >= 0 for row in rows.values())
        assert all(len(row["solve"]["ms_quartiles"]) == 2 for row in rows.values())
        assert rows["multigrid"]["iterations"] < rows["SGS"]["iterations"] < rows["CG"]["iterations"]
        assert case["update"]["ms"] > 0 and case["levels"][0] == case["unknowns"]


def test_solves(benchmark):
    cases = benchmark("solves.py", "cpu", "rmat_18", "elasticity48", "--repeats", "2", "--colorings", "auto", "eb")[
        "cases"
    ]
    for case in cases:
        rows = {row["name"]: row for row in case["solvers"]}
        assert list(rows) == ["library CG", "pcg CG", "library Jacobi", "pcg Jacobi", "SGS auto", "SGS eb"]
        assert all(row["residual"] <= 2e-8 for row in rows.values())
        assert rows["SGS auto"]["iterations"] < rows["pcg Jacobi"]["iterations"] < rows["pcg CG"]["iterations"]
        assert {candidate["method"] for candidate in case["candidates"]} <= {"greedy", "ecl_gc"}
        assert case["longest_row"] > 32 and case["product_ms"] > 0 and 0 < rows["SGS eb"]["peak_over_matrix"] < 10


@pytest.mark.parametrize("name", SOLVED)
def test_what_is_solved_is_positive_definite(name):
    A = SOLVED[name](True, "cpu")
    assert abs(A - A.T).max() <= 1e-12 * abs(A).max()
    np.linalg.cholesky(A.toarray())


def test_busy_cores(benchmark):
    document = benchmark("busy.py", "--solves", "2")
    assert document["spinning"] >= 1
    for case in document["cases"]:
        assert case["idle"]["ms_repeats"] == case["busy"]["ms_repeats"] == 2
        assert 0 < case["idle"]["ms"] <= case["idle"]["largest_ms"]
        assert case["ratios_to_the_idle_median"]["largest"] >= case["ratios_to_the_idle_median"]["median"] > 0


def test_first_use(benchmark):
    document = benchmark("first_use.py", "cpu", "--repeats", "1")
    first, second = document["cases"]
    assert (first["name"], second["name"]) == ("empty caches", "second process")
    assert all(seconds > 0 for case in (first, second) for name, seconds in case.items() if name.endswith("_s"))
