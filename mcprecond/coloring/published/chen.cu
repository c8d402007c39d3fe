// The colorings of Chen et al., each in one resident kernel: see chen.py.
//
// Races that are meant: in the first phase of a round a vertex may see a neighbor's color of this round or not yet, and
// what it misses is caught by `loses` behind a grid barrier. There, a vertex may see another one that is uncolored at
// that moment: then the other one gives way, so it may keep its color; or it saw the color and both give way.
// Either way a neighbor shows at most one color per phase, whence the bound of degree + 1 colors.

#include "balanced.cuh"
#include "coloring/graph.cuh"
#include "coloring/history.cuh"
#include "cuda/compact.cuh"

struct Control {  // lies in `scratch`, which the host zeroes
    uint32 arrivals;
    int length[3];  // of what is left after a round, by round; with three of them nobody resets what others still read
};

template <int TEAM>
__device__ bool loses(int v, const OFFSET* indptr, const int* indices, const int* degrees, const int* C) {
    int color = ptx::load_l2(&C[v]), degree = degrees[v];
    bool lost = false;
    for (OFFSET k = indptr[v] + threadIdx.x % TEAM; k < indptr[v + 1] && !lost; k += TEAM) {
        int u = indices[k];
        lost = ptx::load_l2(&C[u]) == color && (degrees[u] != degree ? degrees[u] > degree : u > v);
    }
    return team_or<TEAM>(lost);
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    color_by_topology(long long n, const OFFSET* indptr, const int* indices, const int* degrees, int* C, int* settled,
                      void* scratch, int2* log) {
    Control* control = (Control*)scratch;
    for (long long v = thread_id(); v < n; v += thread_count()) C[v] = UNCOLORED;
    grid_barrier(&control->arrivals);
    int left = (int)n;
    for (int round = 0; left; ++round) {
        for (long long first = 0; first < n; first += thread_count()) {
            long long v = first + spread_id();
            visit_balanced((int)v, v < n && !ptx::load_l2(&settled[v]), indptr, [&](int v, auto team) {
                int color = smallest_free_color<team.size>(v, indptr, indices, C);
                if (threadIdx.x % team.size == 0) C[v] = color;
                return false;
            });
        }
        if (thread_id() == 0) control->length[(round + 1) % 3] = 0;
        grid_barrier(&control->arrivals);

        for (long long first = 0; first < n; first += thread_count()) {
            long long v = first + spread_id();
            bool active = v < n && !ptx::load_l2(&settled[v]);
            bool lost = visit_balanced((int)v, active, indptr, [&](int v, auto team) {
                return loses<team.size>(v, indptr, indices, degrees, C);
            });
            if (active && !lost) settled[v] = 1;
            if (lost) C[v] = UNCOLORED;
            warp_append(lost, &control->length[round % 3]);  // counts them
        }
        grid_barrier(&control->arrivals);
        int before = left;
        left = ptx::load_l2(&control->length[round % 3]);
        if (thread_id() == 0) log_round(log, n, round + 1, before, left);
    }
}

// The sum over a block, in every thread.
__device__ int block_sum(int value) {
    __shared__ int parts[BLOCK / WARP];
    value = lane_sum<WARP>(value);
    if (lane_id() == 0) parts[threadIdx.x / WARP] = value;
    __syncthreads();
    value = 0;
    for (int part : parts) value += part;
    __syncthreads();
    return value;
}

// Move the marked entries of a worklist to the next one, in order: every block counts those of its stretch, and behind
// a barrier stores them behind those of the blocks before it. Returns how many there are.
__device__ int keep_in_order(const int* worklist, int length, const int* marked, int* next, int* counts,
                             uint32* arrivals) {
    long long share = (length + gridDim.x - 1) / gridDim.x;
    long long begin = min(blockIdx.x * share, (long long)length), end = min(begin + share, (long long)length);
    int count = 0;
    for (long long i = begin + threadIdx.x; i < end; i += BLOCK) count += ptx::load_l2(&marked[i]);
    count = block_sum(count);
    if (threadIdx.x == 0) counts[blockIdx.x] = count;
    grid_barrier(arrivals);

    int before = 0, all = 0;
    for (int b = threadIdx.x; b < gridDim.x; b += BLOCK) {
        int other = ptx::load_l2(&counts[b]);
        before += b < blockIdx.x ? other : 0;
        all += other;
    }
    before = block_sum(before);
    all = block_sum(all);
    __shared__ int kept[BLOCK / WARP];
    for (long long i0 = begin; i0 < end; i0 += BLOCK) {
        long long i = i0 + threadIdx.x;
        bool keep = i < end && ptx::load_l2(&marked[i]);
        uint32 keepers = __ballot_sync(FULL_WARP, keep);
        if (lane_id() == 0) kept[threadIdx.x / WARP] = __popc(keepers);
        __syncthreads();
        int position = before + __popc(keepers & ((1u << lane_id()) - 1));
        for (int w = 0; w < BLOCK / WARP; ++w) {
            if (w < threadIdx.x / WARP) position += kept[w];
            before += kept[w];
        }
        if (keep) next[position] = ptx::load_l2(&worklist[i]);
        __syncthreads();
    }
    return all;
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    color_by_worklist(long long n, const OFFSET* indptr, const int* indices, const int* degrees, int* C, int* worklists,
                      long long in_order, int* marks, void* scratch, int2* log) {
    Control* control = (Control*)scratch;
    for (long long v = thread_id(); v < n; v += thread_count()) C[v] = UNCOLORED;
    grid_barrier(&control->arrivals);
    int length = (int)n;
    for (int round = 0; length; ++round) {
        int before = length;
        const int* worklist = worklists + (round & 1) * n;
        int* next = worklists + (~round & 1) * n;
        int* next_length = &control->length[round % 3];
        for (long long first = 0; first < length; first += thread_count()) {
            long long i = first + spread_id();
            int v = i < length ? ptx::load_l2(&worklist[i]) : 0;
            visit_balanced(v, i < length, indptr, [&](int v, auto team) {
                int color = smallest_free_color<team.size>(v, indptr, indices, C);
                if (threadIdx.x % team.size == 0) C[v] = color;
                return false;
            });
        }
        if (thread_id() == 0) control->length[(round + 1) % 3] = 0;
        grid_barrier(&control->arrivals);

        for (long long first = 0; first < length; first += thread_count()) {
            long long i = first + spread_id();
            int v = i < length ? ptx::load_l2(&worklist[i]) : 0;
            bool lost = visit_balanced(v, i < length, indptr, [&](int v, auto team) {
                return loses<team.size>(v, indptr, indices, degrees, C);
            });
            if (lost) C[v] = UNCOLORED;
            if (in_order) {
                if (i < length) marks[i] = lost;
            } else {
                int position = warp_append(lost, next_length);
                if (lost) next[position] = v;
            }
        }
        grid_barrier(&control->arrivals);
        if (in_order) {
            length = keep_in_order(worklist, length, marks, next, marks + n, &control->arrivals);
            grid_barrier(&control->arrivals);
        } else {
            length = ptx::load_l2(next_length);
        }
        if (thread_id() == 0) log_round(log, n, round + 1, before, length);
    }
}
