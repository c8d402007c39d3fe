// Steps of polynomial smoothers: LANES threads per row. See polynomial.py.

#include "linalg/csr.cuh"

__device__ __forceinline__ VALUE rest_of_row(bool active, long long i, const OFFSET* indptr, const int* indices,
                                             const STORED* values, const VALUE* b, const VALUE* x) {
    VALUE total = row_product<VALUE>(active, i, indptr, indices, values, x);
    return active ? b[i] - total : total;
}

extern "C" __global__ void find_rest(long long n, const OFFSET* indptr, const int* indices, const STORED* values,
                                     const VALUE* b, const VALUE* x, VALUE* r) {
    long long i = thread_id() / LANES;
    VALUE rest = rest_of_row(i < n, i, indptr, indices, values, b, x);
    if (i < n && threadIdx.x % LANES == 0) r[i] = rest;
}

extern "C" __global__ void step(long long n, const OFFSET* indptr, const int* indices, const STORED* values,
                                const VALUE* dinv, const VALUE* b, long long from_zero, const VALUE* x, double alpha,
                                double beta, VALUE* d, VALUE* result) {
    long long i = thread_id() / LANES;
    bool is_leader = i < n && threadIdx.x % LANES == 0;
    VALUE rest = VALUE();
    if (!from_zero)
        rest = rest_of_row(i < n, i, indptr, indices, values, b, x);
    else if (is_leader)
        rest = b[i];
    if (is_leader) {
        VALUE move = rounded_product((REAL)beta, dinv[i] * rest);
        if (alpha != 0) move += rounded_product((REAL)alpha, d[i]);
        d[i] = move;
        result[i] = from_zero ? move : x[i] + move;
    }
}
