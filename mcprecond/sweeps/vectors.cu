// Vectors from the order of the matrix into that of the colors, and back: one thread per row. See vectors.py.

#include "cuda/elements.cuh"
#include "cuda/grid.cuh"
#include "sweeps/syncfree.cuh"

extern "C" __global__ void to_color_order(long long n, const int* inverse, long long pitch, const VectorEntry* r,
                                          WorkEntry* ordered) {
    long long i = thread_id();
    if (i < n) ordered[inverse[i]] = with_epoch(converted<WorkEntry>(load_row(r, i, pitch)), 0);
}

extern "C" __global__ void to_row_order(long long n, const int* inverse, const WorkEntry* ordered, long long pitch,
                                        VectorEntry* z) {
    long long i = thread_id();
    if (i < n) store_row(z, i, pitch, converted<VectorEntry>(ordered[inverse[i]]));
}
