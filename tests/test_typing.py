"""The types of the public names: what a type checker finds in a user's script."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path
from typing import get_args

import pytest

from mcprecond import COLORINGS, typing
from mcprecond.multigrid.hierarchy import CYCLES
from mcprecond.multigrid.named_smoothers import SMOOTHERS
from mcprecond.multigrid.strength import STRENGTHS
from mcprecond.preconditioners.gauss_seidel import SWEEPS
from mcprecond.preconditioners.pivots import PIVOT_RULES
from mcprecond.preconditioners.setup import ORDERINGS
from mcprecond.solvers.named import NAMES
from mcprecond.solvers.preconditioned import FORMS

SCRIPTS = Path(__file__).with_name("typing")


@pytest.mark.parametrize(
    ("type_", "names"),
    [
        (typing.MethodName, COLORINGS),
        (typing.Sweep, SWEEPS),
        (typing.PivotRule, PIVOT_RULES),
        (typing.RowOrdering, ORDERINGS),
        (typing.SmootherName, SMOOTHERS),
        (typing.StrengthName, STRENGTHS),
        (typing.Cycle, CYCLES),
        (typing.Form, FORMS),
        (typing.PreconditionerName, NAMES),
    ],
)
def test_names_in_types_are_those_that_are_known(type_, names):
    assert list(get_args(type_)) == list(names)


def test_mypy_finds_what_is_wrong_and_nothing_else(tmp_path):
    from mypy import api

    options = ["--strict", "--ignore-missing-imports", "--config-file=", f"--cache-dir={tmp_path}"]
    said, failed, _ = api.run([*options, *(str(SCRIPTS / name) for name in ("right.py", "wrong.py"))])
    assert not failed
    found = {
        tuple(re.match(r".*?(\w+\.py):(\d+): error", line).groups()) for line in said.splitlines() if ": error" in line
    }
    lines = (SCRIPTS / "wrong.py").read_text().splitlines()
    expected = {("wrong.py", str(k)) for k, line in enumerate(lines, 1) if line.endswith("# error")}
    assert found == expected, said


def test_types_are_shipped():
    assert files("mcprecond").joinpath("py.typed").is_file()
