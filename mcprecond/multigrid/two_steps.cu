// Two steps of CG, whose scalars stay on the device, for vectors of k columns. See two_steps.py.

#include "linalg/columns.cuh"

#define SCALARS 3  // of a column

extern "C" __global__ void find_first(long long size, long long k, const VALUE* b, const VALUE* c, const VALUE* rest,
                                      double* scalars, double* partials, uint32* arrivals) {
    Place place(k);
    double product = 0, energy = 0;
    place.each(size / k, [&](long long e, long long) {
        product += inner(c[e], b[e]);
        energy += inner(c[e], b[e] - rest[e]);
    });
    sum_columns<2>({product, energy}, place, partials, arrivals, [=](int column, const double* totals) {
        double* own = scalars + column * SCALARS;
        bool fits = totals[1] > 0 && isfinite(totals[1]) && isfinite(totals[0]);
        own[SHARE] = fits ? 1 / totals[1] : 0;
        own[FIRST] = fits ? totals[0] / totals[1] : 1;
    });
}

extern "C" __global__ void step(long long size, long long k, VALUE* b, VALUE* rest, const double* scalars) {
    long long e = thread_id();
    if (e >= size) return;
    VALUE product = b[e] - rest[e];
    rest[e] = b[e] - (REAL)scalars[e % k * SCALARS + FIRST] * product;
    b[e] = product;
}

extern "C" __global__ void find_second(long long size, long long k, const VALUE* product_of_c, const VALUE* rest,
                                       const VALUE* d, const VALUE* last, double* scalars, double* partials,
                                       uint32* arrivals) {
    Place place(k);
    double product = 0, between = 0, energy = 0;
    place.each(size / k, [&](long long e, long long) {
        product += inner(d[e], rest[e]);
        between += inner(d[e], product_of_c[e]);
        energy += inner(d[e], rest[e] - last[e]);
    });
    sum_columns<3>({product, between, energy}, place, partials, arrivals, [=](int column, const double* totals) {
        double* own = scalars + column * SCALARS;
        double share = totals[1] * own[SHARE], left = totals[2] - share * totals[1];
        double second = left * LEAST_SHARE > totals[2] && isfinite(left) ? totals[0] / left : 0;
        own[SECOND] = second;
        own[FIRST] -= second * share;
    });
}

extern "C" __global__ void combine(long long size, long long k, const VALUE* d, VALUE* c, const double* scalars) {
    long long e = thread_id();
    if (e >= size) return;
    const double* own = scalars + e % k * SCALARS;
    c[e] = (REAL)own[FIRST] * c[e] + (REAL)own[SECOND] * d[e];
}
