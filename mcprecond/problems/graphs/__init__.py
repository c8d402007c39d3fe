"""Families of graphs to color and to sweep over, from a seed, as symmetric matrices.

Every function returns a scipy.sparse.csr_matrix of float64 with sorted column indices, none twice, of int32 where they
fit. Grids (`fenl`, `grid2d`, `grid3d`, `elasticity_pattern`) store their diagonal; the others are adjacency matrices of
simple graphs: ones, and nothing on the diagonal. The same arguments give the same matrix, on any number of threads.

>>> from mcprecond.problems import graphs
>>> A = graphs.rmat(10, seed=1)
>>> A.shape, A.nnz
((1024, 1024), 12070)
"""

from mcprecond.problems.graphs.grids import elasticity_pattern, fenl, grid2d, grid3d
from mcprecond.problems.graphs.networks import rmat
from mcprecond.problems.graphs.points import delaunay

__all__ = [
    "delaunay",
    "elasticity_pattern",
    "fenl",
    "grid2d",
    "grid3d",
    "rmat",
]
