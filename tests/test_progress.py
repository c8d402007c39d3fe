"""Kernels that wait for other threads come to an end, however few blocks there are and whoever else uses the GPU.

docs/explanation/progress.md says why. A grid of one block is the hardest case: what waits and what is awaited share it.
"""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from colorings import VARIANTS, check, is_bounded
from graphs import complete, grid5, spd, star, stencil27

from mcprecond import COLORINGS, ILU0, MulticolorDILU, MulticolorGS, MulticolorSGS, SmoothedAggregation, color, pcg
from mcprecond.backends import get_backend, gpu
from mcprecond.problems import graphs

pytestmark = pytest.mark.gpu

#: Thousands of vertices for a few hundred threads; hubs; long waits; and rows of high degree that wait for each other.
GRAPHS = {
    "stencil27": lambda: stencil27(14),
    "hub": lambda: star(1500),
    "complete": lambda: complete(150),
    "path": lambda: sp.csr_matrix(sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(3000, 3000))),
    "rmat": lambda: graphs.rmat(11, seed=3),
}
OPERATORS = {
    "SGS": MulticolorSGS,
    "float32": partial(MulticolorSGS, dtype="float32"),
    "backward": partial(MulticolorGS, sweep="backward", omega=1.3),
    "three sweeps": partial(MulticolorGS, sweeps=3),
    "blocks": partial(MulticolorSGS, block_size=2),
    "DILU": MulticolorDILU,
    "ILU0": lambda A, coloring: ILU0(A, ordering="color", coloring=coloring),
    "ILU0 in row order": lambda A, coloring: ILU0(A, ordering="natural"),
}
MATRICES = {
    "stencil27": lambda: spd(stencil27(12)),
    "hub": lambda: spd(star(1500)),
    "chain": lambda: spd(sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(3000, 3000))),
}


def forget_launchers():
    gpu._variant.cache_clear()
    gpu._launchers.cache_clear()


@pytest.fixture(params=[1, 3], ids="{}-blocks".format)
def few_blocks(request, monkeypatch):
    """Grids that wait, and those that stride, have so many blocks at most."""
    asked = []

    def resident_blocks(kernel, device):
        asked.append(kernel)
        return request.param

    forget_launchers()
    monkeypatch.setattr(gpu, "_resident_blocks", resident_blocks)
    yield request.param
    forget_launchers()
    assert asked  # so the kernels of this test were launched that way


def on_gpu(A):
    backend = get_backend("gpu")
    return backend.sparse.csr_matrix(A) if sp.issparse(A) else backend.xp.asarray(A)


def on_host(array):
    return get_backend("gpu").to_host(array)


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("variant", VARIANTS)
def test_colorings_end(variant, name, few_blocks):
    method, options = VARIANTS[variant]
    A = GRAPHS[name]()
    coloring = color(on_gpu(A), method, **options)
    colors = on_host(coloring.colors)
    check(A, coloring, colors, is_bounded(method, options))
    if COLORINGS[method].deterministic:
        np.testing.assert_array_equal(colors, color(A, method, **options).colors)


@pytest.mark.parametrize("method", ["ecl_gc", "jp", "eb"])
def test_colorings_at_distance_two_end(method, few_blocks):
    A = grid5(40)
    coloring = color(on_gpu(A), method, distance=2)
    assert coloring.is_valid(on_gpu(A))
    if COLORINGS[method].deterministic:
        np.testing.assert_array_equal(on_host(coloring.colors), color(A, method, distance=2).colors)


@pytest.mark.parametrize("order", ["ldf", "ldf_natural", "natural"])
def test_high_and_low_degrees_that_wait_for_each_other_end(order, few_blocks):
    """Rows of more than 32 neighbors have warps, others teams; in row order either kind may wait for the other."""
    A = sp.csr_matrix(sp.block_diag([complete(60), grid5(30)]) + sp.random_array((960, 960), density=0.004, rng=1))
    A = sp.csr_matrix(A + A.T)
    coloring = color(on_gpu(A), "ecl_gc", order=order)
    np.testing.assert_array_equal(on_host(coloring.colors), color(A, "ecl_gc", order=order).colors)


@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize("kind", OPERATORS)
def test_sweeps_and_factorizations_end(kind, name, few_blocks):
    A = MATRICES[name]()
    r = np.random.default_rng(0).uniform(-1, 1, A.shape[0])
    pattern = sp.csr_matrix(A)
    if kind == "blocks":
        nodes = sp.bsr_matrix(A, blocksize=(2, 2))
        pattern = sp.csr_matrix((np.ones(len(nodes.indices)), nodes.indices, nodes.indptr))
    colors = color(pattern, "greedy").colors  # the same for both
    expected = OPERATORS[kind](A, coloring=colors) @ r
    z = on_host(OPERATORS[kind](on_gpu(A), coloring=on_gpu(colors)) @ on_gpu(r))
    np.testing.assert_allclose(z, expected, rtol=0, atol=(1e-5 if kind == "float32" else 1e-12) * abs(expected).max())


@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize("form", ["eisenstat", "plain"])
def test_solves_end(form, name, few_blocks):
    A = MATRICES[name]()
    b = A @ np.random.default_rng(1).uniform(-1, 1, A.shape[0])
    gpu_A = on_gpu(A)
    result = pcg(gpu_A, on_gpu(b), M=MulticolorSGS(gpu_A, "greedy"), rtol=1e-10, form=form)
    assert result.converged
    assert np.linalg.norm(b - A @ on_host(result.x)) <= 2e-10 * np.linalg.norm(b)


def test_multigrid_ends(few_blocks):
    A = grid5(90)
    b = A @ np.random.default_rng(2).uniform(-1, 1, A.shape[0])
    ml = SmoothedAggregation(on_gpu(A))
    assert [level.A.shape for level in ml.levels] == [level.A.shape for level in SmoothedAggregation(A).levels]
    x = on_host(ml.solve(on_gpu(b), tol=1e-8))
    assert np.linalg.norm(b - A @ x) <= 1e-7 * np.linalg.norm(b)


PROCESSES, TURNS = 6, 20


def work() -> None:
    """What each process does again and again: it colors, sweeps, factorizes and solves, on grids that fill the GPU."""
    A = spd(stencil27(24))
    gpu_A, r = on_gpu(A), np.random.default_rng(0).uniform(-1, 1, A.shape[0])
    gpu_r = on_gpu(r)
    expected = {method: color(A, method).colors for method in ("ecl_gc", "jp")}
    operators = [MulticolorSGS(A, "jp"), ILU0(A, coloring="jp"), MulticolorGS(A, "jp", sweeps=2)]
    applied = [M @ r for M in operators]
    for _ in range(TURNS):
        for method, colors in expected.items():
            np.testing.assert_array_equal(on_host(color(gpu_A, method).colors), colors)
        assert color(gpu_A, "vb_bit").is_valid(gpu_A)
        there = [MulticolorSGS(gpu_A, "jp"), ILU0(gpu_A, coloring="jp"), MulticolorGS(gpu_A, "jp", sweeps=2)]
        for M, z in zip(there, applied, strict=True):
            np.testing.assert_allclose(on_host(M @ gpu_r), z, rtol=0, atol=1e-12 * abs(z).max())
        assert pcg(gpu_A, gpu_r, M=there[0], rtol=1e-10).converged
    print("done")


def test_processes_that_share_a_gpu_end():
    """Resident grids of several processes at once. Under MPS, where a server runs, they are on the GPU side by side."""
    work_there = "import sys; sys.path.insert(0, sys.argv[1]); import test_progress; test_progress.work()"
    command = [sys.executable, "-c", work_there, str(Path(__file__).parent)]
    processes = [
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=Path(__file__).parents[1]
        )
        for _ in range(PROCESSES)
    ]
    try:
        said = [process.communicate(timeout=400)[0] for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    assert [process.returncode for process in processes] == [0] * PROCESSES, "\n".join(said)
    assert all(text.endswith("done\n") for text in said)


@pytest.mark.parametrize("columns", [1, 3])
def test_after_a_minute_without_progress_the_log_says_once_what_to_try(columns, monkeypatch, caplog):
    from mcprecond import problems
    from mcprecond.solvers import driver

    A = problems.laplacian((60, 60))
    b = np.random.default_rng(0).standard_normal((A.shape[0], columns))
    said = lambda: [record for record in caplog.records if "has run for a minute" in record.getMessage()]  # noqa: E731
    pcg(A, b, rtol=1e-8)
    assert not said()
    monkeypatch.setattr(driver, "MINUTE", 0.0)
    pcg(A, b, rtol=1e-8)
    assert len(said()) == 1 and "studies.advise" in said()[0].getMessage()
