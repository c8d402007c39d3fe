"""How an iteration applies M: what may stand for M, each with the same two methods of use."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from mcprecond.backends import Backend
from mcprecond.linalg.csr import product_with
from mcprecond.matrix import AdmittedMatrix
from mcprecond.preconditioners import Preconditioner
from mcprecond.preconditioners.base import Workspace


class Applier:
    """M on the vectors of an iteration."""

    #: Whether `enqueue` only launches kernels, so that it may be captured.
    captures = True
    #: Whether an application takes much longer than the other steps of an iteration.
    has_many_kernels = False
    #: Whether M is linear.
    linear = True
    #: 2^exponent is about the magnitude of M; None if that is not known before it is applied.
    exponent: int | None

    @abstractmethod
    def enqueue(self, r: Any, z: Any) -> None:
        """Put M r into z."""


class Operator(Applier):
    """A foreign M: called for each product."""

    captures = False

    captures, exponent = False, None

    def __init__(self, M: Any, backend: Backend) -> None:
        self.M, self.xp = M, backend.xp
        self.linear = M.linear if isinstance(M, Preconditioner) else True

    def enqueue(self, r: Any, z: Any) -> None:
        """See `Applier`."""
        z[...] = self.xp.asarray(self.M @ r).reshape(z.shape)


class Matrix(Applier):
    """A sparse M."""

    captures = True

    def __init__(self, M: AdmittedMatrix) -> None:
        self.exponent = M.exponent
        self.product = product_with(M)

    def enqueue(self, r: Any, z: Any) -> None:
        """See `Applier`."""
        self.product.apply(r, z)


class Sweeping(Applier):
    """A preconditioner of this package, with a workspace that nobody else uses.

    Where the vectors have another dtype, M is applied to copies in its own; to complex ones, if it is real, as to two
    right-hand sides, the real and the imaginary part.
    """

    def __init__(self, M: Preconditioner, own: Workspace, dtype: np.dtype[Any], backend: Backend) -> None:
        self.M, self.own, self.linear = M, own, M.linear
        self.exponent, self.has_many_kernels = -M.exponent, M.has_many_kernels
        self.splits = is_split(M, dtype)
        real = np.dtype(dtype.char.lower()) if self.splits else dtype
        shape = (M.shape[0], 2) if self.splits else (M.shape[0],)
        self.real, self.shape = real, shape
        self.converts = real != M.dtype
        if self.converts:
            self.r, self.z = (backend.xp.empty(shape, M.dtype) for _ in range(2))

    def enqueue(self, r: Any, z: Any) -> None:
        """See `Applier`."""
        if self.splits:
            r, z = (v.view(self.real).reshape(self.shape) for v in (r, z))
        if not self.converts:
            self.M.enqueue(r, z, self.own)
            return
        self.r[...] = r
        self.M.enqueue(self.r, self.z, self.own)
        z[...] = self.z


def is_split(M: Preconditioner, dtype: np.dtype[Any]) -> bool:
    """Whether vectors of this dtype are two right-hand sides for M."""
    return dtype.kind == "c" and M.dtype.kind != "c"


@contextmanager
def applied(M: Any, dtype: np.dtype[Any], backend: Backend) -> Iterator[Applier | None]:
    """Yield what applies M to vectors of a dtype: M is None, a Preconditioner, an AdmittedMatrix or any operator."""
    if isinstance(M, Preconditioner) and M.captures and M.backend.name == backend.name:
        with M.workspace(2 if is_split(M, dtype) else 1) as own:
            yield Sweeping(M, own, dtype, backend)
    elif isinstance(M, AdmittedMatrix):
        yield Matrix(M)
    else:
        yield None if M is None else Operator(M, backend)
