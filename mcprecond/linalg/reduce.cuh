// Sums over the grid, whose totals stay on the device.
#pragma once

#include "cuda/memory.cuh"
#include "cuda/reduce.cuh"

// Whether this block is the last one of the grid to arrive: it sees what all blocks wrote before. Every thread calls this
// function, once in a kernel.
template <typename Arrivals>
__device__ __forceinline__ bool is_last_block(Arrivals* arrivals) {
    __shared__ bool is_last;
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        is_last = atomicAdd(arrivals, (Arrivals)1) == gridDim.x - 1;
        if (is_last) *arrivals = 0;
    }
    __syncthreads();
    __threadfence();
    return is_last;
}

// Sum values over all threads of the grid, in a fixed order. The last block to arrive computes the totals, and one of its
// threads calls `take(totals)`. Every thread calls this function once, as its last step. If `terms` is given, its `count`
// numbers, which the grid has written to memory, are added to the first total.
template <int COUNT, typename Arrivals, typename Function>
__device__ __forceinline__ void sum_over_grid(const double (&values)[COUNT], double* partials, Arrivals* arrivals,
                                              Function take, const double* terms = nullptr, long long count = 0) {
    for (int s = 0; s < COUNT; ++s) {
        double sum = block_sum(values[s]);
        if (threadIdx.x == 0) partials[s * gridDim.x + blockIdx.x] = sum;
    }
    if (!is_last_block(arrivals)) return;
    double totals[COUNT];
    for (int s = 0; s < COUNT; ++s) {
        double total = 0;
        for (int b = threadIdx.x; b < gridDim.x; b += blockDim.x) total += ptx::load_l2(&partials[s * gridDim.x + b]);
        if (s == 0)
            for (long long k = threadIdx.x; k < count; k += blockDim.x) total += ptx::load_l2(&terms[k]);
        totals[s] = block_sum(total);
    }
    if (threadIdx.x == 0) take(totals);
}
