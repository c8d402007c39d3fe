"""Rows of patterns on the CPU: their columns are sorted by bits or by comparisons."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mcprecond.backends import compile_row
from mcprecond.backends.team.arithmetic import trailing_zeros
from mcprecond.multigrid.patterns import sort_columns


@given(columns=st.lists(st.integers(0, 2**16), unique=True), close=st.lists(st.integers(500, 700), unique=True))
def test_columns_are_sorted(columns, close):
    words = np.zeros(2**16 // 64 + 1, np.uint64)
    for given_columns in (columns, close):
        # The numbers before and behind are not touched.
        found = np.array([-1, *given_columns, -2], np.int32)
        sort_columns(found, 1, len(found) - 1, words)
        assert found.tolist() == [-1, *sorted(given_columns), -2]
        assert not words.any()


def test_the_lowest_bit():
    @compile_row
    def lowest(word):
        return trailing_zeros(word)

    for place in range(64):
        assert lowest(np.uint64(2**64 - 2**place)) == lowest(np.uint64(2**place)) == place
    assert lowest(np.int64(24)) == 3
