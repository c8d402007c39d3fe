"""The caller's stream and device: everything runs there, may be captured there, and does not wait for others."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from graphs import grid5, spd, stencil27

from mcprecond import ILU0, MulticolorDILU, MulticolorGS, MulticolorSGS, color, pcg
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


KINDS = {
    "SGS": MulticolorSGS,
    "float32": lambda A: MulticolorSGS(A, dtype="float32"),
    "backward": lambda A: MulticolorGS(A, sweep="backward", omega=1.3),
    "three sweeps": lambda A: MulticolorGS(A, sweeps=3),
    "blocks": lambda A: MulticolorSGS(A, block_size=3),
    "DILU": MulticolorDILU,
    "ILU0": ILU0,
    "ILU0 natural": lambda A: ILU0(A, ordering="natural"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_an_application_captured_by_the_caller(kind):
    import cupy

    A, b = system(spd(stencil27(9)))
    M, z = KINDS[kind](A), cupy.empty_like(b)
    expected = M @ b
    cupy.cuda.Device().synchronize()
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        state = M.new_state()
        stream.begin_capture()
        M.enqueue(state, b, z)
        graph = stream.end_capture()
        for _ in range(3):
            z.fill(0)
            graph.launch()
            stream.synchronize()
            np.testing.assert_array_equal(cupy.asnumpy(z), cupy.asnumpy(expected))


def solutions_at_once(systems, devices):
    """Each system solved five times on a stream of its own, in a thread of its own, on its device."""
    import cupy

    found: list[list[np.ndarray]] = [[] for _ in systems]

    def solve(k: int) -> None:
        A, b = systems[k]
        with cupy.cuda.Device(devices[k]), cupy.cuda.Stream(non_blocking=True) as stream:
            for _ in range(5):
                x = pcg(A, b, M=MulticolorSGS(A, "ecl_gc"), rtol=1e-9).x
                stream.synchronize()
                found[k].append(cupy.asnumpy(x))

    threads = [threading.Thread(target=solve, args=(k,)) for k in range(len(systems))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


MATRICES = [spd(stencil27(8), seed=1), grid5(40), spd(grid5(30), seed=2)]


def assert_all_equal(found, expected):
    for solutions, x in zip(found, expected, strict=True):
        assert len(solutions) == 5
        for solution in solutions:
            np.testing.assert_array_equal(solution, x)


def test_several_solves_at_once():
    import cupy

    systems = [system(A) for A in MATRICES]
    expected = [cupy.asnumpy(pcg(A, b, M=MulticolorSGS(A, "ecl_gc"), rtol=1e-9).x) for A, b in systems]
    cupy.cuda.Device().synchronize()
    assert_all_equal(solutions_at_once(systems, [0] * len(systems)), expected)


def test_several_solves_at_once_on_two_devices():
    import cupy

    if cupy.cuda.runtime.getDeviceCount() < 2:
        pytest.skip("there is one GPU, and this needs two")
    expected = [cupy.asnumpy(pcg(A, b, M=MulticolorSGS(A, "ecl_gc"), rtol=1e-9).x) for A, b in map(system, MATRICES)]
    systems, devices = [], [0, 1, 1, 0]
    for A, device in zip([*MATRICES, MATRICES[0]], devices, strict=True):
        with cupy.cuda.Device(device):
            systems.append(system(A))
            cupy.cuda.Device().synchronize()
    found = solutions_at_once(systems, devices)
    assert_all_equal(found, [*expected, expected[0]])
    assert [A.data.device.id for A, _ in systems] == devices


def test_colorings_and_preconditioners_on_the_second_device():
    import cupy

    if cupy.cuda.runtime.getDeviceCount() < 2:
        pytest.skip("there is one GPU, and this needs two")
    A, b = system(MATRICES[0])
    expected = [cupy.asnumpy(build(A, "ecl_gc") @ b) for build in (MulticolorSGS, MulticolorDILU)]
    with cupy.cuda.Device(1):
        A, b = system(MATRICES[0])
        assert all(color(A, method).is_valid(A) for method in ("eb", "ecl_gc", "jp", "vb_bit"))
        for build, z in zip((MulticolorSGS, MulticolorDILU), expected, strict=True):
            np.testing.assert_array_equal(cupy.asnumpy(build(A, "ecl_gc") @ b), z)
