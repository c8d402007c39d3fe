"""The command lines of the how-to page, on the ranks that are there."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest
from distributed import COMM, set_options

from mcprecond.interop import petsc

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/how-to/petsc.md").read_text()
LINES = re.findall(r"^    mpiexec -n \d+ python (examples/\w+\.py) (.*)$", PAGE, re.MULTILINE)


@pytest.mark.parametrize(("example", "options"), LINES)
def test_a_line_of_the_page(example, options, capsys, monkeypatch):
    spec = importlib.util.spec_from_file_location("example", ROOT / example)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    # What is viewed goes around Python.
    set_options(re.sub(r"-n \d+", "-n 10", options).replace("-ksp_view", "-ksp_view :/dev/null"))
    monkeypatch.setattr("sys.argv", [example])
    module.main()
    if COMM.rank == 0:
        said = capsys.readouterr().out
        assert ", converged" in said
        assert "difference" not in said or float(said.split()[-1]) < 1e-6


def test_the_page_names_all_types():
    assert len(LINES) == 7
    assert [name for name in petsc.__all__ if f"`mcprecond.interop.petsc.{name}`" not in PAGE] == []
