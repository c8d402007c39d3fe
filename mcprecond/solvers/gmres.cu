// The steps of GMRES. A kernel has at most as many blocks as the device runs at once, and its threads stride over the
// rows; only `add_vectors` has a thread for each row.

#include "iteration.cuh"

typedef typename WideOf<VALUE>::Type Wide;

#define GROUP 8  // vectors that are multiplied with w in one pass over it

extern "C" __global__ void keep_vector(long long n, const VALUE* z, VALUE* Z, const long long* places,
                                       const long long* control) {
    if (control[STATE] != RUNNING) return;
    VALUE* kept = Z + places[LENGTH] * n;
    for (long long i = thread_id(); i < n; i += thread_count()) kept[i] = z[i];
}

extern "C" __global__ void find_parts(long long n, long long turn, const VALUE* V, const VALUE* w, Wide* parts,
                                      const long long* places, Wide* sums, Recurrence recurrence) {
    if (!recurrence.is_running() || (turn && !places[AGAIN])) return;
    __shared__ Wide of_warps[BLOCK / WARP][GROUP];
    int vectors = places[LENGTH] + 1, warp = threadIdx.x / WARP;
    double square = 0;
    for (int first = 0; first < vectors; first += GROUP) {
        Wide products[GROUP];
        for (int k = 0; k < GROUP; ++k) products[k] = Wide();
        for (long long i = thread_id(); i < n; i += thread_count()) {
            VALUE number = w[i];
            if (first == 0) square += inner(number, number);
#pragma unroll
            for (int k = 0; k < GROUP; ++k)
                if (first + k < vectors) products[k] += conjugated_product(V[(first + k) * n + i], number);
        }
#pragma unroll
        for (int k = 0; k < GROUP; ++k) {
            Wide of_warp = lane_sum<WARP>(products[k]);
            if (lane_id() == 0) of_warps[warp][k] = of_warp;
        }
        __syncthreads();
        int k = threadIdx.x;
        if (k < GROUP && first + k < vectors) {
            Wide of_block = Wide();
            for (int w = 0; w < BLOCK / WARP; ++w) of_block += of_warps[w][k];
            sums[(long long)(first + k) * gridDim.x + blockIdx.x] = of_block;
        }
        __syncthreads();
    }
    square = block_sum(square);
    if (threadIdx.x == 0) recurrence.partials[blockIdx.x] = square;
    if (!is_last_block((uint64*)&recurrence.control[ARRIVALS])) return;
    for (int k = warp; k <= vectors; k += BLOCK / WARP) {
        Wide total = Wide();
        for (int b = lane_id(); b < gridDim.x; b += WARP)
            total += k < vectors ? load_l2(&sums[(long long)k * gridDim.x + b])
                                 : (Wide)ptx::load_l2(&recurrence.partials[b]);
        total = lane_sum<WARP>(total);
        if (lane_id() != 0) continue;
        if (k < vectors)
            parts[k] = total;
        else
            recurrence.scalars[RZ] = real_part(total);
    }
}

// Rotate the new column of the Hessenberg matrix, whose last entry is the norm of w; the norm of the residual. See
// gmres.py.
__device__ void end_step(double square, Wide* column, long long* places, double* cosines, Wide* sines, Wide* g,
                         Recurrence recurrence) {
    long long length = places[LENGTH];
    double size = square, below = sqrt(square);
    for (int k = 0; k <= length; ++k) size += inner(column[k], column[k]);
    double* scalars = recurrence.scalars;
    scalars[LARGEST] = max(scalars[LARGEST], size);
    double least = 4 * scalars[ROUNDING] * scalars[LARGEST];
    bool is_complete = square <= least;
    if (is_complete) below = 0;
    Wide upper = column[0];
    for (int k = 0; k < length; ++k) {
        Wide lower = column[k + 1];
        column[k] = cosines[k] * upper + sines[k] * lower;
        upper = cosines[k] * lower - conjugate(sines[k]) * upper;
    }
    double pivot = fabs(upper), norm = sqrt(pivot * pivot + below * below);
    Wide phase = pivot ? (1 / pivot) * upper : (Wide)1.0, sine = (norm ? below / norm : 0.0) * phase;
    double cosine = norm ? pivot / norm : 1.0;
    column[length] = norm * phase;
    Wide next = -1.0 * (conjugate(sine) * g[length]), here = cosine * g[length];
    cosines[length] = cosine, sines[length] = sine;
    g[length] = here, g[length + 1] = next;
    places[LENGTH] = length + 1;
    scalars[BETA] = below;
    double rest = norm * norm > least ? fabs(next) : fabs(here);
    recurrence.take_rr(rest * rest);
    if (recurrence.is_running() && (is_complete || length + 1 == places[RESTART]))
        recurrence.control[STATE] = CYCLE_ENDED;
}

extern "C" __global__ void take_off_parts(long long n, long long turn, const VALUE* V, VALUE* w, const Wide* parts,
                                          long long* places, Wide* R, double* cosines, Wide* sines, Wide* g,
                                          Recurrence recurrence) {
    if (!recurrence.is_running() || (turn && !places[AGAIN])) return;
    int vectors = places[LENGTH] + 1;
    double square = 0;
    for (long long i = thread_id(); i < n; i += thread_count()) {
        VALUE rest = w[i];
#pragma unroll 4
        for (int k = 0; k < vectors; ++k) rest -= (VALUE)parts[k] * V[k * n + i];
        w[i] = rest;
        square += inner(rest, rest);
    }
    recurrence.finish<1>({square}, [&](const double* totals) {
        if (!recurrence.is_finite(totals[0])) return;
        Wide* column = R + (vectors - 1) * places[RESTART];
        for (int k = 0; k < vectors; ++k) column[k] = turn ? column[k] + parts[k] : parts[k];
        places[AGAIN] = turn == 0 && totals[0] < 0.5 * recurrence.scalars[RZ];
        if (!places[AGAIN]) end_step(totals[0], column, places, cosines, sines, g, recurrence);
    });
}

extern "C" __global__ void normalize(long long n, const VALUE* w, VALUE* v, VALUE* V, const long long* places,
                                     const long long* control, const double* scalars) {
    if (control[STATE] != RUNNING) return;
    VALUE* kept = V + places[LENGTH] * n;
    REAL factor = (REAL)(1 / scalars[BETA]);
    for (long long i = thread_id(); i < n; i += thread_count()) v[i] = kept[i] = factor * w[i];
}

extern "C" __global__ void add_vectors(long long n, long long vectors, const VALUE* Z, const Wide* y, VALUE* x) {
    long long i = thread_id();
    if (i >= n) return;
    VALUE sum = x[i];
    for (int k = 0; k < vectors; ++k) sum += (VALUE)y[k] * Z[k * n + i];
    x[i] = sum;
}
