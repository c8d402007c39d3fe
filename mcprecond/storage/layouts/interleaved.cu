// The order of a slice's entries: one warp per slice. See interleaved.py.

#include "slices.cuh"

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
