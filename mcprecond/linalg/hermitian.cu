// Where a matrix is not Hermitian, a thread per entry, however long the rows are. See hermitian.py.

#include "cuda/grid.cuh"
#include "linalg/hermitian.cuh"

extern "C" __global__ void compare_entries(long long entries, long long n, const OFFSET* indptr, const int* indices,
                                           const VALUE* values, const double* scales, double tolerance,
                                           long long* behind) {
    long long k = thread_id();
    if (k >= entries) return;
    long long i = row_of(indptr, n, k);
    double size = (double)fabs(difference_across((OFFSET)k, i, indptr, indices, values));
    if (!(size / scales[i] / scales[indices[k]] <= tolerance)) atomicMax(behind, entries - k);
}
