"""The page of factorizations is what its benchmark measured, and the benchmark runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def ilu():
    """The module that writes docs/factorizations.md."""
    from report import factorizations

    return factorizations


def test_small_run_makes_a_page(ilu, tmp_path):
    path = tmp_path / "ilu-cpu.json"
    command = [sys.executable, ROOT / "benchmarks" / "ilu.py", "cpu", "--small", "--repeats", "1"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    run = [*command, "--cases", "grid2d_1024", "--output", path]
    subprocess.run(run, check=True, capture_output=True, env=environment)
    document = json.loads(path.read_text())
    (case,) = document["cases"]
    rows = {row["name"]: row for row in case["factorizations"]}
    assert set(rows) == {*ilu.OURS, "SciPy spilu"}
    assert rows["ILU0 natural"]["levels"] == 2 * 64 - 1
    assert all(row["relative_residual"] <= document["rtol"] for row in rows.values() if "iterations" in row)
    text = ilu.page([document])
    best = min(ilu.OURS, key=lambda name: rows[name]["total_ms"])
    assert f"- **grid2d_1024**: {best} wins" in text and "| ILU0 natural | 127 |" in text


def test_opponents_are_compared(ilu):
    solve = {"iterations": 10, "solve_ms": 20.0, "setup_ms": 5.0, "total_ms": 25.0}
    rows = [
        {"name": "SGS color", "levels": 8, "apply_ms": 0.5, **solve},
        {
            "name": "ILU0 color",
            "levels": 8,
            "factor_ms": 3.0,
            "apply_ms": 0.5,
            "apply_four_ms": 0.75,
            **solve,
            "total_ms": 24.0,
        },
        {
            "name": "cuSPARSE natural",
            "levels": None,
            "factor_ms": 20.0,
            "apply_ms": 8.0,
            "solve_analysis_ms": 3.0,
            "captured": False,
            "own_factorization": True,
            **solve,
        },
        {
            "name": "cuSPARSE color",
            "levels": None,
            "apply_ms": 2.0,
            "solve_analysis_ms": 3.0,
            "captured": True,
            "own_factorization": False,
            **solve,
        },
        {"name": "CuPy spilu", "levels": None, "failed": "no luck"},
    ]
    case = {"name": "a matrix", "unknowns": 1000, "factorizations": rows}
    machine = {"gpu": "a GPU", "cpu": "a processor"}
    text = ilu.page(
        [{"machine": machine, "versions": {"mcprecond": "1.2"}, "date": "2026-11-21", "rtol": 1e-8, "cases": [case]}]
    )
    for line in (
        "| cuSPARSE natural / ILU0 color, factorization + application | 8.00 |",
        "| cuSPARSE color / ILU0 color, application | 4.00 |",
        "| ILU0 color, application to four vectors / to one | 1.50 |",
        "| ILU0 color, factorization / application | 6.00 |",
        "| cuSPARSE natural | not captured in CG |",
        "| cuSPARSE color | captured in CG, our factors: this cuSPARSE has no csrilu02 |",
        "| CuPy spilu | failed: no luck |",
    ):
        assert line in text
    assert "ILU0 color wins, 24.0 ms: 10 iterations of 2.00 ms" in text
