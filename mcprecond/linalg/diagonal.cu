// Products with a diagonal matrix. See diagonal.py.

#include "cuda/grid.cuh"
#include "cuda/numbers.cuh"

extern "C" __global__ void multiply(long long size, long long columns, const VALUE* diagonal, const VALUE* x, VALUE* y) {
    long long i = thread_id();
    if (i < size) y[i] = diagonal[columns == 1 ? i : i / columns] * x[i];
}
