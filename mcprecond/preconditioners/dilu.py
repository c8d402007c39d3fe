"""DILU: the incomplete factorization that changes nothing but the diagonal."""

from __future__ import annotations

from typing import Any

import numpy as np

from mcprecond.backends import KernelSet, compile_loop
from mcprecond.backends.arguments import stored_dtype
from mcprecond.backends.sorting import lower_bound
from mcprecond.backends.updates import one_at_a_time
from mcprecond.matrix import AdmittedMatrix
from mcprecond.preconditioners.pivots import LOW, SHIFTED, Factored, check_rule, is_low, least_invertible, safe_pivot
from mcprecond.preconditioners.setup import admit, admit_values, color_matrix
from mcprecond.storage.layouts import LAYOUT_CHOICES
from mcprecond.sweeps.relaxation import store_sentinel
from mcprecond.tuning.least_time import ColoringArgument
from mcprecond.typing import Device, Matrix, PivotRule, StoredDType

KERNELS = KernelSet(__file__, f"OFFSET VALUE STORED {LAYOUT_CHOICES} (LANES)")


class MulticolorDILU(Factored):
    """``M = (E + L) inv(E) (E + U)`` with L and U of A in the order of the colors and the diagonal of M that of A.

    That makes ``E_i = a_ii - sum over the neighbors j of smaller color of a_ij a_ji / E_j``. Besides what Gauss-Seidel
    stores there is one more diagonal. Where no three unknowns are all neighbors of each other it equals `ILU0`.

    Setup, updates and applications are run-to-run deterministic, unless a coloring that races is asked for; see
    `deterministic`.

    Parameters
    ----------
    A : sparse matrix or array of SciPy or CuPy, shape (n, n)
        Real or complex floats. Not changed, and not needed afterwards.
    coloring : str, AutoColoring, Coloring or array of int, shape (n,)
        A method of `color`, whose colors are then put into the order that promises the fewest iterations; or a coloring
        of A, which is checked, its colors in the order of their numbers. "auto" and an `AutoColoring` choose by
        predicted time; `choice` says what and why.
    pivot : {"positive", "raise", "shift"}
        What to do about an E_i that is zero, tiny or not finite, as in `ILU0`; and with "positive", where A is
        symmetric or Hermitian with a positive diagonal, about an E_i below 0.02 a_ii. Where sums are shifted, all E_i
        become larger than a_ii / 2.
    dtype : {float32, float64}, or {complex64, complex128} for complex A, optional
        Of the stored triangles; that of A by default. With float32 `pcg` iterates in float32, to the accuracy of
        float64.
    device : {"cpu", "gpu"}, optional
        "gpu" for a SciPy matrix: vectors stay NumPy arrays, the sweeps run on the GPU.

    Attributes
    ----------
    shifted : Shifts
        Which pivots were shifted (rows of A), and by how much. "positive" shifts those of all rows that have neighbors
        of smaller color, or none.

    Raises
    ------
    TypeError, ValueError
        If A is not a square sparse matrix of finite floats, a pivot is missing, zero or tiny (names the row), the
        coloring is not one of A, or another argument is out of range.

    References
    ----------
    Barrett et al.: Templates for the Solution of Linear Systems, 2nd ed., SIAM 1994, Section 3.4.2, "Simple cases:
    ILU(0) and D-ILU".
    Manteuffel: An Incomplete Factorization Technique for Positive Definite Linear Systems, Mathematics of Computation
    34, 1980.

    Examples
    --------
    >>> import numpy as np, scipy.sparse
    >>> from mcprecond import MulticolorDILU, pcg
    >>> A = scipy.sparse.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(100, 100), format="csr")
    >>> x, info = pcg(A, np.ones(100), M=MulticolorDILU(A))
    >>> info
    0
    """

    def __init__(
        self,
        A: Matrix | AdmittedMatrix,
        coloring: ColoringArgument = "auto",
        *,
        pivot: PivotRule = "positive",
        dtype: StoredDType | None = None,
        device: Device | None = None,
    ) -> None:
        check_rule(pivot)
        matrix, origin = admit(A, device)
        stored_dtype(dtype, matrix.dtype)  # is refused before the work of coloring
        matrix = matrix.canonical()
        colors, self.choice = color_matrix(matrix, coloring)
        self._store(matrix, colors, pivot, dtype)
        self._find_pivots(matrix.csr)
        super().__init__(origin)

    symmetric = True  # where A has no entry for a_ji, a_ij is zero

    @one_at_a_time
    def update(self, A: Matrix) -> None:
        """Take new values from a matrix with the same pattern: no new coloring, no new storage.

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
        self._find_pivots(self.blocks.take(admit_values(A, self.origin, self.backend)))

    def built_for(self, A: Any) -> MulticolorDILU:
        return MulticolorDILU(A, self.coloring, pivot=self._pivot_rule)

    def _find_pivots(self, csr: Any) -> None:
        """Find the pivots; of entries of the lower triangle, those across are looked up in the canonical matrix."""
        blocks, xp = self.blocks, self.backend.xp
        offset = blocks.lower.indptr.dtype
        run = self.backend.kernels(
            KERNELS, OFFSET=offset, VALUE=blocks.dtype, STORED=blocks.lower.values.dtype, LANES=32, **blocks.macros
        )
        shifts, flags = xp.zeros(blocks.shape[0], blocks.dtype), xp.zeros(3, np.int32)
        triangles = [
            array for part in (blocks.lower, blocks.upper) for array in (part.indptr, part.columns, part.values)
        ]
        pattern, schedule = blocks.pattern_of(csr), blocks.schedule()

        def factorize(tiny: float, least: float, theta: float) -> tuple[Any, Any]:
            store_sentinel(self._pivots)
            flags.fill(0)
            run.find_pivots(
                *schedule,
                *triangles,
                blocks.diagonal,
                blocks.perm,
                *pattern,
                csr.data,
                tiny,
                least,
                theta,
                self._pivots,
                shifts,
                flags,
            )
            return self.backend.to_host(flags), shifts

        self._find_good_pivots(csr, factorize)
        xp.divide(1, self._pivots, out=self._dinv)
        blocks.divide_upper(self._pivots)
        blocks.is_halfway = False


@compile_loop(offsets="lower_indptr")
def find_pivots_of_rows(
    first,
    end,
    lower_indptr,
    lower_columns,
    lower,
    upper_indptr,
    upper,
    diagonal,
    perm,
    indptr,
    indices,
    values,
    tiny,
    least,
    theta,
    pivots,
    shifts,
    found,
):
    """The rows of one color."""
    for i in range(first, end):
        d, largest, subtracted = diagonal[i], abs(diagonal[i]), diagonal.dtype.type(0)
        for e in range(lower_indptr[i], lower_indptr[i + 1]):
            row = perm[lower_columns[e]]
            across = lower_bound(indices, indptr[row], indptr[row + 1], perm[i])
            if across < indptr[row + 1] and indices[across] == perm[i]:
                subtracted += lower[e] / pivots[lower_columns[e]] * values[across]
            largest = max(largest, abs(lower[e]))
        for e in range(upper_indptr[i], upper_indptr[i + 1]):
            largest = max(largest, abs(upper[e]))
        relaxed = d - theta * subtracted
        pivot = safe_pivot(relaxed, largest, tiny, least_invertible(pivots))
        pivots[i] = pivot
        shifts[i] = pivot - relaxed + (1 - theta) * subtracted  # before pivots round
        if shifts[i] != 0:
            found[SHIFTED] = 1
        if is_low(relaxed, d, least):
            found[LOW] = 1


@KERNELS.resident
def find_pivots(n_slices, slices, sums, lower_indptr, lower_columns, lower, upper_indptr, upper_columns, *rows):
    """E_i = a_ii - theta sum_j (a_ij / E_j) a_ji over the lower triangle; a_ji is looked up in A.

    The product of two entries might underflow or overflow where their matrix does not. Also finds what was added to
    what theta = 1 would give here, whether there was anything to add, and whether a pivot is low.
    """
    for c in range(n_slices):
        find_pivots_of_rows(slices[c], slices[c + 1], lower_indptr, lower_columns, lower, upper_indptr, *rows)
