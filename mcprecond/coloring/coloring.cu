// Checks and counts of a finished coloring. See coloring.py.

#include "cuda/grid.cuh"

extern "C" __global__ void first_conflict(long long n, const OFFSET* indptr, const int* indices, const int* colors,
                                          int* first) {
    long long v = thread_id();
    if (v >= n) return;
    for (OFFSET k = indptr[v]; k < indptr[v + 1]; ++k)
        if (colors[indices[k]] == colors[v] && indices[k] != v) {
            atomicMin(first, (int)v);
            return;
        }
}

extern "C" __global__ void count_colors(long long n, const int* colors, long long n_counted, const long long* log,
                                        long long n_rows, long long* report) {
    for (long long r = thread_id(); r < n_rows; r += thread_count()) report[n_counted + 1 + r] = log[r];
    // Few colors would meet in few addresses of memory: each block counts those for itself first.
    __shared__ int own[OWN_COLORS], n_colors;
    int shared = (int)min(n_counted, (long long)OWN_COLORS), last = -1;
    for (int c = threadIdx.x; c < shared; c += blockDim.x) own[c] = 0;
    if (threadIdx.x == 0) n_colors = 0;
    __syncthreads();
    for (long long v = thread_id(); v < n; v += thread_count()) {
        int color = colors[v];
        if (color < shared)
            atomicAdd(&own[color], 1);
        else if (color < n_counted)
            atomicAdd((uint64*)&report[color], 1ull);
        last = max(last, color);
    }
    atomicMax(&n_colors, last + 1);
    __syncthreads();
    for (int c = threadIdx.x; c < shared; c += blockDim.x)
        if (own[c]) atomicAdd((uint64*)&report[c], (uint64)own[c]);
    if (threadIdx.x == 0) atomicMax(&report[n_counted], (long long)n_colors);
}
