"""What all preconditioners share: they are LinearOperators of the library that their matrix comes from."""

from __future__ import annotations

import copy
import functools
import types
import weakref
from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Self, overload

import numpy as np
import numpy.typing as npt

from mcprecond.backends import Backend, backend_of, get_backend
from mcprecond.backends.inputs import promoted
from mcprecond.backends.memory import shown_bytes, writable
from mcprecond.backends.updates import UpdateLock
from mcprecond.coloring import Coloring
from mcprecond.matrix import AdmittedMatrix, admitted, csr_form, stored_dtype
from mcprecond.storage import ColorBlocks, NodeBlocks
from mcprecond.sweeps.plan import Sweeps
from mcprecond.tuning.least_time import Choice, chosen
from mcprecond.typing import DeviceArray, HostArray, Matrix

#: Eisenstat's form computes A t as T q + L t + (D - T) t, where T q is about T t, so that T t nearly cancels. Where T
#: is so many times as large as D, that loses four bits; a larger T loses more.
MOST_OF_DIAGONAL = 16


def columns_at_once(block_size: int) -> int:
    """How many right-hand sides one pass serves: registers hold no more, nor as many where nodes are large."""
    return 4 if block_size <= 2 else 2


@functools.cache
def _operator_class(cls: Any, origin: str) -> type:
    """The class `cls` as a LinearOperator of SciPy (origin "cpu") or CuPy (origin "gpu")."""
    base = get_backend(origin).linalg.LinearOperator
    members = {"__module__": cls.__module__, "__doc__": cls.__doc__, "_plain_class": cls}
    return type(cls.__name__, (cls, base), members)


def _empty_operator(cls: Any, origin: str) -> Any:
    """What a copy or a pickle of an operator begins with."""
    return object.__new__(_operator_class(cls, origin))


class Workspace:
    """What one application at a time writes: its state, and buffers for vectors that may not be captured.

    Parameters
    ----------
    M : Preconditioner
    columns : int
        How many right-hand sides there are.

    Attributes
    ----------
    state : Sweeps or another object
        What `M._apply` needs beside the vectors.
    """

    def __init__(self, M: Preconditioner, columns: int) -> None:
        self.state = M._new_state(columns)
        self._new = partial(M.backend.xp.empty, (M.shape[0], columns), M.dtype)
        self._run: Callable[[], None] | None = None

    @cached_property
    def r(self) -> Any:
        """What M is applied to."""
        return self._new()

    @cached_property
    def z(self) -> Any:
        """What comes out."""
        return self._new()

    def applied(self, M: Preconditioner) -> None:
        """z = inv(M) r, as a captured graph on a GPU."""
        if self._run is None:
            # Nothing may be allocated while kernels are captured; and a cycle of references would keep memory.
            M, state, r, z = weakref.proxy(M), self.state, self.r, self.z
            self._run = M.backend.repeatable(lambda: M._apply(state, r, z))
        self._run()


class Preconditioner:
    """M, with ``M @ r`` an approximation of inv(A) r.

    A subclass sets `blocks` by `_open` and implements `_apply`. Vectors come in and go out in the order of A. One
    object serves any number of threads and streams at once: each application borrows a workspace of its own. But
    `update` must not run while somebody applies M; several updates at once run one after the other. One pass over the
    factors serves up to four right-hand sides, or two where block_size is 3 or more.
    """

    #: Whether inv(M) is symmetric for symmetric A and Hermitian for Hermitian A, as CG needs it.
    symmetric: bool
    #: Whether ``M @ r`` is linear in r. If it is not, `pcg` makes its iteration flexible.
    linear = True
    #: What to do where M is not symmetric, as messages say it.
    remedy_for_asymmetry = "use another preconditioner"
    #: Why M is not c (T + L) inv(T) (T + U) with a diagonal T and the triangles L and U of A, or why its T is not good
    #: for Eisenstat's form; None if it is.
    eisenstat_incompatibility: str | None
    #: Whether an application is much longer than the other steps of an iteration of CG.
    has_many_kernels = False
    #: With rows of the upper triangle divided by pivots, but not those of blocks of nodes.
    blocks: ColorBlocks
    #: What ``coloring="auto"`` has chosen, and why; None for another coloring.
    choice: Choice | None = None
    #: Whether arrays may be read-only, as where joblib has mapped into memory what it sends.
    _may_be_mapped = False
    #: The class without that of a LinearOperator.
    _plain_class: type
    #: Of the vectors, as in every LinearOperator.
    shape: tuple[int, int]
    dtype: Any

    if TYPE_CHECKING:  # what the LinearOperator of a library gives it

        @property
        def T(self) -> Preconditioner:
            """The transpose."""

        @property
        def H(self) -> Preconditioner:
            """The adjoint."""

        @overload
        def __matmul__(self, r: HostArray) -> npt.NDArray[Any]: ...
        @overload
        def __matmul__(self, r: DeviceArray) -> Any: ...
        def __matmul__(self, r: Any) -> Any: ...
        @overload
        def matvec(self, x: HostArray) -> npt.NDArray[Any]: ...
        @overload
        def matvec(self, x: DeviceArray) -> Any: ...
        def matvec(self, x: Any) -> Any:
            """M x for one vector."""

        @overload
        def rmatvec(self, x: HostArray) -> npt.NDArray[Any]: ...
        @overload
        def rmatvec(self, x: DeviceArray) -> Any: ...
        def rmatvec(self, x: Any) -> Any:
            """The adjoint of M times one vector."""

        @overload
        def matmat(self, X: HostArray) -> npt.NDArray[Any]: ...
        @overload
        def matmat(self, X: DeviceArray) -> Any: ...
        def matmat(self, X: Any) -> Any:
            """M X for several vectors."""

    def __new__(cls, A: Matrix, *args: Any, **kwargs: Any) -> Self:
        """Make the instance a LinearOperator of the library that A belongs to."""
        if not hasattr(cls, "matvec"):  # not yet a LinearOperator
            cls = _operator_class(cls, backend_of(A).name)  # type: ignore[arg-type]
        return super().__new__(cls)

    def __reduce__(self) -> Any:
        """Pickle everything but the workspaces, whose buffers and captured graphs belong to a stream of this process.
        What else a LinearOperator keeps, such as the module of its arrays, is found again.
        """
        state = {
            name: value
            for name, value in self.__dict__.items()
            if name not in ("_free", "_may_be_mapped") and not isinstance(value, types.ModuleType)
        }
        return _empty_operator, (self._plain_class, self._origin.name), state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._may_be_mapped = True
        self._become_operator(self.shape, self.dtype)

    def __copy__(self) -> Any:
        """An operator and its copy never share what `update` writes."""
        return copy.deepcopy(self)

    def __repr__(self) -> str:
        device = self.backend.name
        where = f"on the {device}" if self.captures else f"on the {device} for vectors on the {self._origin.name}"
        n, width = self.shape
        first = f"{type(self).__name__} of {n} x {width}, {self.dtype}, {where}"
        return f"<{first}\n {self._summary()}\n {shown_bytes(self.nbytes)}>"

    def _summary(self) -> str:
        """A line on colors or levels, for `repr`."""
        b = self.blocks.block_size
        return f"{self.n_colors} colors by {self.coloring.method}" + (f", nodes of {b} unknowns" if b > 1 else "")

    def _open(self, A: Any, coloring: Any, dtype: Any, *, block_size: int = 1, divides: bool = False) -> None:
        """Build the color blocks of A, which `_moved` has returned, and become an operator of its shape and dtype.

        Sweeps need divided rows: `divides` says whether those of points are so from the start.
        """
        stored_dtype(dtype, A.dtype)  # before the work of coloring
        coloring, choice = chosen(A, coloring, block_size)
        self.choice = choice or self.choice
        self.blocks = (
            ColorBlocks(A, coloring, dtype=dtype, divides=divides)
            if block_size == 1
            else NodeBlocks(A, coloring, block_size=block_size, dtype=dtype)
        )
        self._dtype = dtype
        self._become_operator(self.blocks.shape, self.blocks.dtype)

    def _become_operator(self, shape: tuple[int, int], dtype: Any) -> None:
        """Become an operator of a shape and a dtype, once everything is there that an application reads."""
        self._updating = getattr(self, "_updating", None) or UpdateLock()
        super().__init__(dtype=dtype, shape=shape)  # type: ignore[call-arg]
        self._open_workspaces()

    def _open_workspaces(self) -> None:
        self._free: dict[Hashable, list[Workspace]] = {}
        with self.workspace():  # which compiles the kernels now, not while somebody captures them
            pass

    def _moved(self, A: Any, device: str | None, *, finite: bool = False) -> AdmittedMatrix:
        """Return A, admitted, on the device that is asked for, and remember where A comes from.

        Whether it is finite is checked here where no later pass over its values does so.
        """
        matrix = admitted(A, floats=True, finite=finite)
        self._origin = matrix.backend
        if device in (None, self._origin.name):
            return matrix
        if device not in ("cpu", "gpu"):
            raise ValueError(f"device must be 'cpu' or 'gpu', got {device!r}")
        if self._origin.name == "gpu":
            raise ValueError("device='cpu' does not go with a CuPy matrix; pass a SciPy matrix, for instance A.get()")
        return admitted(get_backend(device).sparse.csr_matrix(matrix.csr), finite=finite)

    def _own_arrays(self) -> None:
        """Before an update: replace all arrays by copies if an operator that has arrived holds read-only ones."""
        if self._may_be_mapped and self.backend.name == "cpu":
            held = self.__reduce__()[2]
            own = writable(held)
            if own is not held:
                self.__setstate__(own | {"_updating": self._updating})
            self._may_be_mapped = False

    def _moved_again(self, A: Any) -> Any:
        """Return another matrix, in CSR form, on the same device. Whether it has the same pattern, `update` finds out
        before a kernel follows it.
        """
        if self.captures:
            return csr_form(A, floats=True)[0]
        return self.backend.sparse.csr_matrix(admitted(A, floats=True).csr)

    @property
    def updates(self) -> int:
        """How many there have been: what was captured before the last one may have to be captured again."""
        return self._updating.count

    @property
    def relaxes(self) -> bool:
        """Whether an application relaxes what a first sweep has found."""
        return False

    @property
    def exponent(self) -> int:
        """2^exponent is about the magnitude of A."""
        return self.blocks.exponent

    @property
    def columns_at_once(self) -> int:
        """How many right-hand sides one application serves at most."""
        return columns_at_once(self.blocks.block_size)

    def _new_state(self, columns: int) -> Any:
        """What one application to so many right-hand sides writes beside the result."""
        return Sweeps(self.blocks, columns, relaxes=self.relaxes)

    @property
    def backend(self) -> Backend:
        """Where the sweeps run."""
        return self.blocks.backend

    @property
    def captures(self) -> bool:
        """Whether `enqueue` may be given the vectors of a solver on A's device."""
        return self._origin.name == self.backend.name

    @property
    def coloring(self) -> Coloring:
        """The coloring behind the color order."""
        return self.blocks.coloring

    @property
    def n_colors(self) -> int:
        """The number of colors."""
        return self.blocks.n_colors

    @property
    def nbytes(self) -> int:
        """Memory of everything that an application reads, in bytes."""
        return self.blocks.nbytes

    @property
    @abstractmethod
    def splitting(self) -> tuple[Any, Any, float]:
        """T and its inverse, in color order, and w, if w times what is stored is inv(T) U, for Eisenstat's form."""

    @property
    @abstractmethod
    def keeps_diagonal(self) -> bool:
        """Whether T is the diagonal of A in the rows of the first color."""

    @contextmanager
    def workspace(self, columns: int = 1) -> Iterator[Workspace]:
        """Lend the arrays that an application to so many right-hand sides writes; nobody else has them meanwhile.

        A workspace that was given back is lent again on the same stream only, where what still uses it comes first.

        Parameters
        ----------
        columns : int
            From 1 to 4; to 2 if block_size is 3 or more.
        """
        free = self._free.setdefault((columns, self.backend.stream), [])
        try:
            own = free.pop()
        except IndexError:
            own = Workspace(self, columns)
        yield own
        free.append(own)  # not after an exception: a sweep may have been left halfway

    def enqueue(self, r: Any, z: Any, own: Workspace | None = None) -> None:
        """Launch the kernels of z = inv(M) r, and nothing else: a solver may capture them.

        Parameters
        ----------
        r, z : array, shape (n,), or (n, k) in C order
            Of the operator's dtype on its device, and not the same. k is at most 4, or 2 if block_size is 3 or more.
        own : Workspace, optional
            For so many right-hand sides. By default one is borrowed: what is captured may then be replayed on the
            current stream only.
        """
        if own is not None:
            self._apply(own.state, r, z)
            return
        with self.workspace(r.shape[1] if r.ndim == 2 else 1) as borrowed:
            self._apply(borrowed.state, r, z)

    @abstractmethod
    def _apply(self, state: Any, r: Any, z: Any) -> None:
        """Launch the kernels of z = inv(M) r, with the state of a workspace."""

    @abstractmethod
    def update(self, A: Matrix) -> None:
        """Take new values from a matrix with the same pattern."""

    def _matrix_of_transposed(self, conjugate: bool) -> tuple[Any, Any]:
        """The transpose of what the color blocks hold, and its colors, in the order of A and where A comes from."""
        matrix, colors, b = self.blocks.permuted().T.tocsr(), self.coloring.colors, self.blocks.block_size
        matrix = matrix.conj() if conjugate else matrix
        inverse = (self.blocks.inverse[:, None] * b + self.backend.xp.arange(b)).reshape(-1)
        matrix = matrix[inverse][:, inverse]
        return (matrix, colors) if self.captures else (matrix.get(), self.backend.to_host(colors))

    @abstractmethod
    def _transposed(self, conjugate: bool) -> Preconditioner:
        """The preconditioner whose inverse is the transpose of this one's, or its conjugate transpose."""

    def _matmat(self, R: Any) -> Any:
        xp, count = self.backend.xp, R.shape[1]
        if R.dtype.kind == "c" and self.dtype.kind != "c":  # two real right-hand sides for each complex one
            both = self._matmat(self._origin.xp.concatenate((R.real, R.imag), axis=1))
            return both[:, :count] + 1j * both[:, count:]
        R = xp.asarray(R)
        wide = promoted(R.dtype, self.dtype)
        if wide != self.dtype and R.size:  # numbers of each column may be out of range here, but not their ratios
            exponents = xp.frexp(abs(R).max(axis=0).astype(np.float64))[1] - 1
            R = R / xp.ldexp(1.0, exponents)
        Z = xp.empty(R.shape, self.dtype)
        for first in range(0, count, self.columns_at_once):
            part = slice(first, min(first + self.columns_at_once, count))
            with self.workspace(part.stop - first) as own:
                own.r[...] = R[:, part]
                own.applied(self)
                Z[:, part] = own.z
        if wide != self.dtype and R.size:
            Z = (Z * xp.ldexp(1.0, exponents)).astype(wide)
        return Z if self.captures else self.backend.to_host(Z)

    def _transpose(self) -> Preconditioner:
        return self._transposed(conjugate=False)

    def _adjoint(self) -> Preconditioner:
        return self._transposed(conjugate=True)
