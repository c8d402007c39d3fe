"""The team of threads that share a loop: every iteration once, sums with the same bits, whoever calls."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcprecond import configure
from mcprecond.backends import compile_loop, compile_part
from mcprecond.backends.team import get_threads


@compile_loop(grain=7)
def count(first, end, counts):
    for i in range(first, end):
        counts[i] += 1


@compile_loop(grain=16)
def sums(first, end, x):
    total, even = 0.0, 0.0
    for i in range(first, end):
        total += x[i]
        even += x[i] if i % 2 == 0 else 0.0
    return total, even


@compile_loop(grain=1)
def lengths(first, end, n, found):
    """Asks for too much memory in one of its iterations."""
    for i in range(first, end):
        found[i] = len(np.empty(2**62 if i == n else i))


@compile_loop(grain=1)
def outer(first, end, counts):
    """A loop in a loop."""
    for i in range(first, end):
        count(0, counts.shape[1], counts[i])


@compile_loop(offsets="offsets")
def chunks(first, end, offsets):
    """One for each chunk."""
    return min(end - first, 1)


@compile_part
def alternate(rounds, counts):
    """Short and long loops in turns."""
    for _ in range(rounds):
        count(0, 3, counts)
        count(0, len(counts), counts)


@pytest.fixture(params=[1, 2, 5])
def threads(request):
    configure(threads=request.param)
    yield request.param
    configure()


@given(st.integers(0, 10_000), st.integers(0, 10_000))
def test_every_iteration_is_done_once(first, length):
    for threads in (1, 3):
        configure(threads=threads)
        counts = np.zeros(first + length + 1, np.int64)
        count(first, first + length, counts)
        assert (counts[first : first + length] == 1).all() and counts.sum() == length
    configure()


def test_an_empty_loop(threads):
    counts = np.zeros(1, np.int64)
    count(0, 0, counts)
    count(1, 0, counts)
    assert counts[0] == 0 and sums(0, 0, np.ones(1)) == (0.0, 0.0)


@given(st.integers(0, 2**32), st.integers(1, 20_000))
def test_sums_have_the_same_bits_with_any_number_of_threads(seed, n):
    x = np.random.default_rng(seed).standard_normal(n) * 10.0 ** (np.arange(n) % 30 - 15)
    found = set()
    for threads in (1, 2, 7):
        configure(threads=threads)
        found.add(sums(0, n, x))
    configure()
    assert len(found) == 1
    np.testing.assert_allclose(next(iter(found))[0], x.sum(), atol=1e-12 * abs(x).sum())


def test_many_loops_after_another(threads):
    counts = np.zeros(5000, np.int64)
    alternate(2000, counts)
    assert (counts[:3] == 4000).all() and (counts[3:] == 2000).all()


def test_loops_in_loops(threads):
    counts = np.zeros((50, 300), np.int64)
    outer(0, 50, counts)
    assert (counts == 1).all()


def test_an_exception_in_a_loop_is_raised(threads):
    found = np.zeros(40, np.int64)
    with pytest.raises(MemoryError):
        lengths(0, 40, 25, found)
    lengths(0, 40, 99, found)
    assert (found == np.arange(40)).all()


def test_many_callers_at_once(threads):
    def call(_):
        counts = np.zeros(3000, np.int64)
        for _ in range(200):
            count(0, 3000, counts)
        return (counts == 200).all()

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(call, range(8)))


def test_threads_sleep_where_there_is_nothing_to_do():
    configure(threads=2)
    counts = np.zeros(5000, np.int64)
    count(0, 5000, counts)
    time.sleep(0.05)
    before = time.process_time()
    time.sleep(0.5)
    assert time.process_time() - before < 0.25
    count(0, 5000, counts)  # they wake up
    assert (counts == 2).all()
    configure()


def test_short_loops_start_no_threads():
    configure(threads=200)
    running = threading.active_count()
    counts = np.zeros(6, np.int64)
    count(0, 6, counts)
    assert threading.active_count() == running
    configure()


@pytest.mark.parametrize(("wrong", "error"), [(0, ValueError), (257, ValueError), (1.5, TypeError), ("two", TypeError)])
def test_no_such_number_of_threads(wrong, error):
    before = get_threads()
    with pytest.raises(error, match="threads"):
        configure(threads=wrong)
    assert get_threads() == before


@pytest.mark.parametrize(("entries", "rows_at_least"), [(0, 512), (1, 512), (60, 128), (5000, 1)])
def test_chunks_of_long_rows_have_fewer_rows(entries, rows_at_least):
    """A chunk has about 8192 entries, where a row counts for four more; no more than 512 rows, and a 256th at least."""
    for rows in (1000, 50_000):
        size = max(rows_at_least, -(-rows // 256))
        assert chunks(0, rows, np.arange(rows + 1) * entries) == -(-rows // size)
