// Teams: LANES neighboring threads, of a warp or a whole block, that share a row and wait for each other, but not for
// other teams.
#pragma once

#include "cuda/grid.cuh"

__device__ __forceinline__ int team_lane() { return threadIdx.x % LANES; }
__device__ __forceinline__ unsigned team_mask() {
    return LANES < WARP ? (1u << LANES % WARP) - 1 << lane_id() / LANES * LANES % WARP : FULL_WARP;
}
// Return how many of the numbers of a team, which is at most a warp, are below `own`.
template <typename T>
__device__ __forceinline__ int count_below(T own, T number) {
    int count = 0;
#pragma unroll
    for (int s = 0; s < min(LANES, WARP); ++s) count += __shfl_sync(team_mask(), number, lane_id() / LANES * LANES + s) < own;
    return count;
}
__device__ __forceinline__ void team_sync() {
    if (LANES <= WARP)
        __syncwarp(team_mask());
    else
        __syncthreads();
}
