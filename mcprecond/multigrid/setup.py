"""Setup of a hierarchy, level by level: A -> strength C -> aggregates -> T -> P -> A_c = P^H A P, and its smoother.

Vanek, Mandel, Brezina: Algebraic Multigrid by Smoothed Aggregation for Second and Fourth Order Elliptic Problems,
Computing 56, 1996, Algorithm 2.1 and Section 5.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from mcprecond.backends import Backend
from mcprecond.linalg.dense import Dense
from mcprecond.matrix import AdmittedMatrix
from mcprecond.multigrid.aggregation import aggregates
from mcprecond.multigrid.elimination import ExactInterpolation, ExactPoints, eliminate
from mcprecond.multigrid.extended import MOST, ExtendedInterpolation, ExtendedWeights
from mcprecond.multigrid.galerkin import Galerkin
from mcprecond.multigrid.hierarchy import MOST_DENSE, Level, naming_level
from mcprecond.multigrid.interpolation import Interpolation, SmoothedInterpolation
from mcprecond.multigrid.lonely import join_lonely
from mcprecond.multigrid.named_smoothers import POLYNOMIALS, choose_smoother, new_smoother
from mcprecond.multigrid.patterns import matrix_of_blocks
from mcprecond.multigrid.polynomial import Polynomial
from mcprecond.multigrid.spectrum import with_largest_eigenvalue
from mcprecond.multigrid.splitting import classical_strength, split
from mcprecond.multigrid.stiff_rows import FINEST_HOPS, HOPS, points_near
from mcprecond.multigrid.strength import STRENGTHS
from mcprecond.multigrid.tentative import fit_tentative
from mcprecond.multigrid.units import NOT_DEFINITE, Narrowing, refuse_indefinite, without_couplings
from mcprecond.storage.node_blocks import node_pattern
from mcprecond.tuning.least_time import AutoColoring
from mcprecond.typing import StrengthName

FALL = 0.5  # of a given limit of strength, from level to level
#: Of the unknowns of a level: with more on the next one coarsening has stalled, by aggregates and by points.
MOST_KEPT, MOST_COARSE = 0.8, 0.9
#: Entries of all levels, as a multiple of those of the finest one, up to which P is as it should be. Where A is not
#: symmetric, levels have more entries, and a hierarchy that ends early hardly helps.
MOST_COMPLEXITY, MOST_UNSYMMETRIC = 3, 5


@dataclass(frozen=True)
class Options:
    """How to make levels.

    Attributes
    ----------
    block_size : int
        Unknowns of a node of the finest level.
    smoother, coloring
        As in `SmoothedAggregation`.
    max_levels, max_coarse : int
    dtype, narrow : dtype
        The dtypes of the vectors on the finest level and on all coarser levels.
    narrowest : dtype
        The dtype that coarser levels would have if the entries of the diagonal of A were of about the same size.
    is_symmetric : bool
        Whether A is Hermitian up to rounding. Otherwise it need not be definite.
    """

    block_size: int
    smoother: Any
    coloring: Any
    max_levels: int
    max_coarse: int
    dtype: Any
    narrow: Any
    narrowest: Any
    is_symmetric: bool


#: ``coarsen(level, A, number)`` sets the interpolation and the Galerkin product of a level. It sets neither where the
#: next level would hardly be smaller; then this level is the coarsest one.
Coarsening = Callable[[Level, AdmittedMatrix, int], None]


def build_levels(first: AdmittedMatrix, coarsen: Coarsening, how: Options) -> tuple[list[Level], Dense | None]:
    """Make levels until one is small enough or cannot be made coarser; return them and the inverse of the last one."""
    backend, A, coloring = first.backend, first, how.coloring
    smoother = choose_smoother(how.smoother, coloring, how.is_symmetric)
    stored = how.narrow if smoother in POLYNOMIALS else how.dtype
    levels, coarse = [Level(A.csr, how.dtype, stored, how.block_size)], None
    narrowing = Narrowing(backend, NOT_DEFINITE)
    while True:
        number, level = len(levels) - 1, levels[-1]
        if A.shape[0] > MOST_DENSE:  # before more memory is taken
            connect_last(levels, backend)
        smoothed = sum(not isinstance(level.smoother, ExactPoints) for level in levels)
        if A.shape[0] > how.max_coarse and smoothed < how.max_levels:
            A = with_largest_eigenvalue(A, level.block_size)
            coarsen(level, A, number)
        is_dense = level.galerkin is None and A.shape[0] <= MOST_DENSE
        if is_dense:
            # If A is nearly singular, its inverse in single precision may be indefinite by rounding.
            level.dtype = A.dtype
        if A.shape[0] <= MOST_DENSE:
            connect_last(levels, backend)
        if is_dense:
            sizes = partial(sizes_without_couplings, first, levels)
            coarse = Dense(A.csr, backend, definite=how.is_symmetric, sizes=sizes)
            break
        if level.smoother is None:
            A = with_largest_eigenvalue(A, level.block_size)
            values = narrowing.narrow(A, level.stored, number)
            with naming_level(number):
                level.smoother = new_smoother(
                    smoother, values, coloring, level.block_size, level.dtype, how.is_symmetric
                )
        if level.galerkin is None:
            break
        A = coarse_matrix(level, A, number + 1, how.narrowest)
        levels.append(Level(A.csr, how.narrow, how.narrow, level.galerkin.P.k))
        coloring = coloring if isinstance(coloring, str | AutoColoring) else "auto"
    narrowing.refuse_lost()
    narrowing.keep_narrow()
    return levels, coarse


def connect_last(levels: list[Level], backend: Backend) -> None:
    """Connect the last level, whose vectors have their final dtype, to the one before."""
    for level, coarser in pairwise(levels[-2:]):
        assert level.interpolation is not None and level.galerkin is not None
        longest = level.interpolation.longest_row, level.galerkin.longest_row
        level.connect(coarser, level.interpolation.csr, level.galerkin.R, longest, backend)


@dataclass
class Budget:
    """The entries that cycles read on all levels so far, by nodes: up to `complexity` times those of the finest one."""

    complexity: float = MOST_COMPLEXITY
    entries: int = 0
    most: float = 0.0

    def add(self, nodes: AdmittedMatrix, P: Interpolation | None = None) -> None:
        """Add a level; where points are eliminated, cycles read P in place of A."""
        self.entries += nodes.indices.size if P is None else len(P.pattern[1])
        self.most = self.most or self.complexity * nodes.indices.size

    def allows(self, product: Galerkin) -> bool:
        """Whether there may be a level with this coarse matrix."""
        return self.entries + len(product.pattern[1]) <= self.most


@dataclass
class Aggregation:
    """Coarsening by aggregates: A -> C -> aggregates -> T -> P -> A_c.

    P is T where levels would have too many entries with a smooth P. Plain levels may follow beyond the limit, since
    each is smaller than the last one.

    Attributes
    ----------
    B : array, shape (n, k)
        The candidates of the next level to be made coarser.
    block_size : int
        Unknowns of a node of this level.
    strength : str
        A name in `STRENGTHS`.
    theta : float or None
        The limit of strength on the finest level.
    may_vanish : bool
        Whether candidates may vanish on an aggregate; see `fit_tentative`.
    budget : Budget
    """

    B: Any
    block_size: int
    strength: StrengthName
    theta: float | None
    may_vanish: bool = True
    budget: Budget = field(default_factory=Budget)
    _product: Galerkin | None = None

    def __call__(self, level: Level, A: AdmittedMatrix, number: int) -> None:
        if self.block_size == self.B.shape[1] == 1 and (points := eliminate(level, A)) is not None:
            self.budget.add(A, level.interpolation)
            self.B = self.B[points]
            return
        nodes, k = self._nodes_of(A), self.B.shape[1]
        theta = None if self.theta is None else self.theta * FALL**number
        for limit in (theta, 0.0):  # where strong neighbors are few, all of them count
            C = STRENGTHS[self.strength](A, nodes, limit)
            labels, count, any_alone = aggregates(C.graph)
            if count * k <= MOST_KEPT * A.shape[0]:
                break
        else:
            return
        if count == 0:
            return
        if nodes is A and any_alone:
            labels, C = join_lonely(A, C, labels)
        T = fit_tentative(labels, count, self.B, self.block_size, A.backend, self.may_vanish)
        self.budget.add(nodes)
        P = SmoothedInterpolation(A, nodes, C, T, self.B)
        product = Galerkin(A, P)
        if P.smooths and not self.budget.allows(product):
            P = SmoothedInterpolation(A, nodes, C, T, self.B, smooths=False)
            product = Galerkin(A, P)
        level.T, level.interpolation, level.galerkin = T, P, product
        self.B, self.block_size, self._product = T.B, k, product

    def _nodes_of(self, A: AdmittedMatrix) -> AdmittedMatrix:
        """As `nodes_of`; of a coarse matrix the product has the pattern."""
        if self.block_size == 1 or self._product is None:
            return nodes_of(A, self.block_size)
        pattern, longest = self._product.pattern, self._product.product.longest
        nodes = matrix_of_blocks(pattern, 1, 1, self._product.P.count, np.float32, A.backend)
        return AdmittedMatrix.computed(nodes, A.backend, longest, is_symmetric=A.is_symmetric)


class Splitting:
    """Coarsening by points: A -> strong dependences -> coarse and fine points -> P -> A_c.

    Rows of P keep fewer weights where all levels so far would have more entries than the budget allows, and so do the
    rows on the levels that follow. If one weight is too many still, the level is the coarsest one.

    Parameters
    ----------
    theta : float
        The limit of strength.
    is_symmetric : bool
        Whether A is Hermitian up to rounding. Otherwise no points are eliminated, and a level is the coarsest one if
        the next one would not have a positive diagonal.
    """

    def __init__(self, theta: float, is_symmetric: bool) -> None:
        self.theta, self.is_symmetric = theta, is_symmetric
        self.budget = Budget(MOST_COMPLEXITY if is_symmetric else MOST_UNSYMMETRIC)
        self._most_weights = MOST

    def __call__(self, level: Level, A: AdmittedMatrix, number: int) -> None:
        is_eliminated = self.is_symmetric and eliminate(level, A) is not None
        self.budget.add(A, level.interpolation)
        if is_eliminated:
            return
        found = classical_strength(A, self.theta, finds_stiff=self.is_symmetric)
        extended = ExtendedWeights(A, found.flags, split(A, found))
        if not 0 < extended.count <= MOST_COARSE * A.shape[0]:
            return
        hops = HOPS if number else FINEST_HOPS
        weights, near = extended.values(A), points_near(A, found.is_stiff, hops)
        for self._most_weights in (most for most in (MOST, 2, 1) if most <= self._most_weights):
            P = ExtendedInterpolation(A, extended, weights, self._most_weights, near, hops)
            product = Galerkin(A, P)
            if not self.is_symmetric and not product.coarse.extremes[0] > 0:
                level.remark = ", the next level would not have a positive diagonal"
                return
            if self.budget.allows(product):
                level.interpolation, level.galerkin = P, product
                return
        level.remark = ", the next level would be too dense"


def coarse_matrix(level: Level, A: AdmittedMatrix, number: int, narrowest: Any) -> AdmittedMatrix:
    """Return A_c, the matrix of the level of that number, without zeros on its diagonal.

    Raises
    ------
    ValueError
        If A_c has a negative diagonal entry. Then A is not positive definite.
    """
    assert level.galerkin is not None
    coarse = level.galerkin.coarse.renewed()
    refuse_indefinite(coarse, level.galerkin.R, A, number, narrowest)
    return coarse


def update_levels(levels: list[Level], coarse: Dense | None, first: AdmittedMatrix, narrowest: Any) -> None:
    """Take the values of a matrix with the same pattern into the arrays that are there: captured applications read
    them.
    """
    A, narrowing, kept = first, Narrowing(first.backend, NOT_DEFINITE), None
    for number, level in enumerate(levels):
        if level.smoother is not None and not level.smoother.is_exact:
            A = with_largest_eigenvalue(A, level.block_size)
            if isinstance(level.smoother, Polynomial):
                kept = level.smoother.A.values
            values = narrowing.narrow(A, level.stored, number, kept)
            with naming_level(number):
                level.smoother.update(values)
        if level.interpolation is not None:
            kept = levels[number + 1].A.data
            for csr in (level.P, level.R, levels[number + 1].A):
                make_room(csr, A.dtype, first.backend)
            level.interpolation.update(A)
            if isinstance(level.smoother, ExactPoints):
                level.smoother.update(A)
            assert level.galerkin is not None
            level.galerkin.update(A)
            A = coarse_matrix(level, A, number + 1, narrowest)
            level.replace_transfers()
    narrowing.refuse_lost()
    if coarse is not None:
        coarse.update(A.csr, first.backend, partial(sizes_without_couplings, first, levels))
    narrowing.keep_narrow()


def make_room(csr: Any, dtype: Any, backend: Backend) -> None:
    """Let a matrix whose values are kept in a narrower dtype have room for those that are computed anew."""
    if csr.dtype != dtype:
        csr.data = backend.xp.empty(csr.indices.size, dtype)


def update_candidates(levels: list[Level], B: Any, block_size: int, backend: Backend) -> None:
    """Take other candidates, as those of A in another scaling; the values of P follow by `update_levels`."""
    for level in levels:
        if isinstance(level.interpolation, ExactInterpolation):
            B = B[level.interpolation.points]
        elif isinstance(level.interpolation, SmoothedInterpolation) and level.T is not None:
            level.T = fit_tentative(level.T.labels, level.T.count, B, block_size, backend)
            level.interpolation.take(level.T, B)
            B, block_size = level.T.B, level.T.B.shape[1]


def nodes_of(A: AdmittedMatrix, block_size: int) -> AdmittedMatrix:
    """Return A with the pattern of its nodes; A itself where a node has one unknown."""
    if block_size == 1:
        return A
    return AdmittedMatrix.computed(node_pattern(A, block_size), A.backend, is_symmetric=A.is_symmetric)


def sizes_without_couplings(first: AdmittedMatrix, levels: list[Level]) -> Any:
    """The diagonal that the coarsest matrix would have if nothing canceled."""
    sizes = first.diagonal().real
    for level in levels:
        if level.galerkin is not None:
            sizes = without_couplings(level.galerkin.R, sizes, first.backend)
    return sizes
