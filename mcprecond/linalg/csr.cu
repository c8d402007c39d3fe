// A sparse matrix on a vector. See csr.py.

#include "csr.cuh"

extern "C" __global__ void multiply(long long n, const OFFSET* indptr, const int* indices, const STORED* values,
                                    long long longest, long long n_long, long long n_pieces, const int* plan,
                                    double* work, const ARGUMENT* x, long long adds, VALUE* y) {
    LongRows long_rows{longest, n_long, n_pieces, plan, work};
    multiply_each_row<ARGUMENT>(n, indptr, indices, values, long_rows, x, [&](long long i, ARGUMENT sum) {
        VALUE total = (VALUE)sum;
        y[i] = adds ? y[i] + total : total;
        return 0.0;
    });
}

extern "C" __global__ void residual(long long n, const OFFSET* indptr, const int* indices, const STORED* values,
                                    long long longest, long long n_long, long long n_pieces, const int* plan,
                                    double* work, const VALUE* b, const VALUE* x, VALUE* r) {
    LongRows long_rows{longest, n_long, n_pieces, plan, work};
    multiply_each_row<VALUE>(n, indptr, indices, values, long_rows, x, [&](long long i, VALUE total) {
        r[i] = b[i] - total;
        return 0.0;
    });
}
