"""Vectors of other array libraries: operators that take and return what PyTorch or JAX computes with, without copies.

What arrays of different libraries say to each other is DLPack: a pointer, a shape, a dtype, and on a GPU the stream on
which the numbers are ready.
"""

from __future__ import annotations

import importlib
from typing import Any, Literal

from mcprecond.backends import backend_of, get_backend
from mcprecond.backends.arguments import describe, did_you_mean
from mcprecond.preconditioners import Preconditioner
from mcprecond.typing import ArrayLibrary, LinearOperator

__all__ = ["DLPackOperator", "as_linear_operator"]

#: Where modules with a function `from_dlpack` are.
MODULES = {"torch": "torch", "jax": "jax.numpy", "numpy": "numpy", "cupy": "cupy"}


class DLPackOperator:
    """A linear operator on the vectors of another library: see `as_linear_operator`, which makes one.

    Attributes
    ----------
    shape : tuple of int
    dtype : numpy.dtype
    """

    def __init__(self, M: Any, xp: Any) -> None:
        self.M, self._xp = M, xp
        if isinstance(M, Preconditioner):
            self._backend = M.origin
        else:  # an operator of SciPy or CuPy, as its base classes tell
            libraries = {kind.__module__.split(".")[0] for kind in type(M).__mro__}
            self._backend = get_backend("gpu" if "cupyx" in libraries else "cpu")
        self.shape, self.dtype = M.shape, M.dtype

    @property
    def T(self) -> DLPackOperator:
        """The transpose."""
        return DLPackOperator(self.M.T, self._xp)

    @property
    def H(self) -> DLPackOperator:
        """The adjoint."""
        return DLPackOperator(self.M.H, self._xp)

    def __matmul__(self, r: Any) -> Any:
        """M r, for a vector of shape (n,), or (n, k) for k of them."""
        return self._xp.from_dlpack(self.M @ self._ours(r))

    def matvec(self, r: Any) -> Any:
        """M r, for a vector of shape (n,) or (n, 1)."""
        return self._xp.from_dlpack(self.M.matvec(self._ours(r)))

    def rmatvec(self, r: Any) -> Any:
        """The adjoint of M times such a vector."""
        return self._xp.from_dlpack(self.M.rmatvec(self._ours(r)))

    def _ours(self, r: Any) -> Any:
        """The same memory as an array of NumPy or CuPy."""
        device, xp = self._backend.name, self._backend.xp
        if isinstance(r, xp.ndarray):
            return r
        if not hasattr(r, "__dlpack__"):
            if device == "gpu" and hasattr(r, "__cuda_array_interface__"):
                return xp.asarray(r)
            raise TypeError(
                f"r must speak DLPack, or the CUDA array interface where M is on the gpu, got {describe(r)}"
            )
        if backend_of(r).name != device:
            raise TypeError(f"r is on the {backend_of(r).name} and must be on the {device} like M; move one of them")
        return xp.from_dlpack(r)

    def __repr__(self) -> str:
        return f"<for vectors of {getattr(self._xp, '__name__', self._xp)}: {self.M!r}>"


def as_linear_operator(
    M: LinearOperator, xp: Literal["torch", "jax", "numpy", "cupy"] | ArrayLibrary
) -> DLPackOperator:
    """Return M as an operator on vectors of another array library.

    Its vectors are on the device of M's own: on the host for an operator of SciPy, on the GPU for one of CuPy. They are
    taken by DLPack, or on a GPU by the CUDA array interface, and the result is handed back by DLPack; neither copies
    the vector or waits for a device.

    Parameters
    ----------
    M : LinearOperator of SciPy or CuPy
        A preconditioner of this package, for instance.
    xp : {"torch", "jax", "numpy", "cupy"} or module
        Whose vectors are returned. A module has a function ``from_dlpack``, as the array API standard names it.

    Returns
    -------
    DLPackOperator
        With ``@``, ``matvec``, ``rmatvec``, ``T``, ``H``, ``shape`` and ``dtype``. They raise a TypeError for a vector
        that speaks neither protocol, or is on the other device.

    Raises
    ------
    TypeError, ValueError
        If M is no linear operator, or xp names no library that is known, or is not a module with ``from_dlpack``.
    ModuleNotFoundError
        If the library is not installed.

    Examples
    --------
    >>> import numpy as np, scipy.sparse
    >>> from mcprecond import MulticolorSGS
    >>> from mcprecond.interop.arrays import as_linear_operator
    >>> A = scipy.sparse.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(3, 3), format="csr")
    >>> M = as_linear_operator(MulticolorSGS(A, [0, 1, 0]), xp="numpy")  # or "torch", for its tensors
    >>> M @ np.ones(3)
    array([1., 1., 1.])
    """
    if not (hasattr(M, "matvec") and hasattr(M, "shape")):
        raise TypeError(f"M must be a linear operator of SciPy or CuPy, got {describe(M)}")
    if isinstance(xp, str):
        if xp not in MODULES:
            hint = did_you_mean(xp, MODULES)
            raise ValueError(f"xp must be one of {', '.join(MODULES)}, or a module with from_dlpack, got {xp!r}{hint}")
        xp = importlib.import_module(MODULES[xp])
    if not hasattr(xp, "from_dlpack"):
        raise TypeError(f"xp must be one of {', '.join(MODULES)}, or a module with from_dlpack, got {describe(xp)}")
    return DLPackOperator(M, xp)
