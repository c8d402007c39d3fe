// Sums of vectors. See vectors.py.

#include "cuda/grid.cuh"
#include "cuda/numbers.cuh"

extern "C" __global__ void add(long long n, double factor, const VALUE* x, VALUE* y) {
    long long i = thread_id();
    if (i < n) y[i] += rounded_product((REAL)factor, x[i]);
}

extern "C" __global__ void fill_with_signs(long long n, long long begin, double* found) {
    long long i = thread_id();
    if (i >= n) return;
    unsigned k = (unsigned)(begin + i) * 0x9E3779B1u;
    k = (k ^ (k >> 15)) * 0x2C1B3C6Du;
    found[i] = 2.0 * (k >> 17 & 1) - 1.0;
}
