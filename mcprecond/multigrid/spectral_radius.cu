// Lanczos' method in one kernel: a product, two inner products and a new vector a step. See spectral_radius.py.

#include "linalg/csr.cuh"
#include "linalg/reduce.cuh"

__device__ __forceinline__ double inverse(double norm) { return norm > 0 ? 1 / norm : 1; }

// A vector that other blocks have just written. It is loaded from L2, since L1 may hold old values.
struct LatestVector {
    const VALUE* values;
    __device__ __forceinline__ VALUE operator[](long long j) const { return load_l2(&values[j]); }
};

extern "C" __global__ void start(long long n, VALUE* w) {
    long long i = thread_id();
    if (i < n) w[i] = VALUE((REAL)((uint32)i * (uint32)MULTIPLIER / 4294967296.0 - 0.5));
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    lanczos(long long n, long long steps, const OFFSET* indptr, const int* indices, const VALUE* values,
            long long longest, long long n_long, long long n_pieces, const int* plan, double* work, const VALUE* dinv,
            VALUE* w, VALUE* before, VALUE* Aw, double* scalars, double* partials, uint32* arrivals) {
    LongRows long_rows{longest, n_long, n_pieces, plan, work};
    GridSums sums{partials, MOST_BLOCKS, arrivals, 0};
    double square = 0, last_inverse = 0;
    for (long long i = thread_id(); i < n; i += thread_count()) square += inner(w[i], w[i]) / real_part(dinv[i]);
    double beta = sqrt(sums.sum(square));
    if (thread_id() == 0) scalars[0] = beta;
    for (int k = 0; k < steps; ++k) {
        LatestVector latest{w};
        auto row_done = [&](long long i, VALUE total) {
            Aw[i] = total;
            return inner(latest[i], total);
        };
        double product = multiply_rows<VALUE>(n, indptr, indices, values, long_rows, latest, row_done);
        product = sums.sum(product);
        for (long long r = 0; r < n_long; ++r) product += ptx::load_l2(&work[r]);
        double scale = inverse(beta), alpha = scale * scale * product, scale_before = beta * last_inverse;
        square = 0;
        for (long long i = thread_id(); i < n; i += thread_count()) {
            VALUE next = (REAL)scale * (dinv[i] * load_l2(&Aw[i])) - (REAL)(alpha * scale) * latest[i] -
                         (REAL)scale_before * before[i];
            before[i] = next;
            square += inner(next, next) / real_part(dinv[i]);
        }
        last_inverse = scale;
        beta = sqrt(sums.sum(square));
        if (thread_id() == 0) scalars[2 * k + 1] = alpha, scalars[2 * k + 2] = beta;
        VALUE* swapped = w;
        w = before, before = swapped;
    }
}
