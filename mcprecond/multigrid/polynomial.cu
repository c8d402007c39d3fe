// A step of polynomial smoothers: LANES threads per row, all warps for long rows. See polynomial.py.

#include "linalg/csr.cuh"

extern "C" __global__ void step(long long n, const OFFSET* indptr, const int* indices, const STORED* values,
                                long long longest, long long n_long, long long n_pieces, const int* plan, double* work,
                                const VALUE* dinv, const VALUE* b, long long from_zero, const VALUE* x, double alpha,
                                double beta, VALUE* d, VALUE* y) {
    auto finish = [&](long long i, VALUE rest) {
        VALUE move = rounded_product((REAL)beta, dinv[i] * rest);
        if (alpha != 0) move += rounded_product((REAL)alpha, d[i]);
        d[i] = move;
        y[i] = from_zero ? move : x[i] + move;
        return 0.0;
    };
    if (from_zero) {
        for (long long i = thread_id(); i < n; i += thread_count()) finish(i, b[i]);
        return;
    }
    LongRows long_rows{longest, n_long, n_pieces, plan, work};
    multiply_each_row<VALUE>(n, indptr, indices, values, long_rows, x,
                             [&](long long i, VALUE total) { return finish(i, b[i] - total); });
}
