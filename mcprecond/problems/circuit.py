"""A power grid of resistors, at random."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from mcprecond.backends import get_backend
from mcprecond.problems.graphs.simple import seed_of, size_of
from mcprecond.problems.placing import place_matrix

#: Of the wires across, so many are missing: 5 % of all.
MISSING = 0.1
#: Long wires per node.
LONG = 1 / 64
#: One node in so many is a pad.
NODES_PER_PAD = 1024
#: Conductances lie between 10^-2 and 10^2, their logarithms are uniform.
DECADES = 2.0


def circuit(n: int, *, seed: int = 0, device: str = "cpu") -> Any:
    """Return the nodal matrix of a random n x n power grid: a stand-in for the matrix G3_circuit, not that matrix.

    A mesh of resistors without a tenth of its wires in y, with one long wire, between any two nodes, for 64 nodes.
    Conductances are log-uniform over four decades; one node in 1024, the first always, is a pad with one to ground. It
    has the size (n = 1259), sparsity and symmetry of G3_circuit, and like it a wide range of values; its degrees,
    spectrum and numbering are others. With random ends, the long wires make the bandwidth n^2, and triangles have tens
    of times more levels, narrower ones, than those of the mesh alone or of G3_circuit.

    Parameters
    ----------
    n : int
        Nodes along an edge. They are numbered x fastest.
    seed : int
    device : {"cpu", "gpu"}
        SciPy or CuPy. Assembled on the CPU.

    Returns
    -------
    csr_matrix of SciPy or CuPy, shape (n^2, n^2)
        float64, sorted, symmetric positive definite; about 4.8 entries a row.

    Raises
    ------
    TypeError, ValueError
        If n is not a positive integer, the seed is out of range, or the device is unknown or missing.

    References
    ----------
    AMD/G3_circuit in the SuiteSparse Matrix Collection: 1,585,478 rows, 7,660,826 entries.

    Examples
    --------
    >>> from mcprecond import problems
    >>> A = problems.circuit(200)
    >>> print(f"{A.nnz / A.shape[0]:.1f}")
    4.8
    """
    backend = get_backend(device)
    n = size_of(n, "n", 1, 2)
    rng = np.random.default_rng(seed_of(seed))
    nodes = n * n
    number = np.arange(nodes).reshape(n, n)
    across = rng.random((n - 1, n)) >= MISSING
    across[:, 0] = True  # with the full lines in x, this keeps the grid in one piece
    ends = rng.integers(0, nodes, (2, round(LONG * nodes)))
    ends = np.sort(ends[:, ends[0] != ends[1]], axis=0)
    low = np.concatenate([number[:, :-1].ravel(), number[:-1][across], ends[0]])
    high = np.concatenate([number[:, 1:].ravel(), number[1:][across], ends[1]])
    wires = sp.csr_matrix((_conductances(rng, len(low)), (low, high)), shape=(nodes, nodes))
    both = wires + wires.T
    ground = np.zeros(nodes)
    pads = np.append(0, rng.integers(0, nodes, nodes // NODES_PER_PAD))
    ground[pads] = _conductances(rng, len(pads))
    A = sp.csr_matrix(sp.diags(np.asarray(both.sum(axis=1)).ravel() + ground) - both)
    A.sum_duplicates()
    return place_matrix(A, backend)


def _conductances(rng: np.random.Generator, count: int) -> np.ndarray:
    return 10 ** rng.uniform(-DECADES, DECADES, count)
