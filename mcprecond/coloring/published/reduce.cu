// Gunrock's advance and neighbor-reduce in one resident kernel; see reduce.py. Grid barriers take the place of the
// launches between Gunrock's operators, so that no phase reads what another thread writes in the same phase.

#include "coloring/graph.cuh"
#include "coloring/history.cuh"
#include "cuda/compact.cuh"
#include "cuda/hash.cuh"

__device__ __forceinline__ long long number_of(int v, uint32 seed) { return (long long)mix(v, seed) << 31 | v; }

// A block for each vertex of the frontier, a thread for each neighbor.
__device__ void advance(const int* F, int length, const OFFSET* indptr, const int* indices, uint32 seed,
                        const int* colors, long long* reached) {
    for (long long i = blockIdx.x; i < length; i += gridDim.x) {
        int v = ptx::load_l2(&F[i]);
        for (OFFSET k = indptr[v] + threadIdx.x; k < indptr[v + 1]; k += blockDim.x) {
            int u = indices[k];
            reached[k] = u != v && ptx::load_l2(&colors[u]) == UNCOLORED ? number_of(u, seed) : NOBODY;
        }
    }
}

// The reduction of some numbers: their maximum, and if FUSED their minimum as well. As an unsigned number NOBODY is
// above all others, so that it is the minimum of none.
template <bool FUSED> struct Extremes {
    long long most;
    unsigned long long least;

    __device__ __forceinline__ void add(long long above, unsigned long long below) {
        most = max(most, above);
        if (FUSED) least = min(least, below);
    }
};

// Reduce every `stride`-th number of a segment.
template <bool FUSED>
__device__ Extremes<FUSED> reduce_own(OFFSET first, OFFSET end, int stride, const long long* reached) {
    Extremes<FUSED> found = {NOBODY, (unsigned long long)NOBODY};
    for (OFFSET k = first; k < end; k += stride) {
        long long number = ptx::load_l2(&reached[k]);
        found.add(number, (unsigned long long)number);
    }
    return found;
}

// Reduce over a warp. Every thread gets the result.
template <bool FUSED> __device__ __forceinline__ void reduce_warp(Extremes<FUSED>& found) {
    for (int step = WARP / 2; step > 0; step /= 2) {
        long long above = __shfl_xor_sync(FULL_WARP, found.most, step);
        found.add(above, FUSED ? __shfl_xor_sync(FULL_WARP, found.least, step) : found.least);
    }
}

// Reduce over a block. Every thread gets the result.
template <bool FUSED> __device__ void reduce_block(Extremes<FUSED>& found) {
    __shared__ Extremes<FUSED> partial[BLOCK / WARP];
    reduce_warp(found);
    __syncthreads();
    if (lane_id() == 0) partial[threadIdx.x / WARP] = found;
    __syncthreads();
    for (const Extremes<FUSED>& part : partial) found.add(part.most, part.least);
}

// A segment belongs to a thread, a warp or a block, depending on its size.
template <bool FUSED>
__device__ void reduce_segments(const int* F, int length, const OFFSET* indptr, const long long* reached,
                                long long* largest, long long* smallest) {
    auto keep = [&](long long i, const Extremes<FUSED>& found) {
        largest[i] = found.most;
        if (FUSED) smallest[i] = (long long)found.least;
    };
    auto size_of = [&](int v) { return indptr[v + 1] - indptr[v]; };
    for (long long i = thread_id(); i < length; i += thread_count()) {
        int v = ptx::load_l2(&F[i]);
        if (size_of(v) < WARP) keep(i, reduce_own<FUSED>(indptr[v], indptr[v + 1], 1, reached));
    }
    for (long long i = thread_id() / WARP; i < length; i += thread_count() / WARP) {
        int v = ptx::load_l2(&F[i]);
        if (size_of(v) < WARP || size_of(v) >= BLOCK) continue;
        Extremes<FUSED> found = reduce_own<FUSED>(indptr[v] + lane_id(), indptr[v + 1], WARP, reached);
        reduce_warp(found);
        if (lane_id() == 0) keep(i, found);
    }
    for (long long i = blockIdx.x; i < length; i += gridDim.x) {
        int v = ptx::load_l2(&F[i]);
        if (size_of(v) < BLOCK) continue;
        Extremes<FUSED> found = reduce_own<FUSED>(indptr[v] + threadIdx.x, indptr[v + 1], BLOCK, reached);
        reduce_block(found);
        if (threadIdx.x == 0) keep(i, found);
    }
}

struct Control {  // lies in `scratch`, which the host zeroes
    uint32 arrivals;
    int length[2];  // of the frontiers, by parity of the round
};

// Run all rounds. In each round, the vertices whose random number is larger than those of all their uncolored neighbors
// get one color. If FUSED, the vertices whose number is smaller than those of all their uncolored neighbors get the
// next color, and so do vertices without uncolored neighbors.
template <bool FUSED>
__device__ void color_in_rounds(long long n, const OFFSET* indptr, const int* indices, uint32 seed, int* colors,
                                int* worklists, long long* reached, long long* largest, long long* smallest,
                                Control* control, int2* log) {
    for (long long v = thread_id(); v < n; v += thread_count()) {
        colors[v] = UNCOLORED;
        worklists[v] = (int)v;
    }
    grid_barrier(&control->arrivals);
    int length = (int)n;
    for (int iteration = 0;; ++iteration) {
        const int* F = worklists + (iteration & 1) * n;
        int* next = worklists + (~iteration & 1) * n;
        int* next_length = &control->length[iteration & 1];
        int color = FUSED ? 2 * iteration : iteration;
        advance(F, length, indptr, indices, seed, colors, reached);
        grid_barrier(&control->arrivals);
        reduce_segments<FUSED>(F, length, indptr, reached, largest, smallest);
        // The next round counts in the other slot, which everyone has read before the last barrier.
        if (thread_id() == 0) control->length[~iteration & 1] = 0;
        grid_barrier(&control->arrivals);

        for (long long i0 = thread_id() - lane_id(); i0 < length; i0 += thread_count()) {
            long long i = i0 + lane_id();
            int v = i < length ? ptx::load_l2(&F[i]) : 0;
            long long own = number_of(v, seed);
            bool above = i < length && own > ptx::load_l2(&largest[i]);
            bool below = FUSED && i < length &&
                         (unsigned long long)own < (unsigned long long)ptx::load_l2(&smallest[i]);
            if (above || below) colors[v] = color + below;
            bool stays = i < length && !above && !below;
            int position = warp_append(stays, next_length);
            if (stays) next[position] = v;
        }
        grid_barrier(&control->arrivals);
        int before = length;
        length = ptx::load_l2(next_length);
        if (thread_id() == 0) log_round(log, n, iteration + 1, before - length, 0);
        if (length == 0) return;
    }
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    color_by_segments(long long n, const OFFSET* indptr, const int* indices, long long seed, long long fused,
                      int* colors, int* worklists, long long* reached, long long* largest, long long* smallest,
                      void* scratch, int2* log) {
    Control* control = (Control*)scratch;
    if (fused)
        color_in_rounds<true>(n, indptr, indices, (uint32)seed, colors, worklists, reached, largest, smallest, control,
                              log);
    else
        color_in_rounds<false>(n, indptr, indices, (uint32)seed, colors, worklists, reached, largest, smallest, control,
                               log);
}
