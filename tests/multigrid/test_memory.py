"""How much memory a hierarchy keeps, in bytes of its arrays, and takes while it is built, as multiples of that of A."""

import copy
import gc
import pickle
import tracemalloc
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcprecond import ClassicalAMG, SmoothedAggregation, problems


def size_of(A):
    return A.data.nbytes + A.indices.nbytes + A.indptr.nbytes


def memory_of(array):
    """The array that owns the memory of another one."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def arrays_of(M, A):
    """All arrays that can be reached from M, but for those of A, by the number of the object that owns the memory."""
    of_A = {id(memory_of(array)) for array in (A.data, A.indices, A.indptr)}
    found, seen, waiting = {}, set(), [M]
    while waiting:
        thing = waiting.pop()
        if id(thing) in seen or isinstance(thing, type | ModuleType):
            continue
        seen.add(id(thing))
        if isinstance(thing, np.ndarray):
            owner = memory_of(thing)
            if id(owner) not in of_A:
                found[id(owner)] = owner
        elif isinstance(thing, dict):
            waiting += thing.values()
        elif isinstance(thing, list | tuple | set):
            waiting += thing
        elif hasattr(thing, "__dict__"):
            waiting.append(vars(thing))
    return found


def kept(M, A):
    """As a multiple of the memory of A."""
    return sum(array.nbytes for array in arrays_of(M, A).values()) / size_of(A)


@settings(max_examples=8)
@given(st.integers(100, 300), st.integers(100, 300))
def test_what_is_kept_for_five_points(rows, columns):
    A = problems.laplacian((rows, columns))
    M = SmoothedAggregation(A, max_coarse=50)
    assert kept(M, A) <= 3.25
    A.data *= 2
    M.update(A)
    assert kept(M, A) <= 3.25


@settings(max_examples=8)
@given(st.tuples(*[st.integers(20, 40)] * 3))
def test_what_is_kept_for_seven_points(shape):
    A = problems.laplacian(shape)
    assert kept(SmoothedAggregation(A, max_coarse=50), A) <= 3.6


@pytest.mark.parametrize("smoother", ["chebyshev", "gauss_seidel"])
def test_copies_and_updates_keep_as_much(smoother):
    A = problems.laplacian((100, 120))
    M, b = SmoothedAggregation(A, max_coarse=50, smoother=smoother), np.ones(A.shape[0])
    M @ b  # which takes two vectors
    # Copies have a pattern of A of their own, and copies of views.
    most = kept(M, A) + (A.indices.nbytes + A.indptr.nbytes) / size_of(A) + 0.05
    for other in (copy.deepcopy(M), pickle.loads(pickle.dumps(M))):
        for values in (3 * A, A):
            other.update(values)
            assert (other @ b == SmoothedAggregation(values, max_coarse=50, smoother=smoother) @ b).all()
            assert kept(other, values) <= most
        for level in other.levels[:-1]:
            assert level.P.data is level.prolongation.values and level.R.data is level.restriction.values


@pytest.mark.parametrize(("shape", "most"), [((512, 512), 4), ((64, 64, 64), 4.3)])
def test_what_is_taken_at_most_while_levels_are_built(shape, most):
    A = problems.laplacian(shape)
    SmoothedAggregation(problems.laplacian((20, 20)), max_coarse=50)  # compiles
    gc.collect()
    tracemalloc.start()
    try:
        SmoothedAggregation(A)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak <= most * size_of(A)


@pytest.mark.parametrize("build", [SmoothedAggregation, ClassicalAMG])
@pytest.mark.parametrize("level", [1, 2])
def test_updates_that_fail_halfway_keep_no_more_once_one_succeeds(build, level, monkeypatch):
    A = problems.laplacian((60, 60))
    M = build(A, max_coarse=20)
    M.update(A)
    before, fail = kept(M, A), []
    original = type(M.levels[level].galerkin).update

    def update(self, matrix):
        if self is M.levels[level].galerkin and not fail:
            fail.append(1)
            raise MemoryError
        original(self, matrix)

    monkeypatch.setattr(type(M.levels[level].galerkin), "update", update)
    with pytest.raises(MemoryError):
        M.update(A)
    M.update(A)
    assert kept(M, A) <= before
