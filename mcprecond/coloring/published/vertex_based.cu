// IPGC, VB and VB BIT, each in one resident kernel; every __device__ function is the part of vertex_based.py with the
// same name.
//
// Races that are meant: in the first phase of a round a vertex may see a neighbor's color of this round or not yet, and
// what it misses is caught by `loses` behind a grid barrier. There, a vertex may see another one that is uncolored at
// that moment: then the other one gives way, so it may keep its color; or it saw the color and both give way.
// Either way a neighbor shows at most one color per round, whence the bound of degree + 1 colors.
//
// With LONG_ROWS, those of WARP entries and more, each of them has a team of threads, which calls what follows as a
// whole.

#include "balanced.cuh"
#include "coloring/graph.cuh"
#include "coloring/history.cuh"
#include "cuda/compact.cuh"

#define BLOCKS (LONG_ROWS ? 6 : 8)  // to a processor

struct Control {  // lies in `scratch`, which the host zeroes
    uint32 arrivals;
    int length[2];  // of the worklists, by parity of the round
};

template <int TEAM>
__device__ bool loses(int v, long long distance, const OFFSET* indptr, const int* adjacency, const int* degrees,
                      bool by_degree, const int* C) {
    int color = ptx::load_l2(&C[v]);
    return team_or<TEAM>(any_near<TEAM>(v, distance, indptr, adjacency, [&](OFFSET k) {
        int u = adjacency[k];
        return ptx::load_l2(&C[u]) == color && gives_way(v, u, by_degree, degrees);
    }));
}

// FORBIDDEN of IPGC: a time stamp per color and, last, the time. A team uses that of its first thread.
struct Stamps {
    int *forbidden, *time;

    template <int TEAM>
    __device__ int first_fit(int v, const OFFSET* indptr, const int* indices, const int* C) {
        OFFSET begin = indptr[v], end = indptr[v + 1];
        int now = *time + 1;
        team_barrier<TEAM>();
        if (threadIdx.x % TEAM == 0) *time = now;
        for (OFFSET k = begin + threadIdx.x % TEAM; k < end; k += TEAM) {
            int color = ptx::load_l2(&C[indices[k]]);
            if (color != UNCOLORED) forbidden[color] = now;  // several threads may write it
        }
        team_barrier<TEAM>();
        if constexpr (TEAM == 1) {
            int color = 0;
            while (forbidden[color] == now) ++color;
            return color;
        } else {
            for (int first = 0;; first += WARP) {  // every warp of the team finds the same
                int color = first + lane_id();
                uint32 free = __ballot_sync(FULL_WARP, color > end - begin || forbidden[color] != now);
                if (free) return first + __ffs(free) - 1;
            }
        }
    }
};

// The first color of the range that no thread of the team has forbidden; MAXFORBID if there is none.
template <int TEAM>
__device__ __forceinline__ int first_of_range(uint64 forbidden) {
    forbidden = team_or<TEAM>(forbidden);
    return ~forbidden ? __ffsll((long long)~forbidden) - 1 : MAXFORBID;
}

// FORBIDDEN of VB: flags of one color range, in local memory.
struct Flags {
    unsigned char forbidden[MAXFORBID];

    __device__ void clear() {
        for (int i = 0; i < MAXFORBID; ++i) forbidden[i] = 0;
    }
    __device__ void forbid_color(int color) { forbidden[color] = 1; }
    template <int TEAM>
    __device__ int set_color() {
        if constexpr (TEAM > 1) {
            uint64 bits = 0;
#pragma unroll 4
            for (int i = 0; i < MAXFORBID; ++i) bits |= (uint64)forbidden[i] << i;
            return first_of_range<TEAM>(bits);
        }
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
    template <int TEAM>
    __device__ int set_color() {
        return first_of_range<TEAM>(forbidden);
    }
};

// Algorithm 4. Edge filtering permutes the entries of a row that are a thread's own, until the vertex has its color;
// the next one to read them does so behind a grid barrier.
template <int TEAM, typename Forbidden>
__device__ int first_fit_by_ranges(int v, long long distance, const OFFSET* indptr, int* adjacency, bool filtering,
                                   const int* C) {
    Forbidden forbidden;
    OFFSET unseen = indptr[v] + threadIdx.x % TEAM;  // filtering has put in front what is before it
    for (int offset = 0;; offset += MAXFORBID) {
        forbidden.clear();
        any_near<TEAM>(v, distance, indptr, adjacency, [&](OFFSET k) {
            if (filtering && k < unseen) return false;
            int u = adjacency[k];
            int color = ptx::load_l2(&C[u]) - offset;
            if (color < 0 || color >= MAXFORBID) return false;
            forbidden.forbid_color(color);
            if (filtering) {
                adjacency[k] = adjacency[unseen];
                adjacency[unseen] = u;
                unseen += TEAM;
            }
            return false;
        });
        int color = forbidden.template set_color<TEAM>();
        if (color < MAXFORBID) return offset + color;
    }
}

// Of a thread among all that go through a worklist.
__device__ __forceinline__ long long place() { return LONG_ROWS ? spread_id() : thread_id(); }

// Algorithm 1. If `some_colored`, C holds the colors of some vertices, and the log already has one round. Of all
// threads `workers` color, which `worker` numbers; the others detect conflicts only, or help the first thread of their
// team. first_fit(v, team) returns the color of v.
template <typename FirstFit>
__device__ void color_iteratively(long long n, long long distance, const OFFSET* indptr, const int* adjacency,
                                  const int* degrees, long long chunk, bool by_degree, bool some_colored, int* C,
                                  int* worklists, void* scratch, int2* log, long long worker, long long workers,
                                  FirstFit first_fit) {
    Control* control = (Control*)scratch;
    for (long long v0 = thread_id() - lane_id(); v0 < n; v0 += thread_count()) {
        long long v = v0 + lane_id();
        if (some_colored) {
            bool left = v < n && C[v] == UNCOLORED;
            int position = warp_append(left, &control->length[1]);  // which the first round does not count in
            if (left) worklists[position] = (int)v;
        } else if (v < n) {
            C[v] = UNCOLORED;
            worklists[v] = (int)v;
        }
    }
    grid_barrier(&control->arrivals);
    int length = some_colored ? ptx::load_l2(&control->length[1]) : (int)n;
    for (int round = 0; length; ++round) {
        const int* conf = worklists + (round & 1) * n;
        int* new_conf = worklists + (~round & 1) * n;
        int* new_length = &control->length[round & 1];

        // ASSIGNCOLORS: long rows by teams, the others in chunks
        for (long long first = 0; LONG_ROWS && first < length; first += workers) {
            long long i = first + worker;
            bool active = worker < workers && i < length;
            int v = active ? conf[i] : 0;
            visit_long_rows(v, active ? indptr[v + 1] - indptr[v] : 0, [&](int v, auto team) {
                int color = first_fit(v, team);
                if (threadIdx.x % team.size == 0) C[v] = color;
                return false;
            });
        }
        if (worker < workers)
            for (long long first = worker * chunk; first < length; first += workers * chunk)
                for (long long i = first; i < min(first + chunk, (long long)length); ++i) {
                    int v = conf[i];
                    CHECK(v, v >= 0 && v < n);
                    if (!LONG_ROWS || indptr[v + 1] - indptr[v] < WARP) C[v] = first_fit(v, Team<1>());
                }
        // All have read this slot two rounds ago, before the last barrier.
        if (thread_id() == 0) *new_length = 0;
        grid_barrier(&control->arrivals);

        // DETECTCONFLICTS
        for (long long first = 0; first < length; first += thread_count()) {
            long long i = first + place();
            bool active = i < length;
            int v = active ? conf[i] : 0;
            auto visit = [&](int v, auto team) {
                return loses<team.size>(v, distance, indptr, adjacency, degrees, by_degree, C);
            };
            bool lost = LONG_ROWS ? visit_balanced(v, active, indptr, visit) : active && visit(v, Team<1>());
            if (lost) C[v] = UNCOLORED;
            int position = warp_append(lost, new_length);
            CHECK(position, !lost || position < length);
            if (lost) new_conf[position] = v;
        }
        grid_barrier(&control->arrivals);
        int before = length;
        length = ptx::load_l2(new_length);
        if (thread_id() == 0) log_round(log, n, round + 1 + some_colored, before, length);
    }
}

extern "C" __global__ void __launch_bounds__(BLOCK, BLOCKS)
    color_ipgc(long long n, const OFFSET* indptr, const int* indices, const int* degrees, long long chunk,
               long long by_degree, int* C, int* worklists, void* scratch, int2* log, int* forbidden, long long row,
               long long threads) {
    long long worker = spread_id();  // the memory of FORBIDDEN may allow for a few threads only
    long long workers = min(threads, thread_count());
    color_iteratively(n, 1, indptr, indices, degrees, chunk, by_degree, false, C, worklists, scratch, log, worker,
                      workers, [&](int v, auto team) {
                          // Numbered like threads of the grid, the first one of a block has the lowest number in it.
                          long long first =
                              team.size > WARP ? blockIdx.x * (long long)WARP : worker / team.size * team.size;
                          Stamps its = {forbidden + first * row, forbidden + first * row + row - 1};
                          return its.first_fit<team.size>(v, indptr, indices, C);
                      });
}

template <typename Forbidden>
__device__ void color_by_ranges(long long n, long long distance, const OFFSET* indptr, int* adjacency,
                                const int* degrees, long long chunk, long long by_degree, long long some_colored,
                                int* C, int* worklists, void* scratch, int2* log, bool filtering) {
    color_iteratively(n, distance, indptr, adjacency, degrees, chunk, by_degree, some_colored, C, worklists, scratch,
                      log, place(), thread_count(), [&](int v, auto team) {
                          return first_fit_by_ranges<team.size, Forbidden>(v, distance, indptr, adjacency, filtering,
                                                                           C);
                      });
}

extern "C" __global__ void __launch_bounds__(BLOCK, BLOCKS)
    color_vb(long long n, long long distance, const OFFSET* indptr, int* adjacency, const int* degrees, long long chunk,
             long long by_degree, long long some_colored, int* C, int* worklists, void* scratch, int2* log,
             long long filtering) {
    color_by_ranges<Flags>(n, distance, indptr, adjacency, degrees, chunk, by_degree, some_colored, C, worklists,
                           scratch, log, filtering);
}

extern "C" __global__ void __launch_bounds__(BLOCK, BLOCKS)
    color_vb_bit(long long n, long long distance, const OFFSET* indptr, int* adjacency, const int* degrees,
                 long long chunk, long long by_degree, long long some_colored, int* C, int* worklists, void* scratch,
                 int2* log, long long filtering) {
    color_by_ranges<Bits>(n, distance, indptr, adjacency, degrees, chunk, by_degree, some_colored, C, worklists,
                          scratch, log, filtering);
}
