"""Counters on a GPU that start at zero. A fill takes as long as a launch, so many counters share one."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

#: One fill makes AT_ONCE numbers of 8 bytes. A request for more than MOST of them gets an array of its own.
AT_ONCE, MOST = 2**13, 2**11


class Zeros(threading.local):
    """For each device and stream, the array that was filled last, and how many of its words have been handed out.
    Kernels of the same stream run after the fill.
    """

    def __init__(self) -> None:
        self._last: dict[Any, tuple[Any, int]] = {}

    def take(self, count: int, dtype: Any, stream: Any, xp: Any) -> Any:
        """Return an array of zeros that nobody else has."""
        words = -(-count * np.dtype(dtype).itemsize // 8)
        if words > MOST:
            return xp.zeros(count, dtype)
        filled, taken = self._last.get(stream, (None, AT_ONCE))
        if filled is None or taken + words > AT_ONCE:
            filled, taken = xp.zeros(AT_ONCE, np.int64), 0
        self._last[stream] = filled, taken + words
        return xp.ndarray(count, dtype, filled.data + 8 * taken)
