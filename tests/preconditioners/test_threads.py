"""One preconditioner serves any number of Python threads at once."""

from __future__ import annotations

import copy
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import numpy as np
import pytest
from graphs import grid5, random_values, spd

from mcprecond import (
    ILU0,
    PCG,
    ClassicalAMG,
    ColorBlocks,
    MulticolorDILU,
    MulticolorGS,
    MulticolorSGS,
    SmoothedAggregation,
    pcg,
)
from mcprecond.preconditioners import setup

THREADS = 16
KINDS = {
    "SGS": MulticolorSGS,
    "two sweeps": lambda A: MulticolorGS(A, sweeps=2),
    "backward": lambda A: MulticolorGS(A, sweep="backward"),
    "blocks": lambda A: MulticolorSGS(A, block_size=3),
    "DILU": MulticolorDILU,
    "ILU0": ILU0,
}
UPDATED = KINDS | {
    "multigrid": lambda A: SmoothedAggregation(A, max_coarse=20),
    "classical multigrid": lambda A: ClassicalAMG(A, max_coarse=20),
    "Chebyshev": lambda A: SmoothedAggregation(A, smoother="chebyshev", max_coarse=20),
    "color blocks": ColorBlocks,
}


def in_threads(work, backend):
    """What each thread returns: all begin together, on a GPU each on a stream of its own."""
    gate = threading.Barrier(THREADS)

    def run(number: int):
        with backend.xp.cuda.Stream(non_blocking=True) if backend.name == "gpu" else nullcontext():
            gate.wait()
            found = work(number)
            backend.synchronize()
        return found

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(run, range(THREADS)))


def right_hand_sides(n, backend):
    columns = [backend.xp.asarray(random_values(np.random.default_rng(k), n)) for k in range(THREADS)]
    backend.synchronize()
    return columns


@pytest.mark.parametrize("kind", KINDS)
def test_applications_at_once(kind, backend, to_device):
    A = to_device(spd(grid5(30)))
    M, B = KINDS[kind](A), right_hand_sides(900, backend)
    expected = [backend.to_host(M @ b) for b in B]
    for k, found in enumerate(in_threads(lambda k: [M @ B[k] for _ in range(50)], backend)):
        for z in found:
            np.testing.assert_array_equal(backend.to_host(z), expected[k])


@pytest.mark.parametrize("form", ["plain", "eisenstat"])
@pytest.mark.parametrize("kind", ["SGS", "DILU", "blocks"])
def test_solves_at_once(kind, form, backend, to_device):
    A = to_device(spd(grid5(12)))
    M, B = KINDS[kind](A), right_hand_sides(144, backend)
    expected = [backend.to_host(pcg(A, b, M=M, form=form, rtol=1e-9).x) for b in B]
    for k, found in enumerate(
        in_threads(lambda k: [pcg(A, B[k], M=M, form=form, rtol=1e-9).x for _ in range(20)], backend)
    ):
        for x in found:
            np.testing.assert_array_equal(backend.to_host(x), expected[k])


def test_smoothing_and_several_columns_at_once(backend, to_device):
    A = to_device(spd(grid5(20)))
    M, B = MulticolorSGS(A), right_hand_sides(400, backend)

    def work(k: int):
        columns = backend.xp.stack([B[k]] * (1 + k % 4), axis=1)
        return [(M @ columns)[:, 0] if step % 2 else M.smooth(B[k], B[k]) for step in range(20)]

    expected = [[backend.to_host(z) for z in work(k)] for k in range(THREADS)]
    for k, found in enumerate(in_threads(work, backend)):
        for z, right in zip(found, expected[k], strict=True):
            np.testing.assert_array_equal(backend.to_host(z), right)


def test_an_application_left_halfway_spoils_nothing(backend, to_device):
    A = to_device(spd(grid5(8)))
    M, b = MulticolorSGS(A), backend.xp.ones(64)
    expected = backend.to_host(M @ b)

    def interrupted() -> None:
        with M.workspace() as own:
            own.state.sweeps[0].substitution._y.fill(np.nan)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    np.testing.assert_array_equal(backend.to_host(M @ b), expected)


@pytest.mark.parametrize("travels", [False, True])
@pytest.mark.parametrize("kind", UPDATED)
def test_one_update_at_a_time(kind, travels, backend, to_device, monkeypatch):
    """Also of what has been copied; an update that others wait for takes long here."""
    matrices = [to_device(spd(grid5(30)) * (1.0 + k)) for k in range(THREADS)]
    M = UPDATED[kind](matrices[0])
    M = copy.deepcopy(M) if travels else M
    running, most = 0, 0
    owner, place = (ColorBlocks, "_match") if isinstance(M, ColorBlocks) else (setup, "csr_form")
    original = getattr(owner, place)

    def noted(*arguments, **options):
        nonlocal running, most
        running += 1
        most = max(most, running)
        time.sleep(0.002)
        running -= 1
        return original(*arguments, **options)

    monkeypatch.setattr(owner, place, noted)
    in_threads(lambda k: M.update(matrices[k]), backend)
    assert most == 1
    applied = (lambda own, b: own.permuted() @ b) if isinstance(M, ColorBlocks) else (lambda own, b: own @ b)
    b = right_hand_sides(900, backend)[0]
    found, each = backend.to_host(applied(M, b)), []
    for A in matrices:
        M.update(A)
        each.append(backend.to_host(applied(M, b)))
    assert sum(np.array_equal(found, other) for other in each) == 1


def test_solves_of_one_pcg(backend, to_device):
    A, rng = to_device(grid5(20)), np.random.default_rng(0)
    solver = PCG(A, MulticolorSGS(A))
    rights = [to_device(rng.uniform(-1, 1, 400)) for _ in range(8)]
    expected = [pcg(A, b, M=MulticolorSGS(A), rtol=1e-8) for b in rights]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda b: solver.solve(b, rtol=1e-8), rights))
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(backend.to_host(ours.x), backend.to_host(theirs.x))
