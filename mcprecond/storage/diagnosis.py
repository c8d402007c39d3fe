"""Why a matrix is not what color blocks can take: which row is to blame."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from mcprecond.backends.inputs import any_of
from mcprecond.matrix import REMEDY_FOR_ZERO_ROW, AdmittedMatrix, place_of, refuse_not_finite_entry
from mcprecond.storage.fingerprint import Fingerprint


def refuse_singular(blocks: Any) -> NoReturn:
    """Raise ValueError for an entry of the diagonal that is zero, missing, or too small to divide by; names a row."""
    xp = blocks.backend.xp
    singular = (blocks.diagonal == 0) | ~xp.isfinite(blocks.dinv)
    if any_of(singular):
        row = int(blocks.perm[singular].min())
        value = blocks.diagonal[int(blocks.inverse[row])].item()
        raise ValueError(
            f"A has a zero or missing diagonal entry in row {row}; Gauss-Seidel divides by it; if all of the row is "
            f"zero, {REMEDY_FOR_ZERO_ROW}"
            if value == 0
            else f"A holds {value} on the diagonal in row {row}, whose inverse overflows in {blocks.dtype}; scale A"
        )
    rows = blocks.upper.rows_of_entries(xp)[~xp.isfinite(blocks.by_rows(blocks.upper, blocks.upper.values))]
    row = int(blocks.perm[rows].min())
    raise ValueError(f"row {row} of A, divided by its diagonal entry, overflows in {blocks._stored}; scale A")


def refuse_values(blocks: Any, A: Any, fingerprint: Fingerprint) -> None:
    """Raise ValueError, naming a row, if the blocks, which have the pattern of A, have refused a value of A."""
    if fingerprint.not_finite:
        refuse_not_finite_entry(A.csr if isinstance(A, AdmittedMatrix) else A, blocks.backend)
    if not blocks._narrows:
        return
    smallest, largest = fingerprint.magnitudes
    least, most = (float(limit) for limit in (np.finfo(np.float32).tiny, np.finfo(np.float32).max))
    if largest > most or smallest < least:
        parts = A.data.view(np.float64)
        bad = (abs(parts) > most) | ((abs(parts) < least) & (parts != 0))
        k = int(bad.argmax())
        row, column = place_of(A, k * len(A.data) // len(parts), blocks.backend)
        raise ValueError(
            f"A holds {parts[k].item()} in row {row}, column {column}, which {blocks._stored} has no room for: its "
            f"magnitudes are from {least:.3g} to {most:.3g}; scale A, or leave out dtype"
        )


def first_other_row(blocks: Any, graph: Any) -> int | None:
    """Return the first row of a canonical matrix that has other columns than the blocks; None if there is none."""
    host, perm, n = blocks.backend.to_host, blocks.backend.to_host(blocks.perm), len(blocks.perm)
    source = host(blocks._diagonal_source)
    diagonal = np.flatnonzero(source < np.iinfo(source.dtype).max)
    rows, columns = [diagonal], [diagonal]
    for triangle in (blocks.lower, blocks.upper):
        rows.append(host(triangle.rows_of_entries(blocks.backend.xp)))
        columns.append(host(blocks.columns_by_rows(triangle)))
    row, column = (perm[np.concatenate(numbers)] for numbers in (rows, columns))
    before = np.sort(row * np.int64(n) + column)
    now = np.repeat(np.arange(n), np.diff(host(graph.indptr))) * n + host(graph.indices)
    before, now = (np.append(places, n * n) for places in (before, now))  # behind all rows
    both = min(len(before), len(now))
    other = before[:both] != now[:both]
    k = int(other.argmax())
    return int(min(before[k], now[k])) // n if other.any() else None
