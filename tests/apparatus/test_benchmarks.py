"""The benchmarks run, small, and record what the pages need."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import splu

ROOT = Path(__file__).resolve().parents[2]
sys.path += [str(ROOT), str(ROOT / "benchmarks")]

from cases import SOLVED  # noqa: E402
from measure import Times, kept, measure_each, parser_of, record, save  # noqa: E402

from benchmarks import everything, unaffected  # noqa: E402
from mcprecond.studies.sources import code  # noqa: E402


@pytest.fixture
def run_benchmark(tmp_path):
    """Run a script of benchmarks and return what it wrote. It gets --small, unless it has no such option.

    CUDA_LAUNCH_BLOCKING is 0 here even if the tests run with 1. Some scripts time kernels by queueing them in a stream
    behind a long one, and that works only if launches return at once.
    """
    variables = {"PYTHONPATH": str(ROOT), "CUDA_LAUNCH_BLOCKING": "0"}

    def run(script: str, *arguments: str) -> dict:
        output, small = tmp_path / "run.json", ["--small"] * (script not in SMALL_BY_ARGUMENTS)
        command = [sys.executable, ROOT / "benchmarks" / script, *arguments, *small, "--output", output]
        subprocess.run(command, check=True, capture_output=True, env=os.environ | variables)
        document = json.loads(output.read_text())
        assert {"machine", "versions", "date", "seed", "cases", "commit", "others"} <= document.keys()
        assert document.get("small", False) == bool(small)
        assert document["command"].startswith(f"python benchmarks/{script}") and str(tmp_path) not in str(document)
        return document

    return run


def test_times_carry_their_quartiles(tmp_path):
    save({"rows": [{"ms": Times([3.0, 1.0, 2.0]), "sum_ms": Times([2.0]) + Times([5.0])}]}, tmp_path / "run.json")
    (row,) = json.loads((tmp_path / "run.json").read_text())["rows"]
    assert (row["ms"], row["ms_quartiles"], row["ms_repeats"], row["sum_ms"]) == (2.0, [1.5, 2.5], 3, 7.0)


def test_a_run_keeps_what_the_same_code_has_measured(tmp_path):
    path, cases = tmp_path / "kept.json", [{"name": "a", "ms": 1.0}, {"name": "b", "ms": 2.0}]
    document = record("none", "cpu", cases, seed=1)
    assert kept(path, document, ["a"]) == []
    save(document, path)
    assert kept(path, document, ["a"]) == cases[1:]
    assert kept(path, document | {"seed": 2}, ["a"]) == []


#: Each benchmark, with arguments that let it take seconds.
TRIED = [
    "coloring.py cpu --families rgg20 --methods eb jp",
    "coloring_scaling.py cpu --rgg 8 9 --rmat 8",
    "coloring_cpu.py --families grid2d",
    "choices.py gpu grid2d_300 rmat_18",
    "advice.py cpu grid2d_300 --repeats 1",
    "automatic.py cpu --cases grid2d_300 --repeats 1",
    "busy.py --solves 1",
    "determinism.py cpu grid2d_300 --repeats 1",
    "fenl.py cpu --repeats 1",
    "first_use.py cpu --repeats 1 --ways SGS",
    "gallery.py cpu smoke --repeats 1",
    "krylov.py cpu --repeats 1",
    "marks.py --repeats 1",
    "precision.py cpu --repeats 1",
    "robustness.py --cases neumann tree",
    "steps.py cpu --repeats 1 --cases plate circuit",
    "sweeps.py cpu --repeats 1 --cases elasticity48 grid2d_1024",
    "accuracy.py cpu",
    "error_estimates.py cpu",
    "alarms.py cpu --cases tree smoke",
    "advection.py cpu --repeats 1 --flows vortex",
    "hierarchies.py cpu --repeats 1 --cases grid2d_1024 elasticity48",
    "ilu.py cpu --repeats 1 --cases grid2d_1024",
    "side_by_side.py cpu --cases circuit --repeats 1",
    "opponents/suitesparse.py --repeats 2 --families grid2d_1024",
    "experiments/half.py cpu --cases fenl_50",
    "experiments/pivots.py 300",
    "load.py cpu memory threads vertices --setups 10 --hierarchies 10 --threads 2 --solves 2 --scale 12",
]
#: These benchmarks need a GPU, or have code that runs only on one, such as calls of cuSPARSE and captured graphs.
TRIED_ON_A_GPU = [
    "coloring.py gpu --families rgg20 --methods eb --repeats 1",
    "fenl.py gpu --repeats 1",
    "ilu.py gpu --repeats 1 --cases grid2d_1024",
    "large.py 12 --methods ecl_gc multigrid",
    "load.py gpu streams --solves 2",
    "sweeps.py gpu --repeats 1 --cases grid2d_1024",
    "weak_scaling.py gpu --repeats 1",
]
#: These scripts have no option --small. The tests make their problems small by other arguments.
SMALL_BY_ARGUMENTS = {"experiments/pivots.py", "large.py", "load.py"}
#: Other tests of this file run these scripts. The last two are `-m benchmarks.papers` and the fuzz, which have tests of
#: their own in test_named_studies.py and test_fuzz.py.
TRIED_ELSEWHERE = {"multigrid.py", "solves.py", "experiments/coloring_steps.py", "experiments/coloring_rounds.py"}
TRIED_ELSEWHERE |= {"-m", "../tests/fuzz"}
#: No test runs this script, because it needs Nsight Compute, and many machines do not let users read a GPU's counters.
UNTRIED = {"experiments/limits.py"}


def script_of(command: str) -> str:
    return command.split()[0]


@pytest.mark.parametrize(
    "command",
    [pytest.param(command, marks=pytest.mark.nightly, id=script_of(command)) for command in TRIED]
    + [pytest.param(command, marks=pytest.mark.gpu, id=f"{script_of(command)} gpu") for command in TRIED_ON_A_GPU],
)
def test_benchmark_runs(command, run_benchmark):
    document = run_benchmark(*command.split())
    assert document["cases"] and all(case["name"] for case in document["cases"])


def test_each_part_is_tried():
    """Without a test, nobody notices that a function which a benchmark calls has been renamed."""
    tried = {script_of(command) for command in [*TRIED, *TRIED_ON_A_GPU]} | TRIED_ELSEWHERE
    assert {script_of(part["command"]) for part in everything.PARTS.values()} - tried == UNTRIED


def test_a_run_that_was_cut_off_goes_on(tmp_path):
    output, asked = tmp_path / "run.json", []

    def case(name: str) -> dict:
        asked.append(name)
        return {"ms": Times([1.0, 2.0])}

    def run(*names: str, resume: bool) -> list[str]:
        arguments = parser_of(None).parse_args(["cpu", "--output", str(output), *["--resume"] * resume])
        measure_each("none", arguments, {name: partial(case, name) for name in names})
        return [case["name"] for case in json.loads(output.read_text())["cases"]]

    assert run("a", resume=False) == ["a"]
    assert run("a", "b", resume=True) == ["a", "b"] and asked == ["a", "b"]
    assert run("a", resume=False) == ["b", "a"] and asked == ["a", "b", "a"]


def test_parts_are_commands():
    """Each part names what is there, once for each file that it writes."""
    for name, part in everything.PARTS.items():
        for device in part["devices"]:
            _, first, *others = everything.command_of(name, device)
            assert Path(first).exists() or (first, others[0]) == ("-m", "benchmarks.papers")
            assert others.count(device) <= 1 and not any("{" in word for word in others)


@pytest.mark.parametrize("name", ["multigrid", "ilu", "weak-scaling", "sweeps", "fenl"])
def test_parts_take_their_arguments(name):
    command = everything.command_of(name, "gpu")
    done = subprocess.run([*command, "--help"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_parts_are_done_once(tmp_path, monkeypatch):
    monkeypatch.setattr(everything, "DONE", tmp_path / "measured.json")
    monkeypatch.setattr(everything, "PARTS", {"one": {"devices": ["cpu"]}, "two": {"devices": ["cpu", "gpu"]}})
    monkeypatch.setattr(everything, "command_of", lambda name, device: [sys.executable, "-c", "pass"])
    monkeypatch.setattr(everything, "busy", lambda: 0.0)
    monkeypatch.setattr(sys, "argv", ["everything", "cpu", "--parts", "two"])
    assert everything.left("cpu") == ["one", "two"]
    everything.main()
    assert everything.left("cpu") == ["one"] and everything.left("gpu") == ["two"]
    monkeypatch.setattr(everything, "busy", lambda: 2.0)
    with pytest.raises(SystemExit, match=r"other processes use 2\.0 processors"):
        everything.main()


def test_a_part_that_fails_keeps_no_other_from_running(tmp_path, monkeypatch):
    monkeypatch.setattr(everything, "DONE", tmp_path / "measured.json")
    monkeypatch.setattr(everything, "PARTS", {"one": {"devices": ["cpu"]}, "two": {"devices": ["cpu"]}})
    codes = {"one": "raise SystemExit(1)", "two": "pass"}
    monkeypatch.setattr(everything, "command_of", lambda name, device: [sys.executable, "-c", codes[name]])
    monkeypatch.setattr(everything, "busy", lambda: 0.0)
    monkeypatch.setattr(sys, "argv", ["everything", "cpu"])
    with pytest.raises(SystemExit, match="failed: one"):
        everything.main()
    assert everything.left("cpu") == ["one"]


def test_changes_that_no_benchmark_runs_do_not_count(monkeypatch):
    changes = [{"part": "solvers", "before": before, "after": after} for before, after in ("ab", "bc")]
    monkeypatch.setattr(unaffected, "CHANGES", changes)
    for digest, found in {"a": "a", "b": "a", "c": "a", "d": "d"}.items():
        assert unaffected.settled({"solvers": digest, "sweeps": "c"}) == {"solvers": found, "sweeps": "c"}


@pytest.mark.nightly
def test_hashes_are_those_of_the_code(run_benchmark):
    found = run_benchmark("experiments/coloring_steps.py", "--families", "rgg20")
    assert found["code"].items() <= code(gpu=False).items() and "coloring/published/eb" in found["code"]
    (case,) = found["cases"]
    assert case["at_first"] + case["by_shortcut"] + case["conventionally"] == case["vertices"]
    assert case["colors"] <= case["steps_with_shortcuts"] <= case["steps"]


@pytest.mark.nightly
def test_one_thread_has_no_conflicts_and_chunks_take_fewer_rounds(run_benchmark):
    serial = run_benchmark("experiments/coloring_rounds.py", "--families", "rgg20", "--threads", "1")["cases"][0]
    assert all((row["rounds"], row["colored_again"]) == (1, 0) for row in serial["rounds"])
    (case,) = run_benchmark("experiments/coloring_rounds.py", "--families", "rgg20")["cases"]
    rounds = {(row["resolution"], row["chunk_size"]): row["rounds"] for row in case["rounds"]}
    assert rounds["index", 1] > rounds["index", 8] and rounds["index", 1] > rounds["degree", 1]


@pytest.mark.nightly
def test_multigrid(run_benchmark):
    """What README shows."""
    found = run_benchmark("multigrid.py", "cpu", "--repeats", "2", "--cases", "triangulation", "elasticity", "hubs")
    assert found["jacobi"] == "elementwise" and found["blas_threads"]
    for case in found["cases"]:
        rows = {row["name"]: row for row in case["solvers"]}
        assert {"library Jacobi", "CG", "Jacobi", "SGS", "DILU", "ILU0", "multigrid", "auto"} <= rows.keys()
        assert ("PyAMG" in rows) == (case["name"] != "hubs")
        assert all(row["relative_residual"] <= 1e-7 and row["setup"]["ms"] >= 0 for row in rows.values())
        assert rows["multigrid"]["iterations"] < rows["SGS"]["iterations"] < rows["CG"]["iterations"]


@pytest.mark.nightly
def test_solves(run_benchmark):
    run = run_benchmark("solves.py", "cpu", "rmat_18", "elasticity48", "--repeats", "2", "--colorings", "auto", "eb")
    for case in run["cases"]:
        rows = {row["name"]: row for row in case["solvers"]}
        assert list(rows) == ["library CG", "pcg CG", "library Jacobi", "pcg Jacobi", "SGS auto", "SGS eb"]
        assert all(row["residual"] <= 2e-8 for row in rows.values())
        assert case["product_ms"] > 0 and 0 < rows["SGS eb"]["peak_over_matrix"] < 10


@pytest.mark.parametrize("name", SOLVED)
def test_what_is_solved_is_positive_definite(name):
    """By the pivots of an elimination on the diagonal, which have the signs of the eigenvalues."""
    A = SOLVED[name](True, "cpu")
    assert abs(A - A.T).max() <= 1e-12 * abs(A).max()
    for definite, matrix in ((True, A), (False, A - 1.1 * A.diagonal().min() * sp.eye_array(A.shape[0]))):
        options = {"permc_spec": "MMD_AT_PLUS_A", "diag_pivot_thresh": 0.0, "options": {"SymmetricMode": True}}
        factors = splu(sp.csc_matrix(matrix), **options)
        np.testing.assert_array_equal(factors.perm_r, factors.perm_c)
        assert (factors.U.diagonal() > 0).all() == definite


def test_records_of_benchmarks_are_written_whole(tmp_path, monkeypatch):
    path = tmp_path / "results" / "run.json"
    save({"cases": [1.23456]}, path)
    written = path.read_text()
    with pytest.raises(TypeError, match="JSON"):
        save({"cases": [2.0, object()]}, path)
    monkeypatch.setattr("pathlib.Path.replace", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        save({"cases": [3.0]}, path)
    assert path.read_text() == written and list(path.parent.iterdir()) == [path]
