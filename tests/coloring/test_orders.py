"""Orders of coloring: equal to slow definitions, and within the bounds that they are known for."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from graphs import NAMED, grid5, neighbors, patterns, stencil27
from hypothesis import HealthCheck, given, settings
from reference.first_fit import colors_by_urgency, serial_first_fit
from reference.orders import smallest_degree_last, smallest_degree_last_in_batches

from mcprecond import color
from mcprecond.coloring.graph import Graph
from mcprecond.coloring.orders import sequence_of

GRAPHS = [name for name in NAMED if NAMED[name].shape[0]]


def agrees_with_definitions(A, backend, to_device) -> None:
    adjacency, on_device = neighbors(A), to_device(A)
    graph = Graph.of(on_device)
    exact, degeneracy = smallest_degree_last(adjacency)
    for order, sequence in {"sdl": exact, "sdl_batch": smallest_degree_last_in_batches(adjacency)}.items():
        np.testing.assert_array_equal(backend.to_host(sequence_of(graph, order, 0)), sequence)
        for method in ("greedy", "jp"):
            coloring = color(on_device, method, order=order)
            np.testing.assert_array_equal(backend.to_host(coloring.colors), serial_first_fit(A, sequence))
            assert coloring.n_colors <= degeneracy + 1
    for order in ("sd", "id"):
        colors = backend.to_host(color(on_device, "greedy", order=order).colors)
        np.testing.assert_array_equal(colors, colors_by_urgency(adjacency, order))


@pytest.mark.parametrize("name", GRAPHS)
def test_orders_are_as_defined(name, backend, to_device):
    agrees_with_definitions(NAMED[name], backend, to_device)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(A=patterns())
def test_orders_are_as_defined_on_any_pattern(backend, to_device, A):
    agrees_with_definitions(A, backend, to_device)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(A=patterns())
def test_saturation_colors_bipartite_graphs_with_two(to_device, A):
    both = to_device(sp.csr_matrix(sp.block_array([[None, A], [A.T, None]])))
    assert color(both, "greedy", order="sd").n_colors == (2 if A.nnz else 1)


def test_batches_are_the_same_everywhere(backend, to_device):
    """Degrees from one to hundreds, so that levels have many batches and batches many vertices."""
    rng = np.random.default_rng(4)
    weights = rng.pareto(1.2, 1000) + 1
    ends = rng.choice(1000, size=(2, 6000), p=weights / weights.sum())
    A = sp.csr_matrix((np.ones(6000), ends), shape=(1000, 1000))
    sequence = sequence_of(Graph.of(to_device(A)), "sdl_batch", 0)
    np.testing.assert_array_equal(backend.to_host(sequence), smallest_degree_last_in_batches(neighbors(A)))


def test_orders_pay(to_device):
    A = to_device(stencil27(12))
    by_random = color(A, "greedy", order="random").n_colors
    for order in ("sdl", "sdl_batch", "sd", "id"):
        assert color(A, "greedy", order=order).n_colors < by_random


def test_dynamic_orders_are_for_greedy_only(to_device):
    with pytest.raises(ValueError, match="order must be one of natural, random, ldf, sdl, sdl_batch or a permutation"):
        color(to_device(grid5(4)), "jp", order="sd")
