"""Solve a system that is distributed over ranks, by methods that fit it: ``mcprecond.interop.petsc.solve``."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse

from mcprecond.backends import Backend, backend_of, get_backend, gpu_problem
from mcprecond.backends.arguments import integer, one_of, tolerance
from mcprecond.backends.inputs import refuse_not_finite, shape_vector
from mcprecond.interop import petsc_memory
from mcprecond.interop.petsc_bicgstab import BiCGStabAcross
from mcprecond.interop.petsc_cg import CGAcross
from mcprecond.interop.petsc_halo import Ranks
from mcprecond.interop.petsc_hierarchy import Hierarchy
from mcprecond.interop.petsc_matrix import Rows
from mcprecond.interop.petsc_points import why_points_across
from mcprecond.linalg.operator import operator_for
from mcprecond.linalg.powers import power_times, times_power
from mcprecond.matrix import admit_matrix
from mcprecond.preconditioners.gauss_seidel import LARGEST_BLOCK
from mcprecond.preconditioners.setup import admit
from mcprecond.solvers.automatic import times_for, weakest_for
from mcprecond.solvers.named import NAMES, build
from mcprecond.solvers.result import SolveResult, Stage
from mcprecond.tuning.features import with_features
from mcprecond.tuning.forecast import digits_of
from mcprecond.tuning.symmetric import forecast_cg
from mcprecond.typing import Device


def solve(
    A: Any,
    b: Any,
    comm: Any = None,
    *,
    x0: Any = None,
    rtol: float = 1e-8,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: str = "auto",
    B: Any = None,
    block_size: int = 1,
    device: Device | None = None,
) -> SolveResult[Any]:
    """Solve A x = b for a square real A whose rows are distributed over the ranks of MPI. All ranks call it.

    If A is symmetric up to rounding with a positive diagonal, CG solves: on each rank an iteration is one captured
    graph where every rank has a GPU of its own, and NCCL is there. Otherwise PETSc's BiCGStab does.

    Parameters
    ----------
    A : PETSc.Mat, or sparse matrix of SciPy or CuPy, shape (rows of this rank, n)
        An assembled AIJ, BAIJ or SBAIJ matrix, or the rows of this rank. These follow those of the rank before, and
        their columns have the numbers of the whole matrix. Not changed.
    b : array, shape (rows of this rank,)
        This rank's part of the right-hand side. Not changed.
    comm : mpi4py.MPI.Comm, optional
        The ranks, if A is no PETSc.Mat; by default all of them.
    x0 : array of the shape of b, optional
        This rank's part of the initial guess; zero by default.
    rtol, atol : float
        Converged when ``||b - A x|| <= max(rtol ||b||, atol)``, tested on the true residual.
    maxiter : int, optional
        10 n by default.
    M : {"auto", "jacobi", "sgs", "dilu", "ilu0", "multigrid"}
        The preconditioner. "multigrid" is one hierarchy across all ranks, for a symmetric A, by aggregates or by
        points, whichever fits, as on one device. The others but "jacobi" are of the rows of each rank, and leave out
        couplings to other ranks. "auto" takes the one that is predicted to take the least time; it is "ilu0" if A is
        not symmetric. It does not change during a solve.
    B : array, shape (rows of this rank,) or (rows of this rank, k), optional
        This rank's rows of near-null-space candidates, for multigrid.
    block_size : int
        Unknowns of a node; it divides the numbers of rows of all ranks.
    device : {"cpu", "gpu"}, optional
        The device that computes; by default a GPU if there is one. Rank r takes number r modulo their count.

    Returns
    -------
    SolveResult
        Its x is this rank's part of the solution, where b is; the other attributes are the same on all ranks.

    Raises
    ------
    ImportError
        If petsc4py is missing.
    TypeError, ValueError
        On all ranks: if A is not square or not finite, b, x0 or B do not fit it or are not finite, or an argument has a
        wrong type or value (says which). Or M is "multigrid" and A is not symmetric, or found not to be positive
        definite; or it is another name and A has no positive diagonal (names the row).

    Examples
    --------
    With ``mpiexec -n 4``, each rank makes its rows of A; here there is one rank:

    >>> import numpy as np
    >>> from mcprecond import problems
    >>> from mcprecond.interop.petsc import solve      # doctest: +SKIP
    >>> A = problems.laplacian((50, 50, 50))           # doctest: +SKIP
    >>> result = solve(A, np.ones(125_000))            # doctest: +SKIP
    >>> result.converged, result.method                # doctest: +SKIP
    (True, 'pcg')
    """
    petsc_memory.refuse_without_petsc4py()
    from petsc4py import PETSc

    started = time.perf_counter()
    given = isinstance(A, PETSc.Mat)
    comm = A.getComm().tompi4py() if given else comm or PETSc.COMM_WORLD.tompi4py()

    def check() -> tuple[Any, ...]:
        own = None if given else admit_rows(A)
        most = None if maxiter is None else integer(maxiter, "maxiter", 0)
        limits = tolerance(rtol, "rtol"), tolerance(atol, "atol"), most
        names = one_of(device or ("cpu" if gpu_problem() else "gpu"), "device", ("cpu", "gpu")), one_of(M, "M", NAMES)
        return own, limits, *names, integer(block_size, "block_size", 1, LARGEST_BLOCK)

    own, *chosen = agree(comm, check)
    if others := [other for other in comm.allgather(chosen) if other != chosen]:
        raise ValueError(f"all ranks must pass the same arguments; one has {chosen}, and another one {others[0]}")
    limits, place, name, nodes = chosen
    with petsc_memory.on_device(place):
        backend, origin = get_backend(place), backend_of(b)
        mat = petsc_memory.as_aij(A) if own is None else matrix_of_rows(own, comm, on_gpu=place == "gpu")
        try:
            system = System(mat, comm, backend)
            of_b, guess, candidates = agree(comm, lambda: system.admit_vectors(b, x0, B))
            result = system.solve(of_b, guess, candidates, limits, name, nodes, started)
        finally:
            if mat is not A:
                mat.destroy()
    return result if origin is backend else replace(result, x=origin.xp.asarray(backend.to_host(result.x)))


def agree(comm: Any, check: Callable[[], Any]) -> Any:
    """Return what ``check()`` returns. If it raises an error on some rank, all ranks raise the first of the errors.
    Collective.
    """
    found, error = None, None
    try:
        found = check()
    except (TypeError, ValueError) as refusal:
        error = refusal
    for raised in comm.allgather(error):
        if raised is not None:
            raise raised
    return found


def admit_rows(A: Any) -> Any:
    """This rank's rows of a matrix, checked, as a CSR matrix of SciPy.

    Raises
    ------
    TypeError, ValueError
        If A is no sparse matrix of real numbers with as many columns as rows or more; as `admit_matrix`.
    """
    origin = backend_of(A)
    if not origin.sparse.issparse(A):
        found = f"{type(A).__module__}.{type(A).__name__}"
        raise TypeError(f"A must be a matrix of PETSc, or a sparse one of SciPy or CuPy with rows of it, got {found}")
    rows, columns = A.shape
    if rows > columns:
        raise ValueError(f"A must have all columns of the rows of this rank, got shape {A.shape}")
    csr, xp = A.tocsr(), origin.xp
    # With rows of zeros behind it is square.
    indptr = xp.concatenate((csr.indptr, xp.full(columns - rows, csr.indptr[-1])))
    square = origin.sparse.csr_matrix((csr.data, csr.indices, indptr), shape=(columns, columns))
    admitted = admit_matrix(square, floats=True, finite=True).canonical()
    refuse_complex(admitted, "A")
    data, indices, offsets = map(origin.to_host, (admitted.data, admitted.indices, admitted.indptr))
    return scipy.sparse.csr_matrix((data, indices, offsets[: rows + 1]), shape=(rows, columns))


def matrix_of_rows(csr: Any, comm: Any, *, on_gpu: bool) -> Any:
    """A matrix of PETSc from this rank's rows. Collective.

    Raises
    ------
    ValueError
        On all ranks, if the columns are not as many as the rows of all ranks.
    """
    from petsc4py import PETSc

    n, index = int(comm.allreduce(csr.shape[0])), petsc_memory.index_type()
    if wrong := [columns for columns in comm.allgather(csr.shape[1]) if columns != n]:
        raise ValueError(f"A must have {n} columns, as many as all ranks have rows; a rank has {wrong[0]}")
    rows = csr.indptr.astype(index), csr.indices.astype(index), csr.data.astype(petsc_memory.scalar_type())
    mat = PETSc.Mat().createAIJ(((csr.shape[0], n), (csr.shape[0], n)), csr=rows, comm=comm)
    mat.assemble()
    return mat.convert("aijcusparse") if on_gpu and PETSc.Sys.hasExternalPackage("cuda") else mat


class System:
    """A distributed matrix, and its solves.

    Parameters
    ----------
    mat : PETSc.Mat
        Of type AIJ.
    comm : mpi4py.MPI.Comm
    backend : Backend

    Raises
    ------
    TypeError, ValueError
        On all ranks: if PETSc has complex numbers, or A is not square or not finite.
    """

    def __init__(self, mat: Any, comm: Any, backend: Backend) -> None:
        if petsc_memory.scalar_type().kind == "c":
            raise TypeError("PETSc has complex numbers; solve needs real ones")
        rows, columns = mat.getSize()
        if rows != columns:
            raise ValueError(f"A must be square, got {rows} rows and {columns} columns")
        self.mat, self.comm, self.backend, self.unknowns = mat, comm, backend, rows
        self.rows = Rows.of(mat, Ranks(comm, backend))
        if not self.rows.is_finite:
            raise ValueError("A holds NaN or infinity; every value must be finite")

    def admit_vectors(self, b: Any, x0: Any, B: Any) -> tuple[Any, Any, Any]:
        """This rank's parts of b, of the guess and of candidates, where the system is solved.

        Raises
        ------
        TypeError, ValueError
            If one does not fit the rows of this rank, or is not finite.
        """
        xp, n, dtype = self.backend.xp, self.rows.n, self.rows.dtype
        found: list[Any] = []
        for v, name in ((b, "b"), (x0, "x0")):
            if v is not None:
                own = shape_vector(v, n, backend_of(v), name)
                refuse_complex(own, name)
                refuse_not_finite(own, backend_of(v), name)
                v = xp.asarray(own, dtype=dtype)
            found.append(v)
        if B is not None:
            B = backend_of(B).to_host(B)
            refuse_complex(B, "B")
            if B.ndim not in (1, 2) or B.shape[0] != n or (B.ndim == 2 and B.shape[1] > LARGEST_BLOCK):
                most = f"and {LARGEST_BLOCK} columns at most"
                raise ValueError(
                    f"B must have a row for each of the {n} rows of this rank, {most}; got shape {B.shape}"
                )
            B = B.astype(dtype).reshape(n, B.shape[1] if B.ndim == 2 else 1)
        return found[0], found[1], B

    def solve(
        self, b: Any, x0: Any, B: Any, limits: Any, name: str, block_size: int, started: float
    ) -> SolveResult[Any]:
        """Solve by the method that fits. Collective."""
        columns = self.comm.allgather(None if B is None else B.shape[1])
        if len(set(columns)) > 1:
            raise ValueError(f"B must have as many columns on all ranks, got {columns}, where None is no B")
        rtol, atol, maxiter = limits
        ranks, xp = self.rows.ranks, self.backend.xp
        is_positive = not ranks.sum(int((~(self.rows.diagonal > 0)).sum()))
        solver: CGAcross | BiCGStabAcross
        if is_positive and self.rows.is_symmetric:
            name, M, preconditioner = self._precondition(name, B, block_size, digits_of(rtol))
            solver, method = CGAcross(self.rows.operator, preconditioner), "pcg"
        elif name == "multigrid" or B is not None or block_size > 1:
            raise ValueError(
                "A is not symmetric with a positive diagonal, which multigrid, B and block_size need across ranks; "
                "leave them out"
            )
        else:
            name, M = "ilu0" if name == "auto" else name, None
            solver, method = BiCGStabAcross(self.mat, name, self.backend.name), "bicgstab"
        self.backend.synchronize()
        ready = time.perf_counter()
        # In units in which squares neither overflow nor underflow.
        largest = max((float(abs(v).max()) for v in (b, x0) if v is not None and len(v)), default=0.0)
        exponent = math.frexp(-ranks.least(-largest))[1]
        b, x0 = (None if v is None else times_power(v, -exponent, xp) for v in (b, x0))
        most = 10 * self.unknowns if maxiter is None else maxiter
        x, reason, residuals, norm = solver.solve(b, x0, rtol, power_times(atol, -exponent), most)
        x = times_power(xp.asarray(x), exponent, xp)
        seconds = ready - started, time.perf_counter() - ready
        count, norm_of_b = len(residuals) - 1, power_times(solver.norm_of_b, exponent)
        history = np.array([power_times(each, exponent) for each in residuals])
        of_M = {"stages": (Stage(name, count),), "M": M, "method": method}
        return SolveResult(
            x, reason, count, history, power_times(norm, exponent), *seconds, **of_M, norm_of_b=norm_of_b
        )

    def _precondition(self, name: str, B: Any, block_size: int, digits: float) -> tuple[str, Any, Any]:
        """The name of the preconditioner, what it is, and what applies it to this rank's part of a vector."""
        nodes: dict[str, Any] = {} if block_size == 1 else {"block_size": block_size}
        if name == "auto":
            name = self._fastest(digits, has_candidates=B is not None)
        if name == "multigrid":
            by_points = B is None and not nodes and why_points_across(self.rows) is not None
            hierarchy = Hierarchy(self.rows, B, by_points=by_points, **nodes)
            return name, hierarchy, hierarchy.cycle
        # Sweeps over damped rows take fewer iterations on several ranks; DILU and ILU(0) take more.
        own, _ = admit(self.rows.damped() if name == "sgs" else self.rows.own)
        M = agree(self.comm, lambda: build(name, own, nodes))
        return name, M, OnRank(M, self.backend, own.dtype)

    def _fastest(self, digits: float, *, has_candidates: bool) -> str:
        """The preconditioner that is predicted to be the fastest, by the rows of the rank that has most of them and by
        the number of all unknowns. Collective.
        """
        judge, best = int(np.argmax(self.comm.allgather(self.rows.n))), ""
        if self.comm.rank == judge:
            found = with_features(admit(self.rows.own)[0])
            features = found.features._replace(n=self.unknowns)
            common = times_for(found), features, weakest_for(found), self.backend.name
            best = forecast_cg(*common, has_candidates=has_candidates).fastest(digits) or "none"
        best = self.comm.bcast(best.lower(), judge)
        return "jacobi" if best == "none" else best


def refuse_complex(v: Any, name: str) -> None:
    """Raise TypeError for complex numbers."""
    if v.dtype.kind == "c":
        raise TypeError(f"{name} has complex numbers; solve across ranks needs real ones")


class OnRank:
    """A preconditioner of the rows of this rank, which ignores couplings to other ranks."""

    def __init__(self, M: Any, backend: Backend, dtype: Any) -> None:
        self._M = operator_for(M, dtype, backend)
        self._state, self.captures = self._M.new_state(), self._M.captures

    def enqueue(self, r: Any, z: Any) -> None:
        """z = M r, of this rank's parts."""
        self._M.enqueue(self._state, r, z)
