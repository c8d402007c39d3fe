// Pattern check: LANES threads per vertex. See check_pattern in graph.py.

enum { NOT_SORTED = 1, OUT_OF_RANGE = 4 };

extern "C" __global__ void check_pattern(long long n, const OFFSET* indptr, const int* indices, int* degrees,
                                         long long* report) {
    int flaws = 0, largest = 0;
    uint64 surplus = 0;
    for (long long v0 = (thread_id() - lane_id()) / LANES; v0 < n; v0 += thread_count() / LANES) {
        long long v = v0 + lane_id() / LANES;
        OFFSET begin = v < n ? indptr[v] : 0, end = v < n ? indptr[v + 1] : 0;
        int degree = 0;
        for (OFFSET k = begin + lane_id() % LANES; k < end; k += LANES) {
            int u = indices[k];
            if (u < 0 || u >= n) {
                flaws |= OUT_OF_RANGE;
                continue;
            }
            if (k > begin && indices[k - 1] >= u) flaws |= NOT_SORTED;
            degree += u != v;
            uint64 edge = mix64((uint64)min((long long)u, v) << 32 | (uint64)max((long long)u, v));
            surplus += u > v ? edge : u < v ? 0 - edge : 0;
        }
        degree = lane_sum<LANES>(degree);
        if (v < n && lane_id() % LANES == 0) degrees[v] = degree;
        largest = max(largest, degree);
    }
    for (int step = WARP / 2; step > 0; step /= 2) {
        flaws |= __shfl_xor_sync(FULL_WARP, flaws, step);
        largest = max(largest, __shfl_xor_sync(FULL_WARP, largest, step));
    }
    surplus = lane_sum<WARP>(surplus);
    if (lane_id() == 0) {
        if (flaws) atomicOr((uint64*)&report[0], (uint64)flaws);
        if (largest > fresh(&report[1])) atomicMax(&report[1], (long long)largest);
        atomicAdd((uint64*)&report[2], surplus);
    }
}
