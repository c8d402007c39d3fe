"""The order in which the entries of a slice are stored.

The entries of a slice are stored in the order in which its threads take them: first those that each lane of each row
takes in step 0, then those of step 1, and so on, without padding. Lane l of a row takes its entries l, l + lanes,
l + 2 lanes, ... So a warp reads contiguous memory, whatever the lengths of its rows, and no more of it than with CSR.

On the CPU entries stay in the order of CSR.
"""

from __future__ import annotations

from typing import Any

from mcprecond.backends import Backend, KernelSet
from mcprecond.storage.layouts.layout import LAYOUT_CHOICES
from mcprecond.storage.schedule import MOST_ROWS

KERNELS = KernelSet(__file__, f"OFFSET ENTRY {LAYOUT_CHOICES} (LANES)")


def interleave_entries(
    slices: Any, indptr: Any, columns: Any, entries: Any, result: Any, backend: Backend, back: bool, **macros: int
) -> Any:
    """Put an array with a number for each entry of a triangle into the order of slices, or back into that of CSR.

    `columns` matters to the order only with the macro SLICED_DIA.
    """
    if not backend.resident_warps:
        result[...] = entries
        return result
    run = backend.kernels(KERNELS, OFFSET=indptr.dtype, ENTRY=entries.dtype, LANES=32, **macros)
    run.interleave(len(slices) - 1, slices, indptr, columns, entries, result, int(back))
    return result


@KERNELS.per_item
def interleave(first, end, slices, indptr, columns, entries, result, back):
    """The order of a slice's entries: by step, by row, by lane. (Only CUDA has the order of diagonals.)"""
    for k in range(first, end):
        lanes = MOST_ROWS
        while lanes * (slices[k + 1] - slices[k]) > MOST_ROWS:
            lanes //= 2
        position, step = indptr[slices[k]], 0
        while position < indptr[slices[k + 1]]:
            for i in range(slices[k], slices[k + 1]):
                for e in range(indptr[i] + step * lanes, min(indptr[i] + (step + 1) * lanes, indptr[i + 1])):
                    if back:
                        result[e] = entries[position]
                    else:
                        result[position] = entries[e]
                    position += 1
            step += 1
