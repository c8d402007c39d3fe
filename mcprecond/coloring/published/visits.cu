// ECL-GC as published, in one resident kernel. The functions that visit a vertex have the names of those in visits.py.
// Vertices of high degree are colored first, in rounds with a grid barrier after each. Then each thread visits its
// vertices of low degree repeatedly, until all of them are colored, and does not synchronize with other threads. Since
// all threads are resident, each of them makes progress, and the kernel terminates.
//
// Intended data races: a visit reads the state of other vertices while other threads change it. The set of possible
// colors of a vertex only shrinks, and the best color of a vertex of high degree only grows, so a stale value delays a
// vertex, but does not change its color. One word of a neighbor tells both whether it is colored and which colors it
// may get: `possible` if its degree is low, where a single bit is left once it is colored, and `colors` if it is high.

#include "coloring/priorities.cuh"
#include "coloring/history.cuh"
#include "cuda/compact.cuh"
#include "cuda/hash.cuh"
#include "cuda/reduce.cuh"

#define AT_ONCE 8  // entries of a row or of a list that a thread loads before it uses one of them

struct Published {
    const OFFSET* indptr;
    const int *indices, *degrees;
    int order;
    uint32 seed;
    bool shortcut1, shortcut2;
    int *colors, *possible, *waiting, *dag;
    uint32* bitmaps;

    __device__ __forceinline__ uint64 priority(int v, int degree) const {
        return (uint64)degree << 32 | (order == LDF ? mix(v, seed) : ~(uint32)v);
    }
    __device__ __forceinline__ uint64 priority(int v) const { return priority(v, degrees[v]); }
    __device__ __forceinline__ OFFSET word(int v) const { return indptr[v] / 32 + v; }

    // Load the state of a listed neighbor: its possible colors if its degree is low, its color if its degree is high.
    __device__ __forceinline__ uint32 shown(int listed) const {
        return (uint32)ptx::load_l2(listed < 0 ? &colors[~listed] : &possible[listed]);
    }

    // Return the colors 0 to 31 that a listed neighbor may get, or the color that it has, as a bit mask. `open` is set
    // to whether the neighbor is uncolored.
    __device__ __forceinline__ uint32 possible_of(int listed, uint32 shown, bool& open) const {
        if (listed >= 0) {
            open = (shown & (shown - 1)) != 0;
            return shown;
        }
        int color = (int)shown;
        open = color < 0;
        if (!open) return color < 32 ? 1u << color : 0;
        int best = ~color, worst = min(possible[~listed], 31);
        return best > worst ? 0 : 0xffffffffu >> (31 - worst) & 0xffffffffu << best;
    }

    // List the neighbors of higher priority, for which a vertex of low degree has to wait, and return whether there are
    // none. A neighbor u of high degree is listed as ~u.
    __device__ bool open_low(int v) const {
        OFFSET begin = indptr[v], end = indptr[v + 1];
        uint64 own = priority(v);
        int k = 0;
        for (OFFSET e = begin; e < end; e += AT_ONCE) {
            int u[AT_ONCE], degree[AT_ONCE];
#pragma unroll
            for (int j = 0; j < AT_ONCE; ++j) u[j] = e + j < end ? indices[e + j] : v;
#pragma unroll
            for (int j = 0; j < AT_ONCE; ++j) degree[j] = degrees[u[j]];
#pragma unroll
            for (int j = 0; j < AT_ONCE; ++j)
                if (priority(u[j], degree[j]) > own) dag[begin + k++] = degree[j] < LOW_DEGREE ? u[j] : ~u[j];
        }
        waiting[v] = k;
        possible[v] = (int)(0xffffffffu >> (31 - k));
        colors[v] = k == 0 ? 0 : ~0;
        return k == 0;
    }

    // The same for a vertex of high degree, by a warp. All of its neighbors of higher priority have a high degree, too.
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

    // Visit a vertex of low degree, and return whether it is colored now.
    __device__ bool visit_low(int v) const {
        OFFSET begin = indptr[v];
        uint32 mask = (uint32)possible[v], considered = 0;
        int left = waiting[v], still = 0;
        for (int e = 0; e < left; e += AT_ONCE) {
            int u[AT_ONCE];
            uint32 theirs[AT_ONCE];
#pragma unroll
            for (int j = 0; j < AT_ONCE; ++j) u[j] = e + j < left ? dag[begin + e + j] : v;
#pragma unroll
            for (int j = 0; j < AT_ONCE; ++j) theirs[j] = u[j] != v ? shown(u[j]) : 0;
#pragma unroll
            for (int j = 0; j < AT_ONCE; ++j) {
                if (u[j] == v) continue;  // behind the end of the list
                bool open;
                theirs[j] = possible_of(u[j], theirs[j], open);
                if (open && ((theirs[j] & mask) || !shortcut2)) {
                    considered |= theirs[j];
                    if (still != e + j) dag[begin + still] = u[j];
                    ++still;
                } else {
                    mask ^= theirs[j] & mask ? theirs[j] : 0x80000000u >> __clz((int)mask);
                }
            }
        }
        uint32 best = mask & (0u - mask);
        if (shortcut1 && !(best & considered)) mask = best;
        waiting[v] = still;
        ptx::store_volatile(&possible[v], (int)mask);
        if (mask == best) ptx::store_volatile(&colors[v], __ffs((int)best) - 1);
        return mask == best;
    }

    // Visit a vertex of high degree, by a warp, and return whether it is colored now.
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

struct Control {  // lies in `scratch`, which the host zeroes
    uint32 arrivals;
    int high[3];  // how many have no color, by number of the round; with three of them nobody resets what others read
};

// `worklists` holds the uncolored vertices of high degree, in turn.
extern "C" __global__ void __launch_bounds__(BLOCK)
    color_by_visits(long long n, const OFFSET* indptr, const int* indices, const int* degrees, long long order,
                    long long seed, long long shortcut1, long long shortcut2, int* colors, int* possible, int* waiting,
                    int* dag, uint32* bitmaps, int* worklists, void* scratch, int2* log) {
    Control* control = (Control*)scratch;
    Published graph = {indptr,         indices, degrees,  (int)order, (uint32)seed, shortcut1 != 0,
                       shortcut2 != 0, colors,  possible, waiting,    dag,          bitmaps};
    __shared__ int counts[SHARED_ROUNDS];
    VisitLog visit_log = {log, n + SPARE_ROUNDS, counts};
    visit_log.open();
    long long warp = thread_id() / WARP, warps = thread_count() / WARP;
    for (long long v0 = thread_id() - lane_id(); v0 < n; v0 += thread_count()) {
        int v = (int)v0 + lane_id();
        bool high = v < n && degrees[v] >= LOW_DEGREE, waits = v < n && !high && !graph.open_low(v);
        for (uint32 those = __ballot_sync(FULL_WARP, high); those; those &= those - 1) {
            int lane = __ffs((int)those) - 1;
            bool hub_waits = !graph.open_high((int)v0 + lane);
            if (lane_id() == lane) waits = hub_waits;
        }
        int place = warp_append(high && waits, &control->high[1]);
        if (high && waits) worklists[n + place] = v;
        visit_log.colored_in(1, __popc(__ballot_sync(FULL_WARP, v < n && !waits)));
    }
    grid_barrier(&control->arrivals);

    for (int round = 1;; ++round) {
        int high = ptx::load_l2(&control->high[round % 3]);
        if (high == 0) break;
        if (thread_id() == 0) control->high[(round + 2) % 3] = 0;
        int *list = worklists + (round & 1) * n, *next = worklists + (~round & 1) * n;
        int* next_high = &control->high[(round + 1) % 3];
        for (long long i = warp; i < high; i += warps) {
            int v = ptx::load_l2(&list[i]);
            bool colored = graph.visit_high(v);
            if (!colored && lane_id() == 0) next[atomicAdd(next_high, 1)] = v;
            visit_log.colored_in(round + 1, colored);
        }
        grid_barrier(&control->arrivals);
    }

    bool left = true;
    for (int round = 2; __any_sync(FULL_WARP, left); ++round) {
        int colored = 0;
        left = false;
        for (long long v = thread_id(); v < n; v += thread_count()) {
            if (ptx::load_l2(&colors[v]) >= 0) continue;
            if (graph.visit_low((int)v))
                ++colored;
            else
                left = true;
        }
        visit_log.colored_in(round, lane_sum<WARP>(colored));
    }
    visit_log.close();
}
