"""Multicolor Gauss-Seidel: sweeps over the color blocks, color by color, all rows of a color at once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import prange

from mcprecond.backends import KernelSet
from mcprecond.backends.inputs import csr_system
from mcprecond.preconditioners.base import Preconditioner

KERNELS = KernelSet(__file__)

SWEEPS = ("forward", "backward", "symmetric")
MOST_LANES = 32


class MulticolorGS(Preconditioner):
    """Multicolor Gauss-Seidel or SOR preconditioner, from a zero guess.

    With A = L + D + U in the order of the colors, ``M @ r`` is one or more sweeps on A z = r:

    - forward: ``inv(M) = w inv(D + w L)``,
    - backward: ``inv(M) = w inv(D + w U)``,
    - symmetric: ``inv(M) = w (2 - w) inv(D + w U) D inv(D + w L)``.

    Parameters
    ----------
    A : sparse matrix or array of SciPy or CuPy, shape (n, n)
        float32 or float64, no zero on the diagonal. Not changed, and not needed afterwards.
    coloring : str, Coloring or array of int, shape (n,)
        A method of `color`, or a coloring of A, which is checked.
    sweep : {"symmetric", "forward", "backward"}
        "symmetric" keeps a symmetric A symmetric, as CG needs it.
    omega : float
        Relaxation factor w, 0 < w < 2.
    sweeps : int
        How many sweeps one application makes.
    dtype : {float32, float64}, optional
        Of the stored triangles; that of A by default. float32 under a float64 solver halves the values' memory.
    device : {"cpu", "gpu"}, optional
        "gpu" for a SciPy matrix: vectors stay NumPy arrays, the sweeps run on the GPU.

    Raises
    ------
    TypeError, ValueError
        If A is not a square sparse matrix of finite floats, has a zero or missing diagonal entry (names the row), the
        coloring is not one of A, or another argument is out of range.

    References
    ----------
    Deveci, Boman, Devine, Rajamanickam: Parallel Graph Coloring for Manycore Architectures, IPDPS 2016, Section V-C.
    Saad: Iterative Methods for Sparse Linear Systems, 2nd ed., Section 12.4.

    Examples
    --------
    >>> import numpy as np, scipy.sparse
    >>> from scipy.sparse.linalg import gmres
    >>> from mcprecond import MulticolorGS
    >>> A = scipy.sparse.diags_array([-1.5, 3.0, -1.0], offsets=[-1, 0, 1], shape=(100, 100), format="csr")
    >>> x, info = gmres(A, np.ones(100), M=MulticolorGS(A, sweep="forward"))
    >>> info
    0
    """

    def __init__(
        self,
        A: Any,
        coloring: Any = "eb",
        *,
        sweep: str = "symmetric",
        omega: float = 1.0,
        sweeps: int = 1,
        dtype: Any = None,
        device: str | None = None,
    ) -> None:
        if sweep not in SWEEPS:
            raise ValueError(f"sweep must be one of {', '.join(SWEEPS)}, got {sweep!r}")
        if not 0 < omega < 2:
            raise ValueError(f"omega must lie between 0 and 2, got {omega}")
        if not isinstance(sweeps, int | np.integer) or sweeps < 1:
            raise ValueError(f"sweeps must be a positive integer, got {sweeps!r}")
        if dtype is not None and np.dtype(dtype) not in (np.float32, np.float64):
            raise TypeError(f"dtype must be float32 or float64, got {dtype!r}")
        self.sweep, self.omega, self.sweeps = sweep, float(omega), int(sweeps)
        self.symmetric = sweep == "symmetric"
        self._open(A, coloring, dtype, device)
        blocks = self.blocks
        self._y = self.backend.xp.empty(blocks.shape[0], blocks.dtype)
        self._dinv = self.backend.xp.empty(blocks.shape[0], blocks.dtype)
        self._invert_diagonal()
        entries = len(blocks.lower.indices) + len(blocks.upper.indices)
        self.lanes = _lanes(entries, blocks.shape[0], blocks.n_colors)
        self._run = self.backend.kernels(
            KERNELS,
            OFFSET=blocks.lower.indptr.dtype,
            VALUE=blocks.dtype,
            STORED=blocks.lower.values.dtype,
            LANES=self.lanes,
        )
        # What _transposed needs to build the same sweeps for Aᵀ.
        self._dtype, self._device = dtype, device

    @property
    def nbytes(self) -> int:
        """Memory of everything that an application reads, in bytes."""
        return super().nbytes + self._dinv.nbytes

    def update(self, A: Any) -> None:
        """Take new values from a matrix with the same pattern: no new coloring, no new storage.

        Parameters
        ----------
        A : sparse matrix, as in the constructor

        Raises
        ------
        TypeError, ValueError
            As the constructor; also if the pattern differs (names a row), in which case nothing changes.
        """
        if not self.captures:
            A = self.backend.sparse.csr_matrix(csr_system(A)[0])
        self.blocks.update(A)
        self._invert_diagonal()

    def enqueue(self, r: Any, z: Any) -> None:
        """See `Preconditioner.enqueue`. The first sweep starts from zero, so it reads each triangle once at most."""
        if self.sweep == "symmetric":
            self._substitute("lower", r, z, self.omega * (2 - self.omega), finish=False)
            self._back_substitute(z)
        else:
            self._substitute("lower" if self.sweep == "forward" else "upper", r, z, self.omega, finish=True)
        for _ in range(self.sweeps - 1):
            if self.sweep != "backward":
                self._relax(r, z, reverse=False)
            if self.sweep != "forward":
                self._relax(r, z, reverse=True)

    def _substitute(self, name: str, r: Any, z: Any, scale: float, finish: bool) -> None:
        """y = inv(D + w T) (scale r) for a strict triangle T; to z as well if this finishes a row.

        The last color of a lower triangle is always finished: back substitution adds nothing to it.
        """
        triangle = self.blocks.lower if name == "lower" else self.blocks.upper
        blocks, last = self.blocks, self.n_colors - 1
        for c in range(self.n_colors) if name == "lower" else reversed(range(self.n_colors)):
            self._run.substitute(
                *self.blocks.rows_of(c), triangle.indptr, triangle.indices, triangle.values, self._dinv, blocks.perm, r,
                self.omega, scale, self._y, int(finish or c == last), z,
            )  # fmt: skip

    def _back_substitute(self, z: Any) -> None:
        """z = inv(D + w U) D y, color by color from the last but one."""
        blocks, upper = self.blocks, self.blocks.upper
        for c in reversed(range(self.n_colors - 1)):
            self._run.back_substitute(
                *self.blocks.rows_of(c), upper.indptr, upper.indices, upper.values, self._dinv, blocks.perm, self.omega,
                self._y, z,
            )  # fmt: skip

    def _relax(self, r: Any, z: Any, reverse: bool) -> None:
        """One SOR sweep on y as it stands."""
        blocks, lower, upper = self.blocks, self.blocks.lower, self.blocks.upper
        for c in reversed(range(self.n_colors)) if reverse else range(self.n_colors):
            self._run.relax(
                *blocks.rows_of(c), lower.indptr, lower.indices, lower.values, upper.indptr, upper.indices,
                upper.values, self._dinv, blocks.perm, r, self.omega, self._y, z,
            )  # fmt: skip

    def _invert_diagonal(self) -> None:
        blocks, xp = self.blocks, self.backend.xp
        zero = blocks.diagonal == 0
        if bool(zero.any()):
            row = int(blocks.perm[zero].min())
            raise ValueError(f"A has a zero or missing diagonal entry in row {row}; Gauss-Seidel divides by it")
        xp.divide(1, blocks.diagonal, out=self._dinv)

    def _transposed(self) -> MulticolorGS:
        """The same sweeps for Aᵀ: its lower triangle is the transpose of U."""
        A = self.blocks.permuted().T.tocsr()
        inverse = self.blocks.inverse
        A = A[inverse][:, inverse]
        if not self.captures:
            A = A.get()
        turned = {"symmetric": "symmetric", "forward": "backward", "backward": "forward"}
        colors = self.coloring.colors if self.captures else self.backend.to_host(self.coloring.colors)
        return MulticolorGS(
            A, colors, sweep=turned[self.sweep], omega=self.omega, sweeps=self.sweeps, dtype=self._dtype,
            device=self._device,
        )  # fmt: skip


class MulticolorSGS(MulticolorGS):
    """Multicolor symmetric Gauss-Seidel (SSOR for omega != 1): ``inv(M) = w (2 - w) inv(D + w U) D inv(D + w L)``.

    The triangles L and U are those of A in the order of the colors. For symmetric positive definite A, M is symmetric
    positive definite too, so that it fits CG.

    Parameters
    ----------
    A : sparse matrix or array of SciPy or CuPy, shape (n, n)
        float32 or float64, no zero on the diagonal. Not changed, and not needed afterwards.
    coloring, omega, sweeps, dtype, device
        As in `MulticolorGS`.

    Raises
    ------
    TypeError, ValueError
        As `MulticolorGS`.

    Examples
    --------
    >>> import numpy as np, scipy.sparse
    >>> from mcprecond import MulticolorSGS, pcg
    >>> A = scipy.sparse.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(100, 100), format="csr")
    >>> x, info = pcg(A, np.ones(100), M=MulticolorSGS(A, coloring="eb"))
    >>> info
    0
    """

    def __init__(
        self,
        A: Any,
        coloring: Any = "eb",
        *,
        omega: float = 1.0,
        sweeps: int = 1,
        dtype: Any = None,
        device: str | None = None,
    ) -> None:
        super().__init__(A, coloring, omega=omega, sweeps=sweeps, dtype=dtype, device=device)


def _lanes(entries: int, rows: int, n_colors: int) -> int:
    """How many threads of a GPU share a row of a triangle.

    A quarter of its entries, so that neighboring threads read neighboring entries; more where a color is too small to
    fill the device otherwise.
    """
    per_row = entries / max(2 * rows, 1)
    per_color = rows / max(n_colors, 1)
    lanes = 1
    while lanes < MOST_LANES and (lanes < per_row / 4 or (2 * lanes <= per_row and lanes * per_color < 2**17)):
        lanes *= 2
    return lanes


@KERNELS.twin
def substitute(rows, first, indptr, indices, values, dinv, perm, r, omega, scale, y, finish, z):
    """y_i = (scale r_i - w sum_j T_ij y_j) / d_i for the rows of one color."""
    for row in prange(rows):
        i = first + row
        total = y.dtype.type(0)
        for k in range(indptr[i], indptr[i + 1]):
            total += values[k] * y[indices[k]]
        value = (scale * r[perm[i]] - omega * total) * dinv[i]
        y[i] = value
        if finish:
            z[perm[i]] = value


@KERNELS.twin
def back_substitute(rows, first, indptr, indices, values, dinv, perm, omega, y, z):
    """z_i = y_i - w / d_i sum_j U_ij z_j for the rows of one color; y becomes z in color order."""
    for row in prange(rows):
        i = first + row
        total = y.dtype.type(0)
        for k in range(indptr[i], indptr[i + 1]):
            total += values[k] * y[indices[k]]
        y[i] -= omega * dinv[i] * total
        z[perm[i]] = y[i]


@KERNELS.twin
def relax(
    rows, first, lower_indptr, lower_indices, lower, upper_indptr, upper_indices, upper, dinv, perm, r, omega, y, z
):
    """y_i = (1 - w) y_i + w (r_i - sum_j (L + U)_ij y_j) / d_i for the rows of one color."""
    for row in prange(rows):
        i = first + row
        total = y.dtype.type(0)
        for k in range(lower_indptr[i], lower_indptr[i + 1]):
            total += lower[k] * y[lower_indices[k]]
        for k in range(upper_indptr[i], upper_indptr[i + 1]):
            total += upper[k] * y[upper_indices[k]]
        y[i] = (1 - omega) * y[i] + omega * (r[perm[i]] - total) * dinv[i]
        z[perm[i]] = y[i]
