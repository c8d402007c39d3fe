"""The caller's stream: everything runs on it, may be captured on it, and does not wait for others."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from graphs import grid5, spd, stencil27

from mcprecond import MulticolorSGS, color, pcg
from mcprecond.backends import get_backend

pytestmark = pytest.mark.gpu


def system(A):
    gpu = get_backend("gpu")
    A = gpu.sparse.csr_matrix(A)
    return A, A @ gpu.xp.asarray(np.random.default_rng(0).uniform(-1, 1, A.shape[0]))


def test_on_a_stream_of_the_caller():
    import cupy

    A, b = system(spd(stencil27(9)))
    cupy.cuda.Device().synchronize()
    with cupy.cuda.Stream(non_blocking=True) as stream:
        coloring = color(A, "ecl_gc")
        result = pcg(A, b, M=MulticolorSGS(A, coloring), rtol=1e-10)
        stream.synchronize()
    assert result.converged
    assert float(cupy.linalg.norm(b - A @ result.x)) <= 1e-10 * float(cupy.linalg.norm(b))
    np.testing.assert_array_equal(cupy.asnumpy(coloring.colors), cupy.asnumpy(color(A, "ecl_gc").colors))


def test_an_application_captured_by_the_caller():
    import cupy

    A, b = system(spd(stencil27(9)))
    M, z = MulticolorSGS(A), cupy.empty_like(b)
    expected = M @ b
    cupy.cuda.Device().synchronize()
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        stream.begin_capture()
        M.enqueue(b, z)
        graph = stream.end_capture()
        for _ in range(3):
            z.fill(0)
            graph.launch()
            stream.synchronize()
            np.testing.assert_array_equal(cupy.asnumpy(z), cupy.asnumpy(expected))


def test_several_solves_at_once():
    import cupy

    systems = [system(spd(stencil27(8), seed=1)), system(grid5(40)), system(spd(grid5(30), seed=2))]
    expected = [cupy.asnumpy(pcg(A, b, M=MulticolorSGS(A, "ecl_gc"), rtol=1e-9).x) for A, b in systems]
    cupy.cuda.Device().synchronize()
    found: list[list[np.ndarray]] = [[] for _ in systems]

    def solve(k: int) -> None:
        A, b = systems[k]
        with cupy.cuda.Stream(non_blocking=True) as stream:
            for _ in range(5):
                x = pcg(A, b, M=MulticolorSGS(A, "ecl_gc"), rtol=1e-9).x
                stream.synchronize()
                found[k].append(cupy.asnumpy(x))

    threads = [threading.Thread(target=solve, args=(k,)) for k in range(len(systems))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for solutions, x in zip(found, expected, strict=True):
        assert len(solutions) == 5
        for solution in solutions:
            np.testing.assert_array_equal(solution, x)
