// ECL-GC in one resident kernel; each __device__ function is the part of ecl_gc.py with the same name.
//
// Races that are meant: a vertex reads its neighbors' possible colors while they change. Those sets only ever lose
// members (and `possible` of a high-degree vertex only grows), so an old value makes a vertex wait longer and never
// changes its color. Writes to `possible` and `colors` are single words, each by the one thread or warp that owns v.

#define LOW_DEGREE 32
#define UNCOLORED (-1)

__device__ __forceinline__ bool precedes(int u, int v, int du, int dv, uint32 seed) {
    if (du != dv) return du > dv;
    uint32 hu = mix(u, seed), hv = mix(v, seed);
    return hu != hv ? hu > hv : u > v;
}

__device__ __forceinline__ uint32 without_highest_bit(uint32 mask) { return mask ? mask & ~(0x80000000u >> __clz(mask)) : 0; }

__device__ __forceinline__ uint32 without_color(uint32 mask, uint32 color_bit) {
    return mask & color_bit ? mask & ~color_bit : without_highest_bit(mask);
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

__device__ void open_low(long long v, const OFFSET* indptr, const int* indices, const int* degrees, uint32 seed,
                         const int* colors, int* waiting, int* possible, int* dag) {
    OFFSET begin = indptr[v], end = indptr[v + 1];
    int degree = degrees[v], k = 0, still = 0;
    for (OFFSET e = begin; e < end; ++e) {
        int u = indices[e];
        if (u == v) continue;
        int du = degrees[u];
        if (!precedes(u, (int)v, du, degree, seed)) continue;
        ++k;
        if (du < LOW_DEGREE) dag[begin + still++] = u;
    }
    uint32 mask = 0xffffffffu >> (31 - k);
    if (still < k)
        for (OFFSET e = begin; e < end; ++e) {
            int u = indices[e];
            if (u == v || degrees[u] < LOW_DEGREE) continue;
            int color = fresh(&colors[u]);
            mask = without_color(mask, color < LOW_DEGREE ? 1u << color : 0);
        }
    waiting[v] = still;
    possible[v] = (int)mask;
}

__device__ bool visit_low(long long v, const OFFSET* indptr, int* waiting, int* possible, int* dag) {
    uint32 mask = possible[v], all_of_them = 0;
    OFFSET begin = indptr[v];
    int before = waiting[v], still = 0;
    for (int e = 0; e < before; ++e) {
        int u = dag[begin + e];
        uint32 theirs = fresh(&possible[u]);
        if ((theirs & (theirs - 1)) == 0)
            mask = without_color(mask, theirs);
        else if ((theirs & mask) == 0)
            mask = without_highest_bit(mask);  // shortcut 2
        else {
            all_of_them |= theirs;
            if (still != e) dag[begin + still] = u;
            ++still;
        }
    }
    uint32 best = mask & -mask;
    if ((best & all_of_them) == 0) {
        mask = best;  // shortcut 1, or nobody left to wait for
        still = 0;
    }
    waiting[v] = still;
    *(volatile int*)&possible[v] = (int)mask;
    return mask == best;
}

struct Control {  // lies in `scratch`, which the host zeroes
    uint32 arrivals;
    int rounds;
};

extern "C" __global__ void __launch_bounds__(256) color_by_degree(
        long long n, const OFFSET* indptr, const int* indices, const int* degrees, long long seed,
        long long max_degree, int* colors, int* waiting, int* possible, int* dag, uint32* bitmaps, void* scratch) {
    Control* control = (Control*)scratch;
    if (max_degree >= LOW_DEGREE) {
        long long warp = thread_id() / WARP, warps = thread_count() / WARP;
        for (long long v = warp; v < n; v += warps) {
            if (lane_id() == 0) colors[v] = UNCOLORED;
            if (degrees[v] >= LOW_DEGREE)
                open_high(v, indptr, indices, degrees, seed, waiting, possible, dag, bitmaps);
        }
        grid_barrier(&control->arrivals);
        // Each warp visits its own vertices until all of them are colored. All warps are resident, so those it waits
        // for make progress.
        int rounds = 0;
        for (bool left = true; left; ++rounds) {
            left = false;
            for (long long v = warp; v < n; v += warps)
                if (degrees[v] >= LOW_DEGREE && colors[v] == UNCOLORED)
                    left |= !visit_high((int)v, indptr, degrees, colors, waiting, possible, dag, bitmaps);
        }
        if (lane_id() == 0) atomicMax(&control->rounds, rounds);
        grid_barrier(&control->arrivals);
    }
    for (long long v = thread_id(); v < n; v += thread_count())
        if (degrees[v] < LOW_DEGREE) open_low(v, indptr, indices, degrees, seed, colors, waiting, possible, dag);
    grid_barrier(&control->arrivals);
    int rounds = 0;
    for (bool left = true; left; ++rounds) {
        left = false;
        for (long long v = thread_id(); v < n; v += thread_count()) {
            uint32 mask = possible[v];
            if ((mask & (mask - 1)) && degrees[v] < LOW_DEGREE) left |= !visit_low(v, indptr, waiting, possible, dag);
        }
    }
    atomicMax(&control->rounds, rounds);
    for (long long v = thread_id(); v < n; v += thread_count())
        if (degrees[v] < LOW_DEGREE) colors[v] = __ffs(possible[v]) - 1;
}
