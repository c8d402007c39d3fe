"""method="auto": what it picks, by degrees and the numbering of rows."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from graphs import NAMED, grid5, patterns, star, stencil27
from hypothesis import HealthCheck, given, settings

from benchmarks.families import mycielskian, random_regular
from mcprecond import COLORINGS, color
from mcprecond.coloring import Graph
from mcprecond.coloring.auto import fronts_expected
from mcprecond.problems import graphs, laplacian

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"

#: Graphs of the record that are small enough to be made here, and what is picked for them.
MEASURED = {"fenl_50": (lambda: graphs.fenl(50), "greedy"), "grid2d_1024": (lambda: graphs.grid2d(1024), "greedy")}
MEASURED["mycielskian15"] = lambda: mycielskian(15), "ecl_gc"


@pytest.mark.parametrize("name", MEASURED)
def test_among_the_fastest_with_few_colors(name):
    """In the record, at most 1.5 times the time of any parallel method within one color of the fewest."""
    make, expected = MEASURED[name]
    method = color(make(), "auto").method
    assert method == expected
    document = json.loads((RESULTS / "coloring-gpu.json").read_text())
    rows = next(case["methods"] for case in document["cases"] if case["name"] == name)
    parallel = [row for label, row in rows.items() if label not in ("csrcolor", "greedy")]
    fewest = min(row["colors"] for row in parallel)
    fastest = min(row["ms"] for row in parallel if row["colors"] <= fewest + 1)
    chosen = rows["jp natural" if method == "greedy" else method]  # on a GPU the same kernel
    assert chosen["colors"] <= fewest + 1 and chosen["ms"] <= 1.5 * fastest


def shuffled(A):
    order = np.random.default_rng(0).permutation(A.shape[0])
    return A[order][:, order]


@pytest.mark.parametrize(
    "A",
    [
        grid5(64),
        stencil27(32),
        laplacian((2000, 5)),
        laplacian((5, 2000)),
        laplacian((6, 400, 6)),
        laplacian((90, 40), points=9),
        sp.diags_array([1.0] * 3, offsets=[-1, 0, 1], shape=(500, 500), format="csr"),
    ],
    ids=["grid", "stencil", "thin", "long", "slab", "nine points", "band"],
)
def test_fronts_of_numbered_meshes(A, to_device):
    graph = Graph.of(to_device(A))
    fronts = color(to_device(A), "jp", order="natural").rounds
    assert fronts / 2.5 < fronts_expected(graph) < 1.5 * fronts


@pytest.mark.parametrize("A", [grid5(100), stencil27(24), graphs.rmat(12)], ids=["grid", "stencil", "rmat"])
def test_no_mesh_in_a_random_numbering(A, to_device):
    assert fronts_expected(Graph.of(to_device(shuffled(A)))) == 0


def test_fronts_of_nodes(to_device):
    A = graphs.elasticity_pattern(12)
    fronts = color(to_device(A), "jp", order="natural").rounds / 3
    assert fronts / 2.5 < fronts_expected(Graph.of(to_device(A)), 3) < 1.5 * fronts


CASES = {
    "grid": (grid5(40), "greedy"),
    "stencil27": (stencil27(30), "greedy"),
    "elasticity": (graphs.elasticity_pattern(24), "greedy"),
    "rmat": (graphs.rmat(10), "ecl_gc"),
    "mycielskian": (mycielskian(8), "ecl_gc"),
    "regular": (random_regular(2000, 6), "ecl_gc"),
    "tridiagonal": (sp.csr_matrix(sp.diags_array([1.0, 1.0, 1.0], offsets=[-1, 0, 1], shape=(3000, 3000))), "ecl_gc"),
    "thin": (laplacian((20_000, 4)), "ecl_gc"),
    "shuffled grid": (shuffled(grid5(40)), "ecl_gc"),
    "banded": (sp.csr_matrix(sp.diags_array([1.0] * 5, offsets=[-2, -1, 0, 1, 2], shape=(3000, 3000))), "ecl_gc"),
    "empty": (NAMED["empty"], "ecl_gc"),
    "isolated": (NAMED["isolated"], "ecl_gc"),
}


@pytest.mark.parametrize("name", CASES)
def test_auto_is_the_method_that_it_names(name, backend, to_device):
    A, expected = CASES[name]
    on_device = to_device(A)
    coloring = color(on_device, "auto", seed=3)
    assert coloring.method == expected
    same = color(on_device, expected, seed=3)
    np.testing.assert_array_equal(backend.to_host(coloring.colors), backend.to_host(same.colors))
    assert coloring.is_valid(on_device)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(A=patterns())
def test_auto_on_any_pattern(to_device, A):
    on_device = to_device(A)
    coloring = color(on_device, "auto")
    assert coloring.is_valid(on_device) and coloring.method in COLORINGS


def test_auto_is_no_method_and_has_no_options(to_device):
    A = to_device(grid5(4))
    assert "auto" not in COLORINGS
    with pytest.raises(TypeError, match="'auto' has no option 'order'; it has none"):
        color(A, "auto", order="natural")
    with pytest.raises(ValueError, match=r"known are eb, .*, auto"):
        color(A, "best")


def test_at_distance_two_no_graph_of_pairs_is_built(to_device):
    """A star of so many leaves has 10^9 pairs."""
    coloring = color(to_device(star(30_000)), distance=2)
    assert coloring.method == "jp" and coloring.n_colors == coloring.colors.size


def test_auto_with_distance_and_refinements(to_device):
    A = to_device(grid5(40))
    assert color(A, "auto", distance=2, recolor=1, balance=True).is_valid(A)
