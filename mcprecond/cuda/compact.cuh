// Stream compaction: the threads that keep something get places one behind the other. Whole warps call these functions,
// or whole blocks where they say so.
#pragma once

#include "cuda/grid.cuh"

// Append to a list by one atomic a warp. Returns this thread's place, which means something where `keep` holds; the
// order of warps is arbitrary.
__device__ __forceinline__ int warp_append(bool keep, int* length) {
    uint32 keepers = __ballot_sync(FULL_WARP, keep);
    int position = 0;
    if (lane_id() == 0 && keepers) position = atomicAdd(length, __popc(keepers));
    return __shfl_sync(FULL_WARP, position, 0) + __popc(keepers & ((1u << lane_id()) - 1));
}

// Append to a list by one atomic a block, whose threads all call this.
__device__ __forceinline__ int block_append(bool keep, int* length) {
    __shared__ int before[BLOCK / WARP], first;
    uint32 keepers = __ballot_sync(FULL_WARP, keep);
    int warp = threadIdx.x / WARP;
    __syncwarp();  // all have read the places of the last call
    if (lane_id() == 0) before[warp] = __popc(keepers);
    __syncthreads();
    if (threadIdx.x == 0) {
        int total = 0;
        for (int w = 0; w < BLOCK / WARP; ++w) {
            int count = before[w];
            before[w] = total;
            total += count;
        }
        first = total ? atomicAdd(length, total) : 0;
    }
    __syncthreads();
    return first + before[warp] + __popc(keepers & ((1u << lane_id()) - 1));
}

// The TEAM threads that share a row go through it TEAM entries at a time and keep some, in order. Returns this thread's
// place: behind what the threads before it keep of the same TEAM entries. `next` then moves behind all of them.
template <int TEAM, typename Place>
__device__ __forceinline__ Place place_in_row(bool keep, Place& next) {
    uint32 team = (TEAM == WARP ? FULL_WARP : (1u << (TEAM % WARP)) - 1) << (lane_id() & ~(TEAM - 1));
    uint32 kept = __ballot_sync(FULL_WARP, keep) & team;
    Place place = next + __popc(kept & ((1u << lane_id()) - 1));
    next += __popc(kept);
    return place;
}
