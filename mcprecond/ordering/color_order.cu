// How many entries there are from color to color: LANES threads per row of a sample. See color_order.py.

#include "cuda/grid.cuh"
#include "cuda/hash.cuh"

extern "C" __global__ void count_couplings(long long samples, long long n, const OFFSET* indptr, const int* indices,
                                           const int* colors, long long n_colors, uint64* table) {
    // Few colors would meet in few addresses of memory: each block counts for itself first.
    __shared__ uint32 own[MOST_COLORS * MOST_COLORS];
    int size = (int)(n_colors * n_colors);
    for (int place = threadIdx.x; place < size; place += blockDim.x) own[place] = 0;
    __syncthreads();
    for (long long sample = thread_id() / LANES; sample < samples; sample += thread_count() / LANES) {
        int i = (int)(samples == n ? sample : mix((uint32)sample, 0) % n), row = colors[i] * (int)n_colors;
        OFFSET begin = indptr[i], end = indptr[i + 1];
        uint32 each = (uint32)((end - begin) / SAMPLED_ENTRIES) + 1;  // one for so many
        for (OFFSET k = begin + threadIdx.x % LANES * (OFFSET)each; k < end; k += LANES * (OFFSET)each)
            if (indices[k] != i) atomicAdd(&own[row + colors[indices[k]]], each);
    }
    __syncthreads();
    for (int place = threadIdx.x; place < size; place += blockDim.x)
        if (own[place]) atomicAdd(&table[place], (uint64)own[place]);
}
