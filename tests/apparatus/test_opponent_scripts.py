"""The script that runs other codes writes a file for each, and understands what it prints."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "benchmarks" / "opponents"
sys.path.append(str(SCRIPTS))

import codes  # noqa: E402

#: What each prints, shortened, and the line that is made of it.
PRINTED = {
    "ecl-gc": (
        "ECL-GC v1.2 (ECL-GC_12.cu)\ninput: a.egr\nnodes: 132651\n\nruntime:    0.000125 s\n"
        "throughput: 900.1 Mnodes/s\nresult verification passed\ncolors used: 17\n",
        {"ms": 0.125, "colors": 17, "valid": True},
    ),
    "sirg": ("a.mtx 0.500000 19.400000 540672.000000\n", {"ms": 0.5, "colors": 19}),
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


@pytest.mark.nightly
@pytest.mark.parametrize("name", PRINTED)
def test_a_code_is_run(name, tmp_path):
    """A stand-in prints what the code would, if the file is there."""
    binary, output = tmp_path / "stand-in", tmp_path / "run.json"
    binary.write_text(
        f"#!{sys.executable}\nimport pathlib, sys\n"
        f"assert any(pathlib.Path(word).is_file() for word in sys.argv[1:])\nprint({PRINTED[name][0]!r})\n"
    )
    binary.chmod(0o755)
    command = [sys.executable, SCRIPTS / "run.py", name, "--binary", binary, "--cases", "grid2d_1024", "--small"]
    command += ["--repeats", "2", "--output", output]
    subprocess.run(command, check=True, capture_output=True, env=os.environ | {"PYTHONPATH": str(ROOT)})
    document = json.loads(output.read_text())
    assert document["benchmark"] == "opponents" and document["code"] == {} and str(tmp_path) not in output.read_text()
    (found,) = document["cases"]
    assert len(found["lines"]) == len(codes.CODES[name].variants)
    assert all(PRINTED[name][1].items() <= line.items() for line in found["lines"])
    with pytest.raises(ValueError, match="in its output"):
        codes.CODES[name].parse("Segmentation fault")


def test_each_solver_fails_alone(tmp_path):
    """Of five solvers two fail, one with a reason and one with its process; the others run in new processes."""
    sys.path.append(str(ROOT / "benchmarks"))
    import side_by_side

    script = tmp_path / "solvers.py"
    script.write_text("""
import json, os, sys
print("a word of a library")
for name in sys.argv[1:]:
    if name == "killed":
        sys.exit("a crash")
    found = {"setup_ms": [1.0], "solve_ms": [os.getpid()], "iterations": 1, "residual": 1e-9}
    print(json.dumps({"reason": "RuntimeError"} if name == "refused" else found), flush=True)
    if name == "refused":
        break
""")
    names = ["first", "refused", "second", "killed", "third"]
    rows = side_by_side.measured([sys.executable, str(script)], names, "1", "cpu")
    assert [row["name"] for row in rows] == names
    assert [row.get("reason") for row in rows] == [None, "RuntimeError", None, "a crash", None]
    assert len({row["solve_ms"] for row in rows if row["converged"]}) == 3


def test_sources_are_edited_in_a_copy(tmp_path):
    """Each edit has to match somewhere: otherwise the sources are of another version."""
    import run

    sources = tmp_path / "theirs"
    sources.mkdir()
    (sources / "a.cu").write_text("int array[];\nint* p = array;\n")
    (sources / "b.cu").write_text("#include <thrust/scan.h>\n")
    (sources / "notes.txt").write_text("int array[]")
    copy = run.edited(codes.CODES["sirg"], sources, tmp_path)
    assert (copy / "a.cu").read_text() == "int shared_array[];\nint* p = shared_array;\n"
    headers = [f"#include <thrust/{name}.h>" for name in ("scan", "reduce", "functional")]
    assert (copy / "b.cu").read_text().splitlines() == headers
    assert (copy / "notes.txt").read_text() == "int array[]" and "shared" not in (sources / "a.cu").read_text()
    assert run.edited(codes.CODES["amgx"], sources, tmp_path) == sources
    (sources / "b.cu").unlink()
    with pytest.raises(ValueError, match=r"nothing in .* matches .*scan.*; the record of this code is for another"):
        run.edited(codes.CODES["sirg"], sources, tmp_path / "again")
