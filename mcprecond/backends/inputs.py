"""The door for vectors: what a user passes in is checked here, once, with messages that say what was found and what to
do. The door for matrices is matrix.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mcprecond.backends import Backend, backend_of
from mcprecond.backends.arguments import describe


def vector(b: Any, n: int, backend: Backend, dtype: Any, name: str = "b") -> Any:
    """Return b as an array of shape (n,) and the given dtype on the backend; never a view that may be written to.

    Raises
    ------
    TypeError
        If b is on the other device than A, does not hold numbers, or holds what the dtype has no room for: complex
        numbers where it is real, or floats of more bits.
    ValueError
        If b has another length, or holds NaN or infinity (names the first row).
    """
    array = shape_vector(b, n, backend, name)
    if array.dtype.kind in "fc" and np.result_type(array.dtype, dtype) != dtype:
        raise TypeError(
            f"{name} holds {array.dtype} and A {dtype}; convert one of them, as with {name}.astype('{dtype}')"
        )
    refuse_not_finite(array, backend, name)
    return array.astype(dtype)


def shape_vector(b: Any, n: int, backend: Backend, name: str = "b") -> Any:
    """Return b as an array of numbers of shape (n,) on the backend, with a dtype of its own: perhaps b itself.

    Raises
    ------
    TypeError, ValueError
        As `vector`, but nothing is said of values.
    """
    array = _numbers(b, backend, name)
    if array.shape not in ((n,), (n, 1)):
        raise ValueError(f"{name} must have shape ({n},), got {array.shape}")
    return array.reshape(n)


def shape_columns(b: Any, n: int, most: int, backend: Backend, name: str = "b") -> Any:
    """`shape_vector` for a b that may have several columns: then the shape is (n, k), with k from 2 to `most`."""
    array = _numbers(b, backend, name)
    if array.ndim != 2 or array.shape[0] != n or array.shape[1] == 1:
        if array.shape not in ((n,), (n, 1)):
            raise ValueError(f"{name} must have shape ({n},) or ({n}, k), got {array.shape}")
        return array.reshape(n)
    if array.shape[1] == 0:
        raise ValueError(f"{name} must have at least one column, got shape {array.shape}")
    if array.shape[1] > most:
        raise ValueError(f"{name} must have at most {most} columns, got {array.shape[1]}; solve for some at a time")
    return array


def numbers_of(values: Any, backend: Backend, name: str) -> Any:
    """Return an array of the backend from an array, or from lists.

    Raises
    ------
    TypeError
        If lists have different lengths.
    """
    try:
        return backend.xp.asarray(values)
    except ValueError:
        raise TypeError(f"{name} must be an array of numbers, got {describe(values)}") from None


def _numbers(b: Any, backend: Backend, name: str) -> Any:
    """Return b as an array of numbers on the backend."""
    if backend_of(b).name != backend.name:
        raise TypeError(
            f"{name} is on the {backend_of(b).name} and must be on the {backend.name}; "
            f"move it with cupy.{'asnumpy' if backend.name == 'cpu' else 'asarray'}({name})"
        )
    array = numbers_of(b, backend, name)
    if array.dtype.kind not in "fiubc" or array.dtype.itemsize > (16 if array.dtype.kind == "c" else 8):
        raise TypeError(
            f"{name} must hold real or complex numbers of at most double precision, got dtype {array.dtype}"
        )
    return array


def integers(values: Any, backend: Backend, wanted: str) -> Any:
    """Return an array of integers on the backend, from one there or on the host, or from a list.

    Raises
    ------
    TypeError
        If it holds anything else, or is on the GPU where the backend is the CPU; the message begins with `wanted`.
    """
    if backend_of(values).name == "gpu":
        if backend.name == "cpu":
            raise TypeError(f"{wanted}, got one on the gpu; move it with cupy.asnumpy")
        array = values
    else:
        try:
            array = np.asarray(values)
        except ValueError:  # lists of different lengths
            raise TypeError(f"{wanted}, got {describe(values)}") from None
    if array.shape == (0,):
        array = array.astype(np.int32)  # an empty list is one of floats
    if array.dtype.kind not in "iu":
        raise TypeError(f"{wanted}, got {describe(values)} of dtype {array.dtype}")
    return backend.xp.asarray(array)


def promote(*dtypes: Any) -> np.dtype[Any]:
    """The dtype in which SciPy's solvers compute: the widest float of the operands, where other numbers are doubles."""
    floats = [np.dtype(dtype) for dtype in dtypes]
    return np.result_type(*(dtype if dtype.char in "fdFD" else np.float64 for dtype in floats))


def first_place(mask: Any, xp: Any) -> int | None:
    """Return the first place at which a mask is true, or None: for ``mask.any()`` CuPy compiles for seconds."""
    places = xp.flatnonzero(mask)
    return int(places[0]) if places.size else None


def any_of(mask: Any) -> bool:
    """Whether a mask is true in some place: for ``mask.any()`` and ``mask.all()`` CuPy compiles for seconds, and for
    the largest byte it does not.
    """
    return bool(mask.size) and bool(mask.view(np.uint8).max())


def count_true(mask: Any, xp: Any) -> int:
    """How many places of a mask are true, or not zero: CuPy compiles for seconds for sums of narrow integers, too."""
    return len(xp.flatnonzero(mask))


def refuse_not_finite(array: Any, backend: Backend, name: str = "b") -> None:
    """Raise ValueError if an array holds NaN or infinity, naming the first row, and the column if it has several."""
    position = first_place(~backend.xp.isfinite(array), backend.xp)
    if position is not None:
        row, *column = (int(index) for index in np.unravel_index(position, array.shape))
        where = f"row {row}, column {column[0]}" if column else f"row {row}"
        raise ValueError(f"{name} holds {array[row, *column].item()} in {where}; every value must be finite")
