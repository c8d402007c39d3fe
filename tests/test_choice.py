"""coloring="auto" of the preconditioners: what it picks, how it says why, and the model behind it."""

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
from mcprecond.coloring import Graph
from mcprecond.matrix import admitted
from mcprecond.tuning.auto import choose, first_rows, fronts_expected, longest_chain
from mcprecond.tuning.cost_model import SPEEDS, Degrees
from mcprecond.tuning.remainder import remainder_of

RESULTS = Path(__file__).resolve().parent.parent / "benchmarks" / "results"
CPU = get_backend("cpu")


def fenl(n):
    problem = problems.fenl(n)
    return problem.jacobian(problem.exact())


def band(n):
    return sp.diags_array([-1.0, 4.0, -1.0], offsets=[-1, 0, 1], shape=(n, n), format="csr")


def on_gpu(A, iterations):
    """The choice by the speeds of a GPU, made on the CPU."""
    return choose(admitted(A), iterations, SPEEDS["gpu"])[1]


@pytest.mark.parametrize("A", [fenl(40), spd(stencil27(40))], ids=["fenl", "stencil"])
def test_row_order_pays_for_many_iterations_on_a_gpu(A):
    few, many = on_gpu(A, 1), on_gpu(A, 1000)
    assert few.method in ("eb", "ecl_gc") and many.method == "greedy"
    assert few.candidates[0].n_colors > many.candidates[-1].n_colors == 8


def test_row_order_does_not_pay_where_fronts_are_as_many_as_rows():
    choice = on_gpu(band(60_000), 1000)
    row_order = choice.candidates[-1]
    assert choice.method in ("eb", "ecl_gc")
    assert row_order.method == "greedy" and row_order.n_colors is None and row_order.remark == "60000 fronts or more"


def test_on_a_cpu_row_order_comes_first_and_another_has_to_pay():
    A = fenl(16)
    few = choose(admitted(A), 1, SPEEDS["cpu"])[1]
    assert few.method == "greedy" and [c.n_colors for c in few.candidates] == [8, None]
    many = choose(admitted(problems.graphs.grid2d(400)), 100_000, SPEEDS["cpu"])[1]
    row_order, other = many.candidates
    assert row_order.n_colors == 2 < other.n_colors and row_order.iterations > other.iterations
    assert many.method == "greedy"  # with two colors half of the vectors are kept apart


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(A=patterns(), iterations=st.sampled_from([1, 30, 1000]), speeds=st.sampled_from(["cpu", "gpu"]))
def test_the_least_of_all_candidates(to_device, backend, A, iterations, speeds):
    A = to_device(spd(A))
    coloring, choice = choose(admitted(A), iterations, SPEEDS[speeds])
    assert coloring.is_valid(A) and coloring.method == choice.method
    chosen = next(c for c in choice.candidates if c.method == choice.method)
    assert chosen.n_colors == coloring.n_colors
    assert chosen.total_seconds == min(c.total_seconds for c in choice.candidates)
    assert len({c.method for c in choice.candidates}) == len(choice.candidates)


def test_what_it_says(to_device):
    A = to_device(fenl(14))
    M = MulticolorSGS(A, coloring="auto")
    choice = M.choice
    assert choice.expected_iterations == 100 and M.coloring.method == choice.method
    assert f"{choice.method} with {M.n_colors} colors" in choice.reason and choice.reason.count(" ms") >= 2
    text = str(choice)
    assert all(c.method in text for c in choice.candidates) and "100 iterations" in text
    lines = text.splitlines()
    assert len(lines) <= 24 and lines[0] == choice.reason


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
    assert next(c for c in M.choice.candidates if c.method == M.choice.method).n_colors == M.n_colors
    assert pcg(A, backend.xp.ones(A.shape[0]), M=M).converged
    with pytest.raises(ValueError, match="block_size 4 does not divide"):
        MulticolorSGS(A, "auto", block_size=4)


def test_of_complex_values(to_device, backend):
    A = spd(stencil27(6))
    seconds = SPEEDS[backend.name].iteration_seconds
    for dtype, itemsize in ((float, 8), (complex, 16)):
        first = MulticolorSGS(to_device(A.astype(dtype)), "auto").choice.candidates[0]
        assert first.iteration_seconds == seconds(216, A.nnz, itemsize, first.n_colors, 1)
    assert seconds(216, A.nnz, 16, 8, 1) > seconds(216, A.nnz, 8, 8, 1)


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
    coloring, choice = choose(admitted(A), 100, SPEEDS["gpu"])
    assert coloring.is_valid(A) and choice.reason


def test_the_remainder_is_what_M_adds_for_ones(to_device, backend):
    A = spd(stencil27(5), seed=4)
    coloring = color(A, "ecl_gc")
    M, ones = MulticolorSGS(A, coloring), np.ones(125)
    inverse = M @ np.eye(125)
    added = ones @ (np.linalg.inv(inverse) - A) @ ones
    on_device = to_device(A)
    assert remainder_of(admitted(on_device), backend.xp.asarray(coloring.colors)) == pytest.approx(added)
    assert remainder_of(admitted(on_device), None) <= added * (1 + 1e-12)


@pytest.mark.parametrize(
    ("A", "fronts", "chain"),
    [(grid5(64), 127, 64), (stencil27(32), 7 * 32 - 6, 32), (band(500), 500, 500)],
    ids=["grid", "stencil", "band"],
)
def test_fronts_and_chains(A, fronts, chain, to_device):
    graph = Graph.of(to_device(A))
    assert longest_chain(graph) == chain
    assert fronts_expected(graph) == pytest.approx(fronts, rel=0.15)
    assert color(to_device(A), "jp", order="natural").rounds == fronts


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(A=patterns(), share=st.floats(0, 1))
def test_first_rows(to_device, backend, A, share):
    rows = int(share * A.shape[0])
    graph = Graph.of(to_device(A))
    expected = Graph.of(to_device(sp.csr_matrix(A)[:rows, :rows]))
    found = first_rows(graph, rows)

    def edges(graph):
        indptr, indices = (backend.to_host(array) for array in (graph.indptr, graph.indices))
        owners = np.repeat(np.arange(rows), np.diff(indptr))
        return {(int(i), int(j)) for i, j in zip(owners, indices, strict=True) if i != j}

    assert edges(found) == edges(expected)


def test_the_model_of_an_iteration_fits_the_record():
    """What choice.py says of benchmarks/results/sweeps-gpu.json."""
    document = json.loads((RESULTS / "sweeps-gpu.json").read_text())
    for case in document["cases"]:
        for row in case["sweeps"]:
            if row.get("block_size", 1) == 1:
                predicted = 1e3 * SPEEDS["gpu"].iteration_seconds(case["unknowns"], case["nnz"], 8, row["colors"])
                assert 0.8 < predicted / row["iteration_ms"] < 1.2, (case["name"], row["name"])


def test_the_model_of_a_coloring_fits_the_record():
    """Within a factor of two and a half, over four orders of magnitude."""
    document = json.loads((RESULTS / "coloring-gpu.json").read_text())
    for case in document["cases"]:
        n, entries = case["vertices"], case["entries"]
        skew = float(np.log2(case["max_degree"] * n / entries))
        degrees = Degrees(max(skew, 0.0), entries)
        for method, row in (("ecl_gc", "ecl_gc"), ("eb", "eb"), ("greedy", "jp natural")):
            measured = case["methods"][row]
            predicted = 1e3 * SPEEDS["gpu"].colorings[method].seconds(degrees, measured["rounds"])
            assert 0.4 < predicted / measured["ms"] < 2.5, (case["name"], method)
    assert len(document["cases"]) >= 10
