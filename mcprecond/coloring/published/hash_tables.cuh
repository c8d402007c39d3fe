// This file implements the hash tables of Gunrock's hash coloring. Each function computes the same as the function of
// the same name in hash_tables.py.
#pragma once

#include "cuda/grid.cuh"
#include "cuda/hash.cuh"

__device__ __forceinline__ long long number_of(int v, uint32 seed) { return (long long)mix(v, seed) << 31 | v; }

// The hash table of a vertex. Entries with the same index are adjacent for all vertices, so that threads of a warp that
// work on neighboring vertices access consecutive memory.
struct Table {
    int* first;
    long long stride;
    int size;
    __device__ int* place(int j) const { return first + j * stride; }
};

__device__ void prohibit(Table table, int color) {
    for (int j = 0; j < table.size; ++j) {
        int stored = ptx::load_l2(table.place(j));
        if (stored == color || stored == NO_REUSE) return;
        if (stored == EMPTY) {
            *table.place(j) = color;
            return;
        }
    }
}

__device__ int color_of(int proposal, int new_color, Table table) {
    uint64 prohibited = 0;  // bit c: color c is; a color below table.size + 1 is not
    for (int j = 0; j < table.size; ++j) {
        int stored = ptx::load_l2(table.place(j));
        if (stored == NO_REUSE) return proposal;
        if (stored == EMPTY) break;
        if (stored <= LARGEST_TABLE) prohibited |= 1ull << stored;
    }
    int c = __ffsll((long long)~prohibited) - 1;
    return c < new_color ? c : proposal;
}
