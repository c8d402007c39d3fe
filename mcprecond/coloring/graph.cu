// Pattern check: LANES threads per vertex. See check_pattern in graph.py.

enum { NOT_SORTED = 1, NOT_SYMMETRIC = 2, OUT_OF_RANGE = 4 };

__device__ bool lists(const OFFSET* indptr, const int* indices, int u, long long v) {
    OFFSET end = indptr[u + 1], place = lower_bound(indices, indptr[u], end, v);
    return place < end && indices[place] == v;
}

extern "C" __global__ void check_pattern(long long n, const OFFSET* indptr, const int* indices, int* degrees,
                                         long long* report) {
    long long v = thread_id() / LANES;
    int flaws = 0, degree = 0, surplus = 0;
    if (v < n) {
        OFFSET begin = indptr[v];
        for (OFFSET k = begin + threadIdx.x % LANES, end = indptr[v + 1]; k < end; k += LANES) {
            int u = indices[k];
            if (u < 0 || u >= n) {
                flaws |= OUT_OF_RANGE;
                continue;
            }
            if (k > begin && indices[k - 1] >= u) flaws |= NOT_SORTED;
            degree += u != v;
            surplus += (u > v) - (u < v);
            if (u > v && !lists(indptr, indices, u, v)) flaws |= NOT_SYMMETRIC;
        }
    }
    degree = lane_sum<LANES>(degree);
    if (v < n && threadIdx.x % LANES == 0) degrees[v] = degree;
    for (int step = WARP / 2; step > 0; step /= 2) {
        flaws |= __shfl_xor_sync(FULL_WARP, flaws, step);
        degree = max(degree, __shfl_xor_sync(FULL_WARP, degree, step));
    }
    surplus = lane_sum<WARP>(surplus);
    if (lane_id() == 0) {
        if (flaws) atomicOr((uint64*)&report[0], (uint64)flaws);
        if (degree > fresh(&report[1])) atomicMax(&report[1], (long long)degree);
        if (surplus) atomicAdd((uint64*)&report[2], (uint64)(long long)surplus);
    }
}
