"""PETSc's solvers with the preconditioners of this package: Python types (PCPYTHON) that work from options alone.

    mpiexec -n 4 python app.py -ksp_type cg -pc_type bjacobi -sub_ksp_type preonly \\
        -sub_pc_type python -sub_pc_python_type mcprecond.interop.petsc.MulticolorSGS -mcprecond_coloring auto

PETSc distributes matrices and vectors, exchanges halos and iterates. Each rank colors and sweeps its own rows: a
matrix that is distributed counts with the block on the diagonal that a rank owns, as in PETSc's ``sor`` and
``bjacobi``.

Each keyword of a constructor is an option: ``-mcprecond_omega 1.2``. A prefix says for which solver:
``-sub_mcprecond_omega`` holds for the blocks of ``bjacobi`` and ``asm``, ``-mg_levels_mcprecond_omega`` for the levels
of ``gamg``, and goes before the option without a prefix. ``block_size`` is that of the matrix where it is not given, if
that is 9 at most. The sweeps run on a GPU if CuPy finds one (rank modulo the number of devices), else on the CPU;
``-mcprecond_device`` says otherwise.

The module is imported without petsc4py; its types need it.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np

from mcprecond import multigrid, preconditioners
from mcprecond.backends import backend_of, get_backend, gpu_problem
from mcprecond.backends.arguments import one_of
from mcprecond.interop import petsc_memory
from mcprecond.interop.petsc_halo import Ranks
from mcprecond.interop.petsc_hierarchy import Hierarchy
from mcprecond.interop.petsc_matrix import Rows
from mcprecond.interop.petsc_memory import as_aij, on_device, own_device, refuse_without_petsc4py
from mcprecond.interop.petsc_solve import solve
from mcprecond.matrix import PatternChangedError
from mcprecond.preconditioners import Preconditioner
from mcprecond.preconditioners.gauss_seidel import LARGEST_BLOCK

__all__ = [
    "ILU0",
    "DistributedClassicalAMG",
    "DistributedSmoothedAggregation",
    "MulticolorDILU",
    "MulticolorGS",
    "MulticolorSGS",
    "SmoothedAggregation",
    "solve",
]


class Context:
    """What PETSc calls for a PC of type python.

    Parameters
    ----------
    **arguments
        Of the constructor of `operator`, but A. Options of PETSc's database go before them.

    Attributes
    ----------
    M : Preconditioner or None
        Of this rank's block, after `setUp`.
    builds, updates : int
        How often `setUp` has built M, and how often it has given new values to it.

    Raises
    ------
    ImportError
        If petsc4py is missing.
    TypeError
        For an argument that the constructor does not have.
    """

    operator: type[Preconditioner]

    def __init__(self, **arguments: Any) -> None:
        refuse_without_petsc4py()
        known = self._parameters()
        for name in arguments:
            if name not in known:
                raise TypeError(f"{type(self).__name__} has no argument {name!r}, only {', '.join(known)}")
        self.arguments = arguments
        self.M: Any = None
        self._built_with: dict[str, Any] = {}
        self._transposed: Any = None
        #: That of the matrix.
        self._backend: Any = None
        #: What an application to vectors in place writes, and its launches by the addresses of these.
        self._state: Any = None
        self._captured: dict[tuple[int, ...], Callable[..., None]] = {}
        self.builds = self.updates = 0

    @classmethod
    def _parameters(cls) -> dict[str, inspect.Parameter]:
        """The keywords of the operator's constructor that options may set."""
        parameters = inspect.signature(cls.operator.__init__).parameters
        return {name: each for name, each in parameters.items() if name not in ("self", "A", "B", "strength")}

    def setFromOptions(self, pc: Any) -> None:
        """Read the options of this PC: with its prefix, or else without one."""
        from petsc4py import PETSc

        prefixes = dict.fromkeys([pc.getOptionsPrefix() or "", ""])
        for name, parameter in self._parameters().items():
            for prefix in prefixes:
                text = PETSc.Options(prefix).getString(f"mcprecond_{name}", "")
                if text:
                    value = parse_option(text, parameter.annotation, f"-{prefix}mcprecond_{name}")
                    self.arguments = self.arguments | {name: value}
                    break

    def setUp(self, pc: Any) -> None:
        """Build M, or give it new values where the matrix has the same pattern as before.

        Raises
        ------
        TypeError, ValueError
            As the constructor of `operator`, or if the matrix is not assembled; a note names the PC.
        """
        P = pc.getOperators()[1]
        arguments = self._complete(P)
        try:
            with on_device(arguments["device"]):
                self._take(local_block(P, arguments["device"]), arguments, self._candidates(P))
        except (TypeError, ValueError) as error:
            error.add_note(f"PC with prefix {pc.getOptionsPrefix() or ''!r}: {type(self).__name__}, {arguments}")
            raise

    def _take(self, A: Any, arguments: dict[str, Any], candidates: dict[str, Any]) -> None:
        """Update M, or build it if there is none, or none of this pattern with these arguments."""
        self._transposed, self._captured, self._backend = None, {}, backend_of(A)
        if self.M is not None and self.M.shape == A.shape and arguments == self._built_with:
            try:
                self.M.update(A)
                self.updates += 1
                return
            except PatternChangedError:
                pass
        self.M = self._state = None  # its memory goes before the next one needs some
        self.M = self.operator(A, **arguments, **candidates)
        self._built_with = arguments
        self.builds += 1

    def _candidates(self, P: Any) -> dict[str, Any]:
        """What else of a matrix the constructor takes."""
        return {}

    def _complete(self, P: Any) -> dict[str, Any]:
        """The arguments for a matrix: the block size is its own, and the device a GPU if there is one."""
        arguments: dict[str, Any] = {"device": "cpu" if gpu_problem() else "gpu"}
        if "block_size" in self._parameters() and P.getBlockSize() <= LARGEST_BLOCK:
            arguments["block_size"] = P.getBlockSize()
        return arguments | self.arguments

    def apply(self, pc: Any, x: Any, y: Any) -> None:
        """y = inv(M) x, each rank for itself; on a GPU in the memory of PETSc's vectors, if it is there."""
        backend = self.M.backend
        with own_device() if backend.name == "gpu" else nullcontext():
            if backend.name == "gpu" and petsc_memory.is_on_gpu(x) and petsc_memory.is_on_gpu(y):
                with petsc_memory.addresses_of((x, "r"), (y, "w")) as addresses, petsc_memory.stream():
                    (self._captured.get(addresses) or self._capture)(x, y, addresses)
                return
            with self.M.workspace() as own:
                own.r[:, 0] = backend.xp.asarray(x.array_r)
                own.apply(self.M)
                y.setArray(backend.to_host(own.z[:, 0]))

    def _capture(self, x: Any, y: Any, addresses: tuple[int, ...]) -> None:
        """Apply M to vectors at two addresses, and capture the launches: solvers use few vectors."""
        if len(self._captured) == petsc_memory.MOST_CAPTURED:
            self._captured.clear()
        self._state = self._state or self.M.new_state()
        run = functools.partial(self.M.enqueue, self._state, *map(petsc_memory.array_of, (x, y), addresses))
        run()  # which compiles what it needs
        repeated = self.M.backend.repeatable(run) if self.M.only_launches else run
        self._captured[addresses] = lambda *_: repeated()

    def applyTranspose(self, pc: Any, x: Any, y: Any) -> None:
        """y = inv(M)ᵀ x, each rank for itself. The transpose of M is built at the first call."""
        with on_device(self.M.backend.name):
            if self._transposed is None:
                self._transposed = self.M.T
            z = self._transposed @ self._backend.xp.asarray(x.array_r)
            y.setArray(self._backend.to_host(z))

    def view(self, pc: Any, viewer: Any) -> None:
        """Print the arguments, what M is over all ranks of the PC, and how often it was built and updated."""
        if viewer.getType() != "ascii":
            return
        viewer.pushASCIITab()
        if self.M is None:
            viewer.printfASCII("not set up\n")
        else:
            said = ", ".join(f"{name} {value}" for name, value in self._built_with.items())
            counts = f"built {self.builds} times, updated {self.updates} times"
            for line in (said, *self._summary(pc), counts):
                viewer.printfASCII(f"{line}\n")
        viewer.popASCIITab()

    def _summary(self, pc: Any) -> list[str]:
        """Lines on M, over all ranks: its colors and its memory."""
        least, most, total = over_ranks(pc.getComm(), self.M.n_colors or 0, self.M.nbytes)
        return [f"colors {least}{'' if least == most else f' to {most}'}, memory {total / 1e6:.3g} MB"]

    def destroy(self, pc: Any) -> None:
        """Let go of M."""
        self.M = self._transposed = self._state = None
        self._captured = {}


class MulticolorGS(Context):
    """PETSc's PC of type ``mcprecond.interop.petsc.MulticolorGS``; see `mcprecond.MulticolorGS`.

    Parameters
    ----------
    **arguments
        coloring, sweep, omega, sweeps, dtype, block_size, device; as options ``-mcprecond_coloring`` and so
        on.
    """

    operator = preconditioners.MulticolorGS


class MulticolorSGS(Context):
    """PETSc's PC of type ``mcprecond.interop.petsc.MulticolorSGS``; see `mcprecond.MulticolorSGS`.

    Parameters
    ----------
    **arguments
        coloring, omega, sweeps, dtype, block_size, device; as options ``-mcprecond_coloring`` and so on.
    """

    operator = preconditioners.MulticolorSGS


class MulticolorDILU(Context):
    """PETSc's PC of type ``mcprecond.interop.petsc.MulticolorDILU``; see `mcprecond.MulticolorDILU`.

    Parameters
    ----------
    **arguments
        coloring, pivot, dtype, device; as options ``-mcprecond_coloring`` and so on.
    """

    operator = preconditioners.MulticolorDILU


class ILU0(Context):
    """PETSc's PC of type ``mcprecond.interop.petsc.ILU0``; see `mcprecond.ILU0`.

    Parameters
    ----------
    **arguments
        ordering, coloring, pivot, dtype, device; as options ``-mcprecond_ordering`` and so on.
    """

    operator = preconditioners.ILU0


class SmoothedAggregation(Context):
    """PETSc's PC of type ``mcprecond.interop.petsc.SmoothedAggregation``; see `mcprecond.SmoothedAggregation`.

    The near null space of the matrix (``MatSetNearNullSpace``), such as rigid body modes, is its B; `setUp` reads it
    when it builds, not when it updates.

    Parameters
    ----------
    **arguments
        block_size, theta, smoother, coloring, presweeps, postsweeps, cycle, max_levels, max_coarse, dtype, device; as
        options ``-mcprecond_theta`` and so on.
    """

    operator = multigrid.SmoothedAggregation

    def _candidates(self, P: Any) -> dict[str, Any]:
        """This rank's part of the near null space, if P has one."""
        modes = P.getNearNullSpace()
        if not modes.handle:
            return {}
        columns = [mode.getArray(readonly=True) for mode in modes.getVecs()]
        if modes.hasConstant():
            columns.append(np.ones(P.getLocalSize()[0]))
        return {"B": np.column_stack(columns)}


class HierarchyAcrossRanks(Context):
    """What PETSc calls for a PC that is one hierarchy across all ranks.

    Prolongators are smoothed, or interpolate, across the ranks. Smoothers are polynomials, or sweeps over the rows of
    each rank. Small levels are on all ranks alike.

    Parameters
    ----------
    **arguments
        As for `operator`, but the cycle is V or W. Besides, max_whole: every rank stores all rows of levels with at
        most so many unknowns.

    Attributes
    ----------
    M : Hierarchy or None
    """

    #: Whether levels are made by points, in place of aggregates.
    by_points = False

    @classmethod
    def _parameters(cls) -> dict[str, inspect.Parameter]:
        """See `Context`."""
        max_whole = inspect.Parameter("max_whole", inspect.Parameter.KEYWORD_ONLY, annotation="int | None")
        return super()._parameters() | {"max_whole": max_whole}

    def setUp(self, pc: Any) -> None:
        """Build the levels, or give them new values where the matrix has the same pattern as before.

        Raises
        ------
        TypeError, ValueError
            As the constructor of `operator`, or if the matrix is not assembled; a note names the PC.
        """
        P, prefix = pc.getOperators()[1], pc.getOptionsPrefix() or ""
        arguments = self._complete(P)
        try:
            A = as_aij(P)
            with on_device(arguments["device"]):
                backend = get_backend(one_of(arguments["device"], "device", ("cpu", "gpu")))
                rows = Rows.of(A, Ranks(A.getComm().tompi4py(), backend))
                self._take_levels(rows, arguments, self._candidates(P))
        except (TypeError, ValueError) as error:
            error.add_note(f"PC with prefix {prefix!r}: {type(self).__name__}, {arguments}")
            raise
        if A is not P:
            A.destroy()

    def _take_levels(self, rows: Rows, arguments: dict[str, Any], candidates: dict[str, Any]) -> None:
        """Update M, or build it if there is none, or none of this pattern with these arguments."""
        if self.M is not None and arguments == self._built_with:
            try:
                self.M.update(rows)
                self.updates += 1
                return
            except PatternChangedError:
                pass
        self.M = None
        options = {name: arguments[name] for name in arguments if name != "device"}
        self.M = Hierarchy(rows, **candidates, by_points=self.by_points, **options)
        self._built_with = arguments
        self.builds += 1

    def apply(self, pc: Any, x: Any, y: Any) -> None:
        """y = inv(M) x, one cycle."""
        self.M.apply(x, y)

    def applyTranspose(self, pc: Any, x: Any, y: Any) -> None:
        """y = inv(M)ᵀ x, the same as `apply`.

        Raises
        ------
        TypeError
            If M is not symmetric.
        """
        if not self.M.symmetric:
            raise TypeError("M is not symmetric, and its transpose is not available; take presweeps = postsweeps")
        self.apply(pc, x, y)

    def _summary(self, pc: Any) -> list[str]:
        """Lines on the levels."""
        return str(self.M).splitlines()


class DistributedSmoothedAggregation(HierarchyAcrossRanks, SmoothedAggregation):
    """PETSc's PC of type ``mcprecond.interop.petsc.DistributedSmoothedAggregation``: each rank aggregates its own rows.

    Parameters
    ----------
    **arguments
        See `HierarchyAcrossRanks` and `SmoothedAggregation`.
    """


class DistributedClassicalAMG(HierarchyAcrossRanks):
    """PETSc's PC of type ``mcprecond.interop.petsc.DistributedClassicalAMG``: each rank has coarse points of its own,
    and interpolation crosses the ranks. It fits where coefficients jump; see `mcprecond.ClassicalAMG`.

    Parameters
    ----------
    **arguments
        theta, smoother, coloring, presweeps, postsweeps, cycle, max_levels, max_coarse, dtype, device and max_whole;
        see `HierarchyAcrossRanks`.
    """

    operator = multigrid.ClassicalAMG
    by_points = True


def parse_option(text: str, annotation: str, option: str) -> Any:
    """The value of an option, as the constructor's parameter is annotated: a number, or else a string.

    Raises
    ------
    ValueError
        If it is not a number where there has to be one; names the option.
    """
    kind = {"int": int, "float": float}.get(annotation.removesuffix(" | None"), str)
    try:
        return kind(text)
    except ValueError:
        wanted = "an integer" if kind is int else "a number"
        raise ValueError(f"option {option} must be {wanted}, got {text!r}") from None


def local_block(P: Any, device: str) -> Any:
    """The block on the diagonal that this rank owns, copied: on the GPU that it is on, if that is where it is wanted.

    Raises
    ------
    TypeError
        If PETSc cannot make an AIJ matrix of it.
    """
    from petsc4py import PETSc

    try:
        block = P.getDiagonalBlock() if P.getComm().getSize() > 1 else P
        own = block if block.getType().startswith("seqaij") else block.convert("aij", PETSc.Mat())
        on_gpu = device == "gpu" and petsc_memory.is_on_gpu(own)
        csr = petsc_memory.csr_of(petsc_memory.Block(own, own.handle), on_gpu=on_gpu)
    except PETSc.Error as error:
        raise TypeError(f"P must be an assembled AIJ, BAIJ or SBAIJ matrix, got type {P.getType()!r}") from error
    if own is not block:
        own.destroy()
    return csr


def over_ranks(comm: Any, colors: int, nbytes: int) -> tuple[int, int, int]:
    """The least and the most colors of a rank, and the bytes of all ranks. All of them have to call."""
    from petsc4py import PETSc

    found = PETSc.Vec().createMPI((1, None), comm=comm)
    found.setArray(np.array([colors], PETSc.ScalarType))
    least, most = (int(extreme[1]) for extreme in (found.min(), found.max()))
    found.setArray(np.array([nbytes], PETSc.ScalarType))
    total = int(found.sum().real)
    found.destroy()
    return least, most, total
