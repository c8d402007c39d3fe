// Checks and counts of a finished coloring. See coloring.py.

extern "C" __global__ void first_conflict(long long n, const OFFSET* indptr, const int* indices, const int* colors,
                                          int* first) {
    long long v = thread_id();
    if (v >= n) return;
    for (OFFSET k = indptr[v]; k < indptr[v + 1]; ++k)
        if (indices[k] != v && colors[indices[k]] == colors[v]) {
            atomicMin(first, (int)v);
            return;
        }
}

#define SHARED_COLORS 4096

extern "C" __global__ void count_colors(long long n, const int* colors, long long* sizes, long long n_colors) {
    // Few colors would meet in few addresses of memory: each block counts those for itself first.
    __shared__ int counts[SHARED_COLORS];
    int counted = (int)min(n_colors, (long long)SHARED_COLORS);
    for (int c = threadIdx.x; c < counted; c += blockDim.x) counts[c] = 0;
    __syncthreads();
    for (long long v = thread_id(); v < n; v += thread_count()) {
        int color = colors[v];
        if (color < SHARED_COLORS)
            atomicAdd(&counts[color], 1);
        else
            atomicAdd((uint64*)&sizes[color], 1ull);
    }
    __syncthreads();
    for (int c = threadIdx.x; c < counted; c += blockDim.x)
        if (counts[c]) atomicAdd((uint64*)&sizes[c], (uint64)counts[c]);
}
