// The steps of PCG on k systems at once, each with its own control block: a system whose state is no longer RUNNING does
// not change. See columns.py.

#include "iteration.cuh"
#include "linalg/column_products.cuh"

// The recurrence of the system of a column.
__device__ __forceinline__ Recurrence recurrence_of(long long* blocks, int column) {
    long long* control = blocks + (long long)column * WORDS;
    double* scalars = (double*)(control + CONTROL);
    return {control, scalars, scalars + SCALARS};
}

extern "C" __global__ void multiply(long long size, long long k, Matrix<VALUE> A, const VALUE* p, VALUE* q,
                                    long long* blocks, double* partials, uint32* arrivals) {
    Place place(k);
    bool is_running = recurrence_of(blocks, place.column).is_running();
    double pAp = multiply_columns<VALUE>(size / k, place, is_running, A, p, [&](long long i, int c, VALUE total) {
        q[i * k + c] = total;
        return inner(total, p[i * k + c]);
    });
    sum_columns<1>(
        {pAp}, place, partials, arrivals,
        [=](int c, const double* totals) {
            Recurrence recurrence = recurrence_of(blocks, c);
            if (recurrence.is_running()) recurrence.take_pAp(totals[0]);
        },
        A.work, A.n_long, A.pitch);
}

extern "C" __global__ void advance(long long size, long long k, const VALUE* p, const VALUE* q, VALUE* x, VALUE* r,
                                   long long is_preconditioned, long long* blocks, double* partials, uint32* arrivals) {
    Place place(k);
    Recurrence own = recurrence_of(blocks, place.column);
    double square = 0;
    if (own.is_running()) {
        REAL alpha = (REAL)own.scalars[ALPHA];
        place.each(size / k, [&](long long e, long long) {
            x[e] += alpha * p[e];
            VALUE rest = r[e] - alpha * q[e];
            r[e] = rest;
            square += inner(rest, rest);
        });
    }
    sum_columns<1>({square}, place, partials, arrivals, [=](int c, const double* totals) {
        Recurrence recurrence = recurrence_of(blocks, c);
        if (!recurrence.is_running()) return;
        recurrence.end_iteration(totals[0]);
        if (!is_preconditioned) recurrence.take_rz(totals[0] * recurrence.scalars[UNIT]);
    });
}

// The inner products of a and z, this in its unit.
template <typename Function>
__device__ __forceinline__ void products_with_z(long long size, long long k, const VALUE* a, const VALUE* z,
                                                long long* blocks, double* partials, uint32* arrivals, Function take) {
    Place place(k);
    Recurrence own = recurrence_of(blocks, place.column);
    double product = 0;
    if (own.is_running()) {
        REAL unit = (REAL)own.scalars[UNIT];
        place.each(size / k, [&](long long e, long long) { product += inner(a[e], rounded_product(unit, z[e])); });
    }
    sum_columns<1>({product}, place, partials, arrivals, [=](int c, const double* totals) {
        Recurrence recurrence = recurrence_of(blocks, c);
        if (recurrence.is_running()) take(recurrence, totals[0]);
    });
}

extern "C" __global__ void find_beta(long long size, long long k, const VALUE* r, const VALUE* z, long long* blocks,
                                     double* partials, uint32* arrivals) {
    products_with_z(size, k, r, z, blocks, partials, arrivals,
                    [](Recurrence& recurrence, double rz) { recurrence.take_rz(rz); });
}

extern "C" __global__ void find_flexible_beta(long long size, long long k, const VALUE* q, const VALUE* z,
                                              long long* blocks, double* partials, uint32* arrivals) {
    products_with_z(size, k, q, z, blocks, partials, arrivals, [](Recurrence& recurrence, double qz) {
        double* scalars = recurrence.scalars;
        if (scalars[BETA] == 0) return;  // there is no q before the first product
        if (recurrence.is_finite(qz)) scalars[BETA] *= -scalars[ALPHA] * qz / scalars[RZ];
    });
}

extern "C" __global__ void change_direction(long long size, long long k, const VALUE* z, VALUE* p, long long* blocks) {
    Place place(k);
    Recurrence own = recurrence_of(blocks, place.column);
    if (!own.is_running()) return;
    REAL beta = (REAL)own.scalars[BETA], unit = (REAL)own.scalars[UNIT];
    place.each(size / k, [&](long long e, long long) {
        VALUE value = rounded_product(unit, z[e]);
        p[e] = beta == 0 ? value : value + beta * p[e];
    });
}

extern "C" __global__ void residual(long long size, long long k, Matrix<VALUE> A, const VALUE* x, const VALUE* b,
                                    VALUE* r, long long* blocks, double* partials, uint32* arrivals) {
    typedef typename WideOf<VALUE>::Type Wide;
    Place place(k);
    bool is_stopped = !recurrence_of(blocks, place.column).is_running();
    double square = multiply_columns<Wide>(size / k, place, is_stopped, A, x, [&](long long i, int c, Wide total) {
        if (recurrence_of(blocks, c).is_running()) return 0.0;
        Wide rest = (Wide)b[i * k + c] - total;
        r[i * k + c] = (VALUE)rest;
        return inner(rest, rest);
    });
    sum_columns<1>(
        {square}, place, partials, arrivals,
        [=](int c, const double* totals) {
            Recurrence recurrence = recurrence_of(blocks, c);
            if (!recurrence.is_running()) recurrence.scalars[RR] = totals[0];
        },
        A.work, A.n_long, A.pitch);
}

extern "C" __global__ void square(long long size, long long k, const VALUE* v, double* squares, double* partials,
                                  uint32* arrivals) {
    Place place(k);
    double square = 0;
    place.each(size / k, [&](long long e, long long) { square += inner(v[e], v[e]); });
    sum_columns<1>({square}, place, partials, arrivals, [=](int c, const double* totals) { squares[c] = totals[0]; });
}
