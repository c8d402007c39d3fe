"""ILU(0): an incomplete factorization on the pattern of the matrix, level by level.

The factors depend only on which of two neighbors comes first. So the rows are sorted by level, which is a coloring (see
reordering/levels.py): color blocks store the factors, and the sweeps of Gauss-Seidel solve with them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import prange

from mcprecond.backends import KernelSet, compile_loop, compile_part
from mcprecond.backends.inputs import canonical
from mcprecond.coloring import Coloring, Graph, coloring_of
from mcprecond.coloring.coloring import finished
from mcprecond.coloring.orders import sequence_of
from mcprecond.preconditioners.choice import chosen
from mcprecond.preconditioners.pivots import Factored, check_rule, safe_pivot
from mcprecond.preconditioners.sweeps import make_empty
from mcprecond.reordering.levels import levels_of

KERNELS = KernelSet(__file__)


class ILU0(Factored):
    """Incomplete LU factorization without fill: ``inv(M) = inv(U) inv(L)``, with LU = A wherever A stores an entry.

    A row waits for those of its neighbors that come earlier. In natural order of a grid that makes hundreds of levels,
    in the order of a coloring at most as many as there are colors, for somewhat more iterations.

    Parameters
    ----------
    A : sparse matrix or array of SciPy or CuPy, shape (n, n)
        Real or complex floats. Not changed, and not needed afterwards. Stored zeros belong to the pattern.
    ordering : {"color", "natural"} or array of int, shape (n,)
        In which order rows are eliminated: by color; as they are; or a permutation: which row comes when.
    coloring : str, AutoColoring, Coloring or array of int, shape (n,)
        For the order by color: a method of `color`, or a coloring of A, which is checked, or "auto", as in
        `MulticolorGS`.
    pivot : {"raise", "shift"}
        What to do about a pivot below 64 units of rounding of the largest entry of A's row, or not finite: raise, or
        replace it by that entry's magnitude with the sign of the pivot's real part, and list it in `shifted`. "shift"
        also lets diagonal entries that A does not store count as zeros.
    dtype : {float32, float64}, or {complex64, complex128} for complex A, optional
        Of the stored triangles; that of A by default.
    device : {"cpu", "gpu"}, optional
        "gpu" for a SciPy matrix: vectors stay NumPy arrays, factorization and solves run on the GPU.

    Attributes
    ----------
    coloring : Coloring
        The levels: those that a row depends on have smaller ones.
    is_dilu : bool
        Whether no three unknowns are all neighbors of each other: nothing off the diagonal differs from A then, and
        this is `MulticolorDILU`.
    shifted : Shifts
        Which pivots were shifted (rows of A), and by how much.

    Raises
    ------
    TypeError, ValueError
        If A is not a square sparse matrix of finite floats, a pivot is missing, zero or tiny (names the row), the
        coloring is not one of A, or another argument is out of range.

    References
    ----------
    Meijerink, van der Vorst: An Iterative Solution Method for Linear Systems of Which the Coefficient Matrix is a
    Symmetric M-Matrix, 1977.
    Saad: Iterative Methods for Sparse Linear Systems, 2nd ed., Algorithm 10.4 and Section 12.4.
    Naumov, Castonguay, Cohen: Parallel Graph Coloring with Applications to the Incomplete-LU Factorization on the GPU,
    NVIDIA Technical Report NVR-2015-001.

    Examples
    --------
    >>> import numpy as np, scipy.sparse
    >>> from mcprecond import ILU0, pcg
    >>> A = scipy.sparse.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(100, 100), format="csr")
    >>> ILU0(A).levels
    array([50, 50])
    >>> exact = ILU0(A, ordering="natural")
    >>> len(exact.levels), pcg(A, np.ones(100), M=exact).iterations
    (100, 1)
    """

    def __init__(
        self,
        A: Any,
        *,
        ordering: Any = "color",
        coloring: Any = "eb",
        pivot: str = "raise",
        dtype: Any = None,
        device: str | None = None,
    ) -> None:
        check_rule(pivot)
        csr = canonical(self._moved(A, device))
        if isinstance(ordering, str) and ordering == "color":
            coloring, self.choice = chosen(csr, coloring)
        self._prepare(csr, _levels(csr, ordering, coloring), pivot, dtype)
        self._factorize()

    @property
    def obstacle(self) -> str | None:  # type: ignore[override]
        """See `Preconditioner`."""
        return None if self.is_dilu else "ILU(0) changes entries off the diagonal here"

    @property
    def levels(self) -> np.ndarray:
        """Rows per level: int64, shape (n_levels,)."""
        return self.coloring.sizes

    def level_histogram(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the sizes that levels have, ascending, and how many levels have each."""
        return np.unique(self.levels, return_counts=True)

    def plot_levels(self, ax: Any = None) -> Any:
        """Plot the rows of each level; needs Matplotlib.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            A new one by default.

        Returns
        -------
        matplotlib Axes
        """
        if ax is None:
            from matplotlib.figure import Figure

            ax = Figure().subplots()
        ax.stairs(self.levels, np.arange(len(self.levels) + 1), fill=True)
        ax.set(xlabel="level", ylabel="rows", title=f"{len(self.levels)} levels")
        return ax

    def update(self, A: Any) -> None:
        """Factorize a matrix with the same pattern: no new levels, no new storage.

        Parameters
        ----------
        A : sparse matrix, as in the constructor

        Raises
        ------
        TypeError, ValueError
            As the constructor; also if the pattern differs (names a row), in which case nothing changes. After another
            bad pivot this object cannot be used before an update succeeds.
        """
        self.blocks.update(canonical(self._moved_again(A)))
        self._factorize()

    def factors(self) -> tuple[Any, Any]:
        """Return L, with a unit diagonal, and U: CSR matrices with sorted rows, rows and columns in order of level.

        Row i of both is row ``blocks.perm[i]`` of A.
        """
        sparse = self.backend.sparse
        both, eye = self.blocks.permuted(), sparse.eye(self.shape[0], dtype=self.dtype, format="csr")
        lower = sparse.tril(both, -1) @ sparse.diags(self._dinv)
        return (lower + eye).tocsr(), (sparse.triu(both, 1) + sparse.diags(self._pivots)).tocsr()

    def _prepare(self, csr: Any, coloring: Any, pivot: str, dtype: Any) -> None:
        """Store A, and find out in which order its rows are sorted."""
        super()._prepare(csr, coloring, pivot, dtype)
        offset = self.blocks.lower.indptr.dtype
        self._run = self.backend.kernels(KERNELS, OFFSET=offset, VALUE=self.blocks.dtype, LANES=32)
        self._patterns = [self._sorted_pattern(triangle) for triangle in (self.blocks.lower, self.blocks.upper)]

    def _sorted_pattern(self, triangle: Any) -> tuple[Any, Any]:
        """The columns of a triangle's rows, sorted, and where each entry was before (None: all stay where they are)."""
        xp, sparse = self.backend.xp, self.backend.sparse
        indices = self.blocks.columns_by_rows(triangle)
        places = xp.arange(len(indices), dtype=np.float64)  # CuPy's matrices hold floats
        matrix = sparse.csr_matrix((places, indices, triangle.indptr), shape=self.shape)
        if matrix.has_sorted_indices:
            return indices, None
        matrix.sort_indices()
        return matrix.indices, matrix.data.astype(triangle.indptr.dtype)

    def _factorize(self) -> None:
        """Replace the triangles of A by those of the factors: L times the pivots, and U."""
        blocks, xp = self.blocks, self.backend.xp
        triangles = (blocks.lower, blocks.upper)
        arrays: list[Any] = []
        for triangle, (indices, order) in zip(triangles, self._patterns, strict=True):
            values = self.blocks.by_rows(triangle, triangle.values).astype(blocks.dtype, copy=False)
            arrays += [triangle.indptr, indices, values if order is None else values[order]]
        shifts, cliques = xp.zeros(self.shape[0], blocks.dtype), xp.zeros(1, np.int32)
        make_empty(self._pivots)
        self._run.factorize(
            len(blocks.slices) - 1, blocks.slices, *arrays, blocks.diagonal, self._tiny, self._pivots, shifts, cliques
        )  # fmt: skip
        self._take_pivots(shifts)
        self.is_dilu = not int(cliques[0])
        if self.is_dilu:
            return
        for triangle, (_, order), values in zip(triangles, self._patterns, arrays[2::3], strict=True):
            stored = xp.empty_like(triangle.values)
            stored[slice(None) if order is None else order] = values
            triangle.values[...] = blocks.by_slices(triangle, stored)

    def _transposed(self, conjugate: bool) -> ILU0:
        """The same factors, transposed, in the same order."""
        A, levels = self._matrix_of_transposed(conjugate)
        turned = ILU0.__new__(ILU0, A)
        turned._prepare(canonical(turned._moved(A, self.backend.name)), levels, self._pivot_rule, self._dtype)
        for own, other in ((self._pivots, turned._pivots), (self._dinv, turned._dinv)):
            other[...] = own.conj() if conjugate else own
        turned.is_dilu, turned.shifted = self.is_dilu, self.shifted
        return turned


def _levels(csr: Any, ordering: Any, coloring: Any) -> Coloring:
    """The levels of an order as a coloring."""
    if isinstance(ordering, str) and ordering not in ("color", "natural"):
        raise ValueError(f"ordering must be 'color', 'natural' or a permutation, got {ordering!r}")
    graph = Graph.of(csr)
    if isinstance(ordering, str) and ordering == "color":
        colored = coloring_of(csr, coloring)
        name, sequence = colored.method, colored.permutation()
    else:
        natural = isinstance(ordering, str)
        name, sequence = ("natural", None) if natural else ("given", sequence_of(graph, ordering, seed=0))
    return finished(levels_of(graph, sequence), f"levels of {name} order", np.empty((0, 2), np.int64), graph.backend)


@compile_part
def gallop(indices, begin, end, column):
    """The first place in the sorted indices[begin:end] that does not hold less than `column`."""
    step = 1
    while begin + step <= end and indices[begin + step - 1] < column:
        begin += step
        step *= 2
    end = min(end, begin + step - 1)
    while begin < end:
        middle = (begin + end) // 2
        if indices[middle] < column:
            begin = middle + 1
        else:
            end = middle
    return begin


@compile_part
def subtract(place, end, indices, values, other, other_end, other_indices, other_values, factor):
    """Subtract `factor` times a sorted row from another where both have entries; how many these are."""
    changes = 0
    while place < end and other < other_end:
        if indices[place] < other_indices[other]:
            place = gallop(indices, place + 1, end, other_indices[other])
        elif indices[place] > other_indices[other]:
            other = gallop(other_indices, other + 1, other_end, indices[place])
        else:
            values[place] -= factor * other_values[other]
            changes += 1
            place += 1
            other += 1
    return changes


@compile_part
def eliminate_row(i, lower_indptr, lower_indices, lower, upper_indptr, upper_indices, upper, d, pivots):
    """Eliminate the lower part of row i, with the diagonal entry d; its new d, and how many others changed."""
    changes = 0
    end_lower, begin_upper, end_upper = lower_indptr[i + 1], upper_indptr[i], upper_indptr[i + 1]
    for e in range(lower_indptr[i], end_lower):
        j = lower_indices[e]
        factor = lower[e] / pivots[j]
        begin, end = upper_indptr[j], upper_indptr[j + 1]
        here = gallop(upper_indices, begin, end, i)
        changes += subtract(e + 1, end_lower, lower_indices, lower, begin, here, upper_indices, upper, factor)
        if here < end and upper_indices[here] == i:
            d -= factor * upper[here]
            here += 1
        changes += subtract(begin_upper, end_upper, upper_indices, upper, here, end, upper_indices, upper, factor)
    return d, changes


@compile_loop
def factorize_rows(
    first, end, lower_indptr, lower_indices, lower, upper_indptr, upper_indices, upper, diagonal, tiny, pivots, shifts,
    cliques,
):  # fmt: skip
    """The rows of one level."""
    changes = 0
    for i in prange(first, end):
        largest = abs(diagonal[i])
        for e in range(lower_indptr[i], lower_indptr[i + 1]):
            largest = max(largest, abs(lower[e]))
        for e in range(upper_indptr[i], upper_indptr[i + 1]):
            largest = max(largest, abs(upper[e]))
        d, changes_here = eliminate_row(
            i, lower_indptr, lower_indices, lower, upper_indptr, upper_indices, upper, diagonal[i], pivots
        )  # fmt: skip
        pivots[i] = safe_pivot(d, largest, tiny)
        shifts[i] = pivots[i] - d
        changes += changes_here
    if changes:
        cliques[0] = 1


@KERNELS.resident_twin
def factorize(
    n_slices, slices, lower_indptr, lower_indices, lower, upper_indptr, upper_indices, upper, diagonal, tiny, pivots,
    shifts, cliques,
):  # fmt: skip
    """Eliminate in place, rows sorted: in a row, a lower entry keeps its pivot as a factor.

    Also finds the pivots, what was added to each of them, and whether any entry off the diagonal was changed.
    """
    for c in range(n_slices):
        factorize_rows(
            slices[c], slices[c + 1], lower_indptr, lower_indices, lower, upper_indptr, upper_indices, upper, diagonal,
            tiny, pivots, shifts, cliques,
        )  # fmt: skip
