// The steps of BiCGSTAB. A kernel has at most as many blocks as the device runs at once, and its threads stride over the
// rows.

#include "iteration.cuh"

typedef typename WideOf<VALUE>::Type Wide;

extern "C" __global__ void change_direction(long long n, const VALUE* r, const VALUE* v, VALUE* p, const Wide* c,
                                            const long long* control) {
    if (control[STATE] != RUNNING) return;
    VALUE beta = (VALUE)c[BETA], omega = (VALUE)c[OMEGA];
    for (long long i = thread_id(); i < n; i += thread_count()) p[i] = r[i] + beta * (p[i] - omega * v[i]);
}

// Sum the inner products of a and b, and of b and b, over all rows, and call `take` with both.
template <typename Function>
__device__ __forceinline__ void finish_products(long long n, const VALUE* a, const VALUE* b,
                                                const Recurrence& recurrence, Function take) {
    Wide product = Wide();
    double square = 0;
    for (long long i = thread_id(); i < n; i += thread_count()) {
        product += conjugated_product(a[i], b[i]);
        square += inner(b[i], b[i]);
    }
    recurrence.finish_with(product, square, take);
}

extern "C" __global__ void find_alpha(long long n, const VALUE* shadow, const VALUE* v, Wide* c,
                                      Recurrence recurrence) {
    if (!recurrence.is_running()) return;
    finish_products(n, shadow, v, recurrence, [&](Wide product, double square) {
        if (!recurrence.is_finite(square)) return;
        if (fabs(product) <= recurrence.scalars[LEAST_RZ] * sqrt(square))
            recurrence.control[STATE] = BROKEN;
        else
            c[ALPHA] = c[RHO] / product;
    });
}

extern "C" __global__ void advance_half(long long n, const VALUE* v, VALUE* r, const Wide* c, Recurrence recurrence) {
    if (!recurrence.is_running()) return;
    VALUE alpha = (VALUE)c[ALPHA];
    double square = 0;
    for (long long i = thread_id(); i < n; i += thread_count()) {
        VALUE rest = r[i] - alpha * v[i];
        r[i] = rest;
        square += inner(rest, rest);
    }
    recurrence.finish<1>({square}, [&](const double* totals) { recurrence.scalars[RR] = totals[0]; });
}

extern "C" __global__ void find_omega(long long n, const VALUE* s, const VALUE* t, Wide* c, Recurrence recurrence) {
    if (!recurrence.is_running()) return;
    finish_products(n, s, t, recurrence, [&](Wide product, double square) {
        if (!recurrence.is_finite(square)) return;
        c[OMEGA] = recurrence.scalars[RR] <= recurrence.scalars[TOLERANCE] || square == 0
                       ? Wide()
                       : (1 / square) * conjugate(product);
    });
}

extern "C" __global__ void advance(long long n, const VALUE* shadow, const VALUE* y, const VALUE* z, const VALUE* t,
                                   VALUE* x, VALUE* r, Wide* c, Recurrence recurrence) {
    if (!recurrence.is_running()) return;
    VALUE alpha = (VALUE)c[ALPHA], omega = (VALUE)c[OMEGA];
    Wide product = Wide();
    double square = 0;
    for (long long i = thread_id(); i < n; i += thread_count()) {
        x[i] += alpha * y[i] + omega * z[i];
        VALUE rest = r[i] - omega * t[i];
        r[i] = rest;
        product += conjugated_product(shadow[i], rest);
        square += inner(rest, rest);
    }
    recurrence.finish_with(product, square, [&](Wide rho, double square) {
        recurrence.take_rr(square);
        if (!recurrence.is_running()) return;
        if (fabs(rho) <= recurrence.scalars[LEAST_RZ] * sqrt(square) || fabs(c[OMEGA]) == 0) {
            recurrence.control[STATE] = BROKEN;
            return;
        }
        c[BETA] = (rho / c[RHO]) * (c[ALPHA] / c[OMEGA]);
        c[RHO] = rho;
    });
}
