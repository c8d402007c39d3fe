"""Sparse patterns that colorings and sweeps are tried on; all SciPy matrices on the host."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import scipy.sparse as sp
from hypothesis import strategies as st
from scipy.spatial import Delaunay

DTYPES = (np.float32, np.float64, np.complex64, np.complex128)


def stencil27(n: int) -> sp.csr_matrix:
    """The 27-point pattern of trilinear elements on n^3 nodes."""
    line = sp.diags_array([1.0, 1.0, 1.0], offsets=[-1, 0, 1], shape=(n, n))
    return sp.csr_matrix(sp.kron(sp.kron(line, line, "csr"), line, "csr"))


def grid5(n: int) -> sp.csr_matrix:
    """The 5-point Laplacian on n x n nodes, positive definite."""
    line = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n))
    eye = sp.eye_array(n)
    return sp.csr_matrix(sp.kron(line, eye, "csr") + sp.kron(eye, line, "csr"))


def spd(pattern: sp.sparray, seed: int = 0, dtype: type = np.float64) -> sp.csr_matrix:
    """A symmetric or Hermitian, diagonally dominant matrix of random values on the symmetrized pattern."""
    rng = np.random.default_rng(seed)
    half = sp.triu(pattern, 1).tocsr().astype(np.float64)
    half.data = random_values(rng, half.nnz, dtype)
    A = half + half.conj().T
    dominance = np.asarray(abs(A).sum(axis=1)).ravel() + rng.uniform(0.1, 1, A.shape[0])
    return sp.csr_matrix(A + sp.diags_array(dominance)).astype(dtype)


def dominant(pattern, seed: int = 0, dtype: type = np.float64) -> sp.csr_matrix:
    """Random values on an unsymmetric pattern, repeated entries and zeros included, and a dominant diagonal."""
    A = sp.csr_matrix(pattern).astype(np.float64)
    A.data = random_values(np.random.default_rng(seed), A.nnz, dtype)
    A = sp.coo_matrix(A)
    rows = np.asarray(abs(A).tocsr().sum(axis=1)).ravel() + np.asarray(abs(A).tocsr().sum(axis=0)).ravel() + 1
    n = A.shape[0]
    places = (np.r_[A.row, np.arange(n)], np.r_[A.col, np.arange(n)])
    return sp.csr_matrix(sp.coo_matrix((np.r_[A.data, 2 * rows], places), shape=A.shape)).astype(dtype)


def ring(n):
    return sp.diags_array([1.0] * 4, offsets=[-(n - 1), -1, 1, n - 1], shape=(n, n)).tocsr()


def laplacian(pattern, seed=0, dtype=np.float64):
    """The Laplacian of a connected graph with random weights, and its null vector; complex ones have phases."""
    n, rng = pattern.shape[0], np.random.default_rng(seed)
    W = sp.coo_array(abs(sp.csr_array(pattern)) + sp.csr_array(ring(max(n, 3)))[:n, :n])
    off = W.row < W.col
    weights = rng.integers(1, 5, int(off.sum())).astype(float)
    W = sp.coo_array((weights, (W.row[off], W.col[off])), shape=(n, n)).tocsr()
    W = W + W.T
    L = sp.diags_array(np.asarray(W.sum(axis=1)).ravel()) - W
    phases = np.exp(1j * rng.uniform(0, 6, n)) if np.dtype(dtype).kind == "c" else np.ones(n)
    D = sp.diags_array(phases)
    return sp.csr_matrix(D @ L @ D.conj()).astype(dtype), phases.astype(dtype)


def random_values(rng: np.random.Generator, count: int, dtype: type = np.float64) -> np.ndarray:
    """Numbers of absolute value below one, in double precision; complex ones in all directions."""
    values = rng.uniform(-1, 1, count)
    return values * np.exp(1j * rng.uniform(0, np.pi, count)) if np.dtype(dtype).kind == "c" else values


def star(n: int) -> sp.csr_matrix:
    """One dense row and column."""
    A = sp.lil_matrix((n, n))
    A[0, :] = 1
    A[:, 0] = 1
    return A.tocsr()


def complete(n: int) -> sp.csr_matrix:
    """Everyone is everyone's neighbor."""
    return sp.csr_matrix(np.ones((n, n)))


def messy() -> sp.csr_matrix:
    """Unsymmetric, unsorted, with duplicates, self-loops, an empty row and explicit zeros."""
    indptr = np.array([0, 3, 6, 6, 8, 10])
    indices = np.array([4, 1, 1, 1, 0, 3, 3, 0, 4, 0])
    data = np.array([1.0, 2.0, 3.0, 1.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0])
    return sp.csr_matrix((data, indices, indptr), shape=(5, 5))


NAMED = {
    "empty": sp.csr_matrix((0, 0)),
    "one": sp.csr_matrix(np.ones((1, 1))),
    "isolated": sp.csr_matrix((7, 7)),
    "diagonal": sp.csr_matrix(sp.eye_array(300)),
    "messy": messy(),
    "stencil27": stencil27(9),
    "grid5": grid5(25),
    "star": star(500),
    "complete40": complete(40),
    "complete100": complete(100),
    "dense rows": sp.csr_matrix(grid5(20) + sp.vstack([np.ones((3, 400)), sp.csr_matrix((397, 400))])),
    "unsymmetric": sp.csr_matrix(sp.random_array((300, 300), density=0.05, rng=np.random.default_rng(1))),
    "coo": sp.coo_matrix(([1.0, 1.0, 1.0], ([0, 0, 2], [1, 1, 0])), shape=(3, 3)),
    "csc": sp.csc_matrix(stencil27(4)),
}


@st.composite
def patterns(draw: st.DrawFn) -> sp.csr_matrix:
    """Any small square pattern: duplicates, self-loops, empty rows, one direction only."""
    n = draw(st.integers(1, 60))
    count = draw(st.integers(0, 4 * n))
    ends = st.lists(st.integers(0, n - 1), min_size=count, max_size=count)
    rows, columns = np.array(draw(ends), dtype=np.int32), np.array(draw(ends), dtype=np.int32)
    order = np.argsort(rows, kind="stable")
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n))]).astype(np.int32)
    return sp.csr_matrix((np.ones(count), columns[order], indptr), shape=(n, n))


@st.composite
def slices_of(draw: st.DrawFn, n: int) -> np.ndarray:
    """Where slices of n rows begin, and n: any, of 32 rows at most."""
    cuts = sorted(draw(st.sets(st.integers(1, n), max_size=n)) | {0, n})
    return np.array([*(c for a, b in pairwise(cuts) for c in range(a, b, 32)), n], np.int32)


def neighbors(A: sp.sparray) -> list[set[int]]:
    """The graph of A, the slow and obvious way."""
    A = sp.coo_matrix(A)
    adjacency: list[set[int]] = [set() for _ in range(A.shape[0])]
    for i, j in zip(A.row.tolist(), A.col.tolist(), strict=True):
        if i != j:
            adjacency[i].add(j)
            adjacency[j].add(i)
    return adjacency


def slivers(n: int, stretch: float = 4.0, seed: int = 0, *, hull: bool = False) -> sp.csr_matrix:
    """P1 elements for the Laplacian on a Delaunay triangulation of n random points, stretched. The hull is left out, or
    with `hull` the points near its left side alone: flat triangles lie at the others.

    Obtuse angles make entries off the diagonal positive.
    """
    points = np.random.default_rng(seed).random((n, 2))
    triangulation = Delaunay(points)
    corners = (points * [stretch, 1.0])[triangulation.simplices]
    sides = np.roll(corners, -1, axis=1) - np.roll(corners, 1, axis=1)
    area = abs(sides[:, 0, 0] * sides[:, 1, 1] - sides[:, 0, 1] * sides[:, 1, 0]) / 2
    elements = np.einsum("tik,tjk->tij", sides, sides) / (4 * area[:, None, None])
    rows, columns = np.broadcast_arrays(triangulation.simplices[:, :, None], triangulation.simplices[:, None, :])
    A = sp.csr_matrix((elements.ravel(), (rows.ravel(), columns.ravel())), shape=(n, n))
    inner = np.flatnonzero(points[:, 0] > 0.02) if hull else np.setdiff1d(np.arange(n), triangulation.convex_hull)
    return sp.csr_matrix(A[inner][:, inner])
