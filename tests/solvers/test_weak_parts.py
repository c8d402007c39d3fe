"""Weakly coupled parts of the graph of a matrix: which unknowns they have, and what constants on them would change."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import connected_components

from mcprecond.matrix import admit_matrix
from mcprecond.solvers.weak_parts import LEAST, WeakParts, find_components, spans_decades


def network(n, decades, seed, dtype):
    """A Hermitian matrix whose graph is random, with entries over so many decades, and a surplus on its diagonal."""
    random = np.random.default_rng(seed)
    W = sp.random(n, n, min(1.0, 2.5 / n), random_state=random, format="coo")
    W.data = 10.0 ** -random.uniform(0, decades, W.nnz)
    if np.dtype(dtype).kind == "c":
        W.data = W.data * np.exp(2j * np.pi * random.random(W.nnz))
    W = sp.triu(W, 1)
    W = W + W.conj().T
    surplus = 10.0 ** -random.uniform(0, decades, n) + 1e-3 * 10.0**-decades
    return sp.csr_matrix(sp.diags(np.asarray(abs(W).sum(axis=1)).ravel() + surplus) - W).astype(dtype)


def parts_by_definition(A, weak):
    """The labels of the components for each decade, without decades that join nothing."""
    beside = sp.csr_matrix(abs(A).astype(float))
    beside.setdiag(0)
    found = []
    for power in range(math.ceil(math.log10(weak)), round(math.log10(LEAST)) - 1, -1):
        count, labels = connected_components(beside >= beside.max() * 10.0**power, directed=False)
        if not found or count < found[-1].max() + 1:
            found.append(labels)
    return found


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    n=st.integers(2, 40),
    decades=st.floats(0, 12),
    seed=st.integers(0, 2**32 - 1),
    dtype=st.sampled_from([np.float64, np.complex128, np.float32]),
)
def test_levels_are_those_of_the_definition(to_device, backend, n, decades, seed, dtype):
    A = network(n, decades, seed, dtype)
    parts = WeakParts(admit_matrix(to_device(A), finite=True).canonical(), 1e-4)
    if not sp.triu(A, 1).nnz:
        assert not parts.levels
        return
    expected, r = parts_by_definition(A, 1e-4), np.random.default_rng(seed).standard_normal(n)
    assert len(parts.levels) == len(expected)
    members, wide = backend.to_host(parts.members.values), A.toarray().astype(complex)
    assert (members == 1).all()
    labels = np.empty(n, int)
    indptr, indices = (backend.to_host(v) for v in (parts.members.indptr, parts.members.indices))
    for part in range(len(indptr) - 1):
        labels[indices[indptr[part] : indptr[part + 1]]] = part
    energy = largest = 0.0
    for level, reference in zip(parts.levels, expected, strict=True):
        labels = level.parts[labels]
        assert len(set(zip(labels, reference, strict=True))) == len(set(labels)) == len(set(reference))
        selection = sp.csr_matrix((np.ones(n), (labels, np.arange(n))))
        quadratic = (selection @ wide @ selection.T).diagonal().real
        assert level.energies == pytest.approx(quadratic, rel=1e-3, abs=1e-12 * abs(wide).max())
        sums, known = selection @ r, level.energies > 0
        energy = max(energy, (sums[known] ** 2 / level.energies[known]).sum())
        largest = max(largest, abs(sums[known] / level.energies[known]).max(initial=0))
    hidden = parts.find_hidden(backend.xp.asarray(r))
    assert hidden == pytest.approx((energy, largest), rel=1e-9)


@pytest.mark.parametrize("shape", ["path", "star", "complete", "random"])
def test_components_of_large_graphs(backend, shape):
    """Many threads join the sets of the same vertices."""
    n, random = 20_000, np.random.default_rng(0)
    order = random.permutation(n)
    ends, others = {
        "path": (order[:-1], order[1:]),
        "star": (np.full(n - 1, order[0]), order[1:]),
        "complete": tuple(v.ravel() for v in np.meshgrid(np.arange(300), np.arange(300))),
        "random": random.integers(0, n, (2, n)),
    }[shape]
    sizes = random.uniform(0, 1, len(ends))
    for limit in (0.0, 0.5):
        strong = sizes >= limit
        _, expected = connected_components(
            sp.coo_matrix((np.ones(strong.sum()), (ends[strong], others[strong])), (n, n))
        )
        arrays = (
            backend.xp.asarray(v, dtype=t) for v, t in ((ends, np.int32), (others, np.int32), (sizes, np.float64))
        )
        labels = backend.to_host(find_components(n, *arrays, limit, backend))
        firsts = np.unique(expected, return_index=True)[1]
        numbers = np.empty(len(firsts), int)
        numbers[expected[np.sort(firsts)]] = np.arange(len(firsts))
        assert (labels == numbers[expected]).all()


def test_only_entries_beside_the_diagonal_count():
    A = sp.csr_matrix(sp.diags([1.0, 1.0], [-1, 1], (1000, 1000)) + sp.diags(np.tile([1e9, 4.0], 500)))
    assert not spans_decades(admit_matrix(A, finite=True), 1e-6)
    assert spans_decades(admit_matrix(network(1000, 12, 0, float), finite=True), 1e-6)
