// Projections. See nullspace.py.

#include "linalg/reduce.cuh"

extern "C" __global__ void find_part(long long n, const VALUE* column, const VALUE* v, double* part, double* partials,
                                     uint32* arrivals) {
    double product = 0;
    for (long long i = thread_id(); i < n; i += thread_count()) product += inner(v[i], column[i]);
    sum_over_grid<1>({product}, partials, arrivals, [=](const double* totals) { part[0] = totals[0]; });
}

extern "C" __global__ void take_off(long long n, long long k, const VALUE* columns, const double* parts, const VALUE* x,
                                    VALUE* y) {
    long long i = thread_id();
    if (i >= n) return;
    VALUE rest = x[i];
    for (long long j = 0; j < k; ++j) rest -= rounded_product((REAL)parts[j], columns[j * n + i]);
    y[i] = rest;
}
