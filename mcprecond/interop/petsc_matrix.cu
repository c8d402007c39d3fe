// Rows copied from one matrix to another: LANES threads per row. See petsc_matrix.py.

#include "cuda/grid.cuh"

extern "C" __global__ void copy_rows(long long n, const OFFSET* begins, const OFFSET* ends, const int* indices,
                                     const VALUE* values, long long shift, const OFFSET* begins_there,
                                     int* indices_there, VALUE* values_there) {
    long long i = thread_id() / LANES;
    if (i >= n) return;
    OFFSET begin = begins[i], length = ends[i] - begin, there = begins_there[i];
    for (OFFSET k = thread_id() % LANES; k < length; k += LANES) {
        indices_there[there + k] = indices[begin + k] + (int)shift;
        values_there[there + k] = values[begin + k];
    }
}
