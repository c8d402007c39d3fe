"""The sizes of problems that papers use, and what stands in for their matrices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from mcprecond.problems.circuit import circuit
from mcprecond.problems.elasticity import elasticity
from mcprecond.problems.fenl import fenl
from mcprecond.problems.laplacian import laplacian


@dataclass(frozen=True)
class CatalogEntry:
    """A matrix that can be had without a download.

    Attributes
    ----------
    call : str
        How to make it, with ``from mcprecond import problems`` and ``problems.`` in front.
    rows : int
    entries : int
        Those stored. For `circuit` to about a thousandth, as NumPy's random streams may change.
    published : str or None
        The matrix of a publication for which it stands in: of the same kind and about the same size, not the same.
    """

    call: str
    rows: int
    entries: int
    published: str | None
    _make: Callable[[str], Any] = field(repr=False, compare=False)

    def matrix(self, device: str = "cpu") -> Any:
        """Return the matrix, a csr_matrix of SciPy or CuPy; raises what the function in `call` raises."""
        return self._make(device)


def catalog() -> list[CatalogEntry]:
    """Return the problems by number of rows, with their sizes and the published matrices that they stand in for.

    Nothing is assembled before `CatalogEntry.matrix` is called.

    Returns
    -------
    list of CatalogEntry

    References
    ----------
    Deveci, Boman, Devine, Rajamanickam: Parallel Graph Coloring for Manycore Architectures, IPDPS 2016, Section V.
    The SuiteSparse Matrix Collection: GHS_psdef/audikw_1, Janna/Queen_4147, AMD/G3_circuit.

    Examples
    --------
    >>> from mcprecond import problems
    >>> for entry in problems.catalog()[:3]:
    ...     print(f"{entry.call:42} {entry.rows:9,} {entry.entries:11,} {entry.published}")
    fenl(50).jacobian(fenl(50).initial())        132,651   3,442,951 Fenl_50
    elasticity(68)                               943,296  74,181,672 audikw_1
    fenl(100).jacobian(fenl(100).initial())    1,030,301  27,270,901 Fenl_100
    """
    entries = [
        CatalogEntry("circuit(1259)", 1259**2, 7_653_095, "G3_circuit", lambda device: circuit(1259, device=device)),
        CatalogEntry(
            "laplacian((1024, 1024))", 1024**2, 5 * 1024**2 - 4 * 1024, None,
            lambda device: laplacian((1024, 1024), device=device),
        ),
        *(_fenl(n) for n in (50, 100, 180)),
        _elasticity(68, "audikw_1"),
        _elasticity(110, "Queen_4147"),
    ]  # fmt: skip
    return sorted(entries, key=lambda entry: entry.rows)


def _fenl(n: int) -> CatalogEntry:
    def make(device: str) -> Any:
        problem = fenl(n, device=device)
        return problem.jacobian(problem.initial())

    return CatalogEntry(f"fenl({n}).jacobian(fenl({n}).initial())", (n + 1) ** 3, (3 * n + 1) ** 3, f"Fenl_{n}", make)


def _elasticity(n: int, published: str) -> CatalogEntry:
    return CatalogEntry(
        f"elasticity({n})", 3 * n**3, 9 * (3 * n - 2) ** 3, published, lambda device: elasticity(n, device=device)
    )
