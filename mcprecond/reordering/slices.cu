// Colors are cut into slices, and the entries of a slice are put into the order in which its warp takes them: one warp
// per slice. See slices.py.

#include "slices.cuh"

extern "C" __global__ void mark_slices(long long n, const int* colors, const long long* offsets,
                                       const int* rows_per_slice, const OFFSET* lower_indptr,
                                       const OFFSET* upper_indptr, bool* begins) {
    long long i = thread_id();
    if (i >= n) return;
    int color = colors[i], rows = rows_per_slice[color];
    OFFSET longest = LONG * (MOST_ROWS / rows);
    bool begin = (i - offsets[color]) % rows == 0;
    for (long long j = i > 0 ? i - 1 : 0; j <= i; ++j)
        begin |= lower_indptr[j + 1] - lower_indptr[j] > longest || upper_indptr[j + 1] - upper_indptr[j] > longest;
    begins[i] = begin;
}

extern "C" __global__ void interleave(long long n_slices, const int* slices, const OFFSET* indptr, const int* columns,
                                      const ENTRY* entries, ENTRY* result, long long back) {
    long long k = thread_id() / WARP;
    if (k >= n_slices) return;
    Slice slice(slices, k);
    slice.steps(indptr, columns, [&](const Step& step, OFFSET e) {
        if (back)
            result[e] = entries[step.place()];
        else
            result[step.place()] = entries[e];
    });
}
