// A sparse matrix on a vector. See csr.py.

#include "csr.cuh"

extern "C" __global__ void multiply(long long n, Matrix<STORED> A, const ARGUMENT* x, long long adds, VALUE* y) {
    multiply_each_row<ARGUMENT>(n, A, x, [&](long long i, ARGUMENT sum) {
        VALUE total = (VALUE)sum;
        y[i] = adds ? y[i] + total : total;
        return 0.0;
    });
}

extern "C" __global__ void residual(long long n, Matrix<STORED> A, const VALUE* b, const VALUE* x, VALUE* r) {
    multiply_each_row<VALUE>(n, A, x, [&](long long i, VALUE total) {
        r[i] = b[i] - total;
        return 0.0;
    });
}
