"""Checks of arguments that are not arrays: each names the argument, what it must be and what was found.

A wrong type is a TypeError, a wrong value of the right type a ValueError. NumPy's scalars are as good as Python's;
True and False are no numbers.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Collection, Iterable, Mapping
from typing import Any, TypeVar, cast

import numpy as np

Name = TypeVar("Name", bound=str)

LONGEST = 60  # characters of a value that a message shows


#: The dtypes that solvers compute with.
FLOATS = tuple(np.dtype(name) for name in ("float32", "float64", "complex64", "complex128"))


def describe(value: Any) -> str:
    """A value and its type, in so few words that a message stays on one line."""
    words = " ".join(repr(value).split())
    return f"{words if len(words) <= LONGEST else words[:LONGEST] + '...'} ({type(value).__name__})"


def integer(value: Any, name: str, least: int | None = None, most: int | None = None) -> int:
    """Return an integer between `least` and `most`, both included, as Python's int.

    Raises
    ------
    TypeError
        If it is no integer; 2.0, "2" and True are none.
    ValueError
        If it is out of range.
    """
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        raise TypeError(f"{name} must be an integer{_between(least, most)}, got {describe(value)}")
    if (least is not None and value < least) or (most is not None and value > most):
        raise ValueError(f"{name} must be{_between(least, most) or ' an integer'}, got {value}")
    return int(value)


def real(value: Any, name: str, least: float | None = None, most: float | None = None) -> float:
    """Return a finite real number between `least` and `most`, both included, as Python's float.

    Raises
    ------
    TypeError
        If it is no real number; "2", 2j and True are none.
    ValueError
        If it is out of range, infinite or NaN.
    """
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.integer | np.floating):
        raise TypeError(f"{name} must be a real number{_between(least, most)}, got {describe(value)}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ValueError(f"{name} must be a finite number{_between(least, most)}, got {describe(value)}")
    if (least is not None and number < least) or (most is not None and number > most):
        raise ValueError(f"{name} must be{_between(least, most)}, got {value}")
    return number


def flag(value: Any, name: str) -> bool:
    """Return True or False.

    Raises
    ------
    TypeError
        For anything else: "no" is not False.
    """
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, got {describe(value)}")
    return bool(value)


def one_of(value: Any, name: str, choices: Collection[Name]) -> Name:
    """Return one of some names.

    Raises
    ------
    TypeError
        If it is not a string.
    ValueError
        If it is another one.
    """
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a string, one of {', '.join(choices)}, got {describe(value)}")
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(choices)}, got {value!r}{did_you_mean(value, choices)}")
    return cast(Name, value)


def did_you_mean(value: str, choices: Iterable[str]) -> str:
    """How a refusal of a name ends: with the choice that is closest to it, whatever the case; or empty."""
    known = {choice.lower(): choice for choice in choices}
    close = difflib.get_close_matches(value.lower(), known, n=1)
    return f"; did you mean {known[close[0]]!r}?" if close else ""


def names(value: Any, name: str) -> list[str]:
    """Return an iterable of strings as a list; a single string is none.

    Raises
    ------
    TypeError
        If it is no such iterable.
    """
    strings = list(value) if isinstance(value, Iterable) and not isinstance(value, str | bytes) else None
    if strings is None or not all(isinstance(one, str) for one in strings):
        raise TypeError(f"{name} must be a list of strings, got {describe(value)}")
    return strings


def mapping(value: Any, name: str) -> Mapping[str, Any]:
    """Return a dict (or other mapping) whose keys are strings.

    Raises
    ------
    TypeError
        If it is none.
    """
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise TypeError(f"{name} must be a dict with strings as keys, got {describe(value)}")
    return value


def function(value: Any, name: str, of: str = "") -> Any:
    """Return a function, or None for none; `of` says of what arguments it must be, as " of one array".

    Raises
    ------
    TypeError
        If it is something else.
    """
    if value is not None and not callable(value):
        raise TypeError(f"{name} must be a function{of} or None, got {describe(value)}")
    return value


def tolerance(value: Any, name: str) -> float:
    """Return a tolerance, which may be infinite, as a float.

    Raises
    ------
    ValueError
        If it is anything but a number that is not negative, as SciPy's solvers do.
    """
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.integer | np.floating):
        raise ValueError(f"{name} must be a number at least 0, got {describe(value)}")
    if not value >= 0:
        raise ValueError(f"{name} must be a number at least 0, got {value}")
    try:
        return float(value)
    except OverflowError:  # an integer without end, so to speak
        return math.inf


def _between(least: float | None, most: float | None) -> str:
    if least is not None and most is not None:
        return f" between {least} and {most}"
    return f" at least {least}" if least is not None else f" at most {most}" if most is not None else ""


def stored_dtype(dtype: Any, of_matrix: Any) -> np.dtype[Any]:
    """Return the dtype in which to store a matrix: `dtype`, or the dtype of the matrix if that is None.

    Raises
    ------
    TypeError
        If `dtype` is not a floating-point dtype, or is real for a complex matrix or complex for a real one.
    """
    if dtype is None:
        return np.dtype(of_matrix)
    possible = [name for name in FLOATS if (name.kind == "c") == (np.dtype(of_matrix).kind == "c")]
    try:
        stored = np.dtype(dtype)
    except TypeError:
        stored = None
    if stored is None or stored not in possible:  # to NumPy None is float64
        raise TypeError(f"dtype must be {' or '.join(map(str, possible))}, got {dtype!r}")
    return stored


def single(dtype: Any) -> np.dtype[Any]:
    """The dtype of single precision, complex for a complex dtype."""
    return np.dtype(np.complex64 if np.dtype(dtype).kind == "c" else np.float32)
