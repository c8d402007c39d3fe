"""Studies by name, small: every case is verified, and says what the study is about."""

from __future__ import annotations

import json

import pytest
from test_cli import run

from mcprecond.coloring import COLORINGS
from mcprecond.studies import STUDIES


@pytest.mark.parametrize("name", STUDIES)
def test_all_cases_are_verified(name, device):
    table = STUDIES[name](device, True)
    assert table.rows and all(row["verified"] for row in table.rows)
    assert {row.get("device", device) for row in table.rows} == {device}
    cases = [(row.get("matrix"), row["method"]) for row in table.rows]
    assert len(set(cases)) == len(cases)


def test_all_methods_on_all_families():
    rows = STUDIES["table-ii-iii"]("cpu", True).rows
    families = {row["matrix"] for row in rows}
    assert families == {"fenl", "delaunay", "rgg", "road", "rmat"}
    assert {(row["matrix"], row["method"]) for row in rows} == {(f, method) for f in families for method in COLORINGS}


def test_ordering_by_rows_needs_fewer_iterations_than_by_colors():
    rows = {(row["matrix"], row["method"]): row for row in STUDIES["ordering"]("cpu", True).rows}
    one_by_one = rows["natural", "SGS one by one"]
    assert one_by_one["colors"] == one_by_one["vertices"]
    assert one_by_one["iterations"] < rows["natural", "SGS greedy"]["iterations"]
    # Rows sorted by color are swept in the order of colors.
    assert rows["colored", "SGS one by one"]["iterations"] == rows["natural", "SGS greedy"]["iterations"]


def test_the_command(tmp_path):
    result = run("study", "sirg-ablation", "--small", "--json", "--output", str(tmp_path / "new"))
    assert result.returncode == 0, result.stderr
    document = json.loads((tmp_path / "new" / "sirg-ablation.json").read_text())
    assert document["study"] == "sirg-ablation" and document["cases"] == json.loads(result.stdout)
    lines = (tmp_path / "new" / "sirg-ablation.csv").read_text().splitlines()
    assert len(lines) == 1 + len(document["cases"]) and lines[0].startswith("matrix,method,")


def test_an_unknown_name_prints_them_all():
    result = run("study", "everything")
    said = " ".join(result.stderr.split())
    assert result.returncode == 2 and "unknown study 'everything'" in said
    assert all(name in said for name in STUDIES)
