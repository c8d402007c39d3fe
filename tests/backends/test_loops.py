"""Loops end by a state on the device, or after a number of repetitions."""

from __future__ import annotations

import gc

import numpy as np
import pytest

from mcprecond.backends import loops


def counting(backend, last):
    """A body that counts, and sets state k to 1 once the count is last[k]; the count; the states."""
    xp = backend.xp
    count, limits = xp.zeros(1, np.int64), xp.asarray(np.array(last, np.int64))
    blocks = xp.zeros((len(last), 3), np.int64)  # states with a stride
    reached = xp.empty(len(last), bool)

    def body():
        xp.add(count, 1, out=count)
        xp.greater_equal(count, limits, out=reached)
        blocks[:, 1] = reached

    return body, count, blocks[:, 1]


@pytest.mark.parametrize("captures", [True, False])
@pytest.mark.parametrize(("last", "most", "done"), [([5], 100, 5), ([5], 3, 3), ([2, 7, 4], 100, 7), ([1], 1, 1)])
def test_a_loop_ends_by_all_states_or_the_most(backend, captures, last, most, done):
    body, count, states = counting(backend, last)
    body(), count.fill(0), states.fill(0)  # what CuPy compiles is loaded before the capture
    loop = backend.loop(body, states, captures, 1)
    for _ in range(2):
        loop(most)
        assert int(count[0]) == done
        count.fill(0)
        states.fill(0)


@pytest.mark.parametrize("captures", [True, False])
def test_a_loop_goes_on_where_it_has_stopped(backend, captures):
    body, count, states = counting(backend, [50])
    body(), count.fill(0), states.fill(0)
    loop = backend.loop(body, states, captures, 1)
    for _ in range(4):
        loop(7)
    assert int(count[0]) == 28
    loop(1000)
    done = int(count[0])
    assert 50 <= done <= 50 + 50 // loops.SHARE + 1 and (done == 50 or not captures or backend.name == "cpu")


@pytest.mark.gpu
def test_a_driver_without_conditional_nodes_repeats_a_graph(monkeypatch):
    from mcprecond.backends import get_backend

    backend = get_backend("gpu")
    monkeypatch.setattr(loops, "_kernel", lambda device: None)
    body, count, states = counting(backend, [40])
    body(), count.fill(0), states.fill(0)
    backend.loop(body, states, True, 1)(1000)
    assert 40 <= int(count[0]) <= 43


@pytest.mark.gpu
def test_a_driver_that_refuses_the_graph_repeats_one(monkeypatch):
    from mcprecond.backends import get_backend

    backend, call = get_backend("gpu"), loops._call

    def refuse(name, *arguments):
        if name == "cuGraphInstantiateWithFlags":
            raise loops.DriverError("refused")
        call(name, *arguments)

    monkeypatch.setattr(loops, "_call", refuse)
    body, count, states = counting(backend, [40])
    body(), count.fill(0), states.fill(0)
    backend.loop(body, states, True, 4)(1000)
    assert 40 <= int(count[0]) <= 43


@pytest.mark.gpu
def test_a_gpu_that_has_conditional_nodes_uses_them():
    import cupy

    driver = cupy.cuda.runtime.driverGetVersion()
    assert (loops._kernel(cupy.cuda.Device().id) is not None) == (driver >= 12040)


@pytest.mark.gpu
def test_what_fails_in_a_loop_tells_its_own_error_and_leaves_nothing_captured():
    from mcprecond.backends import get_backend

    backend = get_backend("gpu")
    kept = backend.xp.arange(3.0)

    def fail():
        kept.fill(1)
        raise ZeroDivisionError

    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            backend.loop(fail, backend.xp.zeros(1, np.int64), True, 1)
        gc.collect()
        assert backend.to_host(kept).tolist() == [0, 1, 2]
