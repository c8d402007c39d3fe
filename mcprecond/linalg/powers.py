"""Powers of two: factors that change no digit of a float."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def power_times(number: float, exponent: int) -> float:
    """2^exponent times a number that is not negative; infinite where that overflows."""
    try:
        return math.ldexp(number, exponent)
    except OverflowError:
        return math.inf


def square_times(number: float, exponent: int = 0) -> float:
    """The square of 2^exponent times a number; infinite where that overflows."""
    scaled = power_times(number, exponent)
    return scaled * scaled


def times_power(v: Any, exponent: int, xp: Any) -> Any:
    """2^exponent times a vector, in steps that a float has room for.

    Integers become float64, unless the exponent is 0.
    """
    if not exponent:
        return v
    if v.dtype.kind in "biu":
        v = v.astype(np.float64)
    real, most = np.finfo(v.dtype), np.finfo(v.dtype).maxexp - 2
    with np.errstate(all="ignore"):
        while exponent:
            step = max(min(exponent, most), -most)
            v = v * real.dtype.type(math.ldexp(1.0, step))
            exponent -= step
    return v


def exponent_of(v: Any, xp: Any) -> int:
    """The exponent of the largest magnitude in a vector; 0 if that is zero or not finite."""
    largest = float(abs(v).max()) if v.size else 0.0
    return math.frexp(largest)[1] if math.isfinite(largest) else 0
