"""Setup of the preconditioners that sweep: A -> coloring -> color blocks, and for factors A -> order -> levels -> color
blocks. What sweeps over the color blocks stands in `mcprecond.sweeps`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from mcprecond.backends import Backend, get_backend
from mcprecond.backends.arguments import one_of, stored_dtype
from mcprecond.backends.inputs import first_place
from mcprecond.coloring import Coloring, Graph
from mcprecond.coloring.orders import permutation
from mcprecond.linalg.hermitian import is_hermitian
from mcprecond.matrix import REMEDY_FOR_ZERO_ROW, AdmittedMatrix, admit_matrix, canonical_csr, csr_form, rows_of
from mcprecond.ordering.color_order import swept_coloring
from mcprecond.ordering.levels import coloring_by_levels
from mcprecond.storage import ColorBlocks, NodeBlocks
from mcprecond.tuning.least_time import Choice, choose_coloring

ORDERINGS = ("auto", "color", "natural")


def admit(
    A: Any, device: str | None = None, *, name: str = "A", finite: bool = False
) -> tuple[AdmittedMatrix, Backend]:
    """The door for A: check it, and move it to the device that is asked for. Return it, and where it comes from.

    Whether values are finite is checked here only where no later pass over them does so.

    Raises
    ------
    TypeError, ValueError
        As `admit_matrix`; if `device` is no device, or A would have to leave the GPU.
    """
    matrix = admit_matrix(A, name, floats=True, finite=finite)
    origin = matrix.backend
    if device in (None, origin.name):
        return matrix, origin
    if device not in ("cpu", "gpu"):
        raise ValueError(f"device must be 'cpu' or 'gpu', got {device!r}")
    if origin.name == "gpu":
        raise ValueError("device='cpu' does not go with a CuPy matrix; pass a SciPy matrix, for instance A.get()")
    return matrix.on(get_backend(device)), origin


def admit_values(A: Any, origin: Backend, backend: Backend) -> Any:
    """The door of an update: A in CSR form on the device of the preconditioner. Whether it has the pattern of before,
    the update finds out before a kernel follows it.
    """
    if origin.name == backend.name:
        return csr_form(A, floats=True)[0]
    return admit(A, backend.name)[0].csr


def color_matrix(matrix: AdmittedMatrix, coloring: Any) -> tuple[Coloring, Choice | None]:
    """A -> coloring, its colors in the order of sweeps. Also return what "auto" has chosen, or None."""
    method, choice = choose_coloring(matrix, coloring)
    if choice is not None and isinstance(method, Coloring):  # which needs no check
        return method, choice
    return swept_coloring(matrix, method), choice


def color_and_store(
    A: AdmittedMatrix, coloring: Any, *, block_size: int = 1, dtype: Any = None
) -> tuple[ColorBlocks, Choice | None]:
    """A -> coloring -> color blocks for sweeps. Also return what "auto" has chosen, or None.

    Nodes of several unknowns are colored as a whole. Rows of the upper triangle are divided by their diagonal entries,
    but not those of nodes.
    """
    stored_dtype(dtype, A.dtype)  # is refused before the work of coloring
    matrix = A.canonical()
    if block_size > 1:
        method, choice = choose_coloring(matrix, coloring, block_size)
        return NodeBlocks(matrix, method, block_size=block_size, dtype=dtype), choice
    colors, choice = color_matrix(matrix, coloring)
    return ColorBlocks(matrix, colors, dtype=dtype, divides=True), choice


class Elimination(NamedTuple):
    """In which order ILU(0) eliminates the rows, and how that was decided.

    Attributes
    ----------
    matrix : AdmittedMatrix
        A, canonical; with zeros across the diagonal where A is Hermitian and its pattern is not symmetric.
    levels : Coloring
        Rows of a level have no entries among them, and wait for rows of smaller levels only.
    ordering : str
        "color", "natural", or "given" for a permutation.
    choice : Choice or None
        What "auto" has chosen as a coloring.
    reason : str
        Why the rows are in this order, if the caller has not chosen it.
    is_symmetric, is_completed : bool
        Whether the pattern of `matrix` is symmetric, and whether zeros have made it so.
    """

    matrix: AdmittedMatrix
    levels: Coloring
    ordering: str
    choice: Choice | None
    reason: str
    is_symmetric: bool
    is_completed: bool


def plan_elimination(A: AdmittedMatrix, ordering: Any, coloring: Any) -> Elimination:
    """A -> order of the rows -> levels."""
    matrix, choice, reason = A.canonical(), None, ""
    order: Any = ordering
    if isinstance(ordering, str) and one_of(ordering, "ordering", ORDERINGS) == "auto":
        is_auto = isinstance(coloring, str) and coloring == "auto"
        on_gpu = matrix.backend.name == "gpu"
        order = "color" if on_gpu or not is_auto else "natural"
        reason = "a coloring was given" if not (on_gpu or is_auto) else f"the default on a {'GPU' if on_gpu else 'CPU'}"
    name = order if isinstance(order, str) else "given"
    if name == "color":
        colors, choice = color_matrix(matrix, coloring)
        method, sequence = colors.method, colors.permutation()
    elif name == "given":
        method, sequence = name, permutation(order, matrix.shape[0], matrix.backend, "ordering", ORDERINGS)
    else:
        method, sequence = name, None
    graph = Graph.of(matrix)
    is_symmetric = graph.indices.size == matrix.indices.size
    is_completed = not is_symmetric and is_hermitian(matrix)
    if is_completed:
        matrix = complete_pattern(matrix)
    levels = coloring_by_levels(graph, sequence, f"levels of {method} order")
    return Elimination(matrix, levels, name, choice, reason, is_symmetric or is_completed, is_completed)


def complete_pattern(matrix: AdmittedMatrix) -> AdmittedMatrix:
    """A canonical matrix with zeros wherever its graph has an entry and it has none."""
    xp, graph, n = matrix.backend.xp, Graph.of(matrix), matrix.shape[0]

    def places(indptr: Any, indices: Any) -> Any:
        return rows_of(indptr, indices, xp).astype(np.int64) * n + indices

    data = xp.zeros(len(graph.indices), matrix.dtype)
    data[xp.searchsorted(places(graph.indptr, graph.indices), places(matrix.indptr, matrix.indices))] = matrix.data
    csr = canonical_csr(data, graph.indices, graph.indptr, matrix.shape, matrix.backend)
    known = {"degrees": graph.degrees, "max_degree": graph.max_degree, "is_symmetric": True}
    return replace(matrix, csr=csr, **known)


def store_factors(matrix: AdmittedMatrix, coloring: Coloring, pivot: str, dtype: Any) -> ColorBlocks:
    """Store the triangles that a factorization replaces by its factors; refuse a diagonal entry that is missing."""
    xp = matrix.backend.xp
    if pivot != "shift" and (row := first_place(xp.diff(matrix.indptr) == matrix.degrees, xp)) is not None:
        raise ValueError(
            f"A stores no diagonal entry in row {row}, so there is no pivot; store one or pass pivot='shift' to change "
            f"such pivots; if all of the row is zero, {REMEDY_FOR_ZERO_ROW}"
        )
    return ColorBlocks(matrix, coloring, dtype=dtype)
