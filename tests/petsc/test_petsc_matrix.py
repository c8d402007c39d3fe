"""Rows of distributed matrices, for any pattern and any share of the ranks: products, fetched rows, sums over ranks."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from distributed import COMM
from hypothesis import given, settings
from hypothesis import strategies as st
from petsc4py import PETSc

from mcprecond.backends import get_backend
from mcprecond.interop.petsc_cycle import whole_matrix
from mcprecond.interop.petsc_halo import Halo, Ranks, ranges_of
from mcprecond.interop.petsc_matrix import DistributedMatrix, Rows

MPI_COMM = COMM.tompi4py()
RANKS = Ranks(MPI_COMM, get_backend("cpu"))
#: All ranks have to draw the same.
ALIKE = settings(derandomize=True, database=None, deadline=None)


@st.composite
def distributed(draw) -> tuple[sp.csr_array, slice, Rows]:
    """A random matrix, and the rows of it that this rank has: all, some or none."""
    seed, n = draw(st.integers(0, 2**32 - 1)), draw(st.integers(1, 40))
    rng = np.random.default_rng(seed)
    A = sp.csr_array(sp.random_array((n, n), density=draw(st.sampled_from([0.02, 0.1, 0.5])), rng=rng))
    A = sp.csr_array(A + draw(st.booleans()) * sp.eye_array(n))
    cuts = np.sort(rng.integers(0, n + 1, COMM.size - 1))
    begin, end = (int(np.concatenate(([0], cuts, [n]))[COMM.rank + step]) for step in (0, 1))
    csr = A[begin:end]
    local = csr.indptr.astype(PETSc.IntType), csr.indices.astype(PETSc.IntType), csr.data
    P = PETSc.Mat().createAIJ(((end - begin, n), (end - begin, n)), csr=local)
    P.assemble()
    rows = Rows.of(P, RANKS)
    P.destroy()
    return A, slice(begin, end), rows


@ALIKE
@given(distributed())
def test_products_are_those_of_one_process(system):
    A, own, rows = system
    x = np.random.default_rng(0).uniform(-1, 1, A.shape[0])
    matrix = DistributedMatrix(rows)
    v, y, r = matrix.halo.new_vector(), np.empty(rows.n), np.empty(rows.n)
    v[: rows.n] = x[own]
    matrix.enqueue(v, y)
    np.testing.assert_allclose(y, (A @ x)[own], atol=1e-13)
    matrix.enqueue_residual(x[own], v, r)
    np.testing.assert_allclose(r, (x - A @ x)[own], atol=1e-13)
    assert (rows.size, rows.first, rows.n) == (A.shape[0], own.start, own.stop - own.start)
    np.testing.assert_array_equal(rows.diagonal, A.diagonal()[own])


@ALIKE
@given(distributed())
def test_all_rows_on_each_rank_are_the_matrix(system):
    A, _, rows = system
    found = whole_matrix(rows)
    assert found.has_canonical_format and abs(sp.csr_array(found) - A).sum() == 0


@ALIKE
@given(distributed(), st.integers(0, 2**32 - 1))
def test_fetched_rows_are_those_of_their_owners(system, seed):
    A, _, rows = system
    rng = np.random.default_rng([seed, COMM.rank])
    wanted = np.flatnonzero(rng.random(A.shape[0]) < 0.3)
    lengths, columns, values = rows.fetch(rows.request(wanted))
    found = sp.csr_array((values, columns, np.concatenate(([0], np.cumsum(lengths)))), shape=(len(wanted), A.shape[0]))
    assert abs(found - A[wanted]).sum() == 0


@ALIKE
@given(distributed())
def test_symmetry_is_seen_on_all_ranks(system):
    A, own, _ = system
    symmetric = sp.csr_array(A + A.T + 2 * sp.eye_array(A.shape[0]))
    changed = symmetric.copy()
    changed.data[0] += A.shape[0] > 1 and symmetric.nnz > A.shape[0]
    for matrix in (symmetric, changed):
        csr = matrix[own]
        local = csr.indptr.astype(PETSc.IntType), csr.indices.astype(PETSc.IntType), csr.data
        P = PETSc.Mat().createAIJ(((csr.shape[0], A.shape[0]),) * 2, csr=local)
        P.assemble()
        expected = bool(abs(matrix - matrix.T).max() < 1e-12) if matrix.nnz else True
        assert Rows.of(P, RANKS).is_symmetric == expected
        P.destroy()


def test_sums_and_parts_of_all_ranks():
    x = np.full(3, COMM.rank + 1.0)
    RANKS.add_up(x)
    np.testing.assert_array_equal(x, np.full(3, COMM.size * (COMM.size + 1) / 2))
    parts = RANKS.gather(np.full((COMM.rank, 2), COMM.rank))
    np.testing.assert_array_equal(parts[:, 1], np.repeat(np.arange(COMM.size), np.arange(COMM.size)))
    assert RANKS.sum(COMM.rank) == COMM.size * (COMM.size - 1) // 2 and RANKS.least(-COMM.rank) == 1 - COMM.size


@pytest.mark.parametrize("counts", [[0, 3, 0, 2], [0], [5]])
def test_ranges(counts):
    ends = np.cumsum(counts)
    assert ranges_of(counts) == [
        (k, end - count, end) for k, (count, end) in enumerate(zip(counts, ends, strict=True)) if count
    ]


@ALIKE
@given(distributed(), st.integers(0, 2**32 - 1))
def test_requests_and_halos(system, seed):
    """Whatever ranks ask for, also ranks that have nothing and numbers of their own, layer by layer."""
    A, own, rows = system
    x, rng = np.arange(A.shape[0]) + 0.5, np.random.default_rng([seed, COMM.rank])
    layers = [np.flatnonzero(rng.random(A.shape[0]) < 0.3) for _ in range(3)]
    halo = Halo(RANKS, rows.n, [rows.request(numbers) for numbers in layers], np.float64)
    v = halo.new_vector()
    v[: rows.n] = x[own]
    halo.fill(v)
    np.testing.assert_array_equal(v, np.concatenate([x[own], *(x[numbers] for numbers in layers)]))
