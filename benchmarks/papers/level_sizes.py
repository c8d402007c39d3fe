"""Figures 6 and 7 of Naumov et al.: levels of ILU(0) before and after coloring, beside plain CG and SGS.

The stand-in for G3_circuit is numbered along the lines of its mesh, and its long wires join rows at random. A path of
rising numbers goes along a line, jumps by a long wire and goes along another line, so that it is far longer than any in
the mesh alone: there are tens of times more levels, and narrower ones. Two numberings of the same matrix by Cuthill and
McKee tell this from what coloring does. Neither the diagonal nor the values change.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import reverse_cuthill_mckee

from mcprecond import problems
from mcprecond.backends import backend_of
from mcprecond.preconditioners import ILU0, MulticolorSGS
from mcprecond.solvers import pcg
from mcprecond.studies.compare import Matrices, Progress, System, run_cases, solve_case, system_with
from mcprecond.studies.measure import time_calls
from mcprecond.studies.table import Record, Table

RTOL = 1e-8
#: At most so many solves with ILU(0) in natural order are timed. With tens of thousands of levels, a solve takes more
#: than twenty seconds on a GPU (level-histogram-gpu.json).
REPEATS_IN_NATURAL_ORDER = 2
METHODS: dict[str, Callable[[Any], Any] | None] = {
    "natural": partial(ILU0, ordering="natural"),
    **{name: partial(ILU0, coloring=name) for name in ("eb", "ecl_gc", "greedy", "cc")},
    "CG": None,
    "SGS eb": partial(MulticolorSGS, coloring="eb"),
}


def level_sizes(matrices: Matrices, *, path: str | Path | None, repeats: int, progress: Progress | None) -> Table:
    """Run `METHODS`; all but CG and SGS are ILU(0), in natural order or by colors.

    Columns beside those of `convergence`: levels, smallest_level, mean_level and largest_level in rows, and how many
    levels have at least 1, 10, 100, ... rows but fewer than ten times that. Levels of SGS are its colors; CG has none.
    """
    record = Record("level-histogram", ("matrix", "method", "repeats"), path)
    repeats_of = dict.fromkeys(METHODS, repeats) | {"natural": min(repeats, REPEATS_IN_NATURAL_ORDER)}
    cases = [
        {"matrix": matrix, "method": method, "repeats": of_method}
        for matrix in matrices
        for method, of_method in repeats_of.items()
    ]

    def measure(system: System, case: dict[str, Any]) -> dict[str, Any]:
        row, M, _ = solve_case(system, METHODS[case["method"]], pcg, RTOL, None, case["repeats"])
        if M is None:
            return row
        synchronize = backend_of(system.A).synchronize
        update = time_calls(lambda: M.update(system.A), synchronize, case["repeats"])
        application = time_calls(lambda: M @ system.b, synchronize, 5 * case["repeats"])
        times = update.columns("update_seconds") | application.columns("application_seconds")
        return row | times | histogram(M.coloring.sizes)

    return run_cases(record, matrices, cases, lambda A: system_with(A, 0, repeats), measure, progress)


def histogram(sizes: np.ndarray) -> dict[str, Any]:
    """The columns about levels of so many rows."""
    powers = 10 ** np.arange(8)
    counts = np.diff(np.searchsorted(np.sort(sizes), powers))
    return {
        "levels": len(sizes),
        "smallest_level": int(sizes.min()),
        "mean_level": float(sizes.mean()),
        "largest_level": int(sizes.max()),
        **{f"{power}+": int(count) for power, count in zip(powers[:-1], counts, strict=True)},
    }


def circuit_in_rcm(n: int) -> sp.csr_matrix:
    """The circuit in the numbering of Cuthill and McKee, reversed: its long wires make the graph shallow."""
    A = problems.circuit(n)
    return renumbered(A, A)


def circuit_in_rcm_of_its_mesh(n: int) -> sp.csr_matrix:
    """The circuit, long wires too, in the numbering that Cuthill and McKee give its mesh alone."""
    A = problems.circuit(n)
    there = A.tocoo()
    across = np.isin(abs(there.row - there.col), (1, n))
    mesh = (there.data[across], (there.row[across], there.col[across]))
    return renumbered(A, sp.csr_matrix(mesh, shape=A.shape))


def renumbered(A: sp.csr_matrix, graph: sp.csr_matrix) -> sp.csr_matrix:
    """A matrix in the reversed Cuthill-McKee numbering of a symmetric graph."""
    order = reverse_cuthill_mckee(graph, symmetric_mode=True)
    found = A[order][:, order]
    found.sort_indices()
    return found
