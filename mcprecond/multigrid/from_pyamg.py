"""Hierarchies that PyAMG built, with the smoothers of this package, on the CPU or the GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
import scipy.sparse

from mcprecond.backends import Backend, backend_of, get_backend
from mcprecond.backends.arguments import integer, one_of, stored_dtype
from mcprecond.linalg.dense import Dense
from mcprecond.linalg.hermitian import is_hermitian
from mcprecond.matrix import AdmittedMatrix, refuse_not_finite_entry, transpose
from mcprecond.multigrid.hierarchy import CYCLES, MOST_DENSE, Level, Multigrid, naming_level
from mcprecond.multigrid.named_smoothers import check_smoother, new_smoother
from mcprecond.multigrid.units import Narrowing
from mcprecond.preconditioners.gauss_seidel import LARGEST_BLOCK
from mcprecond.preconditioners.setup import admit
from mcprecond.typing import ColoringMethod, Cycle, Device, SmootherName, StoredDType

ADVICE = "leave out dtype, or scale rows and columns of A to a diagonal of about 1"


class PyAMGHierarchy(Multigrid):
    """The levels of a PyAMG solver as a preconditioner: see `from_pyamg`, which makes one."""

    def __init__(self, A: Any, levels: list[Level], coarse: Dense | None, **options: Any) -> None:
        self.presweeps, self.postsweeps, self.cycle = (options[name] for name in ("presweeps", "postsweeps", "cycle"))
        backend = backend_of(A)
        super().__init__(levels, coarse, backend, backend)
        self.symmetric = self.symmetric and options["symmetric"]

    def _adjoint(self) -> Any:
        if not self.symmetric:  # then R need not be the adjoint of P
            raise TypeError("M is not symmetric, and its adjoint is not available; let PyAMG build levels for A.T")
        return super()._adjoint()

    def update(self, A: Any) -> NoReturn:
        """There is no way to do that here.

        Raises
        ------
        TypeError
            Always: let PyAMG build a hierarchy for the new values, and convert that.
        """
        raise TypeError("a hierarchy of PyAMG cannot take new values; let PyAMG build another one and convert that")


def from_pyamg(
    ml: Any,
    *,
    smoother: SmootherName | Callable[[Any], Any] = "gauss_seidel",
    coloring: ColoringMethod = "auto",
    presweeps: int = 1,
    postsweeps: int = 1,
    cycle: Cycle = "V",
    dtype: StoredDType | None = None,
    device: Device = "cpu",
) -> PyAMGHierarchy:
    """Return the levels of a PyAMG solver as a preconditioner with smoothers of this package.

    The matrices, prolongators and restrictions are PyAMG's, by smoothed aggregation, Ruge and Stuben's method, root
    nodes or pairs; its smoothers and its coarse solver are not used. The coarsest level is solved by its inverse, or by
    a pseudo-inverse if it is nearly singular.

    Parameters
    ----------
    ml : pyamg.MultilevelSolver
    dtype : {float32, float64}, or {complex64, complex128} for complex matrices, optional
        In which cycles compute on all levels but a coarsest one that is solved by a dense matrix; that of the matrices
        by default.
    smoother, presweeps, postsweeps, cycle
        As in `SmoothedAggregation`. On levels whose matrix is in BSR format, "gauss_seidel" and "sgs" sweep over its
        blocks.
    coloring : str
        A method of `color`, for all levels.
    device : {"cpu", "gpu"}
        Where the levels are stored. With "gpu" the result takes CuPy arrays.

    Returns
    -------
    PyAMGHierarchy
        It has the attributes and methods of `SmoothedAggregation`, but no `update`.

    Raises
    ------
    TypeError, ValueError
        If ml has no levels with A, P and R, a level has a zero on the diagonal (names the row) or an entry that dtype
        has no room for, its coarsest level has more than 2000 unknowns and no smoother fits it, or another argument is
        out of range.

    Examples
    --------
    >>> import numpy as np, pyamg
    >>> from mcprecond import multigrid, pcg
    >>> A = pyamg.gallery.poisson((60, 60), format="csr")
    >>> M = multigrid.from_pyamg(pyamg.ruge_stuben_solver(A))
    >>> x, info = pcg(A, np.ones(3600), M=M)
    >>> info
    0
    """
    check_smoother(smoother)
    one_of(cycle, "cycle", CYCLES)
    presweeps, postsweeps = integer(presweeps, "presweeps", 0), integer(postsweeps, "postsweeps", 0)
    if presweeps + postsweeps == 0:
        raise ValueError("presweeps and postsweeps are both 0; a cycle has to smooth")
    theirs = getattr(ml, "levels", None)
    if not theirs or not all(hasattr(level, "A") for level in theirs):
        raise TypeError(f"ml must be a solver of PyAMG, with levels, got {type(ml).__name__}")
    backend = get_backend(device)
    stored = stored_dtype(dtype, theirs[0].A.dtype)
    levels: list[Level] = []
    coarse, hermitian, narrowing = None, True, Narrowing(backend, ADVICE)
    for number, level in enumerate(theirs):
        matrix = place_level(level.A, f"A of level {number}", backend)
        hermitian = is_hermitian(matrix) if number == 0 else hermitian
        levels.append(ours := Level(matrix.csr, stored, stored))
        if number:
            finer, n, fine = theirs[number - 1], matrix.shape[0], levels[-2].A.shape[0]
            P = place_transfer(finer, "P", number - 1, (fine, n), matrix.dtype, backend)
            R = place_transfer(finer, "R", number - 1, (n, fine), matrix.dtype, backend)
        if number == len(theirs) - 1 and matrix.shape[0] <= MOST_DENSE:
            ours.dtype = matrix.dtype
            coarse = Dense(matrix.csr, backend, definite=False)
        else:
            matrix = narrowing.narrow(matrix, stored, number)
            with naming_level(number):
                ours.smoother = new_smoother(smoother, matrix, coloring, block_size_of(level.A), None, hermitian)
        if number:
            levels[-2].connect(ours, P, R, (longest_row(P), longest_row(R)), backend)
    narrowing.refuse_lost()
    return PyAMGHierarchy(
        levels[0].A,
        levels,
        coarse,
        presweeps=presweeps,
        postsweeps=postsweeps,
        cycle=cycle,
        symmetric=hermitian and restricts_by_adjoints(levels, backend),
    )


def block_size_of(A: Any) -> int:
    """The size of the square blocks of a BSR matrix; 1 for others, and where blocks are too large."""
    rows, columns = A.blocksize if A.format == "bsr" else (1, 1)
    return int(rows) if rows == columns <= LARGEST_BLOCK else 1


def place_level(A: Any, name: str, backend: Backend) -> AdmittedMatrix:
    """A level's matrix, admitted, on a device."""
    return admit(A, backend.name, name=name, finite=True)[0].canonical()


def place_transfer(
    level: Any, attribute: str, number: int, shape: tuple[int, int], dtype: Any, backend: Backend
) -> Any:
    """A level's prolongator or restriction as a CSR matrix with sorted rows, on a device.

    Raises
    ------
    TypeError, ValueError
        If it is no sparse matrix of this shape with finite numbers that the dtype has room for; names it.
    """
    name = f"{attribute} of level {number}"
    C: Any = getattr(level, attribute, None)
    if not scipy.sparse.issparse(C):
        raise TypeError(f"{name} must be a sparse matrix of SciPy, got {type(C).__name__}")
    if C.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, as the matrices of the levels, got {C.shape}")
    if C.dtype.kind == "c" != np.dtype(dtype).kind or C.dtype.kind not in "fciub":
        raise TypeError(f"{name} holds {C.dtype} and A {dtype}; build both from one matrix")
    try:
        csr = C.tocsr().astype(dtype)
        csr.check_format(full_check=True)
    except ValueError as error:
        raise ValueError(f"{name} has broken row offsets or column indices: {error}") from error
    csr.sort_indices()
    refuse_not_finite_entry(csr, get_backend("cpu"), name)
    return backend.sparse.csr_matrix(csr)


def longest_row(C: Any) -> int:
    """The length of the longest row of a CSR matrix."""
    return int((C.indptr[1:] - C.indptr[:-1]).max()) if C.shape[0] else 0


def restricts_by_adjoints(levels: list[Level], backend: Backend) -> bool:
    """Whether each restriction is the adjoint of its prolongator, up to rounding."""
    for level in levels[:-1]:
        difference = abs(level.R - transpose(level.P.conj(), backend))
        if difference.nnz and float(difference.max()) > 1e-6 * float(abs(level.P).max()):
            return False
    return True
