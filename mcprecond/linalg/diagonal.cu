// Products with a diagonal matrix, and its square roots. See diagonal.py.

#include "cuda/grid.cuh"
#include "cuda/numbers.cuh"

extern "C" __global__ void multiply(long long size, long long columns, const VALUE* diagonal, const VALUE* x, VALUE* y) {
    long long i = thread_id();
    if (i < size) y[i] = diagonal[columns == 1 ? i : i / columns] * x[i];
}

extern "C" __global__ void find_sizes(long long n, const VALUE* diagonal, const int* degrees, long long per_neighbor,
                                      double* sizes) {
    long long i = thread_id();
    if (i < n) sizes[i] = sqrt((double)fabs(diagonal[i]) / (per_neighbor ? max(degrees[i], 1) : 1));
}
