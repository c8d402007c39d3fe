"""README's figures are those of benchmarks/results."""

from __future__ import annotations

import re

import pytest


@pytest.fixture
def readme():
    from report import readme

    return readme


@pytest.fixture
def fenl():
    """The page of FENL."""
    from report import fenl

    return fenl


def run(gpu: str | None) -> dict:
    solvers = [
        {"name": "pcg", "colors": None, "iterations": 143, "setup_ms": 0.0, "apply_ms": None, "total_ms": 1234.5},
        {"name": "pcg SGS eb", "colors": 18, "iterations": 66, "setup_ms": 1.5, "apply_ms": 0.07, "total_ms": 9.876},
    ]
    case = {"name": "fenl_50", "unknowns": 132651, "nnz": 3442951, "spmv_ms": 0.055, "solvers": solvers}
    case |= {"colorings": {"eb": {"ms": 0.5, "colors": 18}}, "csrcolor": {"ms": 0.91, "colors": 64}}
    machine = {"gpu": gpu, "cpu": "a processor", "cores": 2}
    return {
        "machine": machine,
        "versions": {"mcprecond": "1.2"},
        "date": "2026-11-21T00:00",
        "rtol": 1e-8,
        "cases": [case],
    }


def test_code_of_readme_runs_as_it_stands(readme, capsys):
    (code,) = re.findall(r"^```python\n(.*?)^```$", readme.PAGE.read_text(), re.DOTALL | re.MULTILINE)
    exec(code, {})
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3 and all("converged: " in line for line in lines)


def test_summary_is_of_setup_and_solve_together_with_the_fastest_in_bold(readme):
    races = readme.load()
    (case,) = races["multigrid-cpu"]["cases"] = races["multigrid-cpu"]["cases"][:1]
    case["solvers"] = [dict(case["solvers"][0], name=name) for name in ("CG", "SGS")]
    for row, ms in zip(case["solvers"], (100.0, 50.0), strict=True):
        row |= {"iterations": 1000, "setup": {"ms": 10.0}, "solve": {"ms": ms}}
    part = readme.summary(races)
    assert f"| {case['name']}, {case['unknowns']:,} | 110 (1,000) | **60.0 (1,000)** |" in part
    assert "| ms with setup (iterations) | CG | SGS |" in part


def test_the_chart_compares_with_the_better_of_cg_and_jacobi(readme):
    case = {
        "solvers": [
            {"name": name, "iterations": 9, "setup": {"ms": 0.0}, "solve": {"ms": ms}}
            for name, ms in {"library CG": 9.0, "library Jacobi": 8.0, "CG": 5.0, "Jacobi": 4.0, "SGS": 2.0}.items()
        ]
    }
    found = readme.totals("multigrid-cpu", case)
    assert readme.baseline(found) == "Jacobi" and found["library"]["name"] == "library Jacobi"
    del found["Jacobi"]
    assert readme.baseline(found) == "CG"


def test_tables_show_what_was_measured(fenl):
    part = fenl.measured([run("a GPU"), run(None)])
    assert part.index("1.2, a GPU, 2026-11-21") < part.index("1.2, a processor, 2 cores, 2026")
    for line in (
        "| csrcolor | 0.910 / 64 |",
        "| A @ x | 0.0550 |",
        "| pcg SGS eb | 0.0700 + 1.50 |",
        "| pcg | 1234 (143) |",
        "| pcg SGS eb | 9.88 (66) |",
    ):
        assert part.count(line + "\n") == 2


def test_only_a_gpu_has_device_times(fenl):
    assert "device times" in fenl.measured([run("a GPU")])
    assert "device times" not in fenl.measured([run(None)])


def test_what_could_not_run_leaves_an_empty_cell(fenl):
    document = run("a GPU")
    document["cases"].append({**run(None)["cases"][0], "name": "fenl_100", "solvers": []})
    assert "| pcg | 1234 (143) |  |\n" in fenl.measured([document])


def test_pictures_are_the_same_every_time(readme, fenl, tmp_path):
    for name in ("a", "b"):
        fenl.draw([run("a GPU"), run(None)], tmp_path / name)
        readme.draw(readme.load(), tmp_path / name)
    for picture in ("fenl.svg", "race.svg"):
        assert (tmp_path / "a" / picture).read_bytes() == (tmp_path / "b" / picture).read_bytes()
