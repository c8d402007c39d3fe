// Gunrock's advance and neighbor-reduce in one resident kernel; see reduce.py. Barriers stand for the launches between
// its operators, so that no phase reads what another thread may write in it.

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

// The maximum over every `stride`-th number of a segment.
__device__ long long own_maximum(OFFSET first, OFFSET end, int stride, const long long* reached) {
    long long found = NOBODY;
    for (OFFSET k = first; k < end; k += stride) found = max(found, ptx::load_l2(&reached[k]));
    return found;
}

// Every thread of the warp gets the maximum over it.
__device__ __forceinline__ long long warp_maximum(long long value) {
    for (int step = WARP / 2; step > 0; step /= 2) value = max(value, __shfl_xor_sync(FULL_WARP, value, step));
    return value;
}

// Every thread of the block gets the maximum over it.
__device__ long long block_maximum(long long value) {
    __shared__ long long partial[BLOCK / WARP];
    value = warp_maximum(value);
    __syncthreads();
    if (lane_id() == 0) partial[threadIdx.x / WARP] = value;
    __syncthreads();
    for (long long part : partial) value = max(value, part);
    return value;
}

// A segment belongs to a thread, a warp or a block, depending on its size.
__device__ void reduce_segments(const int* F, int length, const OFFSET* indptr, const long long* reached,
                                long long* largest) {
    auto size_of = [&](int v) { return indptr[v + 1] - indptr[v]; };
    for (long long i = thread_id(); i < length; i += thread_count()) {
        int v = ptx::load_l2(&F[i]);
        if (size_of(v) < WARP) largest[i] = own_maximum(indptr[v], indptr[v + 1], 1, reached);
    }
    for (long long i = thread_id() / WARP; i < length; i += thread_count() / WARP) {
        int v = ptx::load_l2(&F[i]);
        if (size_of(v) < WARP || size_of(v) >= BLOCK) continue;
        long long found = warp_maximum(own_maximum(indptr[v] + lane_id(), indptr[v + 1], WARP, reached));
        if (lane_id() == 0) largest[i] = found;
    }
    for (long long i = blockIdx.x; i < length; i += gridDim.x) {
        int v = ptx::load_l2(&F[i]);
        if (size_of(v) < BLOCK) continue;
        long long found = block_maximum(own_maximum(indptr[v] + threadIdx.x, indptr[v + 1], BLOCK, reached));
        if (threadIdx.x == 0) largest[i] = found;
    }
}

struct Control {  // lies in `scratch`, which the host zeroes
    uint32 arrivals;
    int length[2];  // of the frontiers, by parity of the round
};

extern "C" __global__ void __launch_bounds__(BLOCK)
    color_by_segments(long long n, const OFFSET* indptr, const int* indices, long long seed, int* colors,
                      int* worklists, long long* reached, long long* largest, void* scratch, int2* log) {
    Control* control = (Control*)scratch;
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
        advance(F, length, indptr, indices, (uint32)seed, colors, reached);
        grid_barrier(&control->arrivals);
        reduce_segments(F, length, indptr, reached, largest);
        // The next round counts in the other slot, which everyone has read before the last barrier.
        if (thread_id() == 0) control->length[~iteration & 1] = 0;
        grid_barrier(&control->arrivals);

        for (long long i0 = thread_id() - lane_id(); i0 < length; i0 += thread_count()) {
            long long i = i0 + lane_id();
            int v = i < length ? ptx::load_l2(&F[i]) : 0;
            bool removed = i < length && number_of(v, (uint32)seed) > ptx::load_l2(&largest[i]);
            if (removed) colors[v] = iteration;
            bool stays = i < length && !removed;
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
