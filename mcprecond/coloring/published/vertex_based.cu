// IPGC, VB and VB BIT, each in one resident kernel; see vertex_based.py.
//
// Intended data races: a thread that colors a vertex may read either the old or the new color of a neighbor that is
// colored in the same round. A grid barrier separates coloring from conflict detection, which changes no colors.

#include "coloring/graph.cuh"
#include "coloring/history.cuh"
#include "cuda/hash.cuh"
#include "lists.cuh"

struct Control {  // lies in `scratch`, which the host zeroes
    uint32 arrivals;
    int length[3];  // of the worklist, by number of the round; with three nobody resets what others read
    int counts[1];  // vertices kept by each block; as long as scratch allows
};

// The rule that selects which endpoint of a conflicting edge is recolored. `rule` is an index into RESOLUTIONS of
// vertex_based.py. The hash function `mix` is a bijection, so different vertices have different random numbers.
struct Resolution {
    long long rule, seed;
    const int* degrees;

    __device__ bool recolors(int v, int u) const {
        if (rule == AT_RANDOM) return mix((uint32)v, (uint32)seed) < mix((uint32)u, (uint32)seed);
        return gives_way(v, u, rule == BY_DEGREE, degrees);
    }
};

__device__ bool in_conflict(int v, const OFFSET* indptr, const int* adjacency, const Resolution& resolution,
                            const int* C) {
    int color = ptx::load_l2(&C[v]);
    for (OFFSET k = indptr[v]; k < indptr[v + 1]; ++k) {
        int u = adjacency[k];
        if (ptx::load_l2(&C[u]) == color && resolution.recolors(v, u)) return true;
    }
    return false;
}

// FORBIDDEN of IPGC: a time for each color and, last, the time of the vertex before.
struct Times {
    int *forbidden, *time;

    __device__ int fit(int v, const OFFSET* indptr, const int* adjacency, const int* C) {
        int now = ++*time;
        for (OFFSET k = indptr[v]; k < indptr[v + 1]; ++k) {
            int u = adjacency[k], color = ptx::load_l2(&C[u]);
            if (u != v && color != UNCOLORED) forbidden[color] = now;
        }
        int color = 0;
        while (forbidden[color] == now) ++color;
        return color;
    }
};

// FORBIDDEN of VB: flags of one color range, in local memory.
struct Flags {
    unsigned char forbidden[MAXFORBID];

    __device__ void clear() {
        for (int i = 0; i < MAXFORBID; ++i) forbidden[i] = 0;
    }
    __device__ void forbid_color(int color) { forbidden[color] = 1; }
    __device__ int set_color() {
        int color = 0;
        while (color < MAXFORBID && forbidden[color]) ++color;
        return color;
    }
};

// FORBIDDEN of VB BIT: bits of one color range, in registers.
struct Bits {
    uint64 forbidden;

    __device__ void clear() { forbidden = 0; }
    __device__ void forbid_color(int color) { forbidden |= 1ull << color; }
    __device__ int set_color() { return ~forbidden ? __ffsll((long long)~forbidden) - 1 : MAXFORBID; }
};

template <typename Forbidden>
__device__ int fit_in_ranges(int v, const OFFSET* indptr, int* adjacency, bool filtering, const int* C) {
    Forbidden forbidden;
    OFFSET unseen = indptr[v], end = indptr[v + 1];
    for (int offset = 0;; offset += MAXFORBID) {
        forbidden.clear();
        for (OFFSET k = unseen; k < end; ++k) {
            int u = adjacency[k], color = ptx::load_l2(&C[u]) - offset;
            if (u == v || color < 0 || color >= MAXFORBID) continue;
            forbidden.forbid_color(color);
            if (filtering) {
                adjacency[k] = adjacency[unseen];
                adjacency[unseen++] = u;
            }
        }
        int color = forbidden.set_color();
        if (color < MAXFORBID) return offset + color;
    }
}

// Algorithm 1. The first `threads` threads color, each a chunk of the worklist at a time; all look for conflicts.
template <typename Fit>
__device__ void color_in_rounds(long long n, const OFFSET* indptr, const int* adjacency, const Resolution& resolution,
                                long long chunk, bool pps, int* C, int* worklists, signed char* marks, Control* control,
                                int2* log, long long threads, Fit fit) {
    int *conf = worklists, *next = worklists + n;
    for (long long v = thread_id(); v < n; v += thread_count()) {
        C[v] = UNCOLORED;
        conf[v] = (int)v;
    }
    grid_barrier(&control->arrivals);
    threads = min(threads, thread_count());
    auto stays = [&](int v) { return in_conflict(v, indptr, adjacency, resolution, C); };
    for (int round = 1, length = (int)n; length; ++round) {
        if (thread_id() < threads)
            for (long long first = thread_id() * chunk; first < length; first += threads * chunk)
                for (long long i = first; i < min(first + chunk, (long long)length); ++i) {
                    int v = ptx::load_l2(&conf[i]);
                    C[v] = fit(v);
                }
        if (thread_id() == 0) control->length[(round + 1) % 3] = 0;
        grid_barrier(&control->arrivals);

        int before = length, *conf_before = conf;
        length = pps ? keep_in_order(conf, length, next, marks, control->counts, &control->arrivals, stays)
                     : keep_scattered(conf, length, next, &control->length[round % 3], &control->arrivals, stays);
        if (thread_id() == 0) log_round(log, n, round, before, length);
        conf = next;
        next = conf_before;
    }
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    color_in_time(long long n, const OFFSET* indptr, const int* adjacency, const int* degrees, long long chunk,
                  long long rule, long long seed, long long pps, int* C, int* worklists, signed char* marks,
                  void* scratch, int2* log, int* forbidden, long long row, long long threads) {
    int* own = forbidden + min(thread_id(), threads - 1) * row;
    Times times = {own, own + row - 1};
    color_in_rounds(n, indptr, adjacency, {rule, seed, degrees}, chunk, pps, C, worklists, marks, (Control*)scratch,
                    log, threads, [&](int v) { return times.fit(v, indptr, adjacency, C); });
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    color_by_flags(long long n, const OFFSET* indptr, int* adjacency, const int* degrees, long long chunk,
                   long long rule, long long seed, long long pps, int* C, int* worklists, signed char* marks,
                   void* scratch, int2* log, long long filtering) {
    color_in_rounds(n, indptr, adjacency, {rule, seed, degrees}, chunk, pps, C, worklists, marks, (Control*)scratch,
                    log, thread_count(),
                    [&](int v) { return fit_in_ranges<Flags>(v, indptr, adjacency, filtering, C); });
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    color_by_bits(long long n, const OFFSET* indptr, int* adjacency, const int* degrees, long long chunk,
                  long long rule, long long seed, long long pps, int* C, int* worklists, signed char* marks,
                  void* scratch, int2* log, long long filtering) {
    color_in_rounds(n, indptr, adjacency, {rule, seed, degrees}, chunk, pps, C, worklists, marks, (Control*)scratch,
                    log, thread_count(),
                    [&](int v) { return fit_in_ranges<Bits>(v, indptr, adjacency, filtering, C); });
}
