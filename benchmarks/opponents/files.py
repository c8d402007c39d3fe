"""Our graphs and matrices as files that other codes read.

A graph is a Matrix Market file of a symmetric pattern without its diagonal, or ECL's binary file (.egr): numbers of
vertices and entries, offsets of the rows, columns, all in four bytes. A system is a Matrix Market file of all entries
with the right-hand side behind them, as AmgX has it: other readers stop after the entries.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
import scipy.sparse as sp

LARGEST = np.iinfo(np.int32).max


def adjacency(A: Any) -> sp.csr_array:
    """The graph of a matrix with a symmetric pattern, zeros that are stored included: its rows sorted, no diagonal."""
    A = sp.coo_array(A)
    off = A.row != A.col
    G = sp.csr_array((np.ones(int(off.sum()), np.int8), (A.row[off], A.col[off])), shape=A.shape)
    G.sort_indices()
    return G


def write_graph(A: Any, path: Path) -> None:
    """Write the graph of a matrix, in the format that the name of the file ends with."""
    G = adjacency(A)
    if path.suffix == ".egr":
        if G.nnz > LARGEST:
            raise ValueError(f"{path.name} would have {G.nnz:,} entries; ECL's format counts to {LARGEST:,}")
        with path.open("wb") as file:
            for part in ([G.shape[0], G.nnz], G.indptr, G.indices):
                np.asarray(part, "<i4").tofile(file)
    elif path.suffix == ".mtx":
        scipy.io.mmwrite(path, sp.coo_array(G), field="pattern", symmetry="symmetric")
    else:
        raise ValueError(f"a graph is written as .mtx or .egr, and {path.name} is neither")


def write_system(A: Any, b: np.ndarray, path: Path) -> None:
    """Write A x = b for AmgX."""
    A = sp.csr_array(A).sorted_indices().tocoo()  # by rows
    with path.open("w") as file:
        file.write(
            f"%%MatrixMarket matrix coordinate real general\n%%AMGX 1 1 sorted rhs\n{A.shape[0]} {A.shape[1]} {A.nnz}\n"
        )
        np.savetxt(file, np.rec.fromarrays([A.row + 1, A.col + 1, A.data]), fmt="%d %d %.17g")
        np.savetxt(file, b, fmt="%.17g")
