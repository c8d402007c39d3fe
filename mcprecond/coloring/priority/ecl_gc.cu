// ECL-GC in one resident kernel; each function of a vertex is the part of ecl_gc.py with the same name.
//
// Races that are meant: a vertex reads what its neighbors show while they change it. Possible colors only ever get fewer
// (and the best one of a high-degree vertex only grows), so an old value makes a vertex wait longer and never changes its
// color. Writes to `possible` and `colors` are single words, each by the one team or warp that has v.

#define LOW_DEGREE 32

enum { LDF, LDF_NATURAL, ROW_ORDER };

__device__ __forceinline__ uint32 best_colors(uint32 mask, int count) {
    for (int drop = __popc(mask) - count; drop > 0; --drop) mask &= ~(0x80000000u >> __clz(mask));
    return mask;
}

struct Problem {
    const OFFSET* indptr;
    const int *indices, *degrees;
    int order;
    uint32 seed;
    bool shortcut1, shortcut2;
    int *colors, *possible;
    // For high degrees.
    int *waiting, *dag;
    uint32* bitmaps;

    // Whether u has a higher priority than v.
    __device__ __forceinline__ bool precedes(int u, int v, int degree_of_v) const {
        if (order != ROW_ORDER) {
            int degree_of_u = degrees[u];
            if (degree_of_u != degree_of_v) return degree_of_u > degree_of_v;
        }
        return order == LDF ? mix(u, seed) > mix(v, seed) : u < v;
    }

    __device__ __forceinline__ void show_low(int v, uint32 mask) const { *(volatile int*)&possible[v] = (int)mask; }

    __device__ __forceinline__ void show_high(int v, int best, bool colored) const {
        *(volatile int*)&colors[v] = colored ? best : ~best;
        show_low(v, best >= LOW_DEGREE ? 0 : colored ? 1u << best : FULL_WARP << best);
    }

    // ---- High degrees: one warp per vertex.

    __device__ void open_high(int v) const {
        OFFSET begin = indptr[v], end = indptr[v + 1];
        int degree = degrees[v], k = 0;
        for (OFFSET e0 = begin; e0 < end; e0 += WARP) {
            OFFSET e = e0 + lane_id();
            int u = e < end ? indices[e] : v;
            uint32 higher = __ballot_sync(FULL_WARP, u != v && precedes(u, v, degree));
            if (higher >> lane_id() & 1) dag[begin + k + __popc(higher & ((1u << lane_id()) - 1))] = u;
            k += __popc(higher);
        }
        uint32* bits = bitmaps + begin / 32 + v;
        for (int w = lane_id(); w <= k / 32; w += WARP) bits[w] = 0xffffffffu;
        if (lane_id() == 0) {
            waiting[v] = k;
            show_high(v, 0, false);
        }
        __syncwarp();
    }

    __device__ bool visit_high(int v) const {
        OFFSET begin = indptr[v];
        uint32* bits = bitmaps + begin / 32 + v;
        int degree = degrees[v], before = waiting[v], best = ~colors[v], still = 0;
        for (int e0 = 0; e0 < before; e0 += WARP) {
            int e = e0 + lane_id(), u = e < before ? dag[begin + e] : v;
            int color = e < before ? fresh(&colors[u]) : 0;
            if (e < before && color >= 0 && color <= degree) atomicAnd(&bits[color / 32], ~(1u << color % 32));
            uint32 uncolored = __ballot_sync(FULL_WARP, color < 0);
            if (uncolored >> lane_id() & 1) dag[begin + still + __popc(uncolored & ((1u << lane_id()) - 1))] = u;
            still += __popc(uncolored);
        }
        __syncwarp();
        for (int word = best / 32;; ++word) {
            uint32 open = fresh(&bits[word]);
            if (word == best / 32) open &= 0xffffffffu << best % 32;
            if (open) {
                best = word * 32 + __ffs(open) - 1;
                break;
            }
        }
        bool considered = !shortcut1 && still > 0;
        for (int e = lane_id(); e < still; e += WARP) {
            int u = dag[begin + e], color = fresh(&colors[u]);
            considered |= color == best || (color < 0 && ~color <= best && best <= degrees[u]);
        }
        considered = __any_sync(FULL_WARP, considered);
        if (lane_id() == 0) {
            waiting[v] = still;
            show_high(v, best, !considered);
        }
        __syncwarp();
        return !considered;
    }

    // ---- Low degrees: LANES threads per vertex, its team. They look at it until it has its color, and return how often.
    // Each keeps its share of the row in registers, and forgets a neighbor that has its color or cannot matter any more
    // (shortcut 2).

#define SHARE (LOW_DEGREE / LANES)

    __device__ int visit_low(int v, uint32 mates) const {
        int neighbor[SHARE], degree = degrees[v];
        OFFSET begin = indptr[v] + threadIdx.x % LANES, end = indptr[v + 1];
        uint32 waits = 0;  // for which of them
#pragma unroll
        for (int j = 0; j < SHARE; ++j) neighbor[j] = begin + j * LANES < end ? indices[begin + j * LANES] : v;
#pragma unroll
        for (int j = 0; j < SHARE; ++j)
            if (neighbor[j] != v && precedes(neighbor[j], v, degree)) waits |= 1u << j;
        uint32 mask = 0xffffffffu >> (31 - degree);
        for (int visits = 1;; ++visits) {
            uint32 theirs[SHARE], taken = 0, considered = 0;
#pragma unroll
            for (int j = 0; j < SHARE; ++j) theirs[j] = waits >> j & 1 ? fresh(&possible[neighbor[j]]) : 0;
#pragma unroll
            for (int j = 0; j < SHARE; ++j) {
                bool single = (theirs[j] & (theirs[j] - 1)) == 0;
                if (single) taken |= theirs[j];
                if (single || (shortcut2 && (theirs[j] & mask) == 0))
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
            if (shortcut1 && (best & considered) == 0) mask = best;
            if (threadIdx.x % LANES == 0) show_low(v, mask);
            if (mask == best) {
                if (threadIdx.x % LANES == 0) *(volatile int*)&colors[v] = __ffs(best) - 1;
                return visits;
            }
        }
    }
};

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

extern "C" __global__ void priority_keys(long long n, const int* degrees, long long order, long long seed, uint64* keys) {
    long long v = thread_id();
    if (v >= n) return;
    uint64 key = order == LDF ? ~mix((uint32)v, (uint32)seed) : (uint32)v;
    if (order != ROW_ORDER) key |= (uint64)(0x7fffffff - degrees[v]) << 32;
    keys[v] = key;
}

extern "C" __global__ void __launch_bounds__(256) color_by_priority(
        long long n, const OFFSET* indptr, const int* indices, const int* degrees, long long order, long long seed,
        long long shortcut1, long long shortcut2, long long max_degree, int* colors, int* possible,
        const int* worklist, int* waiting, int* dag, uint32* bitmaps, void* scratch, int2* log) {
    Problem problem = {indptr, indices, degrees, (int)order, (uint32)seed, shortcut1 != 0, shortcut2 != 0,
                       colors, possible, waiting, dag, bitmaps};
    uint32* arrivals = (uint32*)scratch;  // which the host zeroes
    bool has_high = max_degree >= LOW_DEGREE;
    __shared__ int counts[SHARED_ROUNDS];
    VisitLog visit_log = {log, n + SPARE_ROUNDS, counts};
    visit_log.open();
    long long warp = thread_id() / WARP, warps = thread_count() / WARP;
    for (long long v = thread_id(); v < n; v += thread_count())
        if (degrees[v] < LOW_DEGREE) {
            colors[v] = ~0;
            problem.show_low((int)v, 0xffffffffu >> (31 - degrees[v]));
        }
    for (long long v = has_high ? warp : n; v < n; v += warps)
        if (degrees[v] >= LOW_DEGREE) problem.open_high((int)v);
    grid_barrier(arrivals);

    // By degree, all warps first take the high ones and then the low ones; in row order, either kind may wait for the
    // other, so odd warps take the high ones and even warps the low ones.
    bool in_order = order == ROW_ORDER, split = in_order && has_high, takes_high = has_high, takes_low = true;
    if (split) {
        takes_high = warp & 1;
        takes_low = !takes_high;
        warp >>= 1;
        warps >>= 1;
    }
    if (takes_high) {
        // Each warp visits its own vertices until all of them are colored. All warps are resident, so those it waits
        // for make progress. In row order it stays with the first one that is uncolored.
        bool left = true;
        for (int visits = 1; left; ++visits) {
            left = false;
            for (long long v = warp; v < n && !(left && in_order); v += warps)
                if (degrees[v] >= LOW_DEGREE && colors[v] < 0) {
                    bool colored = problem.visit_high((int)v);
                    if (colored && lane_id() == 0) visit_log.colored_after(visits);
                    left |= !colored;
                }
        }
    }
    if (has_high && !split) grid_barrier(arrivals);
    if (takes_low) {
        // Teams take the vertices in turn, by falling priority, so the uncolored vertex of highest priority is always in
        // somebody's hands.
        uint32 mates = ((1u << LANES) - 1) << (lane_id() & ~(LANES - 1));
        long long team = warp * (WARP / LANES) + lane_id() / LANES, teams = warps * (WARP / LANES);
        for (long long i = team; i < n; i += teams) {
            int v = worklist[i];
            if (degrees[v] >= LOW_DEGREE) continue;
            int visits = problem.visit_low(v, mates);
            if (threadIdx.x % LANES == 0) visit_log.colored_after(visits);
        }
    }
    visit_log.close();
}
