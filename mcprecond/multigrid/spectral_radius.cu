// Steps of Lanczos' method, whose scalars stay on the device. See spectral_radius.py.

#include "grid_sum.cuh"

__device__ __forceinline__ double inverse(double norm) { return norm > 0 ? 1 / norm : 1; }

extern "C" __global__ void find_norm(long long n, const VALUE* dinv, const VALUE* w, double* scalars, double* partials,
                                     uint32* arrivals) {
    double square = 0;
    for (long long i = thread_id(); i < n; i += thread_count()) square += inner(w[i], w[i]) / real_part(dinv[i]);
    sum_over_grid<1>({square}, partials, arrivals, [=](const double* total) { scalars[0] = sqrt(*total); });
}

extern "C" __global__ void find_alpha(long long n, long long k, const VALUE* w, const VALUE* Aw, double* scalars,
                                      double* partials, uint32* arrivals) {
    double product = 0, scale = inverse(scalars[2 * k]);
    for (long long i = thread_id(); i < n; i += thread_count()) product += inner(w[i], Aw[i]);
    sum_over_grid<1>({product}, partials, arrivals,
                     [=](const double* total) { scalars[2 * k + 1] = scale * scale * *total; });
}

extern "C" __global__ void next_vector(long long n, long long k, const VALUE* dinv, const VALUE* Aw, const VALUE* w,
                                       VALUE* before, double* scalars, double* partials, uint32* arrivals) {
    double beta = scalars[2 * k], alpha = scalars[2 * k + 1], scale = inverse(beta), square = 0;
    double scale_before = k > 0 ? beta * inverse(scalars[2 * k - 2]) : 0;
    for (long long i = thread_id(); i < n; i += thread_count()) {
        VALUE next = (REAL)scale * (dinv[i] * Aw[i]) - (REAL)(alpha * scale) * w[i] - (REAL)scale_before * before[i];
        before[i] = next;
        square += inner(next, next) / real_part(dinv[i]);
    }
    sum_over_grid<1>({square}, partials, arrivals, [=](const double* total) { scalars[2 * k + 2] = sqrt(*total); });
}
