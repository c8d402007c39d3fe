// Sums of vectors. See vectors.py.

#include "cuda/grid.cuh"
#include "cuda/numbers.cuh"

extern "C" __global__ void add(long long n, double factor, const VALUE* x, VALUE* y) {
    long long i = thread_id();
    if (i < n) y[i] += rounded_product((REAL)factor, x[i]);
}
