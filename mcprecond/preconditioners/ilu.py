"""ILU(0): an incomplete factorization on the pattern of the matrix, level by level.

The factors depend only on which of two neighbors comes first. So the rows are sorted by level, which is a coloring (see
ordering/levels.py): color blocks store the factors, and the sweeps of Gauss-Seidel solve with them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mcprecond.backends.arguments import stored_dtype
from mcprecond.backends.inputs import any_of
from mcprecond.backends.updates import one_at_a_time
from mcprecond.coloring.coloring import draw_sizes
from mcprecond.linalg.hermitian import is_hermitian
from mcprecond.preconditioners.elimination import (
    ENTRIES_AT_ONCE,
    KERNELS,
    MOST_SHARE,
    list_matches,
    list_nothing,
    lists_all,
)
from mcprecond.preconditioners.pivots import TRIANGLES, Factored, check_rule
from mcprecond.preconditioners.setup import admit, admit_values, complete_pattern, plan_elimination
from mcprecond.storage.schedule import cut_slices, rows_per_slice
from mcprecond.sweeps.relaxation import store_sentinel
from mcprecond.tuning.least_time import ColoringArgument
from mcprecond.typing import Device, Integers, Matrix, PivotRule, RowOrdering, StoredDType


class ILU0(Factored):
    """Incomplete LU factorization without fill: ``inv(M) = inv(U) inv(L)``, with LU = A wherever A stores an entry.

    For a symmetric positive definite A this is the incomplete Cholesky factorization IC(0), and M fits CG.

    A row waits for those of its neighbors that come earlier. In natural order of a grid that makes hundreds of levels,
    in the order of a coloring at most as many as there are colors, for more iterations: somewhat more, or, where
    couplings are anisotropic or convection is strong, ten times as many. On a CPU levels cost little, on a GPU each is
    a step.

    On a GPU, what depends on the pattern only is kept for `update`, most of it a byte for each lower entry of a row and
    each entry behind it. Where rows are long, that is more memory than A takes.

    Setup, updates and applications are run-to-run deterministic, unless a coloring that races is asked for; see
    `deterministic`.

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

    remedy_for_asymmetry = "use MulticolorDILU(A)"
    #: Whether the factors are symmetric, once they were compared.
    _symmetric: bool | None = None
    #: Where rows match others, once that is known.
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
        matrix, origin = admit(A, device)
        stored_dtype(dtype, matrix.dtype)  # is refused before the work of coloring
        plan = plan_elimination(matrix, ordering, coloring)
        self.ordering, self.choice, self._why_ordering = plan.ordering, plan.choice, plan.reason
        self.takes_long = self.ordering != "color"  # hundreds of levels
        self._pattern_is_symmetric, self._completes_pattern = plan.is_symmetric, plan.is_completed
        self._store(plan.matrix, plan.levels, pivot, dtype)
        self._factorize(plan.matrix.csr)
        super().__init__(origin)

    @property
    def eisenstat_incompatibility(self) -> str | None:  # type: ignore[override]
        return super().eisenstat_incompatibility if self.is_dilu else "ILU(0) changes entries off the diagonal here"

    @property
    def symmetric(self) -> bool:  # type: ignore[override]
        """See `Colored`.

        What elimination adds to a_ij and to a_ji is the same, but of a pair of which A stores only one, only one gets
        it. Then the factors are compared, when this is asked for first.
        """
        if self._pattern_is_symmetric or self.is_dilu:
            return True
        if self._symmetric is None:
            M = self.blocks.permuted()  # the triangles of the factors, and the diagonal of A in place of the pivots
            M = M + self.backend.sparse.diags(self._pivots - M.diagonal())
            self._symmetric = is_hermitian(admit(M.tocsr())[0], self.blocks.lower.values.dtype)
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
        ax = draw_sizes(self.levels, ax)
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
            bad pivot, a lack of memory or Ctrl-C this object may be halfway between two matrices. Then all use of it is
            a RuntimeError until an update succeeds.
        """
        values = admit_values(A, self.origin, self.backend)
        if self._completes_pattern:
            values = complete_pattern(admit(values)[0].canonical()).csr
        self._factorize(self.blocks.take(values))

    def built_for(self, A: Any) -> ILU0:
        return ILU0(A, ordering="color", coloring=self.coloring, pivot=self._pivot_rule)

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
        blocks, offset, xp = self.blocks, triangle.indptr.dtype, self.backend.xp
        indices = blocks.columns_by_rows(triangle)
        places = blocks.by_rows(triangle, xp.arange(len(indices), dtype=offset))
        descends = xp.zeros(len(indices) + 1, np.bool_)  # whether an entry's column comes before that of the last entry
        xp.less(indices[1:], indices[:-1], out=descends[1:-1])
        descends[triangle.indptr] = False
        if not any_of(descends):  # which compiles in less time than CuPy's `has_sorted_indices`
            return indices, places
        matrix = self.backend.sparse.csr_matrix(  # CuPy's hold floats
            (places.astype(np.float64), indices, triangle.indptr), shape=blocks.shape
        )
        matrix.sort_indices()
        return matrix.indices, matrix.data.astype(offset)

    def _analyze(self) -> None:
        """Find out what depends on the pattern only: which rows are worked on at once, and where they match others."""
        blocks, xp, n = self.blocks, self.backend.xp, self.blocks.shape[0]
        offsets = (blocks.lower.indptr, blocks.upper.indptr)
        sizes, entries = np.diff(blocks.offsets), sum(int(ends[-1]) for ends in offsets) / max(n, 1)
        most_rows = 2 ** int(np.log2(max(ENTRIES_AT_ONCE / max(entries, 1), 1)))
        rows = np.minimum(rows_per_slice(sizes, entries, self.backend.resident_warps), most_rows).astype(np.int32)
        self._pieces = cut_slices(blocks.offsets, *offsets, self.backend, rows)
        (lower, lower_places), (upper, upper_places) = (
            self._sorted_pattern(triangle) for triangle in (blocks.lower, blocks.upper)
        )
        longest = 1 + int(xp.diff(offsets[0] + offsets[1]).max()) if n else 1
        match_type = np.min_scalar_type(longest - 1)  # which has room for a place in an upper part, and for NONE
        share = min(-(-longest * int(rows.max(initial=1)) // 32), MOST_SHARE)
        self._run = self.backend.kernels(
            KERNELS,
            OFFSET=offsets[0].dtype,
            VALUE=blocks.dtype,
            STORED=blocks.lower.values.dtype,
            PLACE=match_type,
            SHARE=share,
            LANES=32,
        )
        self._flags = xp.zeros(3, np.int32)
        patterns = (offsets[0], lower, offsets[1], upper)
        listing = list_matches if self.backend.resident_warps else list_nothing
        self._matches = listing(self._run, self._pieces, patterns, match_type, self._flags, xp)
        if listing is list_matches and lists_all(longest, match_type):
            upper = xp.empty(0, np.int32)  # no entry is looked for by its column
        self._rows: tuple[Any, Any] = (lower, lower_places), (upper, upper_places)

    def _factorize(self, csr: Any) -> None:
        """Replace the triangles of A by those of the factors: L times the pivots, and U divided by them."""
        if not self._matches:
            self._analyze()
        blocks, xp = self.blocks, self.backend.xp
        lower, upper = (
            (triangle.indptr, *rows, triangle.values, xp.empty(len(triangle.values), blocks.dtype))
            for triangle, rows in zip((blocks.lower, blocks.upper), self._rows, strict=True)
        )
        self._symmetric = None
        shifts, is_stored = xp.empty(blocks.shape[0], blocks.dtype), True

        def factorize(tiny: float, least: float, theta: float) -> tuple[Any, Any]:
            nonlocal is_stored
            if not is_stored:  # the triangles of A: those of other factors are there
                blocks.take(csr)
            is_stored = False
            self._flags[:TRIANGLES] = 0
            store_sentinel(self._dinv)
            self._run.factorize(
                len(self._pieces) - 1,
                self._pieces,
                *self.backend.record(lower),
                *self.backend.record(upper),
                *self._matches,
                blocks.diagonal,
                tiny,
                least,
                theta,
                self._pivots,
                self._dinv,
                shifts,
                self._flags,
            )
            flags = self.backend.to_host(self._flags)
            self.is_dilu = not flags[TRIANGLES]
            return flags, shifts

        self._find_good_pivots(csr, factorize)
        blocks.pivots = self._pivots
        blocks.is_halfway = False

    def _with(self, **changes: Any) -> Any:
        """See `Preconditioner`: with other color blocks, rows match others in other places."""
        return super()._with(**changes, _matches=())
