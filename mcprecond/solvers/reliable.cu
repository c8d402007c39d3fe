// Reliable updates: what goes between an iteration in a narrow dtype, whose vectors are in the order of the colors, and
// the iterate and the residual in the dtype of the system. See reliable.py.

#include "cuda/numbers.cuh"
#include "iteration.cuh"

// Where number k of a narrow vector is in the order of A.
__device__ __forceinline__ long long place_of(long long k, long long size, const int* perm) {
    return size == 1 ? perm[k] : perm[k / size] * size + k % size;
}

extern "C" __global__ void add_steps(long long n, long long size, const int* perm, const STORED* steps,
                                     const double* settings, VALUE* x) {
    long long k = thread_id();
    if (k >= n) return;
    long long i = place_of(k, size, perm);
    x[i] = x[i] + (REAL)settings[TO_WIDE] * (VALUE)steps[k];
}

extern "C" __global__ void hand_over(long long n, long long size, const int* perm, const VALUE* r,
                                     const double* settings, STORED* own_r, STORED* own_b, STORED* own_x) {
    long long k = thread_id();
    if (k >= n) return;
    STORED number = (STORED)((REAL)settings[TO_NARROW] * r[place_of(k, size, perm)]);
    own_r[k] = number;
    own_b[k] = number;
    own_x[k] = (STORED)0;
}

extern "C" __global__ void begin_updates(long long one, double limit, double norm, double scale, long long maxiter,
                                         double* of_system, double* settings, long long* control) {
    if (thread_id() > 0) return;
    settings[LIMIT] = limit;
    settings[BEFORE] = 1.0 / 0.0;
    settings[TO_NARROW] = scale;
    settings[TO_WIDE] = 1 / scale;
    of_system[RR] = norm;
    control[MAXITER] = maxiter;
}

extern "C" __global__ void set_limit(long long one, const double* of_system, double* settings, long long* control,
                                     double* scalars, const double* history) {
    if (thread_id() > 0) return;
    double now = of_system[RR], before = settings[BEFORE], scale = settings[TO_NARROW];
    double last = history[control[ITERATION] % HISTORY] * settings[TO_WIDE];
    if (!isfinite(now)) {
        control[STATE] = NOT_A_NUMBER;
        return;
    }
    if (now <= settings[LIMIT] || now > before / LEFT_AT_MOST) {
        control[STATE] = EXHAUSTED;
        return;
    }
    double falls = (double)LEAST * LEAST;
    if (isfinite(before)) {
        double drift = fabs(now - last * last) / before * DRIFTS * DRIFTS;
        falls = fmin(fmax(1 / drift, falls), (double)MOST * MOST);
    }
    settings[BEFORE] = now;
    scalars[TOLERANCE] = fmax(settings[LIMIT], now / falls) * scale * scale;
    scalars[LEAST_RZ] = fmax(scalars[RZ] * scalars[ROUNDING], scalars[LIMIT_RZ]);
    if (now > ANOTHER * last * last) scalars[RZ] = 0;
    control[STATE] = RUNNING;
}
