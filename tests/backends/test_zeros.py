"""Counters that share one fill are zero, and nobody else's."""

from __future__ import annotations

import numpy as np

from mcprecond.backends.zeros import AT_ONCE, MOST


def test_counters_are_zero_and_apart(backend):
    taken = []
    for number in range(50):
        for count, dtype in ((1, np.int32), (3, np.int64), (MOST, np.int64), (MOST + 1, np.uint64), (0, np.int32)):
            counters = backend.zeros(count, dtype)
            assert counters.shape == (count,) and counters.dtype == dtype and not counters.any()
            counters.fill(number + 1)
            taken.append((counters, number + 1))
    assert 50 * MOST > AT_ONCE
    assert all((backend.to_host(counters) == number).all() for counters, number in taken)
