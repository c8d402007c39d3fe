// The steps of PCG. Kernels are launched with at most as many blocks as the device holds and stride over the rows.

#include "iteration.cuh"
#include "long_rows.cuh"

// Row i of A times p, summed over the LANES threads that share it; all of them get it. SUM is the type of the sum.
template <typename SUM>
__device__ __forceinline__ SUM row_product(bool active, long long i, const OFFSET* indptr, const int* indices,
                                           const VALUE* values, const VALUE* p) {
    SUM total = SUM();
    if (active)
        for (OFFSET k = indptr[i] + threadIdx.x % LANES, end = indptr[i + 1]; k < end; k += LANES)
            total += (SUM)values[k] * (SUM)p[indices[k]];
    return lane_sum<LANES>(total);
}

// Rows in strides: whole warps take part until the last row, as lane_sum needs it.
#define FOR_EACH_ROW(i, n) \
    for (long long i = thread_id() / LANES, i##_of_warp = (thread_id() - lane_id()) / LANES; i##_of_warp < n; \
         i += thread_count() / LANES, i##_of_warp += thread_count() / LANES)

extern "C" __global__ void multiply(long long n, const OFFSET* indptr, const int* indices, const VALUE* values,
                                    long long longest, long long n_long, long long n_pieces, const int* plan,
                                    double* work, const VALUE* p, VALUE* q, long long role, long long* control,
                                    double* scalars, double* history, double* partials) {
    if (control[STATE] != RUNNING) return;
    LongRows long_rows{longest, n_long, n_pieces, plan, work};
    long_rows.multiply<VALUE>(indptr, indices, values, p, [&](int i, VALUE total) {
        q[i] = total;
        return inner(total, p[i]);
    });
    double product = 0;
    FOR_EACH_ROW(i, n) {
        bool is_short = i < n && !long_rows.has(indptr[i + 1] - indptr[i]);
        VALUE total = row_product<VALUE>(is_short, i, indptr, indices, values, p);
        if (is_short && threadIdx.x % LANES == 0) {
            q[i] = total;
            product += inner(total, p[i]);
        }
    }
    finish((int)role, product, control, scalars, history, partials, work, n_long);
}

extern "C" __global__ void residual(long long n, const OFFSET* indptr, const int* indices, const VALUE* values,
                                    long long longest, long long n_long, long long n_pieces, const int* plan,
                                    double* work, const VALUE* x, const VALUE* b, VALUE* r, long long role,
                                    long long* control, double* scalars, double* history, double* partials) {
    typedef typename WideOf<VALUE>::Type Wide;
    LongRows long_rows{longest, n_long, n_pieces, plan, work};
    auto row_done = [&](long long i, Wide total) {
        Wide rest = (Wide)b[i] - total;
        r[i] = (VALUE)rest;
        return inner(rest, rest);
    };
    long_rows.multiply<Wide>(indptr, indices, values, x, row_done);
    double square = 0;
    FOR_EACH_ROW(i, n) {
        bool is_short = i < n && !long_rows.has(indptr[i + 1] - indptr[i]);
        Wide total = row_product<Wide>(is_short, i, indptr, indices, values, x);
        if (is_short && threadIdx.x % LANES == 0) square += row_done(i, total);
    }
    finish((int)role, square, control, scalars, history, partials, work, n_long);
}

extern "C" __global__ void inner_product(long long n, const VALUE* a, const VALUE* b, long long role,
                                         long long* control, double* scalars, double* history, double* partials) {
    if (control[STATE] != RUNNING) return;
    REAL unit = role == FRESH_RESIDUAL ? 1 : (REAL)scalars[UNIT];
    double product = 0;
    for (long long i = thread_id(); i < n; i += thread_count()) product += inner(a[i], rounded_product(unit, b[i]));
    finish((int)role, product, control, scalars, history, partials);
}

extern "C" __global__ void advance(long long n, const VALUE* p, const VALUE* q, VALUE* x, VALUE* r, long long role,
                                   long long* control, double* scalars, double* history, double* partials) {
    if (control[STATE] != RUNNING) return;
    REAL alpha = (REAL)scalars[ALPHA];
    double square = 0;
    for (long long i = thread_id(); i < n; i += thread_count()) {
        x[i] += alpha * p[i];
        VALUE rest = r[i] - alpha * q[i];
        r[i] = rest;
        square += inner(rest, rest);
    }
    finish((int)role, square, control, scalars, history, partials);
}

extern "C" __global__ void turn(long long n, const VALUE* z, VALUE* p, const long long* control,
                                const double* scalars) {
    if (control[STATE] != RUNNING) return;
    REAL beta = (REAL)scalars[BETA], unit = (REAL)scalars[UNIT];
    for (long long i = thread_id(); i < n; i += thread_count()) p[i] = rounded_product(unit, z[i]) + beta * p[i];
}
