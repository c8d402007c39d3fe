// Columns of slices as bases and offsets: one warp per slice, a thread per row. See delta.py.

#define COMPRESSED_COLUMNS
#include "slices.cuh"

#define BEHIND_ALL 0x7fffffff

// Call `visit(number, base)` for each base of the slice, by rising column, but at most `most` of them, and `entry(e,
// code)` on one thread for each entry that counts from it; return how many there are. Whole warps call it.
template <typename Visit, typename Entry>
__device__ __forceinline__ int for_bases(const Slice& slice, const OFFSET* indptr, const int* indices, int shift,
                                         int most, Visit visit, Entry entry) {
    int row = lane_id(), count = 0;
    OFFSET next = row < slice.rows ? indptr[slice.first + row] : 0;
    OFFSET end = row < slice.rows ? indptr[slice.first + row + 1] : 0;
    for (; count < most && __any_sync(FULL_WARP, next < end); ++count) {
        int base = next < end ? indices[next] : BEHIND_ALL;
#pragma unroll
        for (int step = WARP / 2; step > 0; step /= 2) base = min(base, __shfl_xor_sync(FULL_WARP, base, step));
        visit(count, base);
        for (; next < end && indices[next] - base < 1 << shift; ++next)
            entry(next, (count << shift) + (indices[next] - base));
    }
    return count;
}

extern "C" __global__ void count_bases(long long n_slices, const int* slices, const OFFSET* lower_indptr,
                                       const int* lower_indices, const OFFSET* upper_indptr, const int* upper_indices,
                                       int* shifts, long long* counts) {
    long long k = thread_id() / WARP;
    if (k >= n_slices) return;
    Slice slice(slices, k);
    auto count = [&](const OFFSET* indptr, const int* indices, long long place) {
        int shift = MOST_SHIFT, found = 0;
        for (; shift >= LEAST_SHIFT; --shift) {
            int most = 1 << 16 - shift;
            found = for_bases(slice, indptr, indices, shift, most + 1, [](int, int) {}, [](OFFSET, int) {});
            if (found <= most) break;
        }
        if (lane_id()) return;
        shifts[place] = shift;
        counts[place] = shift < LEAST_SHIFT ? 0 : found;
    };
    count(lower_indptr, lower_indices, k);
    count(upper_indptr, upper_indices, n_slices + k);
}

extern "C" __global__ void list_bases(long long n_slices, const int* slices, const OFFSET* indptr, const int* indices,
                                      const int* shifts, const long long* ends, int* list, uint16* codes) {
    long long k = thread_id() / WARP;
    if (k >= n_slices) return;
    Slice slice(slices, k);
    Head* heads = (Head*)heads_of(list);
    auto place = [&](long long k) { return (int)(FIRST_HEAD + HEAD * (n_slices + 1) + ends[k] - ends[0]); };
    int first = place(k), shift = shifts[k];
    if (lane_id() == 0) {
        heads[k].first = first;
        heads[k].shift = shift;
        heads[k].entry = indptr[slice.first];
        if (k == 0) list[0] = place(n_slices);
        if (k + 1 == n_slices) heads[n_slices].first = place(n_slices);
    }
    const OFFSET* own = indptr + slice.first + lane_id();
    heads[k].lengths[lane_id()] = lane_id() < slice.rows ? (unsigned char)(own[1] - own[0]) : 0;
    for_bases(
        slice, indptr, indices, shift, MOST_BASES,
        [&](int number, int base) {
            if (lane_id() == 0) list[first + number] = base;
        },
        [&](OFFSET e, int code) { codes[e] = (uint16)code; });
}

extern "C" __global__ void list_columns(long long n_slices, const int* slices, const OFFSET* indptr, const int* list,
                                        const uint16* codes, int* columns) {
    long long k = thread_id() / WARP;
    if (k >= n_slices) return;
    Slice slice(slices, k);
    Columns bases(indptr, list, slice, slice.number);
    bases.stage();
    OFFSET end = indptr[slice.first + slice.rows];
    for (OFFSET e = indptr[slice.first] + lane_id(); e < end; e += WARP) columns[e] = bases.column(codes[e]);
}
