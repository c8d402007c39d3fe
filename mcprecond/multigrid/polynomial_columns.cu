// A step of polynomial smoothers on vectors of k columns: one thread per number. See polynomial_columns.py.

#include "linalg/column_products.cuh"
#include "polynomial.cuh"

extern "C" __global__ void step(long long size, long long k, Matrix<STORED> A, const VALUE* dinv, const VALUE* b,
                                long long from_zero, const VALUE* x, double alpha, double beta, VALUE* d, VALUE* y) {
    Place place(k);
    Step own{dinv, b, x, from_zero, alpha, beta, d, y};
    if (from_zero) {
        place.each(size / k, [&](long long e, long long i) { own.take(i, e, VALUE()); });
        return;
    }
    multiply_columns<VALUE>(size / k, place, true, A, x, [&](long long i, int c, VALUE product) {
        own.take(i, i * k + c, product);
        return 0.0;
    });
}
