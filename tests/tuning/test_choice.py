"""coloring="auto" of the preconditioners, the least time: what it picks, how it says why, and the model behind it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from graphs import NAMED, grid5, patterns, spd, stencil27
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcprecond import ILU0, AutoColoring, MulticolorDILU, MulticolorGS, MulticolorSGS, color, pcg, problems, smooth
from mcprecond.backends import get_backend
from mcprecond.matrix import admit_matrix
from mcprecond.tuning.cost_model import H200, MEASURED, Degrees, speeds_of
from mcprecond.tuning.least_time import choose

RESULTS = Path(__file__).resolve().parents[2] / "benchmarks" / "results"
CPU = get_backend("cpu")


def fenl(n):
    problem = problems.fenl(n)
    return problem.jacobian(problem.exact())


def band(n):
    return sp.diags_array([-1.0, -1.0, 6.0, -1.0, -1.0], offsets=[-2, -1, 0, 1, 2], shape=(n, n), format="csr")


def on_gpu(A, iterations):
    """The choice by the speeds of a GPU, made on the CPU."""
    return choose(admit_matrix(A), iterations, MEASURED["gpu"])


@pytest.mark.parametrize("matrix", [lambda: fenl(40), lambda: spd(stencil27(40))], ids=["fenl", "stencil"])
def test_row_order_pays_for_many_iterations_on_a_gpu(matrix):
    A = matrix()
    few, many = on_gpu(A, 1), on_gpu(A, 1000)
    assert few.method == "ecl_gc" and many.method == "greedy"
    assert [candidate.n_colors for candidate in many.candidates] == [8, 17]  # as many as there are
    assert "fronts or so" in str(many)


def test_row_order_does_not_pay_where_fronts_are_as_many_as_rows():
    choice = on_gpu(band(60_000), 1000)
    assert choice.method == "ecl_gc" and choice.candidates[-1].remark == "60000 fronts or so"


def test_row_order_does_not_pay_in_a_random_numbering():
    A = spd(grid5(60))
    order = np.random.default_rng(1).permutation(3600)
    assert on_gpu(A, 1000).method == "greedy"
    assert [candidate.method for candidate in on_gpu(A[order][:, order], 1000).candidates] == ["ecl_gc"]


@given(A=patterns(), iterations=st.sampled_from([1, 100, 100_000]))
def test_on_a_cpu_nothing_is_quicker_than_row_order(A, iterations):
    assert choose(admit_matrix(spd(A)), iterations, MEASURED["cpu"]).method == "greedy"


def test_a_coloring_for_itself_goes_by_another_rule():
    """Few colors first: on a CPU first-fit takes least time on any graph, and more colors on one like this."""
    A = spd(problems.graphs.rmat(10))
    M, coloring = MulticolorSGS(A), color(A)
    assert (M.coloring.method, coloring.method) == ("greedy", "ecl_gc") and coloring.n_colors <= M.n_colors


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(A=patterns(), iterations=st.sampled_from([1, 30, 1000]))
def test_the_least_of_all_candidates(to_device, A, iterations):
    A = to_device(spd(A))
    M = MulticolorSGS(A, AutoColoring(iterations))
    choice = M.choice
    assert M.coloring.is_valid(A) and M.coloring.method == choice.method == choice.candidates[0].method
    totals = [candidate.total_seconds for candidate in choice.candidates]
    assert totals == sorted(totals) and len({c.method for c in choice.candidates}) == len(choice.candidates)


def test_what_it_says(to_device):
    M = MulticolorSGS(to_device(fenl(14)))
    choice = M.choice
    assert choice.expected_iterations == 100 and M.coloring.method == choice.method
    assert choice.reason.startswith(f"{choice.method} is predicted to take ") and choice.reason.count(" ms") == 2
    text = str(choice)
    assert all(c.method in text for c in choice.candidates) and "100 x" in text
    assert len(text.splitlines()) == 3 + len(choice.candidates) and text.splitlines()[0] == choice.reason


def test_the_same_every_time(to_device):
    A = to_device(fenl(14))
    first, second = (MulticolorSGS(A, AutoColoring(30)).choice for _ in range(2))
    assert (first.method, len(first.candidates)) == (second.method, len(second.candidates))


@pytest.mark.parametrize("kind", [MulticolorGS, MulticolorSGS, MulticolorDILU, lambda A, c: ILU0(A, coloring=c)])
def test_in_every_preconditioner(kind, to_device, backend):
    A = to_device(spd(grid5(12)))
    b = backend.xp.ones(144)
    chosen = kind(A, AutoColoring(expected_iterations=7))
    same = kind(A, color(A, chosen.choice.method))
    assert chosen.choice.expected_iterations == 7 and same.choice is None
    assert pcg(A, b, M=chosen).converged
    chosen.update(2 * A)
    assert chosen.choice.method == color(A, chosen.choice.method).method


def test_in_blocks_nodes_are_colored(to_device, backend):
    A = to_device(problems.elasticity(5).tocsr())
    M = MulticolorSGS(A, "auto", block_size=3)
    assert len(M.coloring.colors) == A.shape[0] // 3 and M.choice.method == M.coloring.method
    assert pcg(A, backend.xp.ones(A.shape[0]), M=M).converged
    with pytest.raises(ValueError, match="block_size 4 does not divide"):
        MulticolorSGS(A, "auto", block_size=4)


def test_of_complex_values():
    seconds = MEASURED["gpu"].iteration_seconds
    A = spd(stencil27(20))
    for dtype, itemsize in ((float, 8), (complex, 16)):
        first = choose(admit_matrix(A.astype(dtype)), 100, MEASURED["gpu"]).candidates[0]
        assert first.iteration_seconds == seconds(8000, A.nnz, itemsize, first.n_colors, 1)
    assert seconds(8000, A.nnz, 16, 8, 1) > seconds(8000, A.nnz, 8, 8, 1)


def test_in_smooth_and_without_color_order(to_device, backend):
    A = to_device(spd(grid5(6)))
    x = smooth(A, backend.xp.zeros(36), backend.xp.ones(36), coloring="auto")
    assert float(abs(x).max()) > 0
    assert ILU0(A, ordering="natural", coloring="auto").choice is None


@pytest.mark.parametrize("iterations", [0, -1, 2.5, "many"])
def test_bad_numbers_of_iterations(iterations):
    with pytest.raises(ValueError, match="expected_iterations must be a positive integer, got"):
        AutoColoring(iterations)


@pytest.mark.parametrize("name", ["empty", "isolated"])
def test_hardly_any_edges(name, to_device, backend):
    A = to_device(spd(NAMED[name]))
    choice = choose(admit_matrix(A), 100, MEASURED["gpu"])
    assert choice.reason and MulticolorSGS(A).coloring.is_valid(A)


def test_speeds_follow_memory_and_cache(backend, monkeypatch):
    measured = MEASURED["gpu"]

    class Slower:
        name, memory_speed, shared_cache = "gpu", H200[0] / 4, H200[1] // 2

    slower = speeds_of(Slower())
    assert slower.bandwidth == measured.bandwidth / 4 and slower.cache == measured.cache / 2
    assert slower.step == measured.step and slower.colorings["greedy"].per_front == 1e-6
    degrees = Degrees(10**6, 10**7, 11)
    before, after = (speeds.colorings["ecl_gc"].seconds(degrees) for speeds in (measured, slower))
    assert 2 * before < after < 4 * before
    assert speeds_of(backend).bandwidth > 1e9


def test_the_model_of_an_iteration_fits_the_record():
    """What the cost model says of benchmarks/results/sweeps-gpu.json."""
    document = json.loads((RESULTS / "sweeps-gpu.json").read_text())
    for case in document["cases"]:
        for row in case["sweeps"]:
            if row.get("block_size", 1) == 1:
                predicted = 1e3 * MEASURED["gpu"].iteration_seconds(case["unknowns"], case["nnz"], 8, row["colors"])
                assert 0.8 < predicted / row["iteration_ms"] < 1.2, (case["name"], row["name"])


def test_the_model_of_a_coloring_fits_the_record():
    """Within a factor of two and a half, over four orders of magnitude."""
    document = json.loads((RESULTS / "coloring-gpu.json").read_text())
    for case in document["cases"]:
        n, entries = case["vertices"], case["entries"]
        degrees = Degrees(n, entries, case["max_degree"])
        for method, row in (("ecl_gc", "ecl_gc"), ("greedy", "jp natural")):
            measured = case["methods"][row]
            predicted = 1e3 * MEASURED["gpu"].colorings[method].seconds(degrees, measured["rounds"])
            assert 0.4 < predicted / measured["ms"] < 2.5, (case["name"], method)
    assert len(document["cases"]) >= 10
