// The steps of MINRES. A kernel has at most as many blocks as the device runs at once, and its threads stride over the
// rows.

#include "iteration.cuh"

extern "C" __global__ void find_diagonal(long long n, const VALUE* last_v, const VALUE* z, const VALUE* q, double* c,
                                         Recurrence recurrence) {
    if (!recurrence.is_running()) return;
    REAL beta = (REAL)c[BESIDE];
    double product = 0;
    for (long long i = thread_id(); i < n; i += thread_count()) product += inner(z[i], q[i] - beta * last_v[i]);
    recurrence.finish<1>({product}, [&](const double* totals) {
        if (recurrence.is_finite(totals[0])) c[DIAGONAL] = totals[0] / c[START];
    });
}

extern "C" __global__ void make_orthogonal(long long n, const VALUE* q, VALUE* v, VALUE* last_v, const double* c,
                                           const long long* control) {
    if (control[STATE] != RUNNING) return;
    REAL delta = (REAL)c[DIAGONAL], beta = (REAL)c[BESIDE];
    for (long long i = thread_id(); i < n; i += thread_count()) {
        VALUE rest = q[i] - delta * v[i] - beta * last_v[i];
        last_v[i] = v[i];
        v[i] = rest;
    }
}

// Take v'M v. The first one starts the recurrence; each later one completes a column of the tridiagonal matrix, to which
// the Givens rotations are applied. The function of the same name in minres.py explains the tests.
__device__ void take_vMv(double vMv, double* c, Recurrence recurrence) {
    long long& state = recurrence.control[STATE];
    if (!recurrence.is_finite(vMv)) return;
    if (c[START] == 0) {
        c[START] = vMv;
        if (vMv <= 0) state = BAD_M;
        return;
    }
    double delta = c[DIAGONAL], beta = c[BESIDE], square = vMv / c[START];
    double* scalars = recurrence.scalars;
    scalars[LARGEST] = max(scalars[LARGEST], delta * delta + beta * beta + fabs(square));
    double least = 4 * UNITS * UNITS * scalars[ROUNDING] * scalars[LARGEST];
    if (square < -least) {
        state = BAD_M;
        return;
    }
    if (beta == 0) {
        double image = delta * delta + square, fallen = FALLEN * FALLEN * scalars[LARGEST];
        bool is_null = image <= fallen && delta * delta <= UNITS * UNITS * FALLEN * FALLEN * fallen;
        c[LOWEST] = is_null ? image : FALLEN * FALLEN * image;
    }
    double below = square > least ? sqrt(square) : 0.0;
    c[FIRST] = c[LAST_SINE] * beta;
    c[SECOND] = c[SINE] * delta + c[LAST_COSINE] * c[COSINE] * beta;
    double rotated = c[COSINE] * delta - c[LAST_COSINE] * c[SINE] * beta;
    double image = rotated * rotated + c[COSINE] * c[COSINE] * below * below;
    bool goes_on = image > max(least, c[LOWEST]);
    c[BESIDE] = goes_on ? below : 0.0;
    c[INVERSE] = goes_on ? 1 / sqrt(rotated * rotated + below * below) : 0.0;
    c[LAST_COSINE] = c[COSINE], c[LAST_SINE] = c[SINE];
    c[COSINE] = rotated * c[INVERSE], c[SINE] = below * c[INVERSE];
    c[STEP] = c[COSINE] * c[LEFT];
    c[LEFT] *= -c[SINE];
}

extern "C" __global__ void rotate(long long n, const VALUE* v, const VALUE* next_z, double* c, Recurrence recurrence) {
    if (!recurrence.is_running()) return;
    double vMv = 0;
    for (long long i = thread_id(); i < n; i += thread_count()) vMv += inner(v[i], next_z[i]);
    recurrence.finish<1>({vMv}, [&](const double* totals) { take_vMv(totals[0], c, recurrence); });
}

extern "C" __global__ void advance(long long n, const VALUE* next_z, const VALUE* q, VALUE* z, VALUE* v, VALUE* w,
                                   VALUE* last_w, VALUE* Aw, VALUE* last_Aw, VALUE* x, VALUE* r, const double* c,
                                   Recurrence recurrence) {
    if (!recurrence.is_running()) return;
    double scale = c[BESIDE] ? 1 / c[BESIDE] : 0.0;
    REAL above = (REAL)c[FIRST], beside = (REAL)c[SECOND], inverse = (REAL)c[INVERSE], step = (REAL)c[STEP];
    double square = 0;
    for (long long i = thread_id(); i < n; i += thread_count()) {
        VALUE direction = inverse * (z[i] - above * last_w[i] - beside * w[i]);
        VALUE image = inverse * (q[i] - above * last_Aw[i] - beside * Aw[i]);
        last_w[i] = w[i], w[i] = direction;
        last_Aw[i] = Aw[i], Aw[i] = image;
        x[i] += step * direction;
        VALUE rest = r[i] - step * image;
        r[i] = rest;
        square += inner(rest, rest);
        z[i] = (REAL)scale * next_z[i];
        v[i] = (REAL)scale * v[i];
    }
    recurrence.finish<1>({square}, [&](const double* totals) {
        recurrence.take_rr(totals[0]);
        if (!recurrence.is_running()) return;
        if (scale == 0)
            recurrence.control[STATE] = CYCLE_ENDED;
        else if (c[LEFT] * c[LEFT] <= recurrence.scalars[ROUNDING])
            recurrence.control[STATE] = REACHED;
    });
}
