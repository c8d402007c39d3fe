"""Products of sparse matrices: the columns of a row and its numbers in one pass.

The rows of the first factor are single ones. The entries of the second have k numbers each, as those of a row of blocks
with k columns. A row of the product is the sum of multiples of rows of the second factor, in the order of the entries
of the first one. So equal factors have equal products, to the last bit, by however many threads.

How long a row of the product is, is not known before it is computed. So it lies where there was room for it, with its
columns in any order. Such rows may be the second factor of another product; `Multiplication.in_order` sorts them.

Where k is 0, entries have no numbers, and the product is that of patterns.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mcprecond.backends import Backend, KernelSet, compile_inlined, compile_loop, offset_type
from mcprecond.backends.cuda_source import BLOCK, WARP
from mcprecond.backends.team.atomics import atomic_add, atomic_max
from mcprecond.linalg.csr import lanes_for
from mcprecond.matrix import rows_of
from mcprecond.multigrid.patterns import PARTS, Pattern, in_one_dtype, new_control, sort_columns

KERNELS = KernelSet(__file__, "OFFSET VALUE LANES SHARING WIDTH WIDE=0")

#: The row offsets, columns and values of a CSR matrix.
Arrays = tuple[Any, Any, Any]

#: On a GPU a team adds up a row in shared memory. For each of its threads the team has TABLE_PER_THREAD entries of a
#: hash table for the columns (half as many for complex128), and, where an entry has several numbers, NUMBER_BYTES for
#: these.
TABLE_PER_THREAD, NUMBER_BYTES = 8, 80
#: A team has at least LEAST_LANES threads. With smaller teams a block would need more shared memory than it can have.
LEAST_LANES = 4
#: We expect that rows of a product are on average at most GROWTH times as long as rows of the second factor. For
#: patterns, which take less memory, there is room for twice as much.
GROWTH = 4
#: The array for the entries of a product has room for at least LEAST_ROOM of them. If less than the share LEAST_USED of
#: the array is used, the entries are copied to a smaller one.
LEAST_ROOM, LEAST_USED = 2**18, 0.75
#: The teams of a warp reserve room together, for several rows each, but for at most MOST_RESERVED entries. If that is
#: not enough for LEAST_ROWS rows of the expected length, they reserve room for one row each. Otherwise much of the room
#: would be wasted, because rows that do not fit into the rest of a reservation need a new one.
MOST_RESERVED, LEAST_ROWS = 1024, 4
#: A row that is too long for shared memory is added up in global memory, in an array with k numbers for every column.
#: Each block of threads has such an array, and all of them together have at most MOST_BYTES, unless one alone has more.
MOST_BYTES = 2**26
#: A team goes over each row of the first factor. On a GPU, if one of them has more than LONG entries, all are cut into
#: pieces of at most PIECE entries.
LONG, PIECE = 2048, 512
#: What the kernels count: entries for which teams have reserved room (USED), entries of the longest row (LONGEST),
#: entries that are stored (ENTRIES), those of rows that were not stored because the array was full (LACKING), rows that
#: do not fit into the memory of a team (LEFT_OVER), and rows that were not stored (WAITING).
USED, LONGEST, ENTRIES, LACKING, LEFT_OVER, WAITING = range(COUNTERS := 6)
CUDA_CONSTANTS = {
    "TABLE_PER_THREAD": TABLE_PER_THREAD,
    "NUMBER_BYTES": NUMBER_BYTES,
    "USED": USED,
    "LEFT_OVER": LEFT_OVER,
    "WAITING": WAITING,
    "ENTRIES": ENTRIES,
    "LACKING": LACKING,
    "LONGEST": LONGEST,
}


class Rows(NamedTuple):
    """The rows of a matrix whose entries have k numbers each.

    Attributes
    ----------
    begins, ends : arrays of int32 or int64
        The places in `columns` where each list begins and ends. Rows may share a list, as those of a node do.
    columns : array of int32
    numbers : array
        Those of a list are together, a row after the other where rows share it.
    """

    begins: Any
    ends: Any
    columns: Any
    numbers: Any

    @classmethod
    def of(cls, pattern: Pattern, numbers: Any) -> Rows:
        """Those of a matrix that has one list after the other; of a pattern, where `numbers` is empty."""
        return cls(pattern[0][:-1], pattern[0][1:], pattern[1], numbers)


class Stage(NamedTuple):
    """One launch for rows of a product.

    Attributes
    ----------
    lanes : int
        How many threads share a row; with a block, rows are added up in memory.
    rows : array of int32, or None
        Which rows, if it is not for all of them.
    length : int
        How many.
    """

    lanes: int
    rows: Any
    length: int


class Multiplication:
    """A product of two matrices: with the numbers that they have first, and with others later.

    Parameters
    ----------
    left : arrays
        The first factor.
    right : Rows
        The second one.
    sharing : int
        How many of its rows share a list.
    k : int
        How many numbers each of its entries has.
    width : int
        How many columns it has, of k unknowns each.
    backend : Backend
    longest_row : int
        At least the length of the longest row of the first factor.
    most : float
        A product with more entries is not kept.

    Attributes
    ----------
    rows : Rows, or None
        The product with the first numbers; see `take`.
    entries : int
        How many entries the product has.
    longest : int
        How many its longest row has.
    """

    rows: Rows | None
    entries: int
    longest: int

    def __init__(
        self,
        left: Arrays,
        right: Rows,
        sharing: int,
        k: int,
        width: int,
        backend: Backend,
        longest_row: int,
        most: float = np.inf,
    ) -> None:
        self.k, self.width, self.backend, self.dtype = k, width, backend, right.numbers.dtype
        self.pieces: Multiplication | None = None
        if backend.resident_warps and longest_row > LONG:
            self.offsets, self.of_rows = cut_rows(left[0], backend.xp)
            self.pieces = Multiplication((self.offsets, *left[1:]), right, sharing, k, width, backend, PIECE)
            left, right, sharing = self._sum_of_pieces(), self.pieces.take(), 1
        self.sharing, self.n = sharing, len(left[0]) - 1
        of_right = len(right.columns) / max(len(right.begins), 1)
        expected = min(min(len(left[1]) / max(self.n, 1), GROWTH) * of_right, width)
        lanes = lanes_that_hold(expected, of_right, k, self.dtype)
        warps, teams = (backend.resident_warps, WARP // lanes) if backend.resident_warps else (PARTS, 1)
        self.room = max(int(expected * self.n) * (1 if k else 2), LEAST_ROOM)
        reserved = min(self.room // (8 * warps), MOST_RESERVED)
        if reserved < LEAST_ROWS * expected * teams:
            reserved = 0
        self.room = self._find(left, right, lanes, reserved, (warps + BLOCK) * reserved, most)
        if self.entries > most:
            self.rows = None

    def _find(self, left: Arrays, right: Rows, lanes: int, reserved: int, unused: int, most: float) -> int:
        """Compute the product, find where each row lies, and return how much room they need.

        Parameters
        ----------
        reserved : int
            For how many entries the teams of a warp reserve room at once.
        unused : int
            At most so much of what they reserve last stays empty.
        """
        xp = self.backend.xp
        found = self.backend.zeros(COUNTERS, np.int64)
        self.stages, self.entries, self.longest = list[Stage](), 0, 0
        # The kernel writes places in the dtype of all row offsets.
        offset = np.result_type(left[0].dtype, right.begins.dtype, offset_type(self.room))
        begins, ends = xp.empty((2, self.n), offset)
        # The arrays have no other name here, so that `_move` frees them.
        self.rows = Rows(begins, ends, xp.empty(self.room, np.int32), xp.empty(self.room * self.k, self.dtype))
        stage, is_again, later = Stage(lanes, None, self.n), False, list[Stage]()
        while True:
            if not is_again:
                self.stages.append(stage)
            left_over = xp.empty(stage.length, np.int32)
            before = self.room, reserved, found
            self._launch("multiply_rows", stage, left, right, before, self.rows, (left_over,))
            used, self.longest, self.entries, lacking, count, waiting = map(int, self.backend.to_host(found))
            if count:
                later.append(Stage(WARP if stage.lanes < WARP else BLOCK, left_over[:count], count))
            if self.entries + lacking > most:
                self.entries += lacking
                return used
            is_again = waiting > 0
            if is_again:  # with more room
                found[USED] = self.room
                # Where rows do not fit into what is left of a reservation, less than their length stays empty.
                self._move(self.room + 2 * lacking + unused)
                stage = Stage(stage.lanes, left_over[len(left_over) - waiting :], waiting)
            elif later:
                stage = later.pop()
            else:
                return used
            found[LACKING:] = 0

    def _move(self, room: int) -> None:
        """Copy the entries to arrays with so much room: the columns first, so that their old array is freed before the
        numbers are copied.
        """
        xp, rows = self.backend.xp, self.rows
        assert rows is not None
        offset = np.result_type(rows.begins.dtype, offset_type(room))
        begins, ends = (places.astype(offset, copy=False) for places in rows[:2])
        self.rows = rows = Rows(begins, ends, with_room(rows.columns, room, xp), rows.numbers)
        self.rows, self.room = rows._replace(numbers=with_room(rows.numbers, room * self.k, xp)), room

    def _launch(
        self,
        kernel: str,
        stage: Stage,
        left: Arrays,
        right: Rows,
        before: tuple[Any, ...],
        result: Rows,
        behind: tuple[Any, ...] = (),
    ) -> None:
        """Launch a kernel for the rows of a stage, with arguments of its own before and behind the result."""
        xp, record, wide = self.backend.xp, self.backend.record, int(stage.lanes == BLOCK)
        indptr, *places = in_one_dtype(left[0], *right[:2], *result[:2])
        macros = {"OFFSET": indptr.dtype, "VALUE": self.dtype, "SHARING": self.sharing, "WIDTH": self.k, "WIDE": wide}
        run = self.backend.kernels(KERNELS, **macros, LANES=stage.lanes)
        of_factors = *record((indptr, *left[1:])), *record((*places[:2], *right[2:]))
        unread = left[1]  # stands for arrays that are not needed
        is_listed, rows = (0, unread) if stage.rows is None else (1, stage.rows)
        of_rows = stage.length, self.width, self.sharing, self.k, is_listed, rows
        of_result = record((*places[2:], *result[2:]))
        blocks, sums, marks = 0, unread, unread
        if wide:
            words = -(-self.width // 32)
            most = MOST_BYTES // (self.width * self.k * self.dtype.itemsize + 4 * words)
            blocks = max(min(stage.length, most, self.backend.resident_warps * WARP // BLOCK), 1)
            sums, marks = xp.zeros(blocks * self.width * self.k, self.dtype), xp.zeros(blocks * words, np.uint32)
        getattr(run, kernel)(*of_rows, *of_factors, *before, *of_result, *behind, blocks, sums, marks)

    def _sum_of_pieces(self) -> Arrays:
        """The matrix that adds up the pieces of each row."""
        xp, count = self.backend.xp, len(self.offsets) - 1
        return self.of_rows, xp.arange(count, dtype=np.int32), xp.ones(count, self.dtype)

    def shrink(self) -> None:
        """Copy the product with the first numbers, if it is kept, to smaller arrays if there are much larger ones."""
        if self.rows is not None and self.room < LEAST_USED * len(self.rows.columns):
            self._move(self.room)

    def take(self) -> Rows:
        """Return the product with the first numbers, and keep where its rows lie, for `compute`."""
        self.shrink()
        rows, self.rows = self.rows, None
        assert rows is not None
        begins, ends = (places.astype(offset_type(self.room), copy=False) for places in rows[:2])
        self._kept = begins, ends, rows.columns
        return rows

    def compute(self, left: Arrays, right: Rows) -> Rows:
        """Return the product with other numbers of the factors. Launches kernels only."""
        rows = Rows(*self._kept, self.backend.xp.empty(self.room * self.k, self.dtype))
        self.compute_into(left, right, rows, 1)
        return rows

    def compute_into(self, left: Arrays, right: Rows, result: Rows, sharing: int) -> None:
        """Compute the product with other numbers of the factors for known columns, with so many rows to a list.
        Launches kernels only.
        """
        if self.pieces is not None:
            left, right = self._sum_of_pieces(), self.pieces.compute((self.offsets, *left[1:]), right)
        for stage in self.stages:
            self._launch("multiply_into", stage, left, right, (sharing,), result)

    def in_order(self, sharing: int) -> tuple[Pattern, Any]:
        """Return the pattern of the product with sorted rows, and its numbers; `rows` is forgotten.

        Parameters
        ----------
        sharing : int
            How many rows of the product have the same columns, of which there is one list.
        """
        rows, xp = self.rows, self.backend.xp
        assert rows is not None
        indptr = xp.empty(self.n // sharing + 1, rows.begins.dtype)
        columns, numbers = xp.empty(self.entries // sharing, np.int32), xp.empty(self.entries * self.k, self.dtype)
        lanes = max(lanes_for(self.entries / max(self.n, 1)), LEAST_LANES)
        macros = {"OFFSET": indptr.dtype, "VALUE": self.dtype, "SHARING": sharing, "WIDTH": self.k, "LANES": lanes}
        run = self.backend.kernels(KERNELS, **macros)
        sizes, result = (self.n, self.width, sharing, self.k), (indptr, columns, numbers)
        control = new_control(self.backend)
        run.sort_rows(max(self.n, 1), *sizes, *self.backend.record(rows), *result, control)
        self.rows = None
        return (indptr.astype(offset_type(len(columns)), copy=False), columns), numbers


def product_pattern(left: Pattern, right: Rows, width: int, backend: Backend, longest_row: int) -> tuple[Pattern, int]:
    """Return the pattern of the product of two matrices, and the length of its longest row; see `Multiplication` for
    the arguments.
    """
    # The first factor needs no numbers either.
    product = Multiplication((*left, right.numbers), right, 1, 0, width, backend, longest_row)
    return product.in_order(1)[0], product.longest


def with_room(array: Any, room: int, xp: Any) -> Any:
    """A copy of an array with room for so many numbers."""
    if room <= len(array):
        return array[:room].copy()
    larger = xp.empty(room, array.dtype)
    larger[: len(array)] = array
    return larger


def lanes_that_hold(expected: float, of_right: float, k: int, dtype: Any) -> int:
    """How many threads share a row of a product, of which so many columns are expected, and of the second factor."""
    lanes = max(lanes_for(2 * k * of_right), LEAST_LANES)
    numbers = expected * k * dtype.itemsize / NUMBER_BYTES if k > 1 else 0
    places = TABLE_PER_THREAD * 3 / 4 / (2 if dtype.itemsize == 16 else 1)
    while lanes < WARP and lanes < max(numbers, expected / places):
        lanes *= 2
    return lanes


def cut_rows(indptr: Any, xp: Any) -> tuple[Any, Any]:
    """Cut the rows of a matrix into pieces: the offsets of these, and the number of the first piece of each row."""
    of_rows = xp.zeros(len(indptr), np.int64)
    xp.cumsum(xp.maximum(-(-xp.diff(indptr) // PIECE), 1), out=of_rows[1:])
    number = xp.arange(int(of_rows[-1]))
    rows = rows_of(of_rows, number, xp)
    offsets = xp.concatenate((indptr[rows] + PIECE * (number - of_rows[rows]), indptr[-1:]))
    return offsets.astype(indptr.dtype, copy=False), of_rows.astype(offset_type(len(number)), copy=False)


# On the CPU. Rows are added up in an array with a place for every column, which is zero again after each row.


@compile_inlined
def add_multiple(factor, begin, end, place, k, columns, numbers, sums):
    """Add a multiple of a row whose list is between two places, and whose numbers are from another one on."""
    if k == 1:
        for t in range(begin, end):
            sums[np.uint32(columns[t])] += factor * numbers[place]
            place += np.uint64(1)
        return
    for t in range(begin, end):
        column = np.uint32(columns[t]) * k
        for c in range(k):
            sums[np.uint64(column + c)] += factor * numbers[np.uint64(place + np.uint64(c))]
        place += np.uint64(k)


@compile_inlined
def place_of(j, u, sharing, k, begin, end):
    """Where the numbers of row j are, which shares the list of u."""
    if sharing == 1:
        return np.uint64(begin * k)
    return np.uint64((begin * sharing + (j - u * sharing) * (end - begin)) * k)


@compile_inlined
def add_up(i, sharing, k, indptr, indices, values, begins, ends, columns, numbers, sums):
    """Add up row i of the product."""
    for e in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
        j = np.uint32(indices[e])
        u = j if sharing == 1 else np.uint32(j // sharing)
        begin, end = begins[u], ends[u]
        place = place_of(j, u, sharing, k, begin, end)
        add_multiple(values[e], np.uint64(begin), np.uint64(end), place, k, columns, numbers, sums)


@compile_inlined
def add_and_list(i, sharing, k, indptr, indices, values, begins, ends, columns, numbers, sums, last_row, listed):
    """Add up row i of the product, and list its columns in any order. Returns how many they are."""
    count, before = 0, -1
    for e in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
        j = np.uint32(indices[e])
        u = j if sharing == 1 else np.uint32(j // sharing)
        begin, end = begins[u], ends[u]
        place = place_of(j, u, sharing, k, begin, end)
        if k != 1:
            if u != before:  # otherwise the columns of the list are there
                for t in range(np.uint64(begin), np.uint64(end)):
                    column = np.uint32(columns[t])
                    listed[count] = column
                    count += last_row[column] != i
                    last_row[column] = i
                before = u
            if k > 0:
                add_multiple(values[e], np.uint64(begin), np.uint64(end), place, k, columns, numbers, sums)
        else:
            factor = values[e]
            for t in range(np.uint64(begin), np.uint64(end)):
                column = np.uint32(columns[t])
                listed[count] = column
                count += last_row[column] != i
                last_row[column] = i
                sums[column] += factor * numbers[place]
                place += np.uint64(1)
    return count


@compile_inlined
def take_listed(count, listed, sums, begin, k, columns, numbers):
    """Move the sums of the listed columns to where a row begins."""
    place = np.uint64(begin)
    for t in range(count):
        column = np.uint32(listed[t])
        columns[place] = column
        if k == 1:
            numbers[place], sums[column] = sums[column], 0
        else:
            for c in range(k):
                numbers[np.uint64(place * np.uint64(k) + np.uint64(c))] = sums[np.uint64(column * k + c)]
                sums[np.uint64(column * k + c)] = 0
        place += np.uint64(1)


@compile_inlined
def clear_listed(count, listed, sums, k):
    """Make the sums of the listed columns zero."""
    for t in range(count):
        for c in range(k):
            sums[listed[t] * k + c] = 0


@compile_loop(offsets="indptr", parts=PARTS)
def multiply_parts(
    first, end, n, width, sharing, k, is_listed, rows, indptr, indices, values, begins, ends, columns, numbers, room,
    reserved, found, result_begins, result_ends, result_columns, result, left_over,
):  # fmt: skip
    """The rows of some parts."""
    last_row, listed = np.full(width, -1, np.int32), np.empty(width + 1, np.int32)
    sums, next, stop, entries, lacking, longest = np.zeros(width * k, result.dtype), 0, 0, 0, 0, 0
    for r in range(first * n // PARTS, end * n // PARTS):
        i = np.int64(rows[r]) if is_listed else r
        of_factors = indptr, indices, values, begins, ends, columns, numbers
        count = add_and_list(i, sharing, k, *of_factors, sums, last_row, listed)
        if next + count > stop:
            most = max(count, reserved)
            next = atomic_add(found, USED, most)
            stop = next + most
        if next + count <= room:
            result_begins[i], result_ends[i] = next, next + count
            take_listed(count, listed, sums, next, k, result_columns, result)
            entries += count
        else:
            left_over[n - 1 - atomic_add(found, WAITING, 1)] = i
            clear_listed(count, listed, sums, k)
            lacking += count
        next, longest = next + count, max(longest, count)
    atomic_add(found, ENTRIES, entries)
    atomic_add(found, LACKING, lacking)
    atomic_max(found, LONGEST, longest)


@KERNELS.strided
def multiply_rows(
    n, width, sharing, k, is_listed, rows, indptr, indices, values, begins, ends, columns, numbers, room, reserved,
    found, result_begins, result_ends, result_columns, result, left_over, blocks, sums, marks,
):  # fmt: skip
    """Compute the rows of a product, and reserve room for them."""
    multiply_parts(
        0, PARTS, n, width, sharing, k, is_listed, rows, indptr, indices, values, begins, ends, columns, numbers, room,
        reserved, found, result_begins, result_ends, result_columns, result, left_over,
    )  # fmt: skip


@compile_inlined
def take_row(begin, end, place, k, columns, sums, numbers):
    """Move the sums of the columns of a list to where a row's numbers begin."""
    for t in range(np.uint64(begin), np.uint64(end)):
        column = np.uint32(columns[t])
        for c in range(k):
            numbers[place] = sums[np.uint64(column * k + c)]
            sums[np.uint64(column * k + c)] = 0
            place += np.uint64(1)


@compile_loop(offsets="indptr", parts=PARTS)
def multiply_parts_into(
    first, end, n, width, sharing, k, indptr, indices, values, begins, ends, columns, numbers, result_sharing,
    result_begins, result_ends, result_columns, result,
):  # fmt: skip
    """The rows of some parts."""
    sums = np.zeros(width * k, result.dtype)
    for i in range(first * n // PARTS, end * n // PARTS):
        add_up(i, sharing, k, indptr, indices, values, begins, ends, columns, numbers, sums)
        v = i // result_sharing
        begin, stop = result_begins[v], result_ends[v]
        place = place_of(i, v, result_sharing, k, begin, stop)
        take_row(begin, stop, place, k, result_columns, sums, result)


@KERNELS.strided
def multiply_into(
    n, width, sharing, k, is_listed, rows, indptr, indices, values, begins, ends, columns, numbers, result_sharing,
    result_begins, result_ends, result_columns, result, blocks, sums, marks,
):  # fmt: skip
    """Compute the rows of a product whose columns are known."""
    multiply_parts_into(
        0, PARTS, n, width, sharing, k, indptr, indices, values, begins, ends, columns, numbers, result_sharing,
        result_begins, result_ends, result_columns, result,
    )  # fmt: skip


@compile_loop(offsets="result_indptr", parts=PARTS)
def sort_parts(
    first_part, end_part, n, width, sharing, k, begins, ends, columns, numbers, result_indptr, result_columns, result
):
    """The rows of some parts."""
    words, sums, lists = np.zeros(width // 64 + 1, np.uint64), np.zeros(width * k, result.dtype), n // sharing
    for v in range(first_part * lists // PARTS, end_part * lists // PARTS):
        begin, end = result_indptr[v], result_indptr[v + 1]
        for t in range(end - begin):
            result_columns[begin + t] = columns[begins[v * sharing] + t]
        sort_columns(result_columns, begin, end, words)
        for r in range(sharing):
            i = v * sharing + r
            for place in range(begins[i], ends[i]):
                for c in range(k):
                    sums[np.uint32(columns[place]) * k + c] = numbers[place * k + c]
            take_row(begin, end, place_of(i, v, sharing, k, begin, end), k, result_columns, sums, result)


@KERNELS.resident
def sort_rows(
    teams, n, width, sharing, k, begins, ends, columns, numbers, result_indptr, result_columns, result, control
):
    """Put the rows one behind the other, with sorted columns; those of rows that share a list are those of the first of
    them.
    """
    result_indptr[0] = 0
    for v in range(n // sharing):
        result_indptr[v + 1] = result_indptr[v] + ends[v * sharing] - begins[v * sharing]
    of_rows = begins, ends, columns, numbers
    sort_parts(0, PARTS, n, width, sharing, k, *of_rows, result_indptr, result_columns, result)
