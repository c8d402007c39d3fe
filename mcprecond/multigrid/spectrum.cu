// Steps of Lanczos' method. See spectrum.py.

#include "cuda/numbers.cuh"
#include "linalg/reduce.cuh"

extern "C" __global__ void find_coefficients(long long threads, long long n, long long step, double least,
                                             const VALUE* z, const VALUE* dinv, const VALUE* q, double* alphas,
                                             double* betas, double* partials, uint32* arrivals) {
    double product = 0, square = 0;
    for (long long i = thread_id(); i < n; i += thread_count()) {
        product += inner(z[i], q[i]);
        square += inner(dinv[i] * z[i], z[i]);
    }
    sum_over_grid<2>({product, square}, partials, arrivals, [=](const double* totals) {
        double rest = totals[1] - totals[0] * totals[0] - betas[step] * betas[step];
        alphas[step] = totals[0];
        betas[step + 1] = rest > least * totals[1] ? sqrt(rest) : 0;
    });
}

extern "C" __global__ void find_next(long long n, long long step, const VALUE* z, const VALUE* dinv, const VALUE* q,
                                     const double* alphas, const double* betas, VALUE* before) {
    long long i = thread_id();
    if (i >= n) return;
    REAL factor = (REAL)(betas[step + 1] > 0 ? 1 / betas[step + 1] : 0);
    before[i] = factor * (dinv[i] * z[i] - (REAL)alphas[step] * q[i] - (REAL)betas[step] * before[i]);
}
