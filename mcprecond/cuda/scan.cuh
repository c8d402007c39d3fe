// Exclusive prefix sums: of the threads of a block, and of many numbers by a whole grid.
#pragma once

#include "cuda/grid.cuh"

// Return the exclusive prefix sum: each thread of the block contributes a number, and gets the sum of the numbers of all
// threads with a lower index. The sum of all numbers is stored in `total`.
__device__ __forceinline__ long long block_scan(long long number, long long& total) {
    __shared__ long long of_warps[BLOCK / WARP];
    int warp = threadIdx.x / WARP;
    long long through = number, before = 0;
    for (int step = 1; step < WARP; step *= 2) {
        long long other = __shfl_up_sync(FULL_WARP, through, step);
        if (lane_id() >= step) through += other;
    }
    __syncthreads();  // until all threads have read the sums of the last call
    if (lane_id() == WARP - 1) of_warps[warp] = through;
    __syncthreads();
    total = 0;
    for (int other = 0; other < BLOCK / WARP; ++other) {
        if (other < warp) before += of_warps[other];
        total += of_warps[other];
    }
    return before + through - number;
}

// The memory that a grid needs for a prefix sum. All of it is zero before the kernel starts; `of_blocks` has as many
// numbers as the grid has blocks.
struct Control {
    uint32 arrivals;
    long long longest;
    long long of_blocks[1];
};

// Compute the n + 1 offsets of n lists that are stored one after the other; `length(i)` returns the length of list i.
// The length of the longest list is stored in `control->longest`. All blocks of the grid have to be resident, because
// they wait for each other. When the function returns, every thread can read all offsets. `length` may read the array
// `offsets`, since each length is read before its place is overwritten.
template <typename Length, typename Offset>
__device__ void write_offsets(long long n, Length length, Offset* offsets, Control* control) {
    long long share = (n + gridDim.x - 1) / gridDim.x;
    long long begin = min(n, blockIdx.x * share), end = min(n, begin + share), own = 0, longest = 0, total;
    for (long long i = begin + threadIdx.x; i < end; i += BLOCK) {
        long long number = length(i);
        own += number, longest = max(longest, number);
    }
    block_scan(own, total);
    for (int step = WARP / 2; step > 0; step /= 2) longest = max(longest, __shfl_xor_sync(FULL_WARP, longest, step));
    if (lane_id() == 0 && longest > ptx::load_l2(&control->longest)) atomicMax(&control->longest, longest);
    if (threadIdx.x == 0) control->of_blocks[blockIdx.x] = total;
    grid_barrier(&control->arrivals);
    own = 0;
    for (long long block = threadIdx.x; block < blockIdx.x; block += BLOCK)
        own += ptx::load_l2(&control->of_blocks[block]);
    long long next;
    block_scan(own, next);
    for (long long first = begin; first < end; first += BLOCK) {
        long long i = first + threadIdx.x, number = i < end ? length(i) : 0;
        long long before = block_scan(number, total);
        if (i < end) offsets[i] = (Offset)(next + before);
        next += total;
    }
    if (blockIdx.x == gridDim.x - 1 && threadIdx.x == 0) offsets[n] = (Offset)next;
    grid_barrier(&control->arrivals);
}
