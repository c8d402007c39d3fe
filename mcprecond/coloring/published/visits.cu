// ECL-GC in the rounds of its paper, in one resident kernel; the functions of a vertex are the parts of visits.py with
// the same names.
//
// Races that are meant: a visit reads what other vertices show while they change it. Possible colors only get fewer, and
// the best one of a vertex of high degree only grows, so an old value makes a vertex wait longer and never changes its
// color. Whether a neighbor is colored, and what it may get, are one word: `possible` for low degrees (a single bit once
// it is colored), `colors` for high ones.

#include "coloring/history.cuh"
#include "cuda/compact.cuh"
#include "cuda/hash.cuh"
#include "coloring/priorities.cuh"

struct Published {
    const OFFSET* indptr;
    const int *indices, *degrees;
    int order;
    uint32 seed;
    bool shortcut1, shortcut2;
    int *colors, *possible, *waiting, *dag;
    uint32* bitmaps;

    __device__ __forceinline__ uint64 priority(int v) const {
        return (uint64)degrees[v] << 32 | (order == LDF ? mix(v, seed) : ~(uint32)v);
    }
    __device__ __forceinline__ OFFSET word(int v) const { return indptr[v] / 32 + v; }

    // The possible colors of a neighbor below 32, none where it is colored otherwise, and whether it has no color.
    __device__ __forceinline__ uint32 possible_of(int u, bool& open) const {
        if (degrees[u] < LOW_DEGREE) {
            uint32 mask = (uint32)ptx::load_l2(&possible[u]);
            open = (mask & (mask - 1)) != 0;
            return mask;
        }
        int color = ptx::load_l2(&colors[u]);
        open = color < 0;
        if (!open) return color < 32 ? 1u << color : 0;
        int best = ~color, worst = min(possible[u], 31);
        return best > worst ? 0 : 0xffffffffu >> (31 - worst) & 0xffffffffu << best;
    }

    // True if there is nobody to wait for.
    __device__ bool open_low(int v) const {
        OFFSET begin = indptr[v];
        uint64 own = priority(v);
        int k = 0;
        for (OFFSET e = begin; e < indptr[v + 1]; ++e) {
            int u = indices[e];
            if (priority(u) > own) dag[begin + k++] = u;
        }
        waiting[v] = k;
        possible[v] = (int)(0xffffffffu >> (31 - k));
        colors[v] = k == 0 ? 0 : ~0;
        return k == 0;
    }

    // A warp opens a vertex.
    __device__ bool open_high(int v) const {
        OFFSET begin = indptr[v], end = indptr[v + 1];
        uint64 own = priority(v);
        int k = 0;
        for (OFFSET e0 = begin; e0 < end; e0 += WARP) {
            OFFSET e = e0 + lane_id();
            int u = e < end ? indices[e] : v;
            bool waits = priority(u) > own;
            int place = place_in_row<WARP>(waits, k);
            if (waits) dag[begin + place] = u;
        }
        for (int w = lane_id(); w <= k / 32; w += WARP) bitmaps[word(v) + w] = 0xffffffffu;
        if (lane_id() == 0) {
            waiting[v] = k;
            possible[v] = k;
            colors[v] = k == 0 ? 0 : ~0;
        }
        return k == 0;
    }

    __device__ bool visit_low(int v) const {
        OFFSET begin = indptr[v];
        uint32 mask = (uint32)possible[v], considered = 0;
        int left = waiting[v], still = 0;
        for (int e = 0; e < left; ++e) {
            int u = dag[begin + e];
            bool open;
            uint32 theirs = possible_of(u, open);
            if (open && ((theirs & mask) || !shortcut2)) {
                considered |= theirs;
                dag[begin + still++] = u;
            } else {
                mask ^= theirs & mask ? theirs : 0x80000000u >> __clz((int)mask);
            }
        }
        uint32 best = mask & (0u - mask);
        if (shortcut1 && !(best & considered)) mask = best;
        waiting[v] = still;
        ptx::store_volatile(&possible[v], (int)mask);
        if (mask == best) ptx::store_volatile(&colors[v], __ffs((int)best) - 1);
        return mask == best;
    }

    // A warp visits a vertex.
    __device__ bool visit_high(int v) const {
        OFFSET begin = indptr[v];
        uint32* bitmap = bitmaps + word(v);
        int left = waiting[v], worst = possible[v], still = 0;
        for (int e0 = 0; e0 < left; e0 += WARP) {
            int e = e0 + lane_id(), u = e < left ? dag[begin + e] : v, color = ptx::load_l2(&colors[u]);
            bool stays = e < left && color < 0;
            if (e < left && color >= 0 && color <= worst) atomicAnd(&bitmap[color / 32], ~(1u << color % 32));
            int place = place_in_row<WARP>(stays, still);
            if (stays) dag[begin + place] = u;
        }
        __syncwarp();
        int first = ~ptx::load_l2(&colors[v]) / 32, best = -1;
        for (; best < 0; first += WARP) {  // one of the colors 0 .. worst is left
            int w = first + lane_id();
            uint32 bits = w <= worst / 32 ? ptx::load_l2(&bitmap[w]) : 0, words = __ballot_sync(FULL_WARP, bits != 0);
            int lane = words ? __ffs((int)words) - 1 : 0;
            bits = __shfl_sync(FULL_WARP, bits, lane);
            if (words) best = (first + lane) * 32 + __ffs((int)bits) - 1;
        }
        bool considered = still > 0 && !shortcut1;
        for (int e = lane_id(); e < still; e += WARP) {
            int u = dag[begin + e], color = ptx::load_l2(&colors[u]);
            considered |= color == best || (color < 0 && ~color <= best && best <= possible[u]);
        }
        bool colored = !__any_sync(FULL_WARP, considered);
        if (lane_id() == 0) {
            waiting[v] = still;
            ptx::store_volatile(&colors[v], colored ? best : ~best);
        }
        return colored;
    }
};

// The uncolored vertices: those of high degree from the front of half a list on, the others from its end.
struct Control {  // lies in `scratch`, which the host zeroes
    uint32 arrivals;
    int high[3], low[3];  // by number of the round; with three of them nobody resets what others still read
};

extern "C" __global__ void __launch_bounds__(BLOCK)
    color_by_visits(long long n, const OFFSET* indptr, const int* indices, const int* degrees, long long order,
                    long long seed, long long shortcut1, long long shortcut2, int* colors, int* possible, int* waiting,
                    int* dag, uint32* bitmaps, int* worklists, void* scratch, int2* log) {
    Control* control = (Control*)scratch;
    Published graph = {indptr,         indices, degrees,  (int)order, (uint32)seed, shortcut1 != 0,
                       shortcut2 != 0, colors,  possible, waiting,    dag,          bitmaps};
    long long warp = thread_id() / WARP, warps = thread_count() / WARP;
    // One list holds all vertices at first, so whole warps open those of high degree that any of its threads meets.
    for (long long i0 = thread_id() - lane_id(); i0 < n; i0 += thread_count()) {
        long long i = i0 + lane_id();
        int v = i < n ? worklists[i] : 0;
        bool high = i < n && degrees[v] >= LOW_DEGREE, low = i < n && !high, left = low && !graph.open_low(v);
        for (uint32 those = __ballot_sync(FULL_WARP, high); those; those &= those - 1) {
            int lane = __ffs((int)those) - 1;
            bool waits = !graph.open_high(__shfl_sync(FULL_WARP, v, lane));
            if (lane_id() == lane) left = waits;
        }
        int place = warp_append(high && left, &control->high[1]);
        if (high && left) worklists[n + place] = v;
        place = warp_append(low && left, &control->low[1]);
        if (low && left) worklists[2 * n - 1 - place] = v;
    }
    grid_barrier(&control->arrivals);

    int before = (int)n;
    for (int round = 1;; ++round) {
        int high = ptx::load_l2(&control->high[round % 3]), low = ptx::load_l2(&control->low[round % 3]);
        if (thread_id() == 0) {
            log_round(log, n, round, before - high - low, 0);
            control->high[(round + 2) % 3] = control->low[(round + 2) % 3] = 0;
        }
        before = high + low;
        if (before == 0) return;
        int *list = worklists + (round & 1) * n, *next = worklists + (~round & 1) * n;
        int *next_high = &control->high[(round + 1) % 3], *next_low = &control->low[(round + 1) % 3];
        for (long long i = warp; i < high; i += warps) {
            int v = ptx::load_l2(&list[i]);
            if (!graph.visit_high(v) && lane_id() == 0) next[atomicAdd(next_high, 1)] = v;
        }
        for (long long i0 = thread_id() - lane_id(); i0 < low; i0 += thread_count()) {
            long long i = i0 + lane_id();
            int v = i < low ? ptx::load_l2(&list[n - 1 - i]) : 0;
            bool left = i < low && !graph.visit_low(v);
            int place = warp_append(left, next_low);
            if (left) next[n - 1 - place] = v;
        }
        grid_barrier(&control->arrivals);
    }
}
