// How rows are numbered, from which auto.py estimates the number of fronts that first-fit has.

#include "cuda/grid.cuh"
#include "cuda/search.cuh"

// One thread of a warp takes each sample. Its few loads depend on one another, so more threads would not help.
extern "C" __global__ void add_lengths(long long samples, long long n, long long block_size, const OFFSET* indptr,
                                       const int* indices, int* lengths) {
    long long sample = thread_id() / WARP;
    if (sample >= samples || lane_id()) return;
    long long row = (sample + 1) * n / (samples + 1), total = 0, stride = 0;
    for (OFFSET k = indptr[row + 1]; k-- > indptr[row];) {
        long long distance = row > indices[k] ? (row - indices[k]) / block_size : 0;
        if (distance == 0) continue;
        if (stride == 0) {
            if (distance * distance * distance > n) break;
            stride = 1;
        }
        if (distance >= 2 * stride) {
            total += distance / stride;
            stride = distance;
        }
    }
    lengths[sample] = stride ? (int)(total + n / (stride * block_size)) : 0;
}

// A warp per part.
extern "C" __global__ void find_breaks(long long parts, long long n, const OFFSET* indptr, const int* indices,
                                       int* breaks) {
    long long part = thread_id() / WARP, end = min((part + 1) * PART, n);
    if (part >= parts) return;
    int first = -1, last = -1, longest = 0;
    for (long long begin = part * PART; begin < end; begin += WARP) {
        long long row = begin + lane_id();
        bool breaks_off = row < end;
        if (breaks_off && row > 0) {
            OFFSET row_end = indptr[row + 1], place = lower_bound(indices, indptr[row], row_end, row - 1);
            breaks_off = place == row_end || indices[place] != row - 1;
        }
        uint32 those = __ballot_sync(FULL_WARP, breaks_off), before = those & ((1u << lane_id()) - 1);
        if (!those) continue;
        int previous = before ? (int)begin + 31 - __clz(before) : last;
        if (breaks_off && previous >= 0) longest = max(longest, (int)row - previous);
        if (first < 0) first = (int)begin + __ffs(those) - 1;
        last = (int)begin + 31 - __clz(those);
    }
    for (int step = WARP / 2; step > 0; step /= 2) longest = max(longest, __shfl_xor_sync(FULL_WARP, longest, step));
    if (lane_id()) return;
    breaks[3 * part] = first, breaks[3 * part + 1] = last, breaks[3 * part + 2] = longest;
}
