"""Results have the same bits in every run, under load, with any number of threads, and at a level also on any GPU."""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import mcprecond
from mcprecond import (
    COLORINGS,
    PCG,
    ClassicalAMG,
    MulticolorSGS,
    SmoothedAggregation,
    color,
    deterministic,
)
from mcprecond.backends import determinism
from mcprecond.linalg.sums import norm, norm_of, total
from mcprecond.problems import graphs, laplacian

ROOT = Path(__file__).resolve().parents[2]
BUSY = {
    "cpu": "while True: pass",
    "gpu": "import cupy\na = cupy.ones((1024, 1024))\nwhile True: a @ a; cupy.cuda.Device().synchronize()",
}


@pytest.fixture(autouse=True)
def level():
    """The level that a test finds."""
    with deterministic(None):
        yield


@pytest.mark.nightly
def test_every_result_is_the_same_in_all_runs(backend):
    """With different numbers of threads: in a process by itself, which compiles for the others, and in two at once
    beside one that keeps the device busy.
    """
    command = [sys.executable, "benchmarks/determinism.py", backend.name, "--digests", "--small"]

    def run(threads):
        own = {"MCPRECOND_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": str(threads)}
        environment = os.environ | own | {"PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
        found = subprocess.run([*command, "--repeats", "1"], cwd=ROOT, env=environment, capture_output=True, text=True)
        assert found.returncode == 0, found.stderr
        return json.loads(found.stdout)

    runs = [run(2)]
    with subprocess.Popen([sys.executable, "-c", BUSY[backend.name]]) as busy:
        try:
            with ThreadPoolExecutor(2) as pool:
                runs += pool.map(run, (1, 3))
        finally:
            busy.kill()
    assert len(runs[0]) > 100
    for name, digests in runs[0].items():
        assert len(digests) == 1 and all(other[name] == digests for other in runs), name


def test_the_level_holds_in_a_block_or_from_then_on():
    deterministic("run_to_run")
    with deterministic("gpu_to_gpu") as level:
        assert level.level == "gpu_to_gpu" and determinism.is_same_on_all_gpus()
        assert repr(level) == "deterministic('gpu_to_gpu')"
    assert not determinism.is_same_on_all_gpus()
    with pytest.raises(ValueError, match="races"):
        color(laplacian((4, 4)), "eb")
    deterministic()
    assert color(laplacian((4, 4)), "eb").n_colors >= 2


@pytest.mark.parametrize(
    ("level", "error", "message"),
    [
        ("gpu-to-gpu", ValueError, "level must be one of run_to_run, gpu_to_gpu, got 'gpu-to-gpu'; did you mean"),
        (True, TypeError, "level must be a string"),
    ],
)
def test_other_levels_are_refused(level, error, message):
    with deterministic("run_to_run"):
        with pytest.raises(error, match=message):
            deterministic(level)
        with pytest.raises(ValueError, match="races"):  # the level is as it was
            color(laplacian((4, 4)), "eb")


@pytest.mark.parametrize(
    ("value", "expected"), [("", None), ("run_to_run", "run_to_run"), ("gpu_to_gpu", "gpu_to_gpu")]
)
def test_the_environment_sets_the_level(value, expected):
    assert determinism.level_of({determinism.VARIABLE: value}) == expected


def test_a_variable_that_is_misspelled_is_refused():
    with pytest.raises(ValueError, match=f"{determinism.VARIABLE} must be one of run_to_run, gpu_to_gpu, got 'yes'"):
        determinism.level_of({determinism.VARIABLE: "yes"})


@pytest.mark.parametrize("method", COLORINGS)
def test_colorings_that_race_are_refused(method, to_device):
    A = to_device(graphs.grid2d(8))
    with deterministic("run_to_run"):
        if COLORINGS[method].deterministic:
            assert color(A, method).is_valid(A)
        else:
            with pytest.raises(ValueError, match=f"'{method}' races.*choose one of .*greedy"):
                MulticolorSGS(A, method)


def test_balancing_is_refused(to_device):
    with deterministic("run_to_run"), pytest.raises(ValueError, match="balance=True races"):
        color(to_device(graphs.grid2d(8)), "greedy", balance=True)


def test_what_a_level_changes_in_sums_is_rounding(to_device, backend):
    A = to_device(laplacian((30, 30)))
    b = backend.xp.asarray(np.random.default_rng(0).uniform(-1, 1, A.shape[0]))
    by_default = PCG(A, MulticolorSGS(A), form="eisenstat").solve(b, rtol=1e-10)
    with deterministic("gpu_to_gpu"):
        found = PCG(A, MulticolorSGS(A), form="eisenstat").solve(b, rtol=1e-10)
    assert found.converged and abs(found.iterations - by_default.iterations) <= 1
    assert float(abs(found.x - by_default.x).max()) <= 1e-8 * float(abs(by_default.x).max())


@pytest.mark.parametrize("device", [pytest.param("gpu", marks=pytest.mark.gpu)])
@pytest.mark.parametrize("hubs", [False, True])
def test_all_gpus_agree_at_a_level(hubs, monkeypatch, to_device, backend):
    """A GPU with fewer multiprocessors, a smaller cache and slower memory gives the same bits as this one."""
    from mcprecond.backends import gpu

    R = graphs.rmat(12, seed=1)
    A = to_device(sp.diags_array(np.ravel(R.sum(axis=1)) + 1) - R if hubs else laplacian((40, 40, 40)))
    b = backend.xp.asarray(np.random.default_rng(0).uniform(-1, 1, A.shape[0]))

    def results():
        for M in (MulticolorSGS(A), SmoothedAggregation(A), ClassicalAMG(A)):
            yield from (M @ b, *(PCG(A, M, form=form).solve(b, rtol=1e-10).x for form in ("plain", "auto")))

    with deterministic("gpu_to_gpu"):
        expected = [x.get() for x in results()]
        own = dict(gpu._attributes_of(0))
        small = own | {"MultiProcessorCount": 24, "L2CacheSize": 2**22, "MemoryClockRate": 10**6}
        monkeypatch.setattr(gpu, "_attributes_of", lambda device: small)
        monkeypatch.setattr(gpu, "_resident_blocks", lambda kernel, device: 24)
        gpu._launchers.cache_clear()
        gpu._variant.cache_clear()
        try:
            found = [x.get() for x in results()]
        finally:
            gpu._launchers.cache_clear()
            gpu._variant.cache_clear()
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("dtype", ["int64", "float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("n", [0, 1, 1000, 100_003])
def test_sums(dtype, n, backend):
    rng = np.random.default_rng(n)
    host = (rng.uniform(-9, 9, n) + (1j * rng.uniform(-9, 9, n) if np.dtype(dtype).kind == "c" else 0)).astype(dtype)
    v = backend.xp.asarray(host)
    wide = host.astype(np.complex128 if np.dtype(dtype).kind == "c" else np.float64)
    assert complex(total(v, backend)) == pytest.approx(complex(wide.sum()), abs=1e-10)
    assert float(norm(v, backend)) == pytest.approx(float(np.linalg.norm(wide)), rel=1e-12)
    scale = np.dtype(dtype).type(2**50)
    assert norm_of(v * scale, backend) == pytest.approx(2.0**50 * float(np.linalg.norm(wide)), rel=1e-6)


def test_norms_of_what_squares_have_no_room_for(backend):
    v = backend.xp.asarray([3e300, 4e300])
    assert norm_of(v, backend) == pytest.approx(5e300) and norm_of(v / 1e300 / 1e300, backend) == pytest.approx(5e-300)


def test_sums_have_the_same_bits_with_any_number_of_threads(backend):
    v = backend.xp.asarray(np.random.default_rng(0).uniform(-1, 1, 10**6))
    before, found = mcprecond.configure(), set()
    try:
        for threads in (1, 2, 3, 7):
            mcprecond.configure(threads=threads)
            found.add((float(total(v, backend)), float(norm(v, backend))))
    finally:
        mcprecond.configure(threads=before)
    assert len(found) == 1


def test_a_level_may_be_entered_again_and_blocks_may_overlap():
    """One object in several blocks, one after the other and nested; two blocks of threads that end in their order."""
    again = deterministic("run_to_run")
    for _ in range(2):
        with again:
            with again:
                assert determinism.current_level() == "run_to_run"
            assert determinism.current_level() == "run_to_run"
        assert determinism.current_level() is None
    one, other = deterministic("run_to_run"), deterministic("gpu_to_gpu")
    with other:
        with one:
            pass
        assert determinism.current_level() == "gpu_to_gpu"
    assert determinism.current_level() is None
    one, other = deterministic("run_to_run"), deterministic("gpu_to_gpu")
    one.__enter__(), other.__enter__()
    one.__exit__(None, None, None)
    assert determinism.current_level() == "gpu_to_gpu"
    other.__exit__(None, None, None)
    other.__exit__(None, None, None)  # once too often
    assert determinism.current_level() is None
