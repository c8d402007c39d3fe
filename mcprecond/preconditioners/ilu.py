"""ILU(0): an incomplete factorization on the pattern of the matrix, level by level.

The factors depend only on which of two neighbors comes first. So the rows are sorted by level, which is a coloring (see
reordering/levels.py): color blocks store the factors, and the sweeps of Gauss-Seidel solve with them.

Row i loses multiples of the upper parts of earlier rows j, wherever both have an entry. Where that is depends on the
pattern only: on a GPU these matches are listed once, a pair of bytes for most of them, so that a factorization neither
reads nor compares columns. Long rows, and those with many matches for their length, go without, to save memory: their
matches are looked for each time. So are all on the CPU, which does that in about the time of reading a list.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import prange

from mcprecond.backends import KernelSet, compile_inlined, compile_loop, compile_part
from mcprecond.backends.inputs import canonical
from mcprecond.coloring import Coloring, Graph, coloring_of
from mcprecond.coloring.coloring import finished
from mcprecond.coloring.orders import sequence_of
from mcprecond.preconditioners.choice import chosen
from mcprecond.preconditioners.pivots import Factored, check_rule, safe_pivot
from mcprecond.preconditioners.sweeps import make_empty
from mcprecond.reordering.levels import levels_of
from mcprecond.reordering.slices import cut_slices, rows_per_slice

KERNELS = KernelSet(__file__)

MOST_ENTRIES = 256  # of a row whose matches are listed, at most: places in it are bytes where there are no others
MOST_MATCHES = 32  # per entry of such a row, at most
UNLISTED = 2**16 - 1
TRIANGLES, UNLISTED_ROWS, SHIFTED = range(3)  # what kernels may find
ENTRIES_AT_ONCE = 224  # of the rows that a warp works on: 7 for each thread


class ILU0(Factored):
    """Incomplete LU factorization without fill: ``inv(M) = inv(U) inv(L)``, with LU = A wherever A stores an entry.

    A row waits for those of its neighbors that come earlier. In natural order of a grid that makes hundreds of levels,
    in the order of a coloring at most as many as there are colors, for somewhat more iterations.

    On a GPU, what depends on the pattern only is kept for `update`, most of it two bytes for each pair of entries in
    one column of two neighboring rows. Where rows are long, that is more memory than A takes.

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
    >>> ILU0(A, coloring="greedy").levels
    array([50, 50])
    >>> exact = ILU0(A, ordering="natural")
    >>> len(exact.levels), pcg(A, np.ones(100), M=exact).iterations
    (100, 1)
    """

    #: Where rows match others, once it was looked for.
    _matches: tuple[Any, ...] = ()

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

    def _analyze(self) -> None:
        """Find out what depends on the pattern only: which rows are worked on at once, and where they match others."""
        blocks, xp, n = self.blocks, self.backend.xp, self.shape[0]
        offsets = (blocks.lower.indptr, blocks.upper.indptr)
        colors = blocks.coloring.colors[blocks.perm]
        sizes, entries = np.diff(blocks.offsets), sum(int(ends[-1]) for ends in offsets) / max(n, 1)
        most_rows = 2 ** int(np.log2(max(ENTRIES_AT_ONCE / max(entries, 1), 1)))
        rows = np.minimum(rows_per_slice(sizes, entries, self.backend.resident_warps), most_rows).astype(np.int32)
        self._pieces = cut_slices(blocks.offsets, colors, *offsets, self.backend, rows)
        (lower, self._lower_order), (upper, self._upper_order) = (
            self._sorted_pattern(triangle) for triangle in (blocks.lower, blocks.upper)
        )
        longest = 1 + int(xp.diff(offsets[0] + offsets[1]).max()) if n else 1
        place = np.uint8 if longest <= MOST_ENTRIES else np.uint16
        self._run = self.backend.kernels(KERNELS, OFFSET=offsets[0].dtype, VALUE=blocks.dtype, PLACE=place, LANES=32)
        self._found = xp.zeros(3, np.int32)
        patterns = (offsets[0], lower, offsets[1], upper)
        listing = list_matches if self.backend.resident_warps else list_nothing
        self._matches = listing(self._run, self._pieces, patterns, place, self._found, xp)
        found = self.backend.to_host(self._found)
        self.is_dilu = not (found[TRIANGLES] or found[UNLISTED_ROWS])  # the latter may still turn out to have none
        self._columns: tuple[Any, Any] = (lower, upper if found[UNLISTED_ROWS] else xp.empty(0, np.int32))

    def _factorize(self) -> None:
        """Replace the triangles of A by those of the factors: L times the pivots, and U."""
        if not self._matches:
            self._analyze()
        blocks, xp = self.blocks, self.backend.xp
        arrays: list[Any] = []
        parts = ((blocks.lower, self._lower_order), (blocks.upper, self._upper_order))
        for (triangle, order), columns in zip(parts, self._columns, strict=True):
            values = blocks.by_rows(triangle, triangle.values).astype(blocks.dtype, copy=False)
            arrays += [triangle.indptr, columns, values if order is None else values[order]]
        shifts = xp.empty(self.shape[0], blocks.dtype)
        self._found[SHIFTED] = 0
        make_empty(self._dinv)
        self._run.factorize(
            len(self._pieces) - 1, self._pieces, *arrays, *self._matches, blocks.diagonal, self._tiny, self._pivots,
            self._dinv, shifts, self._found,
        )  # fmt: skip
        if not self.is_dilu:
            for (triangle, order), values in zip(parts, arrays[2::3], strict=True):
                stored = values
                if order is not None:
                    stored = xp.empty_like(values)
                    stored[order] = values
                blocks.by_slices(triangle, stored.astype(triangle.values.dtype, copy=False), triangle.values)
        found = self.backend.to_host(self._found)
        self.is_dilu = not found[TRIANGLES]
        self._judge_pivots(shifts if found[SHIFTED] else None)

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


def list_matches(run: Any, pieces: Any, patterns: Any, place: Any, found: Any, xp: Any) -> tuple[Any, Any, Any]:
    """Return where the matches of rows begin, where those of their lower entries do, and the matches.

    See `find_matches`; `place` is the type that they are listed in.
    """
    lower_indptr, lower_indices, *_ = patterns
    firsts, starts = xp.zeros(len(lower_indptr), np.int64), xp.empty(len(lower_indices), np.uint16)
    matches = xp.empty((0, 2), place)
    run.find_matches(len(pieces) - 1, pieces, *patterns, 0, firsts, starts, matches, found)
    firsts = xp.cumsum(firsts)
    matches = xp.empty((int(firsts[-1]), 2), place)
    run.find_matches(len(pieces) - 1, pieces, *patterns, 1, firsts, starts, matches, found)
    return firsts, starts, matches


def list_nothing(run: Any, pieces: Any, patterns: Any, place: Any, found: Any, xp: Any) -> tuple[Any, Any, Any]:
    """The same without any matches."""
    found[UNLISTED_ROWS] = 1
    lower_indptr, lower_indices, *_ = patterns
    starts = xp.full(len(lower_indices), UNLISTED, np.uint16)
    return xp.zeros(len(lower_indptr), np.int64), starts, xp.empty((0, 2), place)


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


@compile_inlined
def next_common(place, end, indices, other, other_end, other_indices):
    """The next places of two sorted stretches that hold the same; one of them is an end if there are none."""
    while place < end and other < other_end and indices[place] != other_indices[other]:
        if indices[place] < other_indices[other]:
            place = gallop(indices, place + 1, end, other_indices[other])
        else:
            other = gallop(other_indices, other + 1, other_end, indices[place])
    return place, other


@compile_part
def match(place, end, indices, before, other, other_end, other_indices, other_begin, matches, count, listed):
    """Count, and list where asked for, what two sorted stretches share: place + before and other - other_begin."""
    while True:
        place, other = next_common(place, end, indices, other, other_end, other_indices)
        if place >= end or other >= other_end:
            return count
        if listed:
            matches[count, 0] = place + before
            matches[count, 1] = other - other_begin
        count += 1
        place += 1
        other += 1


@compile_part
def match_row(i, lower_indptr, lower_indices, upper_indptr, upper_indices, first, starts, matches, listed):
    """Go through the matches of row i, listed from `first` on; how many, and how many off the diagonal."""
    begin_lower, end_lower, begin_upper, end_upper = (
        lower_indptr[i], lower_indptr[i + 1], upper_indptr[i], upper_indptr[i + 1],
    )  # fmt: skip
    n_lower, count, off_diagonal = end_lower - begin_lower, first, 0
    for e in range(begin_lower, end_lower):
        starts[e] = count - first
        before = count
        j = lower_indices[e]
        begin, end = upper_indptr[j], upper_indptr[j + 1]
        here = gallop(upper_indices, begin, end, i)
        count = match(
            e + 1, end_lower, lower_indices, -begin_lower, begin, here, upper_indices, begin, matches, count, listed
        )  # fmt: skip
        if here < end and upper_indices[here] == i:
            if listed:
                matches[count, 0], matches[count, 1] = n_lower, here - begin
            count += 1
            before += 1
            here += 1
        count = match(
            begin_upper, end_upper, upper_indices, n_lower + 1 - begin_upper, here, end, upper_indices, begin, matches,
            count, listed,
        )  # fmt: skip
        off_diagonal += count - before
    return count - first, off_diagonal


@KERNELS.twin
def find_matches(
    n_pieces, pieces, lower_indptr, lower_indices, upper_indptr, upper_indices, listed, firsts, starts, matches, found
):  # fmt: skip
    """Where rows and the upper parts of their lower neighbors have common columns: pairs of places in both.

    A row's entries are its lower ones, the diagonal one, its upper ones. The first call counts, in `starts`, the
    matches before each lower entry, and all of row i in firsts[i + 1]; the second one lists them from firsts[i] on. If
    they are not to be listed, firsts[i + 1] is 0, and UNLISTED the first of the row's `starts`. Also finds whether
    there are triangles, and rows that are not listed.
    """
    for i in prange(pieces[n_pieces]):
        if listed:
            if lower_indptr[i + 1] > lower_indptr[i] and starts[lower_indptr[i]] != UNLISTED:
                match_row(
                    i, lower_indptr, lower_indices, upper_indptr, upper_indices, firsts[i], starts, matches, True
                )  # fmt: skip
        else:
            count, off_diagonal = match_row(
                i, lower_indptr, lower_indices, upper_indptr, upper_indices, 0, starts, matches, False
            )  # fmt: skip
            length = 1 + lower_indptr[i + 1] - lower_indptr[i] + upper_indptr[i + 1] - upper_indptr[i]
            fits = length <= MOST_ENTRIES and count <= MOST_MATCHES * length
            for e in range(lower_indptr[i], lower_indptr[i + 1]):
                j = lower_indices[e]
                fits &= upper_indptr[j + 1] - upper_indptr[j] <= 256**matches.itemsize
            firsts[i + 1] = count if fits else 0
            if off_diagonal:
                found[TRIANGLES] = 1
            if not fits and lower_indptr[i + 1] > lower_indptr[i]:
                starts[lower_indptr[i]] = UNLISTED
                found[UNLISTED_ROWS] = 1


@compile_part
def eliminate_listed(
    i, lower_indptr, lower_indices, lower, upper_indptr, upper, firsts, starts, matches, d, dinv
):  # fmt: skip
    """Eliminate the lower part of row i, whose matches are listed, with the diagonal entry d; its new d."""
    begin_lower, n_lower = lower_indptr[i], lower_indptr[i + 1] - lower_indptr[i]
    behind = upper_indptr[i] - n_lower - 1
    for e in range(begin_lower, begin_lower + n_lower):
        j = lower_indices[e]
        factor, other = lower[e] * dinv[j], upper_indptr[j]
        end = firsts[i] + starts[e + 1] if e + 1 < begin_lower + n_lower else firsts[i + 1]
        for m in range(firsts[i] + starts[e], end):
            own, product = np.int64(matches[m, 0]), factor * upper[other + matches[m, 1]]
            if own < n_lower:
                lower[begin_lower + own] -= product
            elif own > n_lower:
                upper[behind + own] -= product
            else:
                d -= product
    return d


@compile_part
def subtract(place, end, indices, values, other, other_end, other_indices, other_values, factor):
    """Subtract `factor` times a sorted row from another where both have entries; how many these are."""
    changes = 0
    while True:
        place, other = next_common(place, end, indices, other, other_end, other_indices)
        if place >= end or other >= other_end:
            return changes
        values[place] -= factor * other_values[other]
        changes += 1
        place += 1
        other += 1


@compile_part
def eliminate_in_place(
    i, lower_indptr, lower_indices, lower, upper_indptr, upper_indices, upper, d, dinv
):  # fmt: skip
    """The same where matches have to be looked for; also, how many other entries have changed."""
    changes = 0
    end_lower, begin_upper, end_upper = lower_indptr[i + 1], upper_indptr[i], upper_indptr[i + 1]
    for e in range(lower_indptr[i], end_lower):
        j = lower_indices[e]
        factor = lower[e] * dinv[j]
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
    first, end, lower_indptr, lower_indices, lower, upper_indptr, upper_indices, upper, firsts, starts, matches,
    diagonal, tiny, pivots, dinv, shifts, found,
):  # fmt: skip
    """The rows of one level."""
    changes = 0
    for i in prange(first, end):
        d = diagonal[i]
        largest = abs(d)
        for e in range(lower_indptr[i], lower_indptr[i + 1]):
            largest = max(largest, abs(lower[e]))
        for e in range(upper_indptr[i], upper_indptr[i + 1]):
            largest = max(largest, abs(upper[e]))
        if lower_indptr[i + 1] > lower_indptr[i] and starts[lower_indptr[i]] == UNLISTED:
            d, changes_here = eliminate_in_place(
                i, lower_indptr, lower_indices, lower, upper_indptr, upper_indices, upper, d, dinv
            )  # fmt: skip
            changes += changes_here
        else:
            d = eliminate_listed(
                i, lower_indptr, lower_indices, lower, upper_indptr, upper, firsts, starts, matches, d, dinv
            )  # fmt: skip
        pivots[i] = safe_pivot(d, largest, tiny)
        dinv[i] = 1 / pivots[i]
        shifts[i] = pivots[i] - d
        if shifts[i] != 0:
            found[SHIFTED] = 1
    if changes:
        found[TRIANGLES] = 1


@KERNELS.resident_twin
def factorize(
    n_pieces, pieces, lower_indptr, lower_indices, lower, upper_indptr, upper_indices, upper, firsts, starts, matches,
    diagonal, tiny, pivots, dinv, shifts, found,
):  # fmt: skip
    """Eliminate in place: in a row, a lower entry keeps its pivot as a factor.

    Also finds the pivots, their inverses, what was added to each of them, and whether there was anything to add, or an
    entry off the diagonal was changed where matches are not listed.
    """
    for c in range(n_pieces):
        factorize_rows(
            pieces[c], pieces[c + 1], lower_indptr, lower_indices, lower, upper_indptr, upper_indices, upper, firsts,
            starts, matches, diagonal, tiny, pivots, dinv, shifts, found,
        )  # fmt: skip
