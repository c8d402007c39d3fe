// Where a thread is in the grid, and a barrier for all of them. Blocks are one-dimensional, of BLOCK threads.
#pragma once

#include "cuda/check.cuh"
#include "cuda/ptx.cuh"

#define FULL_WARP 0xffffffffu

__device__ __forceinline__ long long thread_id() { return blockIdx.x * (long long)blockDim.x + threadIdx.x; }
__device__ __forceinline__ long long thread_count() { return gridDim.x * (long long)blockDim.x; }
__device__ __forceinline__ int lane_id() { return threadIdx.x & (WARP - 1); }

// Another numbering of the grid's threads: warps are dealt to the blocks in turn. Where only the first few items have
// work, or neighboring items have the most, every multiprocessor gets its share.
__device__ __forceinline__ long long spread_id() {
    return (threadIdx.x / WARP * (long long)gridDim.x + blockIdx.x) * WARP + lane_id();
}

// A barrier for the whole grid, which has to be resident (launched cooperatively): behind it every thread sees what all
// threads wrote before it. `arrivals` starts at zero and only grows, so that nothing has to be reset between barriers.
__device__ __forceinline__ void grid_barrier(uint32* arrivals) {
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        uint32 ticket = atomicAdd(arrivals, 1u);
        uint32 target = (ticket / gridDim.x + 1) * gridDim.x;
        while ((int)(ptx::load_volatile(arrivals) - target) < 0) {
        }
        __threadfence();
    }
    __syncthreads();
}
