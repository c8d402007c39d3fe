// Cutting colors into slices. See schedule.py.

#include "cuda/grid.cuh"
#include "cuda/search.cuh"

extern "C" __global__ void mark_slices(long long n, long long n_colors, const long long* offsets,
                                       const int* rows_per_slice, const OFFSET* lower_indptr,
                                       const OFFSET* upper_indptr, bool* begins) {
    long long i = thread_id();
    if (i >= n) return;
    int color = (int)row_of(offsets, n_colors, i), rows = rows_per_slice[color];
    OFFSET longest = min(LONG * (MOST_ROWS / rows), SWEPT_PIECE);
    bool begin = (i - offsets[color]) % rows == 0;
    for (long long j = i > 0 ? i - 1 : 0; j <= i; ++j)
        begin |= lower_indptr[j + 1] - lower_indptr[j] > longest || upper_indptr[j + 1] - upper_indptr[j] > longest;
    begins[i] = begin;
}
