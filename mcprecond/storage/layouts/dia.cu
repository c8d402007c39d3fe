// The diagonals of slices, for sliced DIA: one warp per slice, a thread per row. See dia.py.

#define SLICED_DIA
#include "slices.cuh"

#define NONE 0x7fffffff  // larger than every shift

// Call `visit(number, shift, rows)` for each diagonal of the slice, by rising shift, but at most `most` of them; return
// their number. Whole warps call it.
template <typename Visit>
__device__ __forceinline__ int for_diagonals(const Slice& slice, const OFFSET* indptr, const int* indices, int most,
                                             Visit visit) {
    int row = lane_id(), count = 0;
    OFFSET next = row < slice.rows ? indptr[slice.first + row] : 0;
    OFFSET end = row < slice.rows ? indptr[slice.first + row + 1] : 0;
    for (; count < most; ++count) {
        int own = next < end ? indices[next] - row : NONE, shift = own;
#pragma unroll
        for (int step = WARP / 2; step > 0; step /= 2) shift = min(shift, __shfl_xor_sync(FULL_WARP, shift, step));
        if (shift == NONE) break;
        visit(count, shift, __ballot_sync(FULL_WARP, own == shift));
        next += own == shift;
    }
    return count;
}

__device__ __forceinline__ int entries_of(const Slice& slice, const OFFSET* indptr) {
    return (int)(indptr[slice.first + slice.rows] - indptr[slice.first]);
}

extern "C" __global__ void count_diagonals(long long n_slices, const int* slices, const OFFSET* lower_indptr,
                                           const int* lower_indices, const OFFSET* upper_indptr,
                                           const int* upper_indices, long long most_places, long long* counts) {
    long long k = thread_id() / WARP;
    if (k >= n_slices) return;
    Slice slice(slices, k);
    auto count = [&](const OFFSET* indptr, const int* indices) {
        int entries = entries_of(slice, indptr), most = (int)(most_places * entries / slice.rows);
        int found = for_diagonals(slice, indptr, indices, most, [](int, int, uint32) {});
        return found < most ? found : entries;
    };
    int lower = count(lower_indptr, lower_indices), upper = count(upper_indptr, upper_indices);
    if (lane_id() == 0) {
        counts[k] = lower;
        counts[n_slices + k] = upper;
    }
}

extern "C" __global__ void list_diagonals(long long n_slices, const int* slices, const OFFSET* indptr,
                                          const int* indices, const long long* ends, Head* list) {
    long long k = thread_id() / WARP;
    if (k >= n_slices) return;
    Slice slice(slices, k);
    auto head = [&](long long k) {
        int diagonal = (int)(ends[k] - ends[0] + (n_slices + 1) * PAIRS_OF_HEAD);
        return Head{slices[k], diagonal, indptr[slices[k]]};
    };
    int2* diagonals = (int2*)list + head(k).diagonal;
    if (lane_id() == 0) {
        list[k] = head(k);
        if (k + 1 == n_slices) list[n_slices] = head(n_slices);
    }
    for_diagonals(slice, indptr, indices, entries_of(slice, indptr), [&](int number, int shift, uint32 rows) {
        if (lane_id() == 0) diagonals[number] = make_int2(shift, (int)rows);
    });
}

extern "C" __global__ void list_columns(long long n_slices, const int* slices, const OFFSET* indptr, const Head* list,
                                        int* columns) {
    long long k = thread_id() / WARP;
    if (k >= n_slices) return;
    Slice slice(slices, k);
    int row = lane_id();
    if (row >= slice.rows) return;
    OFFSET place = indptr[slice.first + row];
    for (int d = list[k].diagonal; d < list[k + 1].diagonal; ++d) {
        int2 diagonal = ((const int2*)list)[d];
        if (diagonal.y >> row & 1) columns[place++] = diagonal.x + row;
    }
}
