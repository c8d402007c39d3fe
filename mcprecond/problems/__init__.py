"""Problems to color, precondition and solve."""

from mcprecond.problems import graphs
from mcprecond.problems.catalog import CatalogEntry, catalog
from mcprecond.problems.circuit import circuit
from mcprecond.problems.elasticity import elasticity
from mcprecond.problems.fenl import FENL, NewtonStep, fenl
from mcprecond.problems.files import matrix_market
from mcprecond.problems.gallery import gallery
from mcprecond.problems.laplacian import laplacian
from mcprecond.problems.suitesparse import suitesparse

__all__ = [
    "FENL",
    "CatalogEntry",
    "NewtonStep",
    "catalog",
    "circuit",
    "elasticity",
    "fenl",
    "gallery",
    "graphs",
    "laplacian",
    "matrix_market",
    "suitesparse",
]
