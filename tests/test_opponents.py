"""What the pages show of other packages is in the files of their runs, and nowhere else."""

from __future__ import annotations

import pytest

from report import opponents
from report.results import MARKS


@pytest.fixture(scope="module")
def documents():
    return opponents.load()


def test_every_file_says_that_it_is_another_run(documents):
    text = opponents.page(documents)
    for name in opponents.FILES:
        document = documents[name]
        assert document["benchmark"] == "opponents" and document["kind"] == "another run, same kind of machine"
        assert document["date"] in text and document["machine"]["gpu"] == "NVIDIA H200"
        assert "code" not in document  # they have none of ours
        assert {case["name"] for case in document["cases"]} <= set(opponents.ORDER)


def test_bounds_of_solves_are_half_of_the_best_of_amgx(documents):
    theirs, bounds = opponents.lines_of(documents["amgx"]), dict(MARKS["sweeps"]["solve with setup"])
    assert bounds.pop("bound") == "at most" and bounds.keys() == theirs.keys()
    for matrix, (bound, unit) in bounds.items():
        fastest = opponents.best((row for row in theirs[matrix] if row["kind"] == "pcg"), "solve_ms")
        assert unit == "ms" and bound == pytest.approx(fastest["solve_ms"] / 2, rel=0.01)


def test_no_time_is_from_what_failed():
    ran = {"kind": "color", "algo": "x", "ms": 2.0, "colors": 3}
    tried = [ran | {"ms": 1.0, "valid": False}, ran | {"ms": None, "error": "timeout after 8 s"}]
    assert opponents.colored_in([*tried, ran], "x") == "2.00 / 3"
    assert opponents.colored_in(tried[1:], "x") == "timeout"
    assert opponents.colored_in([], "x") == "not run"
