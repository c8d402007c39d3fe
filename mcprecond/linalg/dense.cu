// A dense matrix on a vector, LANES threads per row. See dense.py.

#include "cuda/reduce.cuh"

extern "C" __global__ void multiply_dense(long long n, const VALUE* matrix, const VALUE* x, VALUE* y) {
    long long i = thread_id() / LANES;
    VALUE total = VALUE();
    if (i < n)
        for (long long j = threadIdx.x % LANES; j < n; j += LANES) total += matrix[i * n + j] * x[j];
    total = lane_sum<LANES>(total);
    if (i < n && threadIdx.x % LANES == 0) y[i] = total;
}
