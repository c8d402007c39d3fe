// The neighbors of a vertex and their colors. TEAM threads share a vertex: some of a warp, a warp, or the block.
#pragma once

#include "cuda/memory.cuh"
#include "cuda/reduce.cuh"

#define PALETTE 64  // colors that are tried together: the bits of a word

// Whether `is_true(k)` for an entry k, indices[k] the vertex, of a row near v: its own, and at distance 2 those of its
// neighbors. See rows_near in coloring/graph.py. Each thread of the team stops when it has found one.
template <int TEAM, typename Predicate>
__device__ __forceinline__ bool any_near(int v, long long distance, const OFFSET* indptr, const int* indices,
                                         Predicate is_true) {
    OFFSET own = indptr[v], last = distance == 2 ? indptr[v + 1] : own;
    for (OFFSET j = own - 1; j < last; ++j) {
        int row = j < own ? v : indices[j];
        for (OFFSET k = indptr[row] + threadIdx.x % TEAM, end = indptr[row + 1]; k < end; k += TEAM)
            if (is_true(k)) return true;
    }
    return false;
}

// The smallest color that no neighbor has. v is uncolored, so that an entry on the diagonal excludes nothing. Whole
// warps call it, and where the team is the block the block.
template <int TEAM>
__device__ int smallest_free_color(int v, const OFFSET* indptr, const int* indices, const int* C) {
    OFFSET first = indptr[v] + threadIdx.x % TEAM, end = indptr[v + 1];
    for (int offset = 0;; offset += PALETTE) {
        uint64 taken = 0;
        for (OFFSET k = first; k < end; k += TEAM) {
            int color = ptx::load_l2(&C[indices[k]]) - offset;  // UNCOLORED lies below every palette
            if (color >= 0 && color < PALETTE) taken |= 1ull << color;
        }
        taken = team_or<TEAM>(taken);
        if (~taken) return offset + __ffsll((long long)~taken) - 1;
    }
}

// Whether v is the end of a conflicting edge (v, u) that is recolored. See gives_way in published/speculation.py.
__device__ __forceinline__ bool gives_way(int v, int u, bool by_degree, const int* degrees) {
    if (by_degree && degrees[v] != degrees[u]) return degrees[v] < degrees[u];
    return v < u;
}
