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
from mcprecond.problems.graphs.networks import mycielskian, random_regular, rmat, road_like
from mcprecond.problems.graphs.points import delaunay, geometric_cells, random_geometric, random_points

__all__ = [
    "delaunay",
    "elasticity_pattern",
    "fenl",
    "geometric_cells",
    "grid2d",
    "grid3d",
    "mycielskian",
    "random_geometric",
    "random_points",
    "random_regular",
    "rmat",
    "road_like",
]
