// Pattern check: one thread per vertex. See check_pattern in graph.py.

enum { NOT_SORTED = 1, NOT_SYMMETRIC = 2, OUT_OF_RANGE = 4 };

extern "C" __global__ void check_pattern(long long n, const OFFSET* indptr, const int* indices, int* degrees,
                                         int* report) {
    long long v = thread_id();
    int flaws = 0, degree = 0;
    if (v < n) {
        OFFSET begin = indptr[v], end = indptr[v + 1];
        int last = -1;
        for (OFFSET k = begin; k < end; ++k) {
            int u = indices[k];
            if (u < 0 || u >= n) {
                flaws |= OUT_OF_RANGE;
                continue;
            }
            if (last >= u) flaws |= NOT_SORTED;
            last = u;
            if (u == v) continue;
            ++degree;
            OFFSET low = indptr[u], high = indptr[u + 1], row_end = high;
            while (low < high) {
                OFFSET middle = low + (high - low) / 2;
                if (indices[middle] < v)
                    low = middle + 1;
                else
                    high = middle;
            }
            if (low == row_end || indices[low] != v) flaws |= NOT_SYMMETRIC;
        }
        degrees[v] = degree;
    }
    for (int step = WARP / 2; step > 0; step /= 2) {
        flaws |= __shfl_xor_sync(FULL_WARP, flaws, step);
        degree = max(degree, __shfl_xor_sync(FULL_WARP, degree, step));
    }
    if (lane_id() == 0) {
        if (flaws) atomicOr(&report[0], flaws);
        if (degree > fresh(&report[1])) atomicMax(&report[1], degree);
    }
}
