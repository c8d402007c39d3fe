"""The base class of the preconditioners that sweep over color blocks: Gauss-Seidel, DILU and ILU(0)."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from mcprecond.backends import Backend
from mcprecond.coloring import Coloring
from mcprecond.matrix import transpose
from mcprecond.preconditioners.base import Preconditioner
from mcprecond.preconditioners.setup import admit
from mcprecond.storage import ColorBlocks, NodeBlocks
from mcprecond.sweeps.substitution import Chunks, Substitution, columns_at_once
from mcprecond.tuning.least_time import Choice

#: Eisenstat's form computes A t as T q + L t + (D - T) t, where T q is about T t, so that T t nearly cancels. Where T
#: is so many times as large as D, that loses four bits; a larger T loses more.
MOST_OF_DIAGONAL = 16


class Colored(Preconditioner):
    """A preconditioner that stores the triangles of A, or of its factors, in the order of the colors.

    A subclass sets `blocks` before it calls the constructor. One pass over the triangles serves up to four right-hand
    sides (eight on a CPU), or two where block_size is 3 or more.
    """

    #: With rows of the upper triangle divided by pivots, but not those of blocks of nodes.
    blocks: ColorBlocks
    #: What ``coloring="auto"`` has chosen, and why; None for another coloring.
    choice: Choice | None = None
    #: Why M is not c (T + L) inv(T) (T + U) with a diagonal T and the triangles L and U of A, or why its T is not good
    #: for Eisenstat's form; None if it is.
    eisenstat_incompatibility: str | None

    def __init__(self, origin: Backend) -> None:
        super().__init__(origin, self.blocks.shape, self.blocks.dtype)

    def _summary(self) -> str:
        b = self.blocks.block_size
        return f"{self.n_colors} colors by {self.coloring.method}" + (f", nodes of {b} unknowns" if b > 1 else "")

    @property
    def exponent(self) -> int:
        """See `Operator`: M is about the inverse of A."""
        return -self.blocks.exponent

    @property
    def columns_at_once(self) -> int:  # type: ignore[override]
        """How many right-hand sides one pass serves."""
        return columns_at_once(self.blocks)

    @property
    def backend(self) -> Backend:  # type: ignore[override]
        """Where the sweeps run."""
        return self.blocks.backend

    @property
    def coloring(self) -> Coloring:
        """The coloring behind the color order."""
        return self.blocks.coloring

    @property
    def n_colors(self) -> int:  # type: ignore[override]
        """The number of colors."""
        return self.blocks.n_colors

    @property
    def nbytes(self) -> int:  # type: ignore[override]
        """Memory of everything that an application reads, in bytes."""
        return self.blocks.nbytes

    @property
    @abstractmethod
    def splitting(self) -> tuple[Any, Any, float]:
        """T and its inverse, in color order, and w, if w times what is stored is inv(T) U, for Eisenstat's form."""

    @property
    @abstractmethod
    def keeps_diagonal(self) -> bool:
        """Whether T is the diagonal of A in the rows of the first color."""

    @property
    def is_halfway(self) -> bool:  # type: ignore[override]
        return self.blocks.is_halfway

    def _refuse_halfway(self) -> None:
        self.blocks.refuse_halfway()

    def new_state(self, columns: int = 1) -> Any:
        return Chunks(Substitution, self.blocks, columns)

    def _transposed_blocks(self, conjugate: bool, *, divides: bool) -> ColorBlocks:
        """The color blocks of the transposed matrix, or of the conjugate one, with the same colors."""
        blocks, b, xp = self.blocks, self.blocks.block_size, self.backend.xp
        matrix = transpose(blocks.permuted(), self.backend)
        matrix = matrix.conj() if conjugate else matrix
        inverse = (blocks.inverse[:, None] * b + xp.arange(b)).reshape(-1)
        A, stored = admit(matrix[inverse][:, inverse])[0].canonical(), blocks.lower.values.dtype
        if b > 1:
            return NodeBlocks(A, self.coloring, block_size=b, dtype=stored)
        return ColorBlocks(A, self.coloring, dtype=stored, divides=divides)

    @abstractmethod
    def built_for(self, A: Any) -> Colored:
        """The same preconditioner of another matrix with the same coloring, stored in the dtype of the matrix."""
