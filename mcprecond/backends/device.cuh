// Shared by every .cu file of the package: the loader puts this text in front of each.
// The Numba side of `mix` is coloring/priorities.py; of the atomics, backends/atomics.py.

#ifndef OFFSET
#define OFFSET int  // the type of row offsets: long long from 2^31 entries on
#endif

typedef unsigned int uint32;
typedef unsigned long long uint64;

#define FULL_WARP 0xffffffffu
#define WARP 32

__device__ __forceinline__ long long thread_id() { return blockIdx.x * (long long)blockDim.x + threadIdx.x; }
__device__ __forceinline__ long long thread_count() { return gridDim.x * (long long)blockDim.x; }
__device__ __forceinline__ int lane_id() { return threadIdx.x & (WARP - 1); }

// A load that sees what other processors wrote during this kernel: it bypasses L1, which is not coherent.
template <typename T>
__device__ __forceinline__ T fresh(const T* p) { return __ldcg(p); }

// Every thread of a resident (cooperatively launched) grid waits for all others and sees their writes.
// `arrivals` starts at zero and only grows, so nothing has to be reset between barriers.
__device__ __forceinline__ void grid_barrier(uint32* arrivals) {
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        uint32 ticket = atomicAdd(arrivals, 1u);
        uint32 target = (ticket / gridDim.x + 1) * gridDim.x;
        while ((int)(*(volatile uint32*)arrivals - target) < 0) {
        }
        __threadfence();
    }
    __syncthreads();
}

// Append to a list: one atomic per warp. Returns this thread's position, meaningful where `keep` holds.
// Every thread of the warp must call it.
__device__ __forceinline__ int warp_append(bool keep, int* length) {
    uint32 keepers = __ballot_sync(FULL_WARP, keep);
    int position = 0;
    if (lane_id() == 0 && keepers) position = atomicAdd(length, __popc(keepers));
    return __shfl_sync(FULL_WARP, position, 0) + __popc(keepers & ((1u << lane_id()) - 1));
}

// The sum over the TEAM threads that share an item, in a fixed order; every one of them gets it.
template <int TEAM, typename T>
__device__ __forceinline__ T lane_sum(T value) {
#pragma unroll
    for (int step = TEAM / 2; step > 0; step /= 2) value += __shfl_xor_sync(FULL_WARP, value, step, TEAM);
    return value;
}

#define UNCOLORED (-1)

// Log a round of a coloring, which are counted from 1; always the same thread calls it. See coloring/history.py.
#define SPARE_ROUNDS 64

__device__ void log_round(int2* log, long long n, int round, int colored, int conflicts) {
    long long last = n + SPARE_ROUNDS, row = min((long long)round, last);
    if (round > last) {
        colored += log[row].x;
        conflicts += log[row].y;
    }
    log[row] = make_int2(colored, conflicts);
    log[0].x = (int)row;
}

// Color in rounds with a worklist of the uncolored vertices, TEAM threads each. `visit(v, round, active)` returns the
// color of v or UNCOLORED, the same for the whole team; whole warps call it, and inactive ones are ignored. `worklists`
// holds twice n vertices; the host zeroes `scratch` and `log`.
template <int TEAM, typename Visit>
__device__ void color_in_rounds(long long n, int* colors, int* worklists, void* scratch, int2* log, Visit visit) {
    struct Control {
        uint32 arrivals;
        int length[2];  // of the worklists, by parity of the round
    }* control = (Control*)scratch;
    for (long long v = thread_id(); v < n; v += thread_count()) {
        colors[v] = UNCOLORED;
        worklists[v] = (int)v;
    }
    grid_barrier(&control->arrivals);
    int length = (int)n;
    for (int round = 0;; ++round) {
        const int* left = worklists + (round & 1) * n;
        int* next = worklists + (~round & 1) * n;
        int* next_length = &control->length[round & 1];
        for (long long i0 = (thread_id() - lane_id()) / TEAM; i0 < length; i0 += thread_count() / TEAM) {
            long long i = i0 + lane_id() / TEAM;
            int v = i < length ? fresh(&left[i]) : 0;
            int color = visit(v, round, i < length);
            bool mine = i < length && lane_id() % TEAM == 0;
            if (mine && color != UNCOLORED) colors[v] = color;
            bool keep = mine && color == UNCOLORED;
            int position = warp_append(keep, next_length);
            if (keep) next[position] = v;
        }
        grid_barrier(&control->arrivals);
        int before = length;
        length = fresh(next_length);
        if (thread_id() == 0) log_round(log, n, round + 1, before - length, 0);
        if (length == 0) return;
        // The next round counts in the other slot; everyone has read it, since that was before the last barrier.
        if (thread_id() == 0) control->length[~round & 1] = 0;
        grid_barrier(&control->arrivals);
    }
}

// The threads that share a row, TEAM of them, pick entries from it and store them in order. This thread's place: behind
// what those before it in the same stretch of TEAM entries keep; `next` then moves behind all of them. Whole warps call it.
template <int TEAM, typename Place>
__device__ __forceinline__ Place place_in_row(bool keep, Place& next) {
    uint32 team = (TEAM == WARP ? FULL_WARP : (1u << (TEAM % WARP)) - 1) << (lane_id() & ~(TEAM - 1));
    uint32 kept = __ballot_sync(FULL_WARP, keep) & team;
    Place place = next + __popc(kept & ((1u << lane_id()) - 1));
    next += __popc(kept);
    return place;
}

// A well-mixed hash of a vertex number: the random priority of a vertex.
__device__ __forceinline__ uint32 mix(uint32 v, uint32 seed) {
    v ^= seed * 0x9e3779b9u;
    v ^= v >> 16;
    v *= 0x85ebca6bu;
    v ^= v >> 13;
    v *= 0xc2b2ae35u;
    v ^= v >> 16;
    return v;
}
