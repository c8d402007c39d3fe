// Steps of Lanczos' method, whose scalars stay on the device. See spectral_radius.py.

#include "cuda/memory.cuh"
#include "cuda/reduce.cuh"

// Sum up a value over the grid in a fixed order; the last block to arrive puts `result_of(total)` into a scalar. All
// threads call it once, at the end.
template <typename Result>
__device__ __forceinline__ void reduce(double value, double* partials, uint32* arrivals, double* scalar, Result result_of) {
    __shared__ bool is_last;
    value = block_sum(value);
    if (threadIdx.x == 0) {
        partials[blockIdx.x] = value;
        __threadfence();
        is_last = atomicAdd(arrivals, 1u) == gridDim.x - 1;
    }
    __syncthreads();
    if (!is_last) return;
    __threadfence();
    double total = 0;
    for (int b = threadIdx.x; b < gridDim.x; b += blockDim.x) total += ptx::load_l2(&partials[b]);
    total = block_sum(total);
    if (threadIdx.x == 0) {
        *scalar = result_of(total);
        *arrivals = 0;
    }
}

__device__ __forceinline__ double inverse(double norm) { return norm > 0 ? 1 / norm : 1; }

extern "C" __global__ void find_norm(long long n, const VALUE* dinv, const VALUE* w, double* scalars, double* partials,
                                     uint32* arrivals) {
    double square = 0;
    for (long long i = thread_id(); i < n; i += thread_count()) square += inner(w[i], w[i]) / real_part(dinv[i]);
    reduce(square, partials, arrivals, scalars, [](double total) { return sqrt(total); });
}

extern "C" __global__ void find_alpha(long long n, long long k, const VALUE* w, const VALUE* Aw, double* scalars,
                                      double* partials, uint32* arrivals) {
    double product = 0, scale = inverse(scalars[2 * k]);
    for (long long i = thread_id(); i < n; i += thread_count()) product += inner(w[i], Aw[i]);
    reduce(product, partials, arrivals, scalars + 2 * k + 1, [&](double total) { return scale * scale * total; });
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
    reduce(square, partials, arrivals, scalars + 2 * k + 2, [](double total) { return sqrt(total); });
}
