// The steps of PCG. A kernel has at most as many blocks as the device runs at once, and its threads stride over the
// rows.

#include "iteration.cuh"
#include "linalg/csr.cuh"

extern "C" __global__ void multiply(long long n, Matrix<VALUE> A, const VALUE* p, VALUE* q, long long* control,
                                    double* scalars, double* history, double* partials) {
    Recurrence recurrence{control, scalars, history};
    if (!recurrence.is_running()) return;
    double pAp = multiply_rows<VALUE>(n, A, p, [&](long long i, VALUE total) {
        q[i] = total;
        return inner(total, p[i]);
    });
    finish<1>(
        {pAp}, control, partials, [&](const double* totals) { recurrence.take_pAp(totals[0]); }, A.work, A.n_long);
}

extern "C" __global__ void find_alpha(long long n, const VALUE* p, const VALUE* q, long long* control, double* scalars,
                                      double* history, double* partials) {
    Recurrence recurrence{control, scalars, history};
    if (!recurrence.is_running()) return;
    double pAp = 0;
    for (long long i = thread_id(); i < n; i += thread_count()) pAp += inner(q[i], p[i]);
    finish<1>({pAp}, control, partials, [&](const double* totals) { recurrence.take_pAp(totals[0]); });
}

extern "C" __global__ void advance(long long n, const VALUE* p, const VALUE* q, VALUE* x, VALUE* r,
                                   long long is_preconditioned, long long* control, double* scalars, double* history,
                                   double* partials) {
    Recurrence recurrence{control, scalars, history};
    if (!recurrence.is_running()) return;
    REAL alpha = (REAL)scalars[ALPHA];
    double square = 0;
    for (long long i = thread_id(); i < n; i += thread_count()) {
        x[i] += alpha * p[i];
        VALUE rest = r[i] - alpha * q[i];
        r[i] = rest;
        square += inner(rest, rest);
    }
    finish<1>({square}, control, partials, [&](const double* totals) {
        recurrence.take_rr(totals[0]);
        if (!is_preconditioned) recurrence.take_rz(totals[0] * scalars[UNIT]);
    });
}

// The inner product of a and z, this in its unit.
template <typename Function>
__device__ __forceinline__ void product_with_z(long long n, const VALUE* a, const VALUE* z, long long* control,
                                               const double* scalars, double* partials, Function take) {
    REAL unit = (REAL)scalars[UNIT];
    double product = 0;
    for (long long i = thread_id(); i < n; i += thread_count()) product += inner(a[i], rounded_product(unit, z[i]));
    finish<1>({product}, control, partials, take);
}

extern "C" __global__ void find_beta(long long n, const VALUE* r, const VALUE* z, long long* control, double* scalars,
                                     double* history, double* partials) {
    Recurrence recurrence{control, scalars, history};
    if (!recurrence.is_running()) return;
    product_with_z(n, r, z, control, scalars, partials, [&](const double* totals) { recurrence.take_rz(totals[0]); });
}

extern "C" __global__ void find_flexible_beta(long long n, const VALUE* q, const VALUE* z, long long* control,
                                              double* scalars, double* history, double* partials) {
    Recurrence recurrence{control, scalars, history};
    if (!recurrence.is_running() || scalars[BETA] == 0) return;  // there is no q before the first product
    product_with_z(n, q, z, control, scalars, partials, [&](const double* totals) {
        if (recurrence.is_finite(totals[0])) scalars[BETA] *= -scalars[ALPHA] * totals[0] / scalars[RZ];
    });
}

extern "C" __global__ void change_direction(long long n, const VALUE* z, VALUE* p, const long long* control,
                                            const double* scalars) {
    if (control[STATE] != RUNNING) return;
    REAL beta = (REAL)scalars[BETA], unit = (REAL)scalars[UNIT];
    for (long long i = thread_id(); i < n; i += thread_count()) p[i] = rounded_product(unit, z[i]) + beta * p[i];
}
