// A sparse matrix on a vector of k columns: one thread per number of the product. See columns.py.

#include "linalg/column_products.cuh"

extern "C" __global__ void multiply(long long size, long long k, const OFFSET* indptr, const int* indices,
                                    const STORED* values, long long longest, long long n_long, long long n_pieces,
                                    const int* plan, double* work, long long pitch, const ARGUMENT* x, long long adds,
                                    VALUE* y) {
    LongRows long_rows{longest, n_long, n_pieces, plan, work};
    multiply_columns<ARGUMENT>(size / k, Place(k), true, indptr, indices, values, long_rows, pitch, x,
                               [&](long long i, int c, ARGUMENT sum) {
                                   VALUE total = (VALUE)sum, &place = y[i * k + c];
                                   place = adds ? place + total : total;
                                   return 0.0;
                               });
}

extern "C" __global__ void residual(long long size, long long k, const OFFSET* indptr, const int* indices,
                                    const STORED* values, long long longest, long long n_long, long long n_pieces,
                                    const int* plan, double* work, long long pitch, const VALUE* b, const VALUE* x,
                                    VALUE* r) {
    LongRows long_rows{longest, n_long, n_pieces, plan, work};
    multiply_columns<VALUE>(size / k, Place(k), true, indptr, indices, values, long_rows, pitch, x,
                            [&](long long i, int c, VALUE total) {
                                r[i * k + c] = b[i * k + c] - total;
                                return 0.0;
                            });
}
