// A step of polynomial smoothers: LANES threads per row, all warps for long rows. See polynomial.py.

#include "linalg/csr.cuh"
#include "polynomial.cuh"

extern "C" __global__ void step(long long n, Matrix<STORED> A, const VALUE* dinv, const VALUE* b, long long from_zero,
                                const VALUE* x, double alpha, double beta, VALUE* d, VALUE* y) {
    Step own{dinv, b, x, from_zero, alpha, beta, d, y};
    if (from_zero) {
        for (long long i = thread_id(); i < n; i += thread_count()) own.take(i, i, VALUE());
        return;
    }
    multiply_each_row<VALUE>(n, A, x, [&](long long i, VALUE product) {
        own.take(i, i, product);
        return 0.0;
    });
}

extern "C" __global__ void first_steps(long long n, Matrix<STORED> A, const VALUE* dinv, const VALUE* b, VALUE*,
                                       double first_beta, double alpha, double beta, VALUE* d, VALUE* y) {
    FirstStep x{dinv, b, first_beta};
    multiply_each_row<VALUE>(n, A, x, [&](long long i, VALUE product) {
        VALUE first = x[i], move = next_move(alpha, first, beta, dinv[i], b[i] - product);
        d[i] = move, y[i] = first + move;
        return 0.0;
    });
}
