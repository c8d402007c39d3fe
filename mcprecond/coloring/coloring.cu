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

extern "C" __global__ void count_colors(long long n, const int* colors, long long* sizes, long long n_colors) {
    // Few colors would meet in few addresses: count the threads of a warp that hold the same one together.
    long long v = thread_id();
    if (v >= n) return;
    int color = colors[v];
    uint32 active = __activemask();
    for (uint32 left = active; left;) {
        int leader = __ffs(left) - 1;
        int shown = __shfl_sync(active, color, leader);
        uint32 same = __ballot_sync(active, color == shown);
        if (lane_id() == leader) atomicAdd((uint64*)&sizes[shown], (uint64)__popc(same));
        left &= ~same;
    }
}
