"""The scripts that run other codes write files that these read, and understand what they print."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from graphs import patterns
from hypothesis import HealthCheck, given, settings

ROOT = Path(__file__).resolve().parent.parent
SCRIPTS = ROOT / "benchmarks" / "opponents"
sys.path.append(str(SCRIPTS))

import codes  # noqa: E402
import files  # noqa: E402

#: What each prints, shortened, and the line that is made of it.
PRINTED = {
    "ecl-gc": (
        "ECL-GC v1.2 (ECL-GC_12.cu)\ninput: a.egr\nnodes: 132651\n\nruntime:    0.000125 s\n"
        "throughput: 900.1 Mnodes/s\nresult verification passed\ncolors used: 17\n",
        {"ms": 0.125, "colors": 17, "valid": True},
    ),
    "sirg": (
        "Reading Graph a.mtx\nNumber of Vertices: 10\n[ 0.5 19 ] \nAverage Runtime: 0.5\nAverage Colors: 19\n"
        "Memory Used for adjColors array: 540672 bytes\nGraph Colored Correctly\n",
        {"ms": 0.5, "colors": 19, "valid": True},
    ),
    "chengc": (
        "Reading (.mtx) input file a.mtx\nGraph coloring data-driven Best version\n[17 0.75 0] \n"
        "avg_runtime 0.750000 ms, avg_colors 17.00 avg_iterations 0.00\nNum Colors: 17\nincorrect.\n",
        {"ms": 0.75, "colors": 17, "valid": False},
    ),
    "gunrock": (
        "GPU colors[:40] = 3 1 2\nGPU Elapsed Time : 8.5 (ms)\nCPU Elapsed Time : 2 (ms)\n"
        "Number of colors : 55\nNumber of errors : 0\n",
        {"ms": 8.5, "colors": 55, "valid": True},
    ),
    "kokkos": (
        "algorithm: 6\n\nTime:0.5 sec. Num colors:18 Num Phases:52\n\t1 2 ... \n"
        "\nTime:0.25 sec. Num colors:18 Num Phases:52\n\t1 2 ... \nAverage time over 2 trials: 0.375 sec.\n",
        {"ms": 250.0, "colors": 18},
    ),
    "amgx": (
        "         Total Iterations: 62\n         Avg Convergence Rate: \t\t         0.7500\n"
        "         Final Residual: \t\t   1.250000e-07\n         Total Reduction in Residual: \t   5.000000e-09\n"
        "Total Time: 0.75\n    setup: 0.5 s\n    solve: 0.25 s\n    solve(per iteration): 0.004 s\n",
        {"setup_ms": 500.0, "solve_ms": 250.0, "iters": 62, "relres": 5e-9, "status": "success"},
    ),
}


def read_egr(path: Path) -> sp.csr_array:
    numbers = np.fromfile(path, "<i4")
    n, entries = numbers[:2]
    indptr, indices = np.split(numbers[2:], [n + 1])
    return sp.csr_array((np.ones(entries, np.int8), indices, indptr), shape=(n, n))


@pytest.mark.parametrize("name", codes.CODES)
def test_output_becomes_a_line(name):
    text, line = PRINTED[name]
    assert codes.CODES[name].parse(text) == line
    with pytest.raises(ValueError, match="in its output"):
        codes.CODES[name].parse("Segmentation fault")


@pytest.mark.parametrize("name", codes.CODES)
def test_commands_name_the_sources(name, tmp_path):
    code, build = codes.CODES[name], tmp_path / "build"
    if name == "ecl-gc":
        with pytest.raises(ValueError, match=r"no ECL-GC_\*\.cu in"):
            code.commands(tmp_path, build, 90)
        (tmp_path / "ECL-GC_12.cu").touch()
    words = [word for command in code.commands(tmp_path, build, 90) for word in command]
    assert any(word.startswith(str(tmp_path)) for word in words) and any(str(build) in word for word in words)
    for variant in code.variants:
        assert {"binary", "file"} <= set(code.call("binary", "file", variant))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(A=patterns())
def test_a_graph_is_read_as_it_was_written(A, tmp_path):
    wanted = sp.csr_array(A, dtype=bool)
    wanted = sp.csr_array(wanted + wanted.T)
    wanted.setdiag(False)
    wanted.eliminate_zeros()
    for suffix, read in ((".egr", read_egr), (".mtx", lambda path: scipy.io.mmread(path, spmatrix=False))):
        path = tmp_path / f"a{suffix}"
        files.write_graph(wanted + sp.eye_array(wanted.shape[0], dtype=bool), path)
        assert (sp.csr_array(read(path)).astype(bool) != wanted).nnz == 0
    with pytest.raises(ValueError, match=r"\.mtx or \.egr, and a\.gr is neither"):
        files.write_graph(wanted, tmp_path / "a.gr")


def test_a_system_is_read_as_it_was_written(tmp_path):
    A = sp.random_array((7, 7), density=0.5, rng=np.random.default_rng(0))
    b = np.arange(7) / 3
    files.write_system(A, b, tmp_path / "a.mtx")
    first, tag, sizes, *lines = (tmp_path / "a.mtx").read_text().splitlines()
    assert first == "%%MatrixMarket matrix coordinate real general" and tag == "%%AMGX 1 1 sorted rhs"
    assert sizes == f"7 7 {A.nnz}" and [float(line) for line in lines[A.nnz :]] == b.tolist()
    rows, columns, values = np.array([line.split() for line in lines[: A.nnz]], float).T
    written = sp.coo_array((values, (rows.astype(int) - 1, columns.astype(int) - 1)), shape=(7, 7))
    assert (written.tocsr() != A.tocsr()).nnz == 0 and sorted(rows) == rows.tolist()


@pytest.mark.parametrize(("name", "case"), [("ecl-gc", "fenl_50"), ("kokkos", "grid2d_1024"), ("amgx", "grid2d_1024")])
def test_a_code_is_run(name, case, tmp_path):
    """A stand-in prints what the code would, if the file is there."""
    binary, output = tmp_path / "stand-in", tmp_path / "run.json"
    binary.write_text(
        f"#!{sys.executable}\nimport pathlib, sys\n"
        f"assert any(pathlib.Path(word).is_file() for word in sys.argv[1:])\nprint({PRINTED[name][0]!r})\n"
    )
    binary.chmod(0o755)
    command = [sys.executable, SCRIPTS / "run.py", name, "--binary", binary, "--cases", case, "--small"]
    command += ["--repeats", "2", "--output", output]
    subprocess.run(command, check=True, capture_output=True, env=os.environ | {"PYTHONPATH": str(ROOT)})
    document = json.loads(output.read_text())
    assert document["benchmark"] == "opponents" and "code" not in document and str(tmp_path) not in output.read_text()
    (found,) = document["cases"]
    assert found["name"] == case and len(found["lines"]) == len(codes.CODES[name].variants)
    assert all(PRINTED[name][1].items() <= line.items() for line in found["lines"])


def test_what_fails_has_its_error_in_the_line(tmp_path):
    from run import called

    file, binary = tmp_path / "a.egr", tmp_path / "stand-in"
    for text, error in (("sys.exit('no device')", "exit status 1: no device"), ("print('hello')", "no runtime")):
        binary.write_text(f"#!{sys.executable}\nimport sys\n{text}\n")
        binary.chmod(0o755)
        assert error in called("ecl-gc", "", binary, file, 2, 60)["error"]


def test_suitesparse(tmp_path):
    output = tmp_path / "run.json"
    command = [sys.executable, SCRIPTS / "suitesparse.py", "--small", "--repeats", "2", "--families", "grid2d_1024"]
    subprocess.run(
        [*command, "--output", output], check=True, capture_output=True, env=os.environ | {"PYTHONPATH": str(ROOT)}
    )
    (case,) = json.loads(output.read_text())["cases"]
    rows = case["methods"]
    for name in ("graphblas_is", "graphblas_mis", "graphblas_jp"):
        assert rows[f"{name}, SuiteSparse"]["colors"] == rows[f"{name}, our kernels"]["colors"]
