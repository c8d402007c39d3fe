"""Whatever is applied to vectors: one protocol for matrices, preconditioners, smoothers and operators of others.

Whatever an application writes beside its result is in the application's state, so that one operator serves any number
of streams and threads, and its launches can be captured::

    state = operator.new_state()
    operator.enqueue(state, x, y)      # y = operator(x): launches kernels only
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from mcprecond.backends import Backend


class Operator:
    """A map of vectors on one device, linear unless it says otherwise.

    Attributes
    ----------
    shape : (int, int)
    dtype : dtype
        Of the vectors.
    """

    #: Whether `enqueue` launches kernels and does nothing else, so that it may be captured.
    captures: bool = True
    #: Whether an application takes so long that a solver shall apply it no more often than it has to.
    takes_long = False
    #: How many right-hand sides one application can process together, for little more than the cost of one.
    columns_at_once: int = 1
    #: Whether the operator is linear. `pcg` runs flexible CG if its preconditioner is not.
    linear = True
    shape: tuple[int, int]
    dtype: np.dtype[Any]

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.shape[0]} x {self.shape[1]}, {self.dtype}>"

    @property
    def exponent(self) -> int | None:
        """2^exponent is about the magnitude of the operator; None where that is not known."""
        return None

    @property
    def narrowest(self) -> np.dtype[Any]:
        """The narrowest dtype that an application computes in: it needs vectors that have room there."""
        return self.dtype

    def new_state(self, columns: int = 1) -> Any:
        """Return the workspace of one application to that many right-hand sides, or None if it needs none."""
        return None

    @contextmanager
    def lend_state(self, columns: int = 1) -> Iterator[Any]:
        """Lend a state for the current stream; no other application uses it until it is given back."""
        yield self.new_state(columns)

    @abstractmethod
    def enqueue(self, state: Any, x: Any, y: Any, /) -> None:
        """y = operator(x), of shape (n,), or (n, k) in C order for a state of k columns. x and y do not overlap."""


class Foreign(Operator):
    """An operator of another package, or on another device, which is called as ``M @ x``."""

    captures = False

    def __init__(self, M: Any, dtype: Any, backend: Backend) -> None:
        self.M, self.shape, self.dtype, self._backend = M, M.shape, np.dtype(dtype), backend
        self.linear = getattr(M, "linear", True)

    @property
    def exponent(self) -> int | None:
        return self.M.exponent if isinstance(self.M, Operator) else None

    def enqueue(self, state: None, x: Any, y: Any) -> None:
        y[...] = self._backend.xp.asarray(self.M @ x).reshape(y.shape)


class Converted(Operator):
    """An operator on vectors of another dtype, which are copied to the dtype of the operator and back.

    The real and the imaginary part of a complex vector are two right-hand sides for a real operator.
    """

    def __init__(self, M: Operator, dtype: np.dtype[Any], backend: Backend) -> None:
        self.M, self.shape, self.dtype, self._backend = M, M.shape, dtype, backend
        self.linear, self.takes_long = M.linear, M.takes_long
        self._parts = 2 if dtype.kind == "c" and M.dtype.kind != "c" else 1
        self._part = np.dtype(dtype.char.lower()) if self._parts == 2 else dtype

    @property
    def exponent(self) -> int | None:
        return self.M.exponent

    @property
    def narrowest(self) -> np.dtype[Any]:
        return self.M.narrowest

    def new_state(self, columns: int = 1) -> Any:
        return self.M.new_state(self._parts * columns), self._new_copies(columns)

    @contextmanager
    def lend_state(self, columns: int = 1) -> Iterator[Any]:
        with self.M.lend_state(self._parts * columns) as state:
            yield state, self._new_copies(columns)

    def _new_copies(self, columns: int) -> Any:
        """Copies of the argument and of the result in the dtype of M; None if that is the dtype of the vectors."""
        new, shape = self._backend.xp.empty, self._shape(self._parts * columns)
        return None if self._part == self.M.dtype else [new(shape, self.M.dtype) for _ in range(2)]

    def _shape(self, columns: int) -> tuple[int, ...]:
        return (self.shape[0], columns) if columns > 1 else (self.shape[0],)

    def enqueue(self, state: Any, x: Any, y: Any) -> None:
        inner_state, copies = state
        shape = self._shape(self._parts * (1 if x.ndim == 1 else x.shape[1]))
        x, y = (v.view(self._part).reshape(shape) for v in (x, y))
        if copies is None:
            self.M.enqueue(inner_state, x, y)
            return
        copies[0][...] = x
        self.M.enqueue(inner_state, *copies)
        y[...] = copies[1]


class Scaled(Operator):
    """A power of two times an operator, or times the identity for None."""

    def __init__(self, M: Operator | None, factor: float, shape: tuple[int, int], dtype: Any, backend: Backend) -> None:
        self.M, self.shape, self.dtype = M, shape, np.dtype(dtype)
        self._factor, self._multiply = self.dtype.type(factor), backend.xp.multiply
        if M is not None:
            self.captures, self.takes_long, self.linear = M.captures, M.takes_long, M.linear

    @property
    def narrowest(self) -> np.dtype[Any]:
        return self.dtype if self.M is None else self.M.narrowest

    @contextmanager
    def lend_state(self, columns: int = 1) -> Iterator[Any]:
        """See `Operator`: the state of M."""
        if self.M is None:
            yield None
            return
        with self.M.lend_state(columns) as state:
            yield state

    def enqueue(self, state: Any, x: Any, y: Any) -> None:
        if self.M is not None:
            self.M.enqueue(state, x, y)
            x = y
        self._multiply(x, self._factor, out=y)


def operator_for(M: Any, dtype: Any, backend: Backend) -> Operator:
    """Return what applies M, an `Operator` or anything with a shape and ``@``, to vectors of a dtype on a device."""
    if not (isinstance(M, Operator) and M.captures and getattr(M, "backend", backend) is backend):
        return Foreign(M, dtype, backend)
    return M if M.dtype == dtype else Converted(M, np.dtype(dtype), backend)
