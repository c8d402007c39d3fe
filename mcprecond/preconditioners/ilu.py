"""ILU(0): an incomplete factorization on the pattern of the matrix, level by level.

The factors depend only on which of two neighbors comes first. So the rows are sorted by level, which is a coloring (see
ordering/levels.py): color blocks store the factors, and the sweeps of Gauss-Seidel solve with them.

Elimination subtracts multiples of the upper parts of earlier rows j from row i, wherever both have an entry: a match.
Matches depend on the pattern only. So a GPU lists them once, and a factorization neither reads nor compares columns.
For each lower entry of row i, in column j, and each entry after it the list says which entry of the upper part of row j
has the same column: mostly one byte. To save memory, the matches of long rows are not listed but searched for each
time. The CPU searches for all of them, which takes about as long as reading a list.

Entries are read and written where the sweeps need them. The upper part of a row, which other rows read during
elimination, is also stored contiguously in an array of its own.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mcprecond.backends import Backend, KernelSet, compile_inlined, compile_loop, compile_part
from mcprecond.backends.arguments import one_of
from mcprecond.backends.updates import one_at_a_time
from mcprecond.coloring import Coloring, Graph
from mcprecond.coloring.coloring import finished
from mcprecond.coloring.history import log_of
from mcprecond.coloring.orders import permutation
from mcprecond.matrix import AdmittedMatrix, admitted, canonical_csr, is_hermitian, rows_of
from mcprecond.ordering.color_order import swept_coloring
from mcprecond.ordering.levels import levels_of
from mcprecond.preconditioners.pivots import (
    LOW,
    SHIFTED,
    TRIANGLES,
    Factored,
    check_rule,
    is_low,
    least_invertible,
    safe_pivot,
)
from mcprecond.storage.schedule import cut_slices, rows_per_slice
from mcprecond.sweeps.plan import make_empty
from mcprecond.tuning.auto import ColoringArgument, chosen
from mcprecond.typing import Device, Integers, Matrix, PivotRule, RowOrdering, StoredDType

KERNELS = KernelSet(__file__, "OFFSET VALUE STORED PLACE SHARE (LANES)")

ORDERINGS = ("auto", "color", "natural")
MOST_ENTRIES = 256  # of a row whose matches are listed, at most
MOST_BYTES = 64  # of that list, per entry of the row, at most
ENTRIES_AT_ONCE = 160  # of the rows that a warp works on: 5 for each thread
MOST_SHARE = MOST_ENTRIES // 32  # of the entries of a row per thread


class ILU0(Factored):
    """Incomplete LU factorization without fill: ``inv(M) = inv(U) inv(L)``, with LU = A wherever A stores an entry.

    A row waits for those of its neighbors that come earlier. In natural order of a grid that makes hundreds of levels,
    in the order of a coloring at most as many as there are colors, for more iterations: somewhat more, or, where
    couplings are anisotropic or convection is strong, ten times as many. On a CPU levels cost little, on a GPU each is
    a step.

    On a GPU, what depends on the pattern only is kept for `update`, most of it a byte for each lower entry of a row and
    each entry behind it. Where rows are long, that is more memory than A takes.

    Parameters
    ----------
    A : sparse matrix or array of SciPy or CuPy, shape (n, n)
        Real or complex floats. Not changed, and not needed afterwards. Stored zeros belong to the pattern. Where A is
        symmetric or Hermitian but for rounding, and stores entries without those across the diagonal, as assembly with
        constraints leaves them, zeros are stored there, so that the factors are symmetric, too.
    ordering : {"auto", "color", "natural"} or array of int, shape (n,)
        In which order rows are eliminated: by color; as they are ("natural"); or a permutation: which row comes when.
        "auto" is "natural" on a CPU, unless a coloring is given, and "color" on a GPU.
    coloring : str, AutoColoring, Coloring or array of int, shape (n,)
        For the order by color: a method of `color`, or a coloring of A, which is checked, or "auto", as in
        `MulticolorGS`, which does not count as given.
    pivot : {"positive", "raise", "shift"}
        What to do about a pivot below 64 units of rounding of the largest entry of A's row, or not finite: "raise", or
        "shift" it: replace it by that entry's magnitude with the sign of the pivot's real part, and list it in
        `shifted`. "shift" also lets diagonal entries that A does not store count as zeros. "positive" raises, too,
        unless A is symmetric or Hermitian, up to rounding, with a positive diagonal. Then pivots below 0.02 a_ii are
        bad as well, but for those of M-matrices, and Manteuffel's shift keeps all of them above, so that M is positive
        definite: what elimination subtracts is multiplied by (1 + alpha)^-2, with the first alpha of a short list that
        does it.
    dtype : {float32, float64}, or {complex64, complex128} for complex A, optional
        Of the stored triangles; that of A by default.
    device : {"cpu", "gpu"}, optional
        "gpu" for a SciPy matrix: vectors stay NumPy arrays, factorization and solves run on the GPU.

    Attributes
    ----------
    ordering : str
        "color", "natural", or "given" for a permutation.
    coloring : Coloring
        The levels: those that a row depends on have smaller ones.
    is_dilu : bool
        Whether no three unknowns are all neighbors of each other: nothing off the diagonal differs from A then, and
        this is `MulticolorDILU`.
    shifted : Shifts
        Which pivots were shifted (rows of A), and by how much. "positive" shifts those of all rows that have neighbors
        of a smaller level, or none.

    Raises
    ------
    TypeError, ValueError
        If A is not a square sparse matrix of finite floats, a pivot is missing, zero or tiny (names the row), the
        coloring is not one of A, or another argument is out of range.

    References
    ----------
    Meijerink, van der Vorst: An Iterative Solution Method for Linear Systems of Which the Coefficient Matrix is a
    Symmetric M-Matrix, 1977.
    Manteuffel: An Incomplete Factorization Technique for Positive Definite Linear Systems, Mathematics of Computation
    34, 1980.
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
    >>> exact = ILU0(A)
    >>> exact.ordering, len(exact.levels), pcg(A, np.ones(100), M=exact).iterations
    ('natural', 100, 1)
    """

    ordering: str
    _pattern_is_symmetric: bool
    #: Whether A is Hermitian where its pattern is not symmetric, so that zeros complete the pattern.
    _completes_pattern = False
    remedy_for_asymmetry = "use MulticolorDILU(A)"
    #: Why the rows are in this order, if it was not asked for.
    _why_ordering: str | None = None
    #: Whether the factors are symmetric, once they were compared.
    _symmetric: bool | None = None
    #: Where rows match others, once it was looked for.
    _matches: tuple[Any, ...] = ()

    def __init__(
        self,
        A: Matrix,
        *,
        ordering: RowOrdering | Integers = "auto",
        coloring: ColoringArgument = "auto",
        pivot: PivotRule = "positive",
        dtype: StoredDType | None = None,
        device: Device | None = None,
    ) -> None:
        check_rule(pivot)
        matrix = self._moved(A, device).canonical()
        order: Any = ordering
        if isinstance(ordering, str) and one_of(ordering, "ordering", ORDERINGS) == "auto":
            order, self._why_ordering = _default_ordering(matrix.backend, coloring)
        self.ordering = order if isinstance(order, str) else "given"
        if self.ordering == "color":
            coloring, self.choice = chosen(matrix, coloring)
        graph = Graph.of(matrix)
        self._pattern_is_symmetric = graph.indices.size == matrix.indices.size
        if not self._pattern_is_symmetric and is_hermitian(matrix):
            self._completes_pattern = self._pattern_is_symmetric = True
            matrix = _completed(matrix, graph)
        self._prepare(matrix, _levels(matrix, graph, order, coloring), pivot, dtype)
        self._factorize(matrix.csr)

    @property
    def eisenstat_incompatibility(self) -> str | None:  # type: ignore[override]
        """See `Preconditioner`."""
        return super().eisenstat_incompatibility if self.is_dilu else "ILU(0) changes entries off the diagonal here"

    @property
    def symmetric(self) -> bool:  # type: ignore[override]
        """See `Preconditioner`.

        What elimination adds to a_ij and to a_ji is the same, but of a pair of which A stores only one, only one gets
        it. Then the factors are compared, when this is asked for first.
        """
        if self._pattern_is_symmetric or self.is_dilu:
            return True
        if self._symmetric is None:
            M = self.blocks.permuted()  # the triangles of the factors, and the diagonal of A in place of the pivots
            M = M + self.backend.sparse.diags(self._pivots - M.diagonal())
            self._symmetric = is_hermitian(admitted(M.tocsr()), self.blocks.lower.values.dtype)
        return self._symmetric

    @property
    def levels(self) -> np.ndarray:
        """Rows per level: int64, shape (n_levels,). Why there are so many, `ordering` and `repr` say."""
        return self.coloring.sizes

    def _summary(self) -> str:
        why = f" ({self._why_ordering})" if self._why_ordering else ""
        return f"{len(self.levels)} levels, {self.coloring.method.removeprefix('levels of ')}{why}"

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

    @one_at_a_time
    def update(self, A: Matrix) -> None:
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
        self._own_arrays()
        moved = self._moved_again(A)
        if self._completes_pattern:
            matrix = admitted(moved, floats=True).canonical()
            moved = _completed(matrix, Graph.of(matrix))
        self._factorize(self.blocks.update(moved))

    def factors(self) -> tuple[Any, Any]:
        """Return L, with a unit diagonal, and U: CSR matrices with sorted rows, rows and columns in order of level.

        Row i of both is row ``blocks.perm[i]`` of A.
        """
        sparse = self.backend.sparse
        both, eye = self.blocks.permuted(), sparse.eye(self.shape[0], dtype=self.dtype, format="csr")
        lower = sparse.tril(both, -1) @ sparse.diags(self._dinv)
        return (lower + eye).tocsr(), (sparse.triu(both, 1) + sparse.diags(self._pivots)).tocsr()

    def _sorted_pattern(self, triangle: Any) -> tuple[Any, Any]:
        """The columns of a triangle's rows, sorted, and where each entry is stored."""
        blocks, offset = self.blocks, triangle.indptr.dtype
        indices = blocks.columns_by_rows(triangle)
        places = blocks.by_rows(triangle, self.backend.xp.arange(len(indices), dtype=offset))
        matrix = self.backend.sparse.csr_matrix(  # CuPy's hold floats
            (places.astype(np.float64), indices, triangle.indptr), shape=self.shape
        )
        if matrix.has_sorted_indices:
            return indices, places
        matrix.sort_indices()
        return matrix.indices, matrix.data.astype(offset)

    def _analyze(self) -> None:
        """Find out what depends on the pattern only: which rows are worked on at once, and where they match others."""
        blocks, xp, n = self.blocks, self.backend.xp, self.shape[0]
        offsets = (blocks.lower.indptr, blocks.upper.indptr)
        colors = blocks.coloring.colors[blocks.perm]
        sizes, entries = np.diff(blocks.offsets), sum(int(ends[-1]) for ends in offsets) / max(n, 1)
        most_rows = 2 ** int(np.log2(max(ENTRIES_AT_ONCE / max(entries, 1), 1)))
        rows = np.minimum(rows_per_slice(sizes, entries, self.backend.resident_warps), most_rows).astype(np.int32)
        self._pieces = cut_slices(blocks.offsets, colors, *offsets, self.backend, rows)
        (lower, lower_places), (upper, upper_places) = (
            self._sorted_pattern(triangle) for triangle in (blocks.lower, blocks.upper)
        )
        longest = 1 + int(xp.diff(offsets[0] + offsets[1]).max()) if n else 1
        place = np.min_scalar_type(longest - 1)  # which has room for a place in an upper part, and for NONE
        share = min(-(-longest * int(rows.max(initial=1)) // 32), MOST_SHARE)
        self._run = self.backend.kernels(
            KERNELS,
            OFFSET=offsets[0].dtype,
            VALUE=blocks.dtype,
            STORED=blocks.lower.values.dtype,
            PLACE=place,
            SHARE=share,
            LANES=32,
        )
        self._found = xp.zeros(3, np.int32)
        patterns = (offsets[0], lower, offsets[1], upper)
        listing = list_matches if self.backend.resident_warps else list_nothing
        self._matches = listing(self._run, self._pieces, patterns, place, self._found, xp)
        unlisted = (xp.diff(self._matches[0]) == 0) & (xp.diff(offsets[0]) > 0)
        self._rows: tuple[Any, Any] = (
            (lower, lower_places),
            (upper if bool(unlisted.any()) else xp.empty(0, np.int32), upper_places),
        )

    def _factorize(self, csr: Any) -> None:
        """Replace the triangles of A by those of the factors: L times the pivots, and U divided by them."""
        if not self._matches:
            self._analyze()
        blocks, xp = self.blocks, self.backend.xp
        triangles: list[Any] = []
        for triangle, rows in zip((blocks.lower, blocks.upper), self._rows, strict=True):
            triangles += [triangle.indptr, *rows, triangle.values, xp.empty(len(triangle.values), blocks.dtype)]
        self._symmetric = None
        shifts, is_stored = xp.empty(self.shape[0], blocks.dtype), True

        def factorize(tiny: float, least: float, theta: float) -> tuple[Any, Any]:
            nonlocal is_stored
            if not is_stored:  # the triangles of A: those of other factors are there
                blocks.update(csr)
            is_stored = False
            self._found[:TRIANGLES] = 0
            make_empty(self._dinv)
            self._run.factorize(
                len(self._pieces) - 1,
                self._pieces,
                *triangles,
                *self._matches,
                blocks.diagonal,
                tiny,
                least,
                theta,
                self._pivots,
                self._dinv,
                shifts,
                self._found,
            )
            found = self.backend.to_host(self._found)
            self.is_dilu = not found[TRIANGLES]
            return found, shifts

        self._find_good_pivots(csr, factorize)
        blocks.pivots = self._pivots

    def _transposed(self, conjugate: bool) -> ILU0:
        """The same factors, transposed, in the same order."""
        turned: ILU0 = super()._transposed(conjugate)
        turned.is_dilu, turned._pattern_is_symmetric = self.is_dilu, self._pattern_is_symmetric
        turned._completes_pattern, turned.ordering = self._completes_pattern, self.ordering
        return turned


def _completed(matrix: AdmittedMatrix, graph: Graph) -> AdmittedMatrix:
    """A canonical matrix with zeros wherever its graph has an entry and it has none."""
    xp, csr, n = matrix.backend.xp, matrix.csr, matrix.shape[0]

    def places(indptr: Any, indices: Any) -> Any:
        return rows_of(indptr, indices, xp).astype(np.int64) * n + indices

    data = xp.zeros(len(graph.indices), matrix.dtype)
    data[xp.searchsorted(places(graph.indptr, graph.indices), places(matrix.indptr, matrix.indices))] = csr.data
    return admitted(canonical_csr(data, graph.indices, graph.indptr, matrix.shape, matrix.backend))


def _default_ordering(backend: Backend, coloring: Any) -> tuple[str, str]:
    """The order that "auto" stands for, and why."""
    if backend.name == "gpu":
        return "color", "the default on a GPU"
    if isinstance(coloring, str) and coloring == "auto":
        return "natural", "the default on a CPU"
    return "color", "a coloring was given"


def _levels(matrix: AdmittedMatrix, graph: Graph, ordering: Any, coloring: Any) -> Coloring:
    """The levels of an order as a coloring."""
    if not isinstance(ordering, str):
        name, sequence = "given", permutation(ordering, graph.n, graph.backend, "ordering", ORDERINGS)
    elif ordering == "color":
        colored = swept_coloring(matrix, coloring)
        name, sequence = colored.method, colored.permutation()
    else:
        name, sequence = "natural", None
    return finished(levels_of(graph, sequence), log_of([], graph.backend), f"levels of {name} order", graph.backend)


def list_matches(run: Any, pieces: Any, patterns: Any, place: Any, found: Any, xp: Any) -> tuple[Any, Any]:
    """Return where the matches of rows begin, and the matches.

    See `find_matches`; `place` is the type that they are listed in.
    """
    lower_indptr, _, upper_indptr, _ = patterns
    n_lower = xp.diff(lower_indptr).astype(np.int64)
    length = n_lower + 1 + xp.diff(upper_indptr)
    counts = n_lower * length - n_lower * (n_lower + 1) // 2
    listed = (length <= MOST_ENTRIES) & (counts * np.dtype(place).itemsize <= MOST_BYTES * length)
    firsts = xp.zeros(len(lower_indptr), np.int64)
    xp.cumsum(counts * listed, out=firsts[1:])
    matches = xp.empty(int(firsts[-1]), place)
    run.find_matches(len(pieces) - 1, pieces, *patterns, firsts, matches, found)
    return firsts, matches


def list_nothing(run: Any, pieces: Any, patterns: Any, place: Any, found: Any, xp: Any) -> tuple[Any, Any]:
    """The same without any matches."""
    return xp.zeros(len(patterns[0]), np.int64), xp.empty(0, place)


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


@KERNELS.per_item_driver
def find_matches(n_pieces, pieces, lower_indptr, lower_indices, upper_indptr, upper_indices, firsts, matches, found):
    """Which entries of the upper parts of rows have the columns of later rows' entries.

    A row's entries are its lower ones, the diagonal one, its upper ones; the matches of row i are listed from firsts[i]
    on, if firsts[i + 1] is larger. For each lower entry, in column j, they say of each entry behind it which one of row
    j's upper part has the same column, or none: the largest number of their type. Also finds whether there are
    triangles.
    """
    for i in range(pieces[n_pieces]):
        place, begin_lower, n_lower = firsts[i], lower_indptr[i], lower_indptr[i + 1] - lower_indptr[i]
        if firsts[i + 1] > place:
            length = n_lower + 1 + upper_indptr[i + 1] - upper_indptr[i]
            behind = upper_indptr[i] - n_lower - 1
            for e in range(n_lower):
                j = lower_indices[begin_lower + e]
                begin, end = upper_indptr[j], upper_indptr[j + 1]
                other = begin
                for m in range(e + 1, length):
                    if m < n_lower:
                        column = lower_indices[begin_lower + m]
                    elif m == n_lower:
                        column = i
                    else:
                        column = upper_indices[behind + m]
                    other = gallop(upper_indices, other, end, column)
                    matches[place] = -1
                    if other < end and upper_indices[other] == column:
                        matches[place] = other - begin
                        if m != n_lower:
                            found[TRIANGLES] = 1
                    place += 1


@compile_part
def eliminate_listed(i, lower_indptr, lower_indices, lower, upper_indptr, upper, firsts, matches, theta, dinv):
    """Eliminate the lower part of row i, whose matches are listed; what that adds to its diagonal entry."""
    added = dinv.dtype.type(0)
    begin_lower, n_lower = lower_indptr[i], lower_indptr[i + 1] - lower_indptr[i]
    length = n_lower + 1 + upper_indptr[i + 1] - upper_indptr[i]
    behind, place = upper_indptr[i] - n_lower - 1, firsts[i]
    none = 256**matches.itemsize - 1
    for e in range(n_lower):
        j = lower_indices[begin_lower + e]
        factor, other = theta * (lower[begin_lower + e] * dinv[j]), upper_indptr[j]
        for m in range(e + 1, length):
            if matches[place] != none:
                product = factor * upper[other + np.int64(matches[place])]
                if m < n_lower:
                    lower[begin_lower + m] -= product
                elif m > n_lower:
                    upper[behind + m] -= product
                else:
                    added -= product
            place += 1
    return added


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
def eliminate_in_place(i, lower_indptr, lower_indices, lower, upper_indptr, upper_indices, upper, theta, dinv):
    """The same where matches have to be looked for; also, how many other entries have changed."""
    changes, added = 0, dinv.dtype.type(0)
    end_lower, begin_upper, end_upper = lower_indptr[i + 1], upper_indptr[i], upper_indptr[i + 1]
    for e in range(lower_indptr[i], end_lower):
        j = lower_indices[e]
        factor = theta * (lower[e] * dinv[j])
        begin, end = upper_indptr[j], upper_indptr[j + 1]
        here = gallop(upper_indices, begin, end, i)
        changes += subtract(e + 1, end_lower, lower_indices, lower, begin, here, upper_indices, upper, factor)
        if here < end and upper_indices[here] == i:
            added -= factor * upper[here]
            here += 1
        changes += subtract(begin_upper, end_upper, upper_indices, upper, here, end, upper_indices, upper, factor)
    return added, changes


@compile_part
def load(begin, end, places, stored, values, largest):
    """Fetch a triangle's part of a row from where the sweeps need it; its largest magnitude, or `largest`."""
    for e in range(begin, end):
        values[e] = stored[places[e]]
        largest = max(largest, abs(values[e]))
    return largest


@compile_part
def store(begin, end, places, stored, values, factor):
    """Put it back, times a factor."""
    for e in range(begin, end):
        stored[places[e]] = factor * values[e]


@compile_loop
def factorize_rows(
    first,
    end,
    lower_indptr,
    lower_indices,
    lower_places,
    lower_stored,
    lower,
    upper_indptr,
    upper_indices,
    upper_places,
    upper_stored,
    upper,
    firsts,
    matches,
    diagonal,
    tiny,
    least,
    theta,
    pivots,
    dinv,
    shifts,
    found,
):
    """The rows of one level."""
    changes = 0
    for i in range(first, end):
        d = diagonal[i]
        largest = load(lower_indptr[i], lower_indptr[i + 1], lower_places, lower_stored, lower, abs(d))
        largest = load(upper_indptr[i], upper_indptr[i + 1], upper_places, upper_stored, upper, largest)
        if firsts[i + 1] > firsts[i]:
            added = eliminate_listed(
                i, lower_indptr, lower_indices, lower, upper_indptr, upper, firsts, matches, theta, dinv
            )
        else:
            added, changes_here = eliminate_in_place(
                i, lower_indptr, lower_indices, lower, upper_indptr, upper_indices, upper, theta, dinv
            )
            changes += changes_here
        relaxed = d + added
        pivot = safe_pivot(relaxed, largest, tiny, least_invertible(pivots))
        pivots[i] = pivot
        dinv[i] = 1 / pivots[i]
        store(lower_indptr[i], lower_indptr[i + 1], lower_places, lower_stored, lower, 1)
        store(upper_indptr[i], upper_indptr[i + 1], upper_places, upper_stored, upper, dinv[i])
        shifts[i] = pivot - relaxed + (1 - 1 / theta) * added  # before pivots round
        if shifts[i] != 0:
            found[SHIFTED] = 1
        if is_low(relaxed, d, least):
            found[LOW] = 1
    if changes:
        found[TRIANGLES] = 1


@KERNELS.resident
def factorize(
    n_pieces,
    pieces,
    lower_indptr,
    lower_indices,
    lower_places,
    lower_stored,
    lower,
    upper_indptr,
    upper_indices,
    upper_places,
    upper_stored,
    upper,
    firsts,
    matches,
    diagonal,
    tiny,
    least,
    theta,
    pivots,
    dinv,
    shifts,
    found,
):
    """Eliminate in what is stored: in a row, a lower entry keeps its pivot as a factor; upper ones are divided.

    `lower` and `upper` are room for sorted rows; CUDA uses `lower` only where matches are not listed. Also finds the
    pivots, their inverses, what was added to each of them, and whether there was anything to add, or an entry off the
    diagonal was changed where matches are not listed.
    """
    for c in range(n_pieces):
        factorize_rows(
            pieces[c],
            pieces[c + 1],
            lower_indptr,
            lower_indices,
            lower_places,
            lower_stored,
            lower,
            upper_indptr,
            upper_indices,
            upper_places,
            upper_stored,
            upper,
            firsts,
            matches,
            diagonal,
            tiny,
            least,
            theta,
            pivots,
            dinv,
            shifts,
            found,
        )
