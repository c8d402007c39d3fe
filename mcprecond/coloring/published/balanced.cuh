// Merrill's balancing: a long row is a block's, one of medium length a warp's, a short one a single thread's.
#pragma once

#include "cuda/grid.cuh"

#define BLOCK_ROW 1024  // rows at least as long are a block's; those of at least WARP entries are a warp's

template <int N>
struct Team {
    static constexpr int size = N;
};

// What the threads of a team have written before, all of them see behind it.
template <int TEAM>
__device__ __forceinline__ void team_barrier() {
    if constexpr (TEAM > WARP)
        __syncthreads();
    else if constexpr (TEAM > 1)
        __syncwarp();
}

// Every thread may have a vertex for its block: visit(v, team) is called for one after the other by the whole block.
// Returns what it said of the thread's own vertex. Whole blocks call it.
template <typename Visit>
__device__ bool visit_block_rows(int v, bool blocks, Visit visit) {
    __shared__ int owner, shared_v;
    bool said = false;
    while (__syncthreads_or(blocks)) {
        if (blocks) owner = threadIdx.x;  // one of them wins
        __syncthreads();
        bool mine = blocks && owner == threadIdx.x;
        if (mine) shared_v = v;
        __syncthreads();
        bool answer = visit(shared_v, Team<BLOCK>());
        if (mine) {
            said = answer;
            blocks = false;
        }
    }
    return said;
}

// The same for all vertices whose rows, of so many entries, are a block's or a warp's.
template <typename Visit>
__device__ bool visit_long_rows(int v, OFFSET entries, Visit visit) {
    bool said = visit_block_rows(v, entries >= BLOCK_ROW, visit);
    uint32 warps = __ballot_sync(FULL_WARP, entries >= WARP && entries < BLOCK_ROW);
    for (; warps; warps &= warps - 1) {
        int lane = __ffs(warps) - 1;
        bool answer = visit(__shfl_sync(FULL_WARP, v, lane), Team<WARP>());
        if (lane == lane_id()) said = answer;
    }
    return said;
}

// The same for all vertices that are `active`.
template <typename Visit>
__device__ bool visit_balanced(int v, bool active, const OFFSET* indptr, Visit visit) {
    OFFSET entries = active ? indptr[v + 1] - indptr[v] : 0;
    bool said = visit_long_rows(v, entries, visit);
    if (active && entries < WARP) said = visit(v, Team<1>());
    return said;
}
