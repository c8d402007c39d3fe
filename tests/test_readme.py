"""README's figures are those of benchmarks/results."""

from __future__ import annotations

import pytest


@pytest.fixture
def readme():
    from report import readme

    return readme


def run(gpu: str | None) -> dict:
    solvers = [
        {"name": "pcg", "colors": None, "iterations": 143, "setup_ms": 0.0, "apply_ms": None, "total_ms": 1234.5},
        {"name": "pcg SGS eb", "colors": 18, "iterations": 66, "setup_ms": 1.5, "apply_ms": 0.07, "total_ms": 9.876},
    ]
    case = {"name": "fenl_50", "unknowns": 132651, "nnz": 3442951, "spmv_ms": 0.055, "solvers": solvers}
    case |= {"colorings": {"eb": {"ms": 0.5, "colors": 18}}, "csrcolor": {"ms": 0.91, "colors": 64}}
    machine = {"gpu": gpu, "cpu": "a processor", "cores": 2}
    return {"machine": machine, "versions": {"numpy": "2.4"}, "date": "2026-11-21T00:00", "rtol": 1e-8, "cases": [case]}


def test_tables_show_what_was_measured(readme):
    part = readme.measured([run("a GPU"), run(None)])
    assert part.index("**a GPU**") < part.index("**a processor, 2 cores**")
    for line in (
        "| csrcolor | 0.910 / 64 |",
        "| A @ x | 0.0550 |",
        "| pcg SGS eb | 0.0700 + 1.50 |",
        "| pcg | 1234 (143) |",
        "| pcg SGS eb | 9.88 (66) |",
    ):
        assert part.count(line + "\n") == 2


def test_only_a_gpu_has_device_times(readme):
    assert "device times" in readme.measured([run("a GPU")])
    assert "device times" not in readme.measured([run(None)])


def test_what_could_not_run_leaves_an_empty_cell(readme):
    document = run("a GPU")
    document["cases"].append({**run(None)["cases"][0], "name": "fenl_100", "solvers": []})
    assert "| pcg | 1234 (143) |  |\n" in readme.measured([document])


def test_picture_is_the_same_every_time(readme, tmp_path):
    for name in ("a", "b"):
        readme.draw([run("a GPU"), run(None)], tmp_path / name)
    assert (tmp_path / "a" / "fenl.svg").read_bytes() == (tmp_path / "b" / "fenl.svg").read_bytes()
