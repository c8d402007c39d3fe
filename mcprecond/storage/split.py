"""The split of a matrix in color order into its strict triangles and its diagonal: where each entry goes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mcprecond.backends import Backend, KernelSet, compile_inlined, unsigned

KERNELS = KernelSet(__file__, "OFFSET SOURCE LANES")

PIECE = 1024  # entries; on a GPU longer rows are cut into pieces of so many, one for each warp
CUDA_CONSTANTS = {"PIECE": PIECE}


class TrianglePattern(NamedTuple):
    """Where the entries of a strict triangle are, row by row in color order.

    Attributes
    ----------
    indptr : array of int32 or int64, shape (n + 1,)
        Row offsets.
    columns : array of int32, shape (entries,)
    source : array of uint8, uint16 or uint32, shape (entries,)
        Which entry of its row in A each one is.
    """

    indptr: Any
    columns: Any
    source: Any


def split(
    pattern: tuple[Any, Any], perm: Any, inverse: Any, longest: int, backend: Backend
) -> tuple[TrianglePattern, TrianglePattern, Any, bool]:
    """Split a pattern in color order.

    Parameters
    ----------
    pattern : tuple of two arrays
        Row offsets and columns of a canonical matrix.
    perm, inverse : array of int32, shape (n,)
        New number -> old number, and back.
    longest : int
        The length of the longest row.

    Returns
    -------
    lower, upper : TrianglePattern
    diagonal_source : array, shape (n,)
        Which entry of its row in A the diagonal is; the largest number of its type where there is none.
    is_sorted : bool
        Whether the columns of every row rise; on a GPU all but long rows are sorted.
    """
    xp, n, (indptr, indices) = backend.xp, len(perm), pattern
    entries, offset, source = len(indices), indptr.dtype, np.min_scalar_type(longest)  # unsigned
    lanes = 32 if entries > 32 * n else 8 if entries > 8 * n else 2
    # Rows of at most this length are sorted by column, so that neighboring rows load neighboring elements of a vector
    # at the same time, and a forward sweep first loads those that are ready first. On the CPU that does not pay.
    sorted_length = min(8 * lanes, 255) if backend.resident_warps else 0
    run = backend.kernels(KERNELS, OFFSET=offset, SOURCE=source, LANES=lanes)
    pattern = unsigned(indptr), unsigned(indices)
    cuts = bool(backend.resident_warps) and longest > PIECE
    uncut = PIECE if cuts else 2**62
    counts = [xp.zeros(n + 1, offset) for _ in range(2)]
    run.count_entries(n, *pattern, inverse, uncut, *(count[1:] for count in counts))
    if cuts:
        pieces, by_warps = cut_rows(indptr, backend), backend.kernels(KERNELS, OFFSET=offset, SOURCE=source, LANES=32)
        n_pieces, before = len(pieces.rows), []
        of_pieces = [xp.zeros(n_pieces + 1, offset) for _ in range(2)]
        by_warps.count_pieces(n_pieces, pieces.rows, pieces.begins, *pattern, inverse, *(c[1:] for c in of_pieces))
        for count, of_piece in zip(counts, of_pieces, strict=True):
            total = xp.cumsum(of_piece, dtype=offset)
            count[1:][inverse[pieces.long_rows]] = xp.diff(total[pieces.bounds])
            before.append(total[:-1] - total[pieces.first_of_row])
    offsets = [xp.cumsum(count, dtype=offset) for count in counts]
    lower, upper = (
        TrianglePattern(ends, xp.empty(stored, np.int32), xp.empty(stored, source))
        for ends, stored in ((ends, int(ends[-1])) for ends in offsets)
    )
    diagonal_source = xp.full(n, np.iinfo(source).max, source)
    run.fill_columns(n, *pattern, perm, inverse, sorted_length, uncut, *lower, *upper, diagonal_source)
    if cuts:
        places = (ends[inverse[pieces.rows]] + b for ends, b in zip(offsets, before, strict=True))
        by_warps.fill_pieces(
            n_pieces,
            pieces.rows,
            pieces.begins,
            *pattern,
            inverse,
            *places,
            *lower[1:],
            *upper[1:],
            diagonal_source,
        )
    return lower, upper, diagonal_source, longest <= sorted_length


class Pieces(NamedTuple):
    """Pieces of the long rows of a matrix.

    Attributes
    ----------
    rows : array of int32, shape (n_pieces,)
        The row of each piece, rising.
    begins : array of int32 or int64, shape (n_pieces,)
        Its first entry.
    first_of_row : array of int, shape (n_pieces,)
        The number of the first piece of the same row.
    long_rows : array of int, shape (n_rows,)
        The rows.
    bounds : array of int, shape (n_rows + 1,)
        The number of the first piece of each long row, and how many pieces there are.
    """

    rows: Any
    begins: Any
    first_of_row: Any
    long_rows: Any
    bounds: Any


def cut_rows(indptr: Any, backend: Backend) -> Pieces:
    """Cut the rows with more than PIECE entries."""
    xp = backend.xp
    lengths = xp.diff(indptr)
    long_rows = xp.flatnonzero(lengths > PIECE)
    bounds = xp.zeros(len(long_rows) + 1, np.int64)
    xp.cumsum(-(-lengths[long_rows] // PIECE), out=bounds[1:])
    numbers = xp.arange(int(bounds[-1]))
    owner = xp.searchsorted(bounds[1:], numbers, side="right")
    rows, first = long_rows[owner], bounds[owner]
    begins = indptr[rows] + PIECE * (numbers - first)
    return Pieces(rows.astype(np.int32), begins.astype(indptr.dtype), first, long_rows, bounds)


# In color order two neighbors never have the same color, so the new numbers alone tell the triangle: an entry in row i
# is lower if its column's new number is smaller than i.


@KERNELS.per_item
def count_entries(first, end, indptr, indices, inverse, uncut, lower_counts, upper_counts):
    """Entries of each triangle per row of the color order, in rows that have at most so many."""
    for v in range(first, end):
        i, lower, upper = inverse[v], 0, 0
        if indptr[v + 1] - indptr[v] > uncut:
            continue
        for k in range(indptr[v], indptr[v + 1]):
            j = inverse[indices[k]]
            lower += j < i
            upper += j > i
        lower_counts[i] = lower
        upper_counts[i] = upper


@compile_inlined
def insert(column, number, begin, end, by_column, columns, source):
    """Add an entry to those of a row in a triangle: in the order of columns, or after the others."""
    while by_column and end > begin and columns[end - 1] > column:
        columns[end], source[end] = columns[end - 1], source[end - 1]
        end -= 1
    columns[end], source[end] = column, number


@KERNELS.per_item
def fill_columns(
    first,
    end,
    indptr,
    indices,
    perm,
    inverse,
    sorted_length,
    uncut,
    lower_indptr,
    lower_columns,
    lower_source,
    upper_indptr,
    upper_columns,
    upper_source,
    diagonal_source,
):
    """Fill in the columns of both triangles, and which entry of its row in A each entry of them and of the diagonal is,
    for the rows with at most `uncut` entries.
    """
    for v in range(first, end):
        i, begin, stop = inverse[v], indptr[v], indptr[v + 1]
        if stop - begin > uncut:
            continue
        lower, upper, by_column = np.int64(lower_indptr[i]), np.int64(upper_indptr[i]), stop - begin <= sorted_length
        for k in range(begin, stop):
            j, number = inverse[indices[k]], k - begin
            if j < i:
                insert(j, number, lower_indptr[i], lower, by_column, lower_columns, lower_source)
                lower += 1
            elif j > i:
                insert(j, number, upper_indptr[i], upper, by_column, upper_columns, upper_source)
                upper += 1
            else:
                diagonal_source[i] = number


@KERNELS.per_item
def count_pieces(first, end, rows, begins, indptr, indices, inverse, lower_counts, upper_counts):
    """Entries of each triangle per piece."""
    for p in range(first, end):
        i, lower, upper = inverse[rows[p]], 0, 0
        for k in range(begins[p], min(begins[p] + PIECE, indptr[rows[p] + 1])):
            j = inverse[indices[k]]
            lower += j < i
            upper += j > i
        lower_counts[p], upper_counts[p] = lower, upper


@KERNELS.per_item
def fill_pieces(
    first,
    end,
    rows,
    begins,
    indptr,
    indices,
    inverse,
    lower_places,
    upper_places,
    lower_columns,
    lower_source,
    upper_columns,
    upper_source,
    diagonal_source,
):
    """As fill_columns, from the places of a piece's first entries on; rows keep their order."""
    for p in range(first, end):
        i, lower, upper = inverse[rows[p]], np.int64(lower_places[p]), np.int64(upper_places[p])
        for k in range(begins[p], min(begins[p] + PIECE, indptr[rows[p] + 1])):
            j, number = inverse[indices[k]], k - indptr[rows[p]]
            if j < i:
                lower_columns[lower], lower_source[lower] = j, number
                lower += 1
            elif j > i:
                upper_columns[upper], upper_source[upper] = j, number
                upper += 1
            else:
                diagonal_source[i] = number
