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
from mcprecond.linalg.operator import Operator
from mcprecond.matrix import AdmittedMatrix, admitted, csr_form
from mcprecond.typing import DeviceArray, HostArray, Matrix


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
    """A state of M, and vectors to apply it to as one captured graph.

    Parameters
    ----------
    M : Preconditioner
    columns : int
        How many right-hand sides there are.

    Attributes
    ----------
    state : object
        See `Operator.new_state`.
    """

    def __init__(self, M: Preconditioner, columns: int) -> None:
        self.state = M.new_state(columns)
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

    def apply(self, M: Preconditioner) -> None:
        """z = inv(M) r, as a captured graph on a GPU."""
        if self._run is None:
            # Nothing may be allocated while kernels are captured; and a cycle of references would keep memory.
            M, state, r, z = weakref.proxy(M), self.state, self.r, self.z
            run = lambda: M.enqueue(state, r, z)  # noqa: E731
            self._run = M.backend.repeatable(run) if M.only_launches else run
        self._run()


class Preconditioner(Operator):
    """M, with ``M @ r`` an approximation of inv(A) r.

    A subclass implements `new_state`, `enqueue`, `update`, `_transposed` and `_summary`, and calls `_become_operator`
    when it can be applied. Vectors come in and go out in the order of A. One object serves any number of threads and
    streams at once: each application borrows a workspace of its own. But `update` must not run while somebody applies
    M; several updates at once run one after the other.
    """

    #: Whether inv(M) is symmetric for symmetric A and Hermitian for Hermitian A, as CG needs it.
    symmetric: bool
    #: What to do where M is not symmetric, as messages say it.
    remedy_for_asymmetry = "use another preconditioner"
    #: Whether `enqueue` launches kernels and does nothing else.
    only_launches = True
    #: Where an application runs.
    backend: Backend
    #: Memory of everything that an application reads, in bytes.
    nbytes: int
    #: How many colors there are; None where nothing is colored.
    n_colors: int | None
    #: Whether the last update failed when it had replaced values. Then nothing can be applied until one succeeds.
    is_halfway: bool = False
    #: Whether arrays may be read-only, as where joblib has mapped into memory what it sends.
    _may_be_mapped = False
    #: The class without that of a LinearOperator.
    _plain_class: type
    #: The arguments of the constructor after the matrix: positional ones, and keywords.
    _arguments: tuple[tuple[Any, ...], dict[str, Any]]

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

    def __new__(cls, A: Matrix | AdmittedMatrix, *args: Any, **kwargs: Any) -> Self:
        """Make the instance a LinearOperator of the library that A belongs to."""
        if not hasattr(cls, "matvec"):  # not yet a LinearOperator
            backend = A.backend if isinstance(A, AdmittedMatrix) else backend_of(A)
            cls = _operator_class(cls, backend.name)  # type: ignore[arg-type]
        self = super().__new__(cls)
        self._arguments = args, kwargs
        return self

    def built_for(self, A: Any, **changes: Any) -> Preconditioner:
        """The same preconditioner of another matrix, with other arguments by keyword."""
        args, kwargs = self._arguments
        made: Preconditioner = self._plain_class(A, *args, **(kwargs | changes))
        return made

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
        where = f"on the {device}" if self._stays else f"on the {device} for vectors on the {self._origin.name}"
        n, width = self.shape
        first = f"{type(self).__name__} of {n} x {width}, {self.dtype}, {where}"
        return f"<{first}\n {self._summary()}\n {shown_bytes(self.nbytes)}>"

    @abstractmethod
    def _summary(self) -> str:
        """A line on colors or levels, for `repr`."""

    def _become_operator(self, shape: tuple[int, int], dtype: Any) -> None:
        """Become an operator of a shape and a dtype, once everything is there that an application reads."""
        self._updating = getattr(self, "_updating", None) or UpdateLock()
        super().__init__(dtype=dtype, shape=shape)  # type: ignore[call-arg]
        self._open_workspaces()

    def _open_workspaces(self) -> None:
        self._free: dict[Hashable, list[Workspace]] = {}
        if not self.is_halfway:
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
        if self._stays:
            return csr_form(A, floats=True)[0]
        return self.backend.sparse.csr_matrix(admitted(A, floats=True).csr)

    @property
    def updates(self) -> int:
        """How many there have been: what was captured before the last one may have to be captured again."""
        return self._updating.count

    @property
    def _stays(self) -> bool:
        """Whether M is applied on the device of A, so that vectors need not be copied."""
        return self._origin.name == self.backend.name

    @property
    def captures(self) -> bool:  # type: ignore[override]
        """See `Operator`; vectors are on the device of A."""
        return self.only_launches and self._stays

    def _refuse_halfway(self) -> None:
        """Raise RuntimeError if M is halfway."""

    @contextmanager
    def workspace(self, columns: int = 1) -> Iterator[Workspace]:
        """Lend the arrays that an application to so many right-hand sides writes; nobody else has them meanwhile.

        A workspace that was given back is lent again on the same stream only, where what still uses it comes first.

        Parameters
        ----------
        columns : int
            From 1 to `columns_at_once`.

        Raises
        ------
        RuntimeError
            If the last update has left values that nothing can be computed with.
        """
        self._refuse_halfway()
        free = self._free.setdefault((columns, self.backend.stream), [])
        try:
            own = free.pop()
        except IndexError:
            own = Workspace(self, columns)
        yield own
        free.append(own)  # not after an exception: a sweep may have been left halfway

    @contextmanager
    def lend_state(self, columns: int = 1) -> Iterator[Any]:
        """See `Operator`: what is captured with it may be replayed on the current stream only."""
        with self.workspace(columns) as own:
            yield own.state

    @abstractmethod
    def update(self, A: Matrix) -> None:
        """Take new values from a matrix with the same pattern."""

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
        scales = R.size > 0 and wide != self.narrowest
        if scales:  # numbers of each column may be out of range here, but not their ratios
            exponents = xp.frexp(abs(R).max(axis=0).astype(np.float64))[1] - 1
            R = R / xp.ldexp(1.0, exponents)
        Z = xp.empty(R.shape, self.dtype)
        for first in range(0, count, self.columns_at_once):
            part = slice(first, min(first + self.columns_at_once, count))
            with self.workspace(part.stop - first) as own:
                own.r[...] = R[:, part]
                own.apply(self)
                Z[:, part] = own.z
        if scales:
            Z = (Z * xp.ldexp(1.0, exponents)).astype(wide)
        return Z if self._stays else self.backend.to_host(Z)

    def _transpose(self) -> Preconditioner:
        return self._transposed(conjugate=False)

    def _adjoint(self) -> Preconditioner:
        return self._transposed(conjugate=True)
