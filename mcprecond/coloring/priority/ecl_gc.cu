// ECL-GC in one resident kernel; each __device__ function is the part of ecl_gc.py with the same name.
//
// Races that are meant: a vertex reads its neighbors' possible colors while they change. Those sets only ever lose
// members (and `possible` of a high-degree vertex only grows), so an old value makes a vertex wait longer and never
// changes its color. Writes to `possible` and `colors` are single words, each by the one thread or warp that owns v.

#define LOW_DEGREE 32

__device__ __forceinline__ bool precedes(int u, int v, int du, int dv, uint32 seed) {
    if (du != dv) return du > dv;
    uint32 hu = mix(u, seed), hv = mix(v, seed);
    return hu != hv ? hu > hv : u > v;
}

__device__ __forceinline__ uint32 best_colors(uint32 mask, int count) {
    for (int drop = __popc(mask) - count; drop > 0; --drop) mask &= ~(0x80000000u >> __clz(mask));
    return mask;
}

__device__ void open_high(long long v, const OFFSET* indptr, const int* indices, const int* degrees, uint32 seed,
                          int* waiting, int* possible, int* dag, uint32* bitmaps) {
    OFFSET begin = indptr[v], end = indptr[v + 1];
    int degree = degrees[v], k = 0;
    for (OFFSET e0 = begin; e0 < end; e0 += WARP) {
        OFFSET e = e0 + lane_id();
        int u = e < end ? indices[e] : (int)v;
        uint32 higher = __ballot_sync(FULL_WARP, u != v && precedes(u, (int)v, degrees[u], degree, seed));
        if (higher >> lane_id() & 1) dag[begin + k + __popc(higher & ((1u << lane_id()) - 1))] = u;
        k += __popc(higher);
    }
    uint32* bits = bitmaps + begin / 32 + v;
    for (int w = lane_id(); w <= k / 32; w += WARP) bits[w] = 0xffffffffu;
    if (lane_id() == 0) {
        waiting[v] = k;
        possible[v] = 0;
    }
    __syncwarp();
}

// One warp per vertex; `worst` of a neighbor is its degree, as in the twin.
__device__ bool visit_high(int v, const OFFSET* indptr, const int* degrees, int* colors, int* waiting, int* possible,
                           int* dag, uint32* bitmaps) {
    OFFSET begin = indptr[v];
    uint32* bits = bitmaps + begin / 32 + v;
    int degree = degrees[v], before = waiting[v], still = 0;
    for (int e0 = 0; e0 < before; e0 += WARP) {
        int e = e0 + lane_id(), u = e < before ? dag[begin + e] : v;
        int color = e < before ? fresh(&colors[u]) : 0;
        if (e < before && color != UNCOLORED && color <= degree) atomicAnd(&bits[color / 32], ~(1u << color % 32));
        uint32 uncolored = __ballot_sync(FULL_WARP, e < before && color == UNCOLORED);
        if (uncolored >> lane_id() & 1) dag[begin + still + __popc(uncolored & ((1u << lane_id()) - 1))] = u;
        still += __popc(uncolored);
    }
    __syncwarp();
    int best = possible[v];
    for (int word = best / 32;; ++word) {
        uint32 open = fresh(&bits[word]);
        if (word == best / 32) open &= 0xffffffffu << best % 32;
        if (open) {
            best = word * 32 + __ffs(open) - 1;
            break;
        }
    }
    bool considered = false;
    for (int e = lane_id(); e < still; e += WARP) {
        int u = dag[begin + e], best_of_u = fresh(&possible[u]), color = fresh(&colors[u]);
        considered |= color == best || (color == UNCOLORED && best_of_u <= best && best <= degrees[u]);
    }
    considered = __any_sync(FULL_WARP, considered);
    if (lane_id() == 0) {
        waiting[v] = still;
        possible[v] = best;
        if (!considered) colors[v] = best;
    }
    __syncwarp();
    return !considered;
}

// A team of LANES threads looks at a vertex until it has its color, and returns how often. Each thread keeps its share of
// the row in registers, and forgets a neighbor that has its color or cannot matter any more (shortcut 2).
#define SHARE (LOW_DEGREE / LANES)

__device__ int visit_low(int v, uint32 mates, const OFFSET* indptr, const int* indices, const int* degrees,
                          uint32 seed, int* possible) {
    int neighbor[SHARE], degree = degrees[v];
    OFFSET begin = indptr[v] + threadIdx.x % LANES, end = indptr[v + 1];
    uint32 waits = 0;  // for which of them
#pragma unroll
    for (int j = 0; j < SHARE; ++j) neighbor[j] = begin + j * LANES < end ? indices[begin + j * LANES] : v;
#pragma unroll
    for (int j = 0; j < SHARE; ++j)
        if (neighbor[j] != v && precedes(neighbor[j], v, degrees[neighbor[j]], degree, seed)) waits |= 1u << j;
    uint32 mask = 0xffffffffu >> (31 - degree);
    for (int visits = 1;; ++visits) {
        uint32 theirs[SHARE], taken = 0, considered = 0;
#pragma unroll
        for (int j = 0; j < SHARE; ++j) theirs[j] = waits >> j & 1 ? fresh(&possible[neighbor[j]]) : 0;
#pragma unroll
        for (int j = 0; j < SHARE; ++j) {
            if ((theirs[j] & (theirs[j] - 1)) == 0) taken |= theirs[j];
            if ((theirs[j] & (theirs[j] - 1)) == 0 || (theirs[j] & mask) == 0)
                waits &= ~(1u << j);
            else
                considered |= theirs[j];
        }
        int still = __popc(waits);
#pragma unroll
        for (int step = LANES / 2; step > 0; step /= 2) {
            taken |= __shfl_xor_sync(mates, taken, step);
            considered |= __shfl_xor_sync(mates, considered, step);
            still += __shfl_xor_sync(mates, still, step);
        }
        mask = best_colors(mask & ~taken, still + 1);
        uint32 best = mask & -mask;
        bool colored = (best & considered) == 0;  // shortcut 1, or nobody left to wait for
        if (colored) mask = best;
        if (threadIdx.x % LANES == 0) *(volatile int*)&possible[v] = (int)mask;
        if (colored) return visits;
    }
}

// Round r of the log counts the vertices that had their color after r visits; most rounds are added up per block first.
#define SHARED_ROUNDS 64

struct VisitLog {
    int2* log;
    long long last;
    int* counts;  // of this block, SHARED_ROUNDS of them

    __device__ void add(int visits, int count) {
        int row = (int)min((long long)visits, last);
        atomicAdd(&log[row].x, count);
        if (row > fresh(&log[0].x)) atomicMax(&log[0].x, row);
    }
    __device__ void colored_after(int visits) {
        if (visits < SHARED_ROUNDS)
            atomicAdd(&counts[visits], 1);
        else
            add(visits, 1);
    }
    __device__ void open() {
        for (int r = threadIdx.x; r < SHARED_ROUNDS; r += blockDim.x) counts[r] = 0;
        __syncthreads();
    }
    __device__ void close() {
        __syncthreads();
        for (int r = threadIdx.x; r < SHARED_ROUNDS; r += blockDim.x)
            if (counts[r]) add(r, counts[r]);
    }
};

extern "C" __global__ void priority_keys(long long n, const int* degrees, long long seed, uint32* keys) {
    long long v = thread_id();
    if (v < n) keys[v] = (uint32)max(LOW_DEGREE - degrees[v], 0) << 26 | ~mix((uint32)v, (uint32)seed) >> 6;
}

extern "C" __global__ void __launch_bounds__(256) color_by_degree(
        long long n, const OFFSET* indptr, const int* indices, const int* degrees, long long seed,
        long long max_degree, int* colors, int* possible, const int* worklist, int* waiting, int* dag, uint32* bitmaps,
        void* scratch, int2* log) {
    uint32* arrivals = (uint32*)scratch;  // which the host zeroes
    __shared__ int counts[SHARED_ROUNDS];
    VisitLog visit_log = {log, n + SPARE_ROUNDS, counts};
    visit_log.open();
    if (max_degree >= LOW_DEGREE) {
        long long warp = thread_id() / WARP, warps = thread_count() / WARP;
        for (long long v = warp; v < n; v += warps) {
            if (lane_id() == 0) colors[v] = UNCOLORED;
            if (degrees[v] >= LOW_DEGREE)
                open_high(v, indptr, indices, degrees, seed, waiting, possible, dag, bitmaps);
        }
        grid_barrier(arrivals);
        // Each warp visits its own vertices until all of them are colored. All warps are resident, so those it waits
        // for make progress.
        bool left = true;
        for (int visits = 1; left; ++visits) {
            left = false;
            for (long long v = warp; v < n; v += warps)
                if (degrees[v] >= LOW_DEGREE && colors[v] == UNCOLORED) {
                    bool colored = visit_high((int)v, indptr, degrees, colors, waiting, possible, dag, bitmaps);
                    if (colored && lane_id() == 0) visit_log.colored_after(visits);
                    left |= !colored;
                }
        }
        grid_barrier(arrivals);
    }
    for (long long v = thread_id(); v < n; v += thread_count()) {
        int degree = degrees[v], color = degree < LOW_DEGREE ? 0 : fresh(&colors[v]);
        possible[v] = degree < LOW_DEGREE ? (int)(0xffffffffu >> (31 - degree)) : color < 32 ? (int)(1u << color) : 0;
    }
    grid_barrier(arrivals);

    // Teams take the vertices in turn, by falling priority, so whatever a vertex waits for is done or in the hands of
    // another team. (Neighbors with equal keys may come in the wrong order; they lie next to each other, so they are in
    // different hands too.)
    uint32 mates = ((1u << LANES) - 1) << (lane_id() & ~(LANES - 1));
    for (long long i = thread_id() / LANES; i < n; i += thread_count() / LANES) {
        int v = worklist[i];
        if (degrees[v] >= LOW_DEGREE) continue;
        int visits = visit_low(v, mates, indptr, indices, degrees, seed, possible);
        if (threadIdx.x % LANES == 0) visit_log.colored_after(visits);
    }
    visit_log.close();
    grid_barrier(arrivals);
    for (long long v = thread_id(); v < n; v += thread_count())
        if (degrees[v] < LOW_DEGREE) colors[v] = __ffs(fresh(&possible[v])) - 1;
}
