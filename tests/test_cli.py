"""The command line, as a user calls it."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    program = "from mcprecond.cli import main; main()"
    return subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True)


@pytest.fixture
def no_gpu():
    from mcprecond.backends import gpu_problem

    if gpu_problem() is None:
        pytest.fail("this test is for machines without a GPU; `make test-gpu` leaves it out")


def test_fenl_prints_the_table():
    result = run("fenl", "--n", "6")
    assert result.returncode == 0, result.stderr
    for word in ("CG", "Jacobi", "SGS eb", "SGS ecl_gc", "SGS jpl", "SGS greedy", "colors", "error", "343"):
        assert word in result.stdout


def test_fenl_as_json():
    result = run("fenl", "--n", "8", "--json")
    assert result.returncode == 0, result.stderr
    rows = {row["method"]: row for row in json.loads(result.stdout)}
    assert list(rows) == ["CG", "Jacobi", "SGS eb", "SGS ecl_gc", "SGS jpl", "SGS greedy"]
    assert rows["CG"]["colors"] is None and rows["SGS greedy"]["colors"] == 8
    for row in rows.values():
        assert row["converged"] and row["residual"] <= 1e-7 and row["error"] < 1e-3
        assert row["method"] == "CG" or sum(row["iterations"]) < sum(rows["CG"]["iterations"])
        assert row["total_seconds"] > row["setup_seconds"] >= 0


def test_gpu_asked_for_without_one(no_gpu):
    result = run("fenl", "--gpu")
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr.startswith("mcprecond: --gpu cannot be used: ") and result.stderr.count("\n") == 1


@pytest.mark.parametrize("command", [("fenl", "--gpu"), ("info",)])
def test_without_cupy_the_extras_are_named(command):
    program = "import sys; sys.modules['cupy'] = None; from mcprecond.cli import main; main()"
    result = subprocess.run([sys.executable, "-c", program, *command], capture_output=True, text=True)
    said = " ".join((result.stdout + result.stderr).split())
    assert "install mcprecond[gpu-cuda13] or mcprecond[gpu-cuda12]" in said and "Traceback" not in said


def test_bad_input_is_one_line():
    result = run("fenl", "--n", "0")
    assert result.returncode == 2
    assert "mcprecond: n must be at least 1, got 0" in result.stderr and "Traceback" not in result.stderr


def test_unknown_option():
    assert run("fenl", "--m", "3").returncode == 2


def test_not_converged_is_exit_code_1(monkeypatch, capsys):
    import typer

    import mcprecond.studies
    from mcprecond import cli

    row = mcprecond.studies.Row("CG", None, (2000,), 0.0, 0.0, 1.0, 1e-3, 0.1, False)
    monkeypatch.setattr(mcprecond.studies, "table_v", lambda *args, **kwargs: [row])
    with pytest.raises(typer.Exit) as exit_:
        cli.fenl(n=2)
    assert exit_.value.exit_code == 1
    assert "not converged" in capsys.readouterr().err


def test_info_and_version():
    import mcprecond

    facts = json.loads(run("info", "--json").stdout)
    assert facts["mcprecond"] == mcprecond.__version__ == run("--version").stdout.strip()
    assert {"numpy", "scipy", "numba", "gpu", "cpu threads"} <= set(facts)


def test_help_shows_an_example():
    assert "mcprecond fenl --n 50" in " ".join(run("--help").stdout.split())
    assert "--gpu" in run("fenl", "--help").stdout


def test_import_needs_numpy_scipy_and_numba_only():
    optional = ("cupy", "typer", "rich", "matplotlib", "pyamg")
    program = f"import sys, mcprecond; print([m for m in {optional} if m in sys.modules])"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_unknown_study_method():
    from mcprecond import studies

    with pytest.raises(ValueError, match="unknown method 'ILU'; known are CG, Jacobi"):
        studies.table_v(3, methods=["ILU"])
