// Two steps of CG, whose scalars stay on the device. See two_steps.py.

#include "linalg/reduce.cuh"

extern "C" __global__ void find_first(long long n, const VALUE* b, const VALUE* c, const VALUE* rest, double* scalars,
                                      double* partials, uint32* arrivals) {
    double product = 0, energy = 0;
    for (long long i = thread_id(); i < n; i += thread_count()) {
        product += inner(c[i], b[i]);
        energy += inner(c[i], b[i] - rest[i]);
    }
    sum_over_grid<2>({product, energy}, partials, arrivals, [=](const double* totals) {
        bool fits = totals[1] > 0 && isfinite(totals[1]) && isfinite(totals[0]);
        scalars[SHARE] = fits ? 1 / totals[1] : 0;
        scalars[FIRST] = fits ? totals[0] / totals[1] : 1;
    });
}

extern "C" __global__ void step(long long n, const double* scalars, VALUE* b, VALUE* rest) {
    long long i = thread_id();
    if (i >= n) return;
    VALUE product = b[i] - rest[i];
    rest[i] = b[i] - (REAL)scalars[FIRST] * product;
    b[i] = product;
}

extern "C" __global__ void find_second(long long n, const VALUE* product_of_c, const VALUE* rest, const VALUE* d,
                                       const VALUE* last, double* scalars, double* partials, uint32* arrivals) {
    double product = 0, between = 0, energy = 0;
    for (long long i = thread_id(); i < n; i += thread_count()) {
        product += inner(d[i], rest[i]);
        between += inner(d[i], product_of_c[i]);
        energy += inner(d[i], rest[i] - last[i]);
    }
    sum_over_grid<3>({product, between, energy}, partials, arrivals, [=](const double* totals) {
        double share = totals[1] * scalars[SHARE], left = totals[2] - share * totals[1];
        double second = left * LEAST_SHARE > totals[2] && isfinite(left) ? totals[0] / left : 0;
        scalars[SECOND] = second;
        scalars[FIRST] -= second * share;
    });
}

extern "C" __global__ void combine(long long n, const double* scalars, const VALUE* d, VALUE* c) {
    long long i = thread_id();
    if (i < n) c[i] = (REAL)scalars[FIRST] * c[i] + (REAL)scalars[SECOND] * d[i];
}
