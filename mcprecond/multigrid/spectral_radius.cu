// Lanczos' method in one kernel: a product, two inner products and a new vector a step. See spectral_radius.py.

#include "cuda/memory.cuh"
#include "cuda/reduce.cuh"
#include "multigrid/team.cuh"

// Sums over the grid. They take turns with two halves of `partials`: a block that writes its part of a sum cannot
// reach those that still read the sum before.
struct GridSums {
    double* partials;
    uint32* arrivals;
    int number;

    // Return the sum of a value over all threads, in a fixed order. It is a barrier, behind which they see what all wrote.
    __device__ double sum(double value) {
        __shared__ double total;
        double* parts = partials + number++ % 2 * MOST_BLOCKS;
        value = block_sum(value);
        if (threadIdx.x == 0) parts[blockIdx.x] = value;
        grid_barrier(arrivals);
        value = 0;
        for (int b = threadIdx.x; b < gridDim.x; b += blockDim.x) value += ptx::load_l2(&parts[b]);
        value = block_sum(value);
        if (threadIdx.x == 0) total = value;
        __syncthreads();
        return total;
    }
};

__device__ __forceinline__ double inverse(double norm) { return norm > 0 ? 1 / norm : 1; }

// The part of (A w)_i that a thread computes which begins with entry k and goes on in steps.
__device__ __forceinline__ VALUE part_of_row(OFFSET k, OFFSET end, int step, const int* indices, const VALUE* values,
                                             const VALUE* w) {
    VALUE sum = VALUE();
    for (; k < end; k += step) sum += values[k] * load_l2(&w[indices[k]]);
    return sum;
}

extern "C" __global__ void start(long long n, VALUE* w) {
    long long i = thread_id();
    if (i < n) w[i] = VALUE((REAL)((uint32)i * (uint32)MULTIPLIER / 4294967296.0 - 0.5));
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    lanczos(long long n, long long longest, long long steps, const OFFSET* indptr, const int* indices,
            const VALUE* values, const VALUE* dinv, VALUE* w, VALUE* before, VALUE* Aw, double* scalars,
            double* partials, uint32* arrivals) {
    GridSums sums{partials, arrivals, 0};
    double square = 0, last_inverse = 0;
    for (long long i = thread_id(); i < n; i += thread_count()) square += inner(w[i], w[i]) / real_part(dinv[i]);
    double beta = sqrt(sums.sum(square));
    if (thread_id() == 0) scalars[0] = beta;
    for (int k = 0; k < steps; ++k) {
        double product = 0, scale = inverse(beta);
        for (long long i = thread_id() / LANES; i < n; i += thread_count() / LANES) {
            if (indptr[i + 1] - indptr[i] > LONGEST) continue;
            VALUE sum = part_of_row(indptr[i] + team_lane(), indptr[i + 1], LANES, indices, values, w);
            for (int step = LANES / 2; step > 0; step /= 2)
                each_part(sum, [&](REAL& part) { part += __shfl_xor_sync(team_mask(), part, step); });
            if (team_lane() != 0) continue;
            Aw[i] = sum;
            product += inner(load_l2(&w[i]), sum);
        }
        // A block shares each long row; every block searches its part of the rows for them.
        for (long long first = blockIdx.x; longest > LONGEST && first < n; first += thread_count()) {
            __shared__ bool is_long[BLOCK];
            long long own = first + threadIdx.x * (long long)gridDim.x;
            is_long[threadIdx.x] = own < n && indptr[own + 1] - indptr[own] > LONGEST;
            if (!__syncthreads_or(is_long[threadIdx.x])) continue;
            for (int t = 0; t < BLOCK; ++t) {
                if (!is_long[t]) continue;
                long long i = first + t * (long long)gridDim.x;
                VALUE sum = part_of_row(indptr[i] + threadIdx.x, indptr[i + 1], BLOCK, indices, values, w);
                each_part(sum, [&](REAL& part) { part = (REAL)block_sum(part); });
                if (threadIdx.x != 0) continue;
                Aw[i] = sum;
                product += inner(load_l2(&w[i]), sum);
            }
            __syncthreads();
        }
        double alpha = scale * scale * sums.sum(product), scale_before = beta * last_inverse;
        square = 0;
        for (long long i = thread_id(); i < n; i += thread_count()) {
            VALUE next = (REAL)scale * (dinv[i] * load_l2(&Aw[i])) - (REAL)(alpha * scale) * load_l2(&w[i]) -
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
