"""What all preconditioners share: they are LinearOperators of SciPy, whatever device their vectors are on."""

from __future__ import annotations

import copy
import types
import weakref
from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import numpy.typing as npt

from mcprecond.backends import Backend
from mcprecond.backends.inputs import promote
from mcprecond.backends.memory import format_bytes
from mcprecond.backends.updates import UpdateLock
from mcprecond.linalg.operator import Operator
from mcprecond.typing import DeviceArray, HostArray, Matrix

if TYPE_CHECKING:  # SciPy comes without types

    class LinearOperator:
        """What is used of it here."""

        def __init__(self, dtype: Any, shape: tuple[int, int]) -> None: ...
        def _transpose(self) -> Any: ...

else:
    from scipy.sparse.linalg import LinearOperator


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
            weak, state, r, z = weakref.proxy(M), self.state, self.r, self.z
            run = lambda: weak.enqueue(state, r, z)  # noqa: E731
            self._run = M.backend.repeatable(run) if M.only_launches else run
        self._run()


class Preconditioner(Operator, LinearOperator):
    """M, with ``M @ r`` an approximation of inv(A) r.

    A subclass implements `new_state`, `enqueue`, `update`, `_transposed` and `_summary`, and calls this constructor
    when it can be applied. Vectors come in and go out in the order of A, as arrays of the library of A. One object
    serves any number of threads and streams at once: each application borrows a workspace of its own. But `update` must
    not run while somebody applies M; several updates at once run one after the other.

    Parameters
    ----------
    origin : Backend
        Where vectors are.
    shape : (int, int)
    dtype : dtype
        Of the vectors.
    """

    #: Whether inv(M) is symmetric for symmetric A and Hermitian for Hermitian A, as CG needs it.
    symmetric: bool
    #: What to do where M is not symmetric, as messages say it.
    remedy_for_asymmetry = "use another preconditioner"
    #: Whether `enqueue` launches kernels and does nothing else.
    only_launches = True
    #: Where vectors are, and where an application runs.
    origin: Backend
    backend: Backend
    #: Memory of everything that an application reads, in bytes.
    nbytes: int
    #: How many colors there are; None where nothing is colored.
    n_colors: int | None
    #: Whether the last update failed when it had replaced values. Then nothing can be applied until one succeeds.
    is_halfway: bool = False

    def __init__(self, origin: Backend, shape: tuple[int, int], dtype: Any) -> None:
        LinearOperator.__init__(self, dtype, shape)
        self.origin, self._updating = origin, UpdateLock()
        self._open_workspaces()

    def __getstate__(self) -> dict[str, Any]:
        """All but the workspaces, whose buffers and captured graphs belong to a stream of this process. What else a
        LinearOperator keeps, such as the module of its arrays, is found again.
        """
        items = self.__dict__.items()
        return {name: value for name, value in items if name != "_free" and not isinstance(value, types.ModuleType)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if self.backend.name == "cpu":  # joblib maps arrays into memory that nobody may write
            self.__dict__.update(copy.deepcopy(state))
        LinearOperator.__init__(self, self.dtype, self.shape)
        self._open_workspaces()

    def _with(self, **changes: Any) -> Any:
        """An operator of the same class with some attributes changed, which shares all others."""
        other = type(self).__new__(type(self))
        other.__dict__.update(self.__dict__ | changes | {"_updating": UpdateLock()})
        other._open_workspaces()
        return other

    def __copy__(self) -> Any:
        """An operator and its copy never share what `update` writes."""
        return copy.deepcopy(self)

    def __repr__(self) -> str:
        device = self.backend.name
        where = f"on the {device}" if self._stays else f"on the {device} for vectors on the {self.origin.name}"
        n, width = self.shape
        first = f"{type(self).__name__} of {n} x {width}, {self.dtype}, {where}"
        return f"<{first}\n {self._summary()}\n {format_bytes(self.nbytes)}>"

    @abstractmethod
    def _summary(self) -> str:
        """A line on colors or levels, for `repr`."""

    @property
    def updates(self) -> int:
        """How many there have been: what was captured before the last one may have to be captured again."""
        return self._updating.count

    @property
    def _stays(self) -> bool:
        """Whether M is applied on the device of A, so that vectors need not be copied."""
        return self.origin.name == self.backend.name

    @property
    def captures(self) -> bool:  # type: ignore[override]
        """See `Operator`; vectors are on the device of A."""
        return self.only_launches and self._stays

    def _refuse_halfway(self) -> None:
        """Raise RuntimeError if the last update has left values that nothing can be computed with."""
        if self.is_halfway:
            raise RuntimeError("the last update failed when it had replaced values; update once more before any use")

    def _open_workspaces(self) -> None:
        self._free: dict[Hashable, list[Workspace]] = {}
        if not self.is_halfway:
            with self.workspace():  # which compiles the kernels now, not while somebody captures them
                pass

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
            lent = free.pop()
        except IndexError:
            lent = Workspace(self, columns)
        yield lent
        free.append(lent)  # not after an exception: a sweep may have been left halfway

    @contextmanager
    def lend_state(self, columns: int = 1) -> Iterator[Any]:
        """See `Operator`: what is captured with it may be replayed on the current stream only."""
        with self.workspace(columns) as lent:
            yield lent.state

    @abstractmethod
    def update(self, A: Matrix) -> None:
        """Take new values from a matrix with the same pattern."""

    @abstractmethod
    def _transposed(self, conjugate: bool) -> Any:
        """The operator whose inverse is the transpose of this one's, or its conjugate transpose."""

    # The interface of a LinearOperator. SciPy's own methods would convert vectors to arrays of NumPy.

    if TYPE_CHECKING:

        @property
        def T(self) -> Preconditioner:
            """The transpose."""

        @property
        def H(self) -> Preconditioner:
            """The adjoint."""

    @overload
    def __matmul__(self, x: HostArray) -> npt.NDArray[Any]: ...
    @overload
    def __matmul__(self, x: DeviceArray) -> Any: ...
    def __matmul__(self, x: Any) -> Any:
        """M x for a vector, or for the columns of an array; with another operator, their product."""
        if np.isscalar(x):
            raise ValueError("M @ x needs an array or an operator, got a number; write M * x")
        return self.dot(x)

    def __mul__(self, x: Any) -> Any:
        return self.dot(x)

    def __rmul__(self, x: Any) -> Any:
        return self._of_library().__rmul__(x)

    def __add__(self, other: Any) -> Any:
        return self._of_library().__add__(other)

    def __neg__(self) -> Any:
        return self._of_library().__neg__()

    def dot(self, x: Any) -> Any:
        """M x for a vector, or for the columns of an array; with another operator or a number, their product."""
        if np.isscalar(x) or callable(getattr(x, "matvec", None)):
            return self._of_library().dot(x)
        x = self._numbers(x)
        if x.ndim not in (1, 2):
            raise ValueError(f"M @ x needs a vector or an array of columns, got shape {x.shape}")
        return self.matvec(x) if x.ndim == 1 or x.shape[1] == 1 else self.matmat(x)

    def _numbers(self, x: Any) -> Any:
        """An argument as an array of the library of A."""
        array = self.origin.xp.asarray(x)
        if array.dtype.kind not in "biufc":
            raise TypeError(f"M @ x needs an array of numbers, got {type(x).__name__}; make it dense")
        return array

    def _of_library(self) -> Any:
        """M as an operator of the library of its vectors, for sums and products with other operators and numbers."""
        if self.origin.name == "cpu":
            return super()
        return self.origin.linalg.aslinearoperator(self)

    @overload
    def matvec(self, x: HostArray) -> npt.NDArray[Any]: ...
    @overload
    def matvec(self, x: DeviceArray) -> Any: ...
    def matvec(self, x: Any) -> Any:
        """M x for one vector, of shape (n,) or (n, 1)."""
        x, n = self._numbers(x), self.shape[1]
        if x.shape not in ((n,), (n, 1)):
            raise ValueError(f"dimension mismatch: M is {self.shape[0]} x {n}, got x of shape {x.shape}")
        return self._matmat(x.reshape(n, 1)).reshape(x.shape)

    @overload
    def matmat(self, X: HostArray) -> npt.NDArray[Any]: ...
    @overload
    def matmat(self, X: DeviceArray) -> Any: ...
    def matmat(self, X: Any) -> Any:
        """M X for several vectors, the columns of an array of shape (n, k)."""
        X, n = self._numbers(X), self.shape[1]
        if X.ndim != 2 or X.shape[0] != n:
            raise ValueError(f"dimension mismatch: M is {self.shape[0]} x {n}, got X of shape {X.shape}")
        return self._matmat(X)

    @overload
    def rmatvec(self, x: HostArray) -> npt.NDArray[Any]: ...
    @overload
    def rmatvec(self, x: DeviceArray) -> Any: ...
    def rmatvec(self, x: Any) -> Any:
        """The adjoint of M times one vector."""
        return self.H.matvec(x)

    def rmatmat(self, X: Any) -> Any:
        """The adjoint of M times several vectors."""
        return self.H.matmat(X)

    def _matmat(self, R: Any) -> Any:
        xp, count = self.backend.xp, R.shape[1]
        if R.dtype.kind == "c" and self.dtype.kind != "c":  # two real right-hand sides for each complex one
            both = self._matmat(self.origin.xp.concatenate((R.real, R.imag), axis=1))
            return both[:, :count] + 1j * both[:, count:]
        R = xp.asarray(R)
        wide = promote(R.dtype, self.dtype)
        scales = R.size > 0 and wide != self.narrowest
        if scales:  # numbers of each column may be out of range here, but not their ratios
            exponents = xp.frexp(abs(R).max(axis=0).astype(np.float64))[1] - 1
            R = R / xp.ldexp(1.0, exponents)
        Z = xp.empty(R.shape, self.dtype)
        for first in range(0, count, self.columns_at_once):
            part = slice(first, min(first + self.columns_at_once, count))
            with self.workspace(part.stop - first) as lent:
                lent.r[...] = R[:, part]
                lent.apply(self)
                Z[:, part] = lent.z
        if scales:
            Z = (Z * xp.ldexp(1.0, exponents)).astype(wide)
        return Z if self._stays else self.backend.to_host(Z)

    def _transpose(self) -> Any:
        return self._transposed(conjugate=False)

    def _adjoint(self) -> Any:
        return self._transposed(conjugate=True)
