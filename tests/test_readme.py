"""README's figures are those of benchmarks/results."""

from __future__ import annotations

import re

import pytest

from report import PAGES, README


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


def test_code_of_readme_prints_what_it_says_but_for_times(readme, capsys):
    text = PAGES[README].read_text()
    (code,) = re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    (said,) = re.findall(r"^```text\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    exec(code, {})
    printed = capsys.readouterr().out
    timeless = [re.sub(r"[\d.]+ s\b", "", output) for output in (said, printed)]
    assert timeless[0] == timeless[1] and said.count(" s, CONVERGED\n") == 3


@pytest.fixture
def document():
    """A run on a GPU with one case, and one that README does not show."""
    times = {"library CG": 9.0, "library Jacobi": 8.0, "CG": 5.0, "Jacobi": 4.0, "SGS": 2.0, "ILU0": 3.0}
    solvers = [
        {"name": name, "iterations": 1000, "setup": {"ms": 1.0}, "solve": {"ms": ms}} for name, ms in times.items()
    ]
    cases = [{"name": name, "unknowns": 12345, "solvers": solvers} for name in ("circuit", "of no interest")]
    return run("a GPU") | {"cases": cases}


def test_table_has_the_librarys_cg_ours_and_the_best_with_setup(readme, document):
    assert readme.table_of(document).splitlines()[2:] == [
        "| random circuit, 12,345 | 9.00 | 6.00 | **3.00** SGS | 1,000, 1,000, 1,000 |"
    ]
    assert "CuPy's CG with Jacobi" in readme.table_of(document)
    document["machine"]["gpu"] = None
    assert "SciPy's CG with Jacobi" in readme.table_of(document)


def test_summary_says_version_card_and_date(readme, document):
    part = readme.summary({"multigrid-gpu": document})
    assert "**mcprecond 1.2, a GPU, 2026-11-21.**\n" in part and "docs/images/race.svg" in part


def test_tables_show_what_was_measured(fenl):
    part = fenl.page([run("a GPU"), run(None)])
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
    assert "device times" in fenl.page([run("a GPU")])
    assert "device times" not in fenl.page([run(None)])


def test_what_could_not_run_leaves_an_empty_cell(fenl):
    document = run("a GPU")
    document["cases"].append({**run(None)["cases"][0], "name": "fenl_100", "solvers": []})
    assert "| pcg | 1234 (143) |  |\n" in fenl.page([document])


def test_pictures_are_the_same_every_time(readme, fenl, tmp_path):
    for name in ("a", "b"):
        fenl.draw([run("a GPU"), run(None)], tmp_path / name)
        readme.draw(readme.load(), tmp_path / name)
    for picture in ("fenl.svg", "race.svg"):
        assert (tmp_path / "a" / picture).read_bytes() == (tmp_path / "b" / picture).read_bytes()
