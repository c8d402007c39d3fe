"""What the hierarchies that this package builds share: the door for A, how levels are made, and updates."""

from __future__ import annotations

from typing import Any

import numpy as np

from mcprecond.backends import Backend
from mcprecond.backends.arguments import integer, one_of, single, stored_dtype
from mcprecond.backends.inputs import first_place
from mcprecond.backends.updates import one_at_a_time
from mcprecond.linalg.hermitian import first_unsymmetric
from mcprecond.matrix import REMEDY_FOR_ZERO_ROW, AdmittedMatrix, refuse_other_pattern
from mcprecond.multigrid.examination import examine
from mcprecond.multigrid.hierarchy import CYCLES, MOST_DENSE, Multigrid
from mcprecond.multigrid.named_smoothers import check_smoother
from mcprecond.multigrid.rehearsal import rehearse
from mcprecond.multigrid.setup import Coarsening, Options, build_levels, update_levels
from mcprecond.multigrid.units import Units, find_units, has_contrasts, scale_matrix, scales_of
from mcprecond.preconditioners.setup import admit, admit_values
from mcprecond.typing import Matrix

#: Unknowns of the coarsest level, where they are not given: how long a dense inverse takes depends on the device.
MAX_COARSE = {"cpu": 300, "gpu": 1000}


class BuiltMultigrid(Multigrid):
    """A hierarchy that is built from A, and that takes new values.

    A subclass calls `_take_cycle` and `_build` in its constructor.
    """

    #: Why this multigrid fits the matrix, where the package has chosen it.
    reason: str = ""
    #: How to find the scales that make the units of the levels equal, where those of the unknowns differ.
    _units: Units | None = None
    _narrowest: np.dtype[Any]

    def __str__(self) -> str:
        name, rest = super().__str__().split("\n", 1)
        return f"{name}{', chosen since ' if self.reason else ''}{self.reason}\n{rest}"

    def _take_cycle(self, smoother: Any, presweeps: Any, postsweeps: Any, cycle: Any) -> None:
        """Check what a cycle is made of."""
        self.cycle = one_of(cycle, "cycle", CYCLES)
        self.smoother = check_smoother(smoother)
        self.presweeps, self.postsweeps = integer(presweeps, "presweeps", 0), integer(postsweeps, "postsweeps", 0)
        if self.presweeps + self.postsweeps == 0:
            raise ValueError("presweeps and postsweeps are both 0; a cycle has to smooth")

    def _choose_scales(self, matrix: AdmittedMatrix, how: Options, *, may_differ: bool) -> None:
        """Choose the scales s: the levels are those of diag(s) A diag(s). `may_differ` says whether unknowns may have
        different units, of which only the matrix tells.
        """
        self._narrowest = how.narrowest
        self._units, scales = find_units(matrix) if may_differ else (None, None)
        self._set_scales(matrix, scales)

    def _set_scales(self, matrix: AdmittedMatrix, scales: Any) -> None:
        """Take the scales that make units equal, or None; where A needs them, the ones that keep numbers in range."""
        extreme = scales_of(matrix, self._narrowest)
        self._is_extreme = extreme is not None
        self._scales = extreme if self._is_extreme else scales
        self._exponent = -int(np.frexp(matrix.extremes[1])[1])

    @property
    def exponent(self) -> int:
        """See `Operator`: M is about the inverse of A, by its largest diagonal entry."""
        return self._exponent

    def _build(self, matrix: AdmittedMatrix, origin: Backend, coarsen: Coarsening, how: Options) -> None:
        """Build the levels."""
        self.max_levels, self.max_coarse = how.max_levels, how.max_coarse
        levels, coarse = build_levels(in_scales(matrix, self._scales), coarsen, how)
        levels[0].A = matrix.csr
        super().__init__(levels, coarse, matrix.backend, origin)

    def _take_scales(self, matrix: AdmittedMatrix) -> None:
        """Change what depends on the scales of A, other than values."""

    @one_at_a_time
    def update(self, A: Matrix) -> None:
        """Take new values from a matrix with the same pattern.

        Aggregates or coarse points, where prolongators have entries, colorings and the precision of levels stay;
        prolongators and coarse matrices are computed anew. Who has captured an application into a CUDA graph has to
        capture it again if the smoother is "dilu" or a function, whose damping depends on the values, or if the
        diagonal comes near the ends of a dtype's range.

        Parameters
        ----------
        A : sparse matrix, as in the constructor

        Raises
        ------
        TypeError, ValueError
            As the constructor; also if the pattern differs (then a PatternChangedError). Nothing changes where A is
            refused. If a coarse matrix is, after a lack of memory or Ctrl-C this object may be halfway between two
            matrices. Then all use of it is a RuntimeError until an update succeeds.
        """
        matrix = admit_definite(admit_values(A, self.origin, self.backend))[0]
        refuse_other_pattern(matrix, self.levels[0].A, self.backend)
        refuse_unfit(matrix, self.A_is_symmetric)
        self.is_halfway, was_extreme = True, self._is_extreme
        self._free = {}  # graphs that were captured hold the damping of before
        self._set_scales(matrix, self._units(matrix) if self._units else None)
        if was_extreme or self._is_extreme:
            self._take_scales(matrix)
        update_levels(self.levels, self._coarse, in_scales(matrix, self._scales), self._narrowest)
        self.levels[0].A = matrix.csr
        self.is_halfway = False


def admit_definite(A: Any, device: Any = None) -> tuple[AdmittedMatrix, Backend]:
    """The door for A: canonical, on the device that is asked for; and where it comes from."""
    matrix, origin = admit(A, device, finite=True)
    return matrix.canonical(), origin


def options_for(
    matrix: AdmittedMatrix,
    block_size: int,
    smoother: Any,
    coloring: Any,
    max_levels: Any,
    max_coarse: Any,
    dtype: Any,
    is_symmetric: bool = True,
) -> Options:
    """Check how levels are to be made, and choose what is left to the package."""
    backend = matrix.backend
    most = MAX_COARSE[backend.name] if max_coarse is None else max_coarse
    max_levels, max_coarse = integer(max_levels, "max_levels", 1), integer(most, "max_coarse", 0, MOST_DENSE)
    if backend.name == "cpu" and matrix.dtype == np.float64:
        rehearse()
    own = stored_dtype(dtype, matrix.dtype)
    narrowest = single(own) if dtype is None and not callable(smoother) else own
    narrow = own if dtype is None and has_contrasts(matrix) else narrowest
    return Options(block_size, smoother, coloring, max_levels, max_coarse, own, narrow, narrowest, is_symmetric)


def in_scales(matrix: AdmittedMatrix, scales: Any) -> AdmittedMatrix:
    """diag(s) A diag(s), or A itself where there are no scales."""
    return matrix if scales is None else scale_matrix(matrix, scales)


def refuse_unfit(matrix: AdmittedMatrix, has_to_be_symmetric: bool = True) -> None:
    """Raise ValueError, naming a row, unless A has a positive diagonal, and is Hermitian up to rounding if it has to
    be.
    """
    if not matrix.extremes[0] > 0:
        row = first_place(~(matrix.diagonal().real > 0), matrix.backend.xp)
        value = matrix.diagonal()[row].item()
        what = "a zero or missing diagonal entry" if value == 0 else f"{value} on the diagonal"
        remedy = f"; if all of the row is zero, {REMEDY_FOR_ZERO_ROW}" if value == 0 else ""
        raise ValueError(
            f"A has {what} in row {row}; multigrid needs a positive diagonal, or a positive definite A{remedy}"
        )
    if not has_to_be_symmetric or matrix.is_nearly_hermitian:
        return
    if (place := first_unsymmetric(matrix)) is not None:
        row, column = place
        raise ValueError(
            f"A is not symmetric (or Hermitian): it holds {matrix.csr[place].item()} in row {row}, column {column}, "
            "and something else across; this multigrid needs a symmetric A; use ClassicalAMG(A) with gmres or bicgstab"
        )


def examined(matrix: AdmittedMatrix) -> AdmittedMatrix:
    """Return A, whose diagonal is positive, with what decides between the two multigrids; see `examine`."""
    return matrix if matrix.findings is not None else matrix.knowing(findings=examine(matrix))
