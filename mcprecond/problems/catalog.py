"""The sizes of problems that papers use, and what stands in for their matrices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from mcprecond.backends import get_backend
from mcprecond.problems import graphs
from mcprecond.problems.circuit import circuit
from mcprecond.problems.elasticity import elasticity
from mcprecond.problems.fenl import fenl
from mcprecond.problems.laplacian import laplacian
from mcprecond.problems.placing import place_matrix


@dataclass(frozen=True)
class CatalogEntry:
    """A matrix that can be had without a download; as text, what it is and what it is not.

    Attributes
    ----------
    call : str
        How to make it, with ``from mcprecond import problems`` and ``problems.`` in front.
    rows : int
    entries : int
        Those stored. Of random ones to about a thousandth, as random streams may change.
    published : str or None
        The matrix of a publication that it is or stands in for.
    published_rows, published_entries : int or None
        The size of that, as its collection says.
    stand_in : bool
        Of the same kind and about the same size as the published matrix, not the same.
    """

    call: str
    rows: int
    entries: int
    published: str | None = None
    published_rows: int | None = None
    published_entries: int | None = None
    stand_in: bool = False
    _make: Callable[[str], Any] = field(kw_only=True, repr=False, compare=False)

    def matrix(self, device: str = "cpu") -> Any:
        """Return the matrix, a csr_matrix of SciPy or CuPy; raises what the function in `call` raises."""
        return self._make(device)

    def __str__(self) -> str:
        text = f"{self.call}: {self.rows:,} rows, {self.entries:,} entries"
        if self.stand_in:
            size = f"{self.published_rows:,} rows, {self.published_entries:,} entries"
            return f"{text}; a stand-in for {self.published} of {size}"
        return text if self.published is None else f"{text}; {self.published}"


def catalog() -> list[CatalogEntry]:
    """Return the problems by number of rows, with their sizes and the published matrices that they are or stand in for.

    Nothing is assembled before `CatalogEntry.matrix` is called.

    Returns
    -------
    list of CatalogEntry

    References
    ----------
    Deveci, Boman, Devine, Rajamanickam: Parallel Graph Coloring for Manycore Architectures, IPDPS 2016, Section V.
    The SuiteSparse Matrix Collection: GHS_psdef/audikw_1, Janna/Bump_2911, Janna/Queen_4147, AMD/G3_circuit.

    Examples
    --------
    >>> from mcprecond import problems
    >>> entries = problems.catalog()
    >>> for entry in entries[:3]:
    ...     print(f"{entry.call:42} {entry.rows:9,} {entry.entries:11,} {entry.published}")
    fenl(50).jacobian(fenl(50).initial())        132,651   3,442,951 Fenl_50
    elasticity(68)                               943,296  74,181,672 audikw_1
    fenl(100).jacobian(fenl(100).initial())    1,030,301  27,270,901 Fenl_100
    >>> print(entries[1])
    elasticity(68): 943,296 rows, 74,181,672 entries; a stand-in for audikw_1 of 943,695 rows, 77,651,847 entries
    """
    entries = [
        CatalogEntry(
            "circuit(1259)",
            1259**2,
            7_653_095,
            "G3_circuit",
            1_585_478,
            7_660_826,
            True,
            _make=lambda device: circuit(1259, device=device),
        ),
        CatalogEntry(
            "laplacian((1024, 1024))",
            1024**2,
            5 * 1024**2 - 4 * 1024,
            _make=lambda device: laplacian((1024, 1024), device=device),
        ),
        *(_fenl(n) for n in (50, 100, 180)),
        _elasticity(68, "audikw_1", 943_695, 77_651_847),
        _elasticity(99, "Bump_2911", 2_911_419, 127_729_899, "tetrahedra"),
        _elasticity(110, "Queen_4147", 4_147_110, 316_548_962),
        _graph("delaunay(2**20)", 2**20, 6_291_380, lambda: graphs.delaunay(2**20)),
        _graph("rmat(20)", 2**20, 16_085_654, lambda: graphs.rmat(20)),
    ]
    return sorted(entries, key=lambda entry: entry.rows)


def _fenl(n: int) -> CatalogEntry:
    def make(device: str) -> Any:
        problem = fenl(n, device=device)
        return problem.jacobian(problem.initial())

    size = ((n + 1) ** 3, (3 * n + 1) ** 3)
    return CatalogEntry(f"fenl({n}).jacobian(fenl({n}).initial())", *size, f"Fenl_{n}", *size, _make=make)


def _elasticity(
    n: int, published: str, published_rows: int, published_entries: int, elements: str = "hexahedra"
) -> CatalogEntry:
    # Pairs of nodes that share an element, in both directions and each with itself.
    pairs = (3 * n - 2) ** 3
    if elements == "tetrahedra":
        pairs = n**3 + 2 * (3 * n**2 * (n - 1) + 3 * n * (n - 1) ** 2 + (n - 1) ** 3)
    call = f"elasticity({n})" if elements == "hexahedra" else f'elasticity({n}, elements="{elements}")'
    return CatalogEntry(
        call,
        3 * n**3,
        9 * pairs,
        published,
        published_rows,
        published_entries,
        True,
        _make=lambda device: elasticity(n, elements=elements, device=device),
    )


def _graph(call: str, rows: int, entries: int, make: Callable[[], Any]) -> CatalogEntry:
    return CatalogEntry(f"graphs.{call}", rows, entries, _make=lambda device: place_matrix(make(), get_backend(device)))
