// Steps of Lanczos' method. See spectrum.py.

#include "cuda/numbers.cuh"
#include "linalg/reduce.cuh"

// An entry of the vector that the method begins with, before it is scaled.
__device__ __forceinline__ double entry_of_first(long long i, long long n) {
    uint32 k = (uint32)(n + i) * 0x9e3779b1u;
    k = (k ^ k >> 15) * 0x2c1b3c6du;
    double size = 0.5 + fmod(i * GOLDEN, 1.0);
    return k >> 17 & 1 ? size : -size;
}

extern "C" __global__ void find_square(long long threads, long long n, double* square, double* partials,
                                       uint32* arrivals) {
    double sum = 0;
    for (long long i = thread_id(); i < n; i += thread_count()) sum += entry_of_first(i, n) * entry_of_first(i, n);
    sum_over_grid<1>({sum}, partials, arrivals, [=](const double* totals) { *square = totals[0]; });
}

extern "C" __global__ void find_first(long long n, const double* square, const VALUE* dinv, VALUE* q, VALUE* before) {
    long long i = thread_id();
    if (i >= n) return;
    q[i] = VALUE((REAL)(entry_of_first(i, n) / sqrt(*square) * sqrt(real_part(dinv[i]))));
    before[i] = VALUE();
}

// Sums come from a fixed number of blocks; behind a barrier all of them read the coefficients.
extern "C" __global__ void __launch_bounds__(BLOCK)
    take_lanczos_step(long long threads, long long n, long long step, double least, const VALUE* z, const VALUE* dinv,
                      const VALUE* q, double* alphas, double* betas, VALUE* before, double* partials,
                      uint32* arrivals) {
    double product = 0, square = 0;
    for (long long i = thread_id(); i < n; i += thread_count()) {
        product += inner(z[i], q[i]);
        square += inner(dinv[i] * z[i], z[i]);
    }
    sum_over_grid<2>({product, square}, partials, &arrivals[0], [=](const double* totals) {
        double rest = totals[1] - totals[0] * totals[0] - betas[step] * betas[step];
        alphas[step] = totals[0];
        betas[step + 1] = rest > least * totals[1] ? sqrt(rest) : 0;
    });
    grid_barrier(&arrivals[1]);
    double next = ptx::load_l2(&betas[step + 1]);
    REAL alpha = (REAL)ptx::load_l2(&alphas[step]), beta = (REAL)betas[step], factor = (REAL)(next > 0 ? 1 / next : 0);
    for (long long i = thread_id(); i < n; i += thread_count())
        before[i] = factor * (dinv[i] * z[i] - alpha * q[i] - beta * before[i]);
}
