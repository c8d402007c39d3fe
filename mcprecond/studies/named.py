"""Studies by name, as `mcprecond study` runs them: the papers' questions, asked of this machine.

Each is a function of (device, small); a small one takes seconds on two cores.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from mcprecond.backends import get_backend
from mcprecond.coloring import COLORINGS, color
from mcprecond.preconditioners import MulticolorSGS
from mcprecond.problems import graphs
from mcprecond.studies.compare import coloring, convergence
from mcprecond.studies.table import Table
from mcprecond.studies.table_v import table_v

COMMON = ("eb", "ecl_gc", "jp", "jpl", "sirg", "greedy")


def fenl_newton(device: str, small: bool) -> Table:
    """Table V of Deveci et al.: preconditioners of CG in Newton's method for FENL."""
    rows = [dataclasses.asdict(row) for row in table_v(8 if small else 100, device=device)]
    for row in rows:
        row["iterations"], row["verified"] = "+".join(map(str, row["iterations"])), row.pop("converged")
    return Table(rows)


def families(device: str, small: bool) -> Table:
    """Tables II and III of Deveci et al.: colors and time of all methods on families of graphs."""
    kinds = {name: make for name, make in _families(small).items() if small or name != "rmat"}
    rows = coloring(_on(device, kinds), list(COLORINGS)).rows
    if not small:
        # is_hash goes through a neighborhood for every proposal, which takes minutes where some are huge.
        methods = [name for name in COLORINGS if name != "is_hash"]
        rows = rows + coloring(_on(device, {"rmat": _families(small)["rmat"]}), methods).rows
    return Table(rows)


def rmat_scaling(device: str, small: bool) -> Table:
    """Time of coloring R-MAT graphs of growing size."""
    scales = range(8, 12) if small else range(14, 23, 2)
    return coloring(_on(device, {f"rmat{s}": partial(graphs.rmat, s) for s in scales}), COMMON)


def rgg_scaling(device: str, small: bool) -> Table:
    """Time of coloring random geometric graphs of growing size."""
    scales = range(8, 12) if small else range(14, 23, 2)
    return coloring(_on(device, {f"rgg{s}": partial(graphs.random_geometric, 2**s) for s in scales}), COMMON)


def sirg_ablation(device: str, small: bool) -> Table:
    """What resolution by degree and palettes that double are worth: rig against sirg."""
    return coloring(_on(device, _families(small)), ["rig", "sirg"])


def ordering(device: str, small: bool) -> Table:
    """Iterations of SGS-preconditioned CG on a grid numbered by rows, by colors, and at random.

    In each the rows are colored first-fit in their order. "one by one": every row is a color of its own, which is
    Gauss-Seidel in row order without any parallelism.
    """
    A = graphs.grid2d(16 if small else 48)
    n = A.shape[0]
    orders = {
        "natural": np.arange(n),
        "colored": color(A, "greedy").permutation(),
        "random": np.random.default_rng(0).permutation(n),
    }
    xp = get_backend(device).xp
    methods: dict[str, Callable[[Any], Any]] = {
        "SGS greedy": lambda A: MulticolorSGS(A, "greedy"),
        "SGS eb": lambda A: MulticolorSGS(A, "eb"),
        "SGS one by one": lambda A: MulticolorSGS(A, xp.arange(n, dtype=np.int32)),
    }
    matrices = {name: partial(lambda order: A[order][:, order], order) for name, order in orders.items()}
    return convergence(_on(device, matrices), methods)


def coloring_effect(device: str, small: bool) -> Table:
    """Iterations and time of SGS-preconditioned CG against the number of colors, on one 27-point Laplacian."""
    A = graphs.grid3d(10 if small else 64, 27)
    names = ("eb", "ecl_gc", "jpl", "cc", "is_minmax", "graphblas_is", "greedy")
    methods = {f"SGS {name}": partial(MulticolorSGS, coloring=name) for name in names}
    return convergence(_on(device, {"grid3d": lambda: A}), methods)


def time_quality(device: str, small: bool) -> Table:
    """Time against colors of all methods on an unstructured mesh."""
    return coloring(_on(device, {"delaunay": _families(small)["delaunay"]}), list(COLORINGS))


#: Name -> function of the device, "cpu" or "gpu", and whether small, that returns a Table.
STUDIES: dict[str, Callable[[str, bool], Table]] = {
    "table-v": fenl_newton,
    "table-ii-iii": families,
    "rmat-scaling": rmat_scaling,
    "rgg-scaling": rgg_scaling,
    "sirg-ablation": sirg_ablation,
    "ordering": ordering,
    "coloring-effect": coloring_effect,
    "time-quality": time_quality,
}


def _families(small: bool) -> dict[str, Callable[[], Any]]:
    scale = 9 if small else 20
    return {
        "fenl": lambda: graphs.fenl(8 if small else 100),
        "delaunay": lambda: graphs.delaunay(2**scale),
        "rgg": lambda: graphs.random_geometric(2**scale),
        "road": lambda: graphs.road_like(2**scale),
        "rmat": lambda: graphs.rmat(scale),
    }


def _on(device: str, matrices: Mapping[str, Callable[[], Any]]) -> dict[str, Callable[[], Any]]:
    """The same matrices, moved to the device when they are made."""
    csr = get_backend(device).sparse.csr_matrix
    return {name: partial(lambda make: csr(make()), make) for name, make in matrices.items()}
