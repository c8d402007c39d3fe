// Projections of vectors of k columns. See nullspace.py.

#include "linalg/columns.cuh"

extern "C" __global__ void find_part(long long size, long long k, const VALUE* column, const VALUE* v, double* part,
                                     double* partials, uint32* arrivals) {
    Place place(k);
    double product = 0;
    place.each(size / k, [&](long long e, long long i) { product += inner(v[e], column[i]); });
    sum_columns<1>({product}, place, partials, arrivals, [=](int c, const double* totals) { part[c] = totals[0]; });
}

extern "C" __global__ void take_off(long long size, long long k, long long m, const VALUE* columns, const double* parts,
                                    const VALUE* x, VALUE* y) {
    long long e = thread_id();
    if (e >= size) return;
    long long n = size / k, i = e / k, c = e % k;
    VALUE rest = x[e];
    for (long long j = 0; j < m; ++j) rest -= rounded_product((REAL)parts[j * k + c], columns[j * n + i]);
    y[e] = rest;
}
