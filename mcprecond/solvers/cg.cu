// The steps of PCG. A kernel has at most as many blocks as the device runs at once, and its threads stride over the
// rows.

#include "iteration.cuh"
#include "linalg/csr.cuh"

// For an A without long rows.
extern "C" __global__ void multiply(long long n, Matrix<VALUE> A, const VALUE* p, VALUE* q, Recurrence recurrence) {
    if (!recurrence.is_running()) return;
    double pAp = multiply_rows<VALUE, false>(n, A, p, [&](long long i, VALUE total) {
        q[i] = total;
        return inner(total, p[i]);
    });
    recurrence.finish<1>({pAp}, [&](const double* totals) { recurrence.take_pAp(totals[0]); });
}

extern "C" __global__ void find_alpha(long long n, const VALUE* p, const VALUE* q, Recurrence recurrence) {
    if (!recurrence.is_running()) return;
    double pAp = 0;
    for (long long i = thread_id(); i < n; i += thread_count()) pAp += inner(q[i], p[i]);
    recurrence.finish<1>({pAp}, [&](const double* totals) { recurrence.take_pAp(totals[0]); });
}

extern "C" __global__ void advance(long long n, const VALUE* p, const VALUE* q, VALUE* x, VALUE* r,
                                   long long begins_with_M, Recurrence recurrence) {
    if (!recurrence.is_running()) return;
    REAL alpha = (REAL)recurrence.scalars[ALPHA];
    double square = 0;
    for (long long i = thread_id(); i < n; i += thread_count()) {
        x[i] += alpha * p[i];
        VALUE rest = r[i] - alpha * q[i];
        r[i] = rest;
        square += inner(rest, rest);
    }
    recurrence.finish<1>({square}, [&](const double* totals) {
        recurrence.end_iteration(totals[0]);
        if (!begins_with_M) recurrence.take_rz(totals[0] * recurrence.scalars[UNIT]);
    });
}

extern "C" __global__ void advance_with_diagonal(long long n, const VALUE* p, const VALUE* q, VALUE* x, VALUE* r,
                                                 const VALUE* diagonal, VALUE* z, Recurrence recurrence) {
    if (!recurrence.is_running()) return;
    REAL alpha = (REAL)recurrence.scalars[ALPHA], unit = (REAL)recurrence.scalars[UNIT];
    double square = 0, product = 0;
    for (long long i = thread_id(); i < n; i += thread_count()) {
        x[i] += alpha * p[i];
        VALUE rest = r[i] - alpha * q[i], scaled = diagonal[i] * rest;
        r[i] = rest;
        z[i] = scaled;
        square += inner(rest, rest);
        product += inner(rest, rounded_product(unit, scaled));
    }
    recurrence.finish<2>({square, product}, [&](const double* totals) {
        recurrence.end_iteration(totals[0]);
        recurrence.take_rz(totals[1]);
    });
}

// The inner product of a and z, this in its unit.
template <typename Function>
__device__ __forceinline__ void product_with_z(long long n, const VALUE* a, const VALUE* z,
                                               const Recurrence& recurrence, Function take) {
    REAL unit = (REAL)recurrence.scalars[UNIT];
    double product = 0;
    for (long long i = thread_id(); i < n; i += thread_count()) product += inner(a[i], rounded_product(unit, z[i]));
    recurrence.finish<1>({product}, take);
}

extern "C" __global__ void find_beta(long long n, const VALUE* r, const VALUE* z, Recurrence recurrence) {
    if (!recurrence.is_running()) return;
    product_with_z(n, r, z, recurrence, [&](const double* totals) { recurrence.take_rz(totals[0]); });
}

extern "C" __global__ void find_flexible_beta(long long n, const VALUE* q, const VALUE* z, Recurrence recurrence) {
    if (!recurrence.is_running() || recurrence.scalars[BETA] == 0) return;  // there is no q before the first product
    product_with_z(n, q, z, recurrence, [&](const double* totals) {
        if (recurrence.is_finite(totals[0]))
            recurrence.scalars[BETA] *= -recurrence.scalars[ALPHA] * totals[0] / recurrence.scalars[RZ];
    });
}

extern "C" __global__ void change_direction(long long n, const VALUE* z, VALUE* p, const long long* control,
                                            const double* scalars) {
    if (control[STATE] != RUNNING) return;
    REAL beta = (REAL)scalars[BETA], unit = (REAL)scalars[UNIT];
    for (long long i = thread_id(); i < n; i += thread_count()) p[i] = rounded_product(unit, z[i]) + beta * p[i];
}
