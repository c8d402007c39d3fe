// A sparse matrix on a vector of k columns: one thread per number of the product. See columns.py.

#include "linalg/column_products.cuh"

extern "C" __global__ void multiply(long long size, long long k, Matrix<STORED> A, const ARGUMENT* x, long long adds,
                                    VALUE* y) {
    multiply_columns<ARGUMENT>(size / k, Place(k), true, A, x, [&](long long i, int c, ARGUMENT sum) {
        VALUE total = (VALUE)sum, &place = y[i * k + c];
        place = adds ? place + total : total;
        return 0.0;
    });
}

extern "C" __global__ void residual(long long size, long long k, Matrix<STORED> A, const VALUE* b, const VALUE* x,
                                    VALUE* r) {
    multiply_columns<VALUE>(size / k, Place(k), true, A, x, [&](long long i, int c, VALUE total) {
        r[i * k + c] = b[i * k + c] - total;
        return 0.0;
    });
}
