"""The code of the how-to page of dolfinx, on the ranks that are there."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
from distributed import COMM

PAGE = Path(__file__).parents[2] / "docs/how-to/dolfinx.md"


def test_the_code_of_the_page(tmp_path_factory, capsys):
    names: dict = {}
    blocks = re.findall(r"^```py\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    assert len(blocks) == 2
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
    scalar, vector = names["problem"], names["elasticity"]
    context = scalar.solver.getPC().getPythonContext()
    assert type(context).__name__ == "MulticolorSGS" and context.M.coloring.method == "greedy"
    level = vector.solver.getPC().getMGSmoother(vector.solver.getPC().getMGLevels() - 1).getPC().getPythonContext()
    assert level.M.blocks.block_size == 3
    for problem, most in ((scalar, 60), (vector, 40)):
        residual = problem.b.duplicate()
        problem.A.mult(problem.x, residual)
        residual.axpy(-1, problem.b)
        assert residual.norm() < 1e-6 * problem.b.norm()
        assert problem.solver.getIterationNumber() <= most
    assert np.isfinite(names["uh"].x.array).all()
    assert COMM.size > 0 and capsys.readouterr().out
