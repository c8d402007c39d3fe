"""Real matrices in place of the generated ones: those in the files of a folder, or those that PyAMG ships.

Studies of colorings take the graph of the pattern of A + A'. Studies of solvers take symmetric positive definite
matrices, and say which ones they leave out and why.
"""

from __future__ import annotations

import tarfile
import tempfile
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu

from mcprecond import problems
from mcprecond.problems.suitesparse import unpack
from mcprecond.studies.compare import Progress

ENDINGS = (".mtx", ".mtx.gz", ".tar.gz")
SHIPPED = "pyamg"
IN_PYAMG = (
    *("airfoil", "bar", "helmholtz_2D", "knot", "local_disc_galerkin_diffusion", "recirc_flow"),
    *("unit_cube", "unit_square"),
)
#: Rounding in the entries of a symmetric matrix, and in pivots, relative to the largest ones.
ROUNDING = 1e-12
#: Matrices with more rows are not factorized to see whether they are definite; the solver says it.
MOST_ROWS = 20_000

Readers = dict[str, Callable[[], sp.csr_matrix]]


def readers_of(where: str | Path) -> Readers:
    """Name -> function that reads the matrix: for PyAMG's "pyamg", and else for a folder."""
    if str(where) == SHIPPED:
        return {f"{SHIPPED} {name}": partial(problems.gallery, "load_example", name) for name in IN_PYAMG}
    found: Readers = {}
    for path in sorted(Path(where).rglob("*")):
        ending = next((ending for ending in ENDINGS if path.name.endswith(ending)), None)
        if ending is None or not path.is_file():
            continue
        name = path.name.removesuffix(ending)
        if name in found:
            raise ValueError(f"{where} has two matrices called {name}; keep one of them")
        found[name] = partial(read, path)
    if not found:
        raise ValueError(f"{where} is no folder with files that end in {', '.join(ENDINGS)}")
    return found


def read(path: Path) -> sp.csr_matrix:
    """Read a matrix, from an archive of the SuiteSparse collection the one that it is named after."""
    if not path.name.endswith(".tar.gz"):
        return problems.matrix_market(path)
    stem = path.name.removesuffix(".tar.gz")
    with tempfile.TemporaryDirectory() as folder, path.open("rb") as archive:
        part = Path(folder, f"{stem}.mtx")
        try:
            unpack(archive, f"{stem}/{stem}.mtx", part)
        except (OSError, EOFError, zlib.error, tarfile.TarError) as error:
            raise ValueError(f"{path} cannot be read: {error}") from error
        return problems.matrix_market(part)


def graph_of(A: sp.csr_matrix) -> sp.csr_matrix:
    """The pattern of A + A', with ones for entries."""
    if A.shape[0] != A.shape[1]:
        raise ValueError(f"it is not square, but {A.shape[0]} x {A.shape[1]}")
    pattern = sp.csr_matrix((np.ones(A.nnz), A.indices, A.indptr), shape=A.shape)
    both = sp.csr_matrix(pattern + pattern.T)
    both.data[:] = 1.0
    return both


def system_of(A: sp.csr_matrix) -> sp.csr_matrix:
    """The matrix, if CG can take it."""
    if A.shape[0] != A.shape[1]:
        raise ValueError(f"it is not square, but {A.shape[0]} x {A.shape[1]}")
    if A.dtype.kind == "c":
        raise ValueError("it is complex")
    if not A.nnz or (A.data == 1).all():
        raise ValueError("it is a pattern: all of its entries are 1")
    if abs(A - A.T).max() > ROUNDING * abs(A).max():
        raise ValueError("it is not symmetric")
    if not (A.diagonal() > 0).all() or (A.shape[0] <= MOST_ROWS and not is_definite(A)):
        raise ValueError("it is not positive definite")
    return A


def is_definite(A: sp.csr_matrix) -> bool:
    """Whether all pivots of a symmetric matrix are positive, beyond rounding."""
    try:
        factors = splu(A.tocsc(), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    except RuntimeError:  # exactly singular
        return False
    pivots = factors.U.diagonal()
    return np.array_equal(factors.perm_r, factors.perm_c) and bool((pivots > ROUNDING * pivots.max()).all())


def fitting(readers: Readers, as_needed: Callable[[Any], sp.csr_matrix], progress: Progress | None) -> Readers:
    """The matrices that are as a study needs them; of others it is told why they are left out.

    Each is read here, and again when its turn comes, so that one is in memory at a time.
    """
    found: Readers = {}
    for name, reader in readers.items():
        try:
            as_needed(reader())
        except ValueError as error:
            if progress:
                progress(f"{name} is left out: {error}")
        else:
            found[name] = partial(lambda reader: as_needed(reader()), reader)
    if not found:
        raise ValueError(f"none of these matrices fits the study: {', '.join(readers)}")
    return found
