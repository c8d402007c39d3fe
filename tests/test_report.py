"""Every page of the report is what benchmarks/results says, and every name in its data is one of the package."""

from __future__ import annotations

import subprocess
import sys

import pytest

from mcprecond import COLORINGS


@pytest.fixture
def report():
    import report

    return report


def test_pages_are_current(report):
    stale = []
    for name in report.PAGES:
        module = report.page_module(name)
        if module.PAGE.read_text() != module.page(module.load()):
            stale.append(name)
    assert not stale, "run `make readme`"


def test_a_page_that_is_not_there_is_refused():
    run = subprocess.run([sys.executable, "-m", "report", "colouring"], capture_output=True, text=True, check=False)
    assert run.returncode == 2 and "no page colouring; there are readme, colorings" in run.stderr


def test_names_in_the_papers_figures_are_ours(report):
    from report.results import PAPERS

    def methods(*names):
        return {name.split(",")[0].split()[0] for name in names} - {"csrcolor", "graph"}

    named = methods(*(name for row in PAPERS["table_ii"].values() for name in row), *PAPERS["table_iii"])
    named |= methods(*PAPERS["sirg"]["over"], *(column["row"] for column in PAPERS["table_5"].values()))
    named |= methods(*(relation[side] for relation in PAPERS["relations"] for side in ("above", "below")))
    assert named <= COLORINGS.keys()
