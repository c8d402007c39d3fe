// ECL-GC in one resident kernel; the functions of a vertex are the parts of ecl_gc.py with the same names. Where rows
// are short, another kernel does it: in_rounds.cuh.
//
// Races that are meant: a vertex reads what its neighbors show while they change it. Possible colors only ever get
// fewer (and the best one of a high-degree vertex only grows), so an old value makes a vertex wait longer and never
// changes its color. Writes to `possible` and `colors` are single words, each by the one team or warp that has v.
//
// Where hubs wait for each other the worklist is given, by falling priority, as in row order and where ties go by
// number. Otherwise there is no order of all vertices: each block sorts its own, which is as good. Teams and warps take
// their vertices in that order and stay with each until it has its color. So the uncolored vertex of highest priority
// is always in somebody's hands, and nobody waits for ever.

#include "coloring/history.cuh"
#include "cuda/grid.cuh"
#include "cuda/hash.cuh"
#include "cuda/memory.cuh"
#include "coloring/priorities.cuh"

#define TEAMS (BLOCK / LANES)  // of a block

__device__ __forceinline__ uint32 best_colors(uint32 mask, int count) {
#pragma unroll 1  // mostly none or one of them
    for (int drop = __popc(mask) - count; drop > 0; --drop) mask &= ~(0x80000000u >> __clz(mask));
    return mask;
}

struct Problem {
    const OFFSET* indptr;
    const int *indices, *degrees;
    int order;
    uint32 seed;
    bool shortcut1, shortcut2;
    int *colors, *possible, *waiting, *dag;

    // What counts first, in row order nothing.
    __device__ __forceinline__ int rank(int v) const { return order == ROW_ORDER ? 0 : degrees[v]; }

    // The larger, the earlier it gets its color. Numbers are compared without a branch.
    __device__ __forceinline__ uint64 priority(int v, int rank_of_v) const {
        return (uint64)rank_of_v << 32 | (order == LDF ? mix(v, seed) : ~(uint32)v);
    }

    __device__ __forceinline__ void show_low(int v, uint32 mask) const { ptx::store_volatile(&possible[v], (int)mask); }

    __device__ __forceinline__ void show_high(int v, int best, bool colored) const {
        ptx::store_volatile(&colors[v], colored ? best : ~best);
        show_low(v, best >= LOW_DEGREE ? 0 : colored ? 1u << best : FULL_WARP << best);
    }

    // It waits for no entry as low degrees do.
    __device__ __forceinline__ void open_high(int v) const {
        waiting[v] = 0;
        show_high(v, 0, false);
    }

    // ---- High degrees: one warp per vertex. It polls the colors of the neighbors that come before it until it has its
    // own, and returns how many polls found something new. The first poll goes through the row and lists the neighbors
    // without a color; later ones go through the list, which gets shorter. Once the list fits it stays in registers, so
    // that a poll takes no longer than a load. Colors that are taken are bits in shared memory, SPAN of them at a time.

#define PART 4
#define CHUNK (PART * WARP)
#define SPAN (32 * WARP)

    __device__ __forceinline__ int color_high(int v, uint32* taken) const {
        OFFSET begin = indptr[v];
        const int *row = indices + begin, *list = row;
        int entries = (int)(indptr[v + 1] - begin), left = entries;
        uint64 own = priority(v, rank(v));
        int neighbor[PART], offset = 0, shown = 0, visits = 0;
        uint32 waits = 0;   // for which of them
        bool held = false;  // whether they stay
        taken[lane_id()] = 0;
        __syncwarp();
        while (true) {
            bool fits = left <= CHUNK, news = visits == 0;
            int still = 0, least = 0x7fffffff;  // color that an uncolored one considers
            for (int e0 = 0; e0 < left; e0 += CHUNK) {
                if (!held) {
                    int e = e0 + lane_id();
                    waits = 0;
#pragma unroll
                    for (int j = 0; j < PART; ++j) neighbor[j] = e + j * WARP < left ? list[e + j * WARP] : v;
                    int rank_of_u[PART];
#pragma unroll
                    for (int j = 0; j < PART; ++j) rank_of_u[j] = list == row ? rank(neighbor[j]) : 0;
#pragma unroll
                    for (int j = 0; j < PART; ++j)
                        if (list == row ? priority(neighbor[j], rank_of_u[j]) > own : neighbor[j] != v)
                            waits |= 1u << j;
                }
                int color[PART];
#pragma unroll
                for (int j = 0; j < PART; ++j) color[j] = waits >> j & 1 ? ptx::load_l2(&colors[neighbor[j]]) : 0;
#pragma unroll
                for (int j = 0; j < PART; ++j) {
                    if (color[j] < 0) {
                        least = min(least, ~color[j]);
                    } else if (waits >> j & 1) {
                        waits &= ~(1u << j);
                        news = true;
                        uint32 bit = color[j] - offset;
                        if (bit < SPAN) atomicOr(&taken[bit / 32], 1u << bit % 32);
                    }
                    uint32 those = __ballot_sync(FULL_WARP, waits >> j & 1);
                    if (!fits && waits >> j & 1)
                        dag[begin + still + __popc(those & ((1u << lane_id()) - 1))] = neighbor[j];
                    still += __popc(those);
                }
            }
            __syncwarp();
            uint32 open = ~taken[lane_id()], words = __ballot_sync(FULL_WARP, open);
            visits += __any_sync(FULL_WARP, news);
            if (!words) {  // the next colors, and from the whole row
                offset += SPAN;
                list = row;
                left = entries;
                held = false;
                taken[lane_id()] = 0;
                __syncwarp();
                continue;
            }
            int word = __ffs(words) - 1, best = offset + word * 32 + __ffs(__shfl_sync(FULL_WARP, open, word)) - 1;
            bool colored = still == 0 || (shortcut1 && !__any_sync(FULL_WARP, least <= best));
            if (lane_id() == 0 && (colored || best != shown)) show_high(v, best, colored);
            if (colored) return visits;
            shown = best;
            held = fits;
            if (!fits) {
                list = dag + begin;
                left = still;
            }
            // The more neighbors it waits for, the longer that takes; and its polls slow down those of others.
            if (still > 8) __nanosleep(32 * min(still, CHUNK));
        }
    }

    // ---- Low degrees: LANES threads per vertex, its team.

#define LOADS 4  // entries of a row that a thread loads at once

    // Find out which entries of the row to wait for, one bit each; with k of them, the colors 0..k are possible.
    __device__ __forceinline__ void open_low(int v, OFFSET begin, OFFSET end, uint32 mates) const {
        uint64 own = priority(v, rank(v));
        uint32 waits = 0;
        for (OFFSET e = begin + threadIdx.x % LANES; e < end; e += LOADS * LANES) {
            int u[LOADS], rank_of_u[LOADS];
#pragma unroll
            for (int j = 0; j < LOADS; ++j) u[j] = e + j * LANES < end ? indices[e + j * LANES] : v;
#pragma unroll
            for (int j = 0; j < LOADS; ++j) rank_of_u[j] = rank(u[j]);
#pragma unroll
            for (int j = 0; j < LOADS; ++j)
                waits |= priority(u[j], rank_of_u[j]) > own ? 1u << (e - begin + j * LANES) : 0;
        }
#pragma unroll
        for (int step = LANES / 2; step > 0; step /= 2) waits |= __shfl_xor_sync(mates, waits, step);
        if (threadIdx.x % LANES) return;
        waiting[v] = (int)waits;
        colors[v] = ~0;
        show_low(v, 0xffffffffu >> (31 - __popc(waits)));
    }
};

// ---- The vertices of a block. If it sorts them, they are those that its teams come to when all teams stride over row
// order. They stand in the same places of the worklist, so a team finds its own there as it would in a list of all
// vertices. In a list of all vertices those of a block are far apart: long rows come first there.

#define BUCKETS 2048  // many: what falls into the same one is sorted slowly
#define OWN_LOADS 4   // vertices that a thread loads at once

struct Block {
    int n;
    int* worklist;
    bool sorts;

    __device__ __forceinline__ int place(int p) const {
        return sorts ? (p / TEAMS * gridDim.x + blockIdx.x) * TEAMS + p % TEAMS : p * gridDim.x + blockIdx.x;
    }
    __device__ __forceinline__ int size() const {
        int unit = sorts ? TEAMS : 1, units = gridDim.x * unit, rest = n % units - (int)blockIdx.x * unit;
        return n / units * unit + max(min(rest, unit), 0);
    }

    // Replace counts by the sums of those before.
    __device__ static void sum_up(int* counts, int length) {
        __shared__ int totals[BLOCK / WARP];
        __syncthreads();
        int share = (length + BLOCK - 1) / BLOCK;
        int begin = min((int)threadIdx.x * share, length), end = min(begin + share, length), sum = 0;
        for (int k = begin; k < end; ++k) sum += counts[k];
        int upto = sum;
#pragma unroll
        for (int step = 1; step < WARP; step *= 2) {
            int others = __shfl_up_sync(FULL_WARP, upto, step);
            if (lane_id() >= step) upto += others;
        }
        if (lane_id() == WARP - 1) totals[threadIdx.x / WARP] = upto;
        __syncthreads();
        int before = upto - sum;
        for (int w = 0; w < threadIdx.x / WARP; ++w) before += totals[w];
        for (int k = begin; k < end; ++k) {
            int count = counts[k];
            counts[k] = before;
            before += count;
        }
        __syncthreads();
    }

    // Write them to the worklist, highest priority first. With the vertices of each degree counted, the
    // hash tells about where a vertex comes; what falls close together is then sorted one by one.
    __device__ __forceinline__ void sort(const Problem& problem) const {
        __shared__ int degrees[LONG_DEGREE + 1], buckets[BUCKETS];
        int length = size(), last = min(length, BUCKETS) - 1;
        float scale = min(1.0f, BUCKETS / (float)length);
        for (int k = threadIdx.x; k < LONG_DEGREE + 1; k += BLOCK) degrees[k] = 0;
        for (int k = threadIdx.x; k <= last; k += BLOCK) buckets[k] = 0;
        __syncthreads();
        // Whole warps call `visit`, with the degree or where there is no vertex -1. Several are loaded at once.
        auto each = [&](auto visit) {
            for (int p0 = 0; p0 < length; p0 += OWN_LOADS * BLOCK) {
                int v[OWN_LOADS], degree[OWN_LOADS];
#pragma unroll
                for (int j = 0; j < OWN_LOADS; ++j) {
                    int p = p0 + j * BLOCK + threadIdx.x;
                    v[j] = p < length ? place(p) : -1;
                    degree[j] = p < length ? problem.degrees[v[j]] : -1;
                }
#pragma unroll
                for (int j = 0; j < OWN_LOADS; ++j) visit(v[j], degree[j]);
            }
        };
        auto bucket = [&](int v, int degree) {
            int begin = degrees[LONG_DEGREE - 1 - degree], end = degrees[LONG_DEGREE - degree];
            int about = begin + __umulhi(~mix((uint32)v, problem.seed), end - begin);
            return min((int)(about * scale), last);
        };
        each([&](int v, int degree) {
            uint32 same = __match_any_sync(FULL_WARP, degree);  // mostly all: one of them adds
            if (degree < 0) return;
            if (lane_id() == __ffs(same) - 1) atomicAdd(&degrees[LONG_DEGREE - 1 - degree], __popc(same));
        });
        sum_up(degrees, LONG_DEGREE + 1);
        each([&](int v, int degree) {
            if (degree >= 0) atomicAdd(&buckets[bucket(v, degree)], 1);
        });
        sum_up(buckets, last + 1);
        each([&](int v, int degree) {
            if (degree >= 0) worklist[place(atomicAdd(&buckets[bucket(v, degree)], 1))] = v;
        });
        __syncthreads();
        for (int k = threadIdx.x; k <= last; k += BLOCK) {  // now they hold where each ends
            int begin = k ? buckets[k - 1] : 0;
            for (int i = begin + 1; i < buckets[k]; ++i) {
                int v = worklist[place(i)], p = i;
                for (; p > begin; --p) {
                    int u = worklist[place(p - 1)];
                    if (problem.priority(u, problem.rank(u)) > problem.priority(v, problem.rank(v))) break;
                    worklist[place(p)] = u;
                }
                worklist[place(p)] = v;
            }
        }
        __syncthreads();
    }
};

// ---- Low degrees, continued. A thread polls SHARE entries of a row at once, its team WIDTH of them.

#define WIDTH (2 * LANES * LANES < 32 ? 2 * LANES * LANES : 32)
#define SHARE (WIDTH / LANES)

struct Row {
    int v, degree;  // v is negative at the end of the list; others than low degrees are passed over
    OFFSET begin;
    uint32 waits;  // bits of entries
    int neighbor[SHARE];

    __device__ __forceinline__ void find(const Problem& problem, int vertex, bool has_high) {
        v = vertex;
        if (v < 0) return;
        degree = has_high ? problem.degrees[v] : 0;
        begin = problem.indptr[v];
        waits = ptx::load_l2(&problem.waiting[v]);
    }
    // This thread's next neighbors.
    __device__ __forceinline__ void find_neighbors(const Problem& problem) {
        if (v < 0) waits = 0;
#pragma unroll
        for (int j = 0; j < SHARE; ++j) {
            int e = j * LANES + threadIdx.x % LANES;
            if (waits >> e & 1) neighbor[j] = problem.indices[begin + e];
        }
    }
    // Which of them there are: bit j * LANES for neighbor j.
    __device__ __forceinline__ uint32 mine() const {
        uint32 all = 0;
#pragma unroll
        for (int j = 0; j < SHARE; ++j) all |= 1u << j * LANES;
        return waits >> threadIdx.x % LANES & all;
    }
    // The entries behind those that the team polls.
    __device__ __forceinline__ uint32 rest() const { return WIDTH < 32 ? waits >> WIDTH % 32 : 0; }
};

// Each team takes its vertices in turn, and polls the neighbors of one until it has its color. It forgets a neighbor
// that has a color or cannot matter any more (shortcut 2). The teams of a warp poll together, but each goes on to its
// next vertex by itself.
__device__ __forceinline__ void color_low(const Problem& problem, long long n, const int* worklist, long long team,
                                          long long teams, bool has_high, VisitLog& visit_log) {
    // Two vertices are prefetched: what is loaded for one of them is not used before the team has gone on by one
    // vertex.
    Row now, after, later;
    int far;
    auto next = [&] {
        int v = team < n ? ptx::load_l2(&worklist[team]) : -1;
        team += teams;
        return v;
    };
    now.find(problem, next(), has_high);
    after.find(problem, next(), has_high);
    later.find(problem, next(), has_high);
    far = next();
    now.find_neighbors(problem);
    after.find_neighbors(problem);
    uint32 mine = now.mine(), mask = 0xffffffffu >> (31 - __popc(now.waits)), shown = mask;
    int visits = 0, waits_for = __popc(now.waits), patience = 0;
    while (__any_sync(FULL_WARP, now.v >= 0)) {
        uint32 theirs[SHARE], taken = 0, considered = 0;
#pragma unroll
        for (int j = 0; j < SHARE; ++j)
            CHECK(now.neighbor[j], !(mine >> j * LANES & 1) || (now.neighbor[j] >= 0 && now.neighbor[j] < n));
#pragma unroll
        for (int j = 0; j < SHARE; ++j)
            theirs[j] = mine >> j * LANES & 1 ? ptx::load_l2(&problem.possible[now.neighbor[j]]) : 0;
#pragma unroll
        for (int j = 0; j < SHARE; ++j) {
            bool single = (theirs[j] & (theirs[j] - 1)) == 0;
            if (single) taken |= theirs[j];
            if (single || (problem.shortcut2 && (theirs[j] & mask) == 0))
                mine &= ~(1u << j * LANES);
            else
                considered |= theirs[j];
        }
        int still = __popc(mine);
#pragma unroll
        for (int step = LANES / 2; step > 0; step /= 2) {
            taken |= __shfl_xor_sync(FULL_WARP, taken, step);
            considered |= __shfl_xor_sync(FULL_WARP, considered, step);
            still += __shfl_xor_sync(FULL_WARP, still, step);
        }
        mask &= ~taken;
        uint32 best = mask & -mask, rest = now.rest();
        bool free_of_these = still == 0, shortcut = problem.shortcut1 && (best & considered) == 0;
        bool colored = now.v >= 0 && rest == 0 && (free_of_these || shortcut);
        still += __popc(rest);
        mask = colored ? best : best_colors(mask, still + 1);
        visits += still < waits_for || mask != shown;
        waits_for = still;
        bool speaks = now.v >= 0 && now.degree < LOW_DEGREE && threadIdx.x % LANES == 0;
        if (speaks && mask != shown) problem.show_low(now.v, mask);
        shown = mask;
        if (colored) {
            if (speaks) {
                ptx::store_volatile(&problem.colors[now.v], __ffs(best) - 1);
                visit_log.colored_after(max(visits, 1));
            }
            now = after;
            mine = now.mine();
            mask = shown = 0xffffffffu >> (31 - __popc(now.waits));
            visits = 0;
            waits_for = __popc(now.waits);
            after = later;
            after.find_neighbors(problem);
            later.find(problem, far, has_high);
            far = next();
        } else if (rest && free_of_these) {  // on to the next entries of the row
            now.begin += WIDTH;
            now.waits = rest;
            now.find_neighbors(problem);
            mine = now.mine();
        }
        // A warp that has waited for long polls less and less often.
        patience = __any_sync(FULL_WARP, colored) ? 0 : min(patience + 1, 32);
        if (patience > 4) __nanosleep(16 * patience);
    }
}

extern "C" __global__ void priority_keys(long long n, const int* degrees, long long seed, uint64* keys) {
    long long v = thread_id();
    if (v < n) keys[v] = (uint64)(0x7fffffff - degrees[v]) << 32 | ~mix((uint32)v, (uint32)seed);
}

extern "C" __global__ void __launch_bounds__(BLOCK, 4)
    color_by_priority(long long n, const OFFSET* indptr, const int* indices, const int* degrees, long long order,
                      long long seed, long long shortcut1, long long shortcut2, long long max_degree, int* colors,
                      int* possible, int* worklist, int* waiting, int* dag, int2* log) {
    Problem problem = {indptr,         indices, degrees,  (int)order, (uint32)seed, shortcut1 != 0,
                       shortcut2 != 0, colors,  possible, waiting,    dag};
    uint32* arrivals = (uint32*)&log[0].y;  // which nobody reads
    __shared__ int counts[SHARED_ROUNDS];
    __shared__ uint32 taken[BLOCK / WARP][WARP];
    VisitLog visit_log = {log, n + SPARE_ROUNDS, counts};
    visit_log.open();
    bool has_high = max_degree >= LOW_DEGREE;
    uint32 mates = (LANES == WARP ? FULL_WARP : (1u << (LANES % WARP)) - 1) << (lane_id() & ~(LANES - 1));
    OFFSET next_begin, next_end;  // of rows; prefetched one row ahead
    auto find_row = [&](long long v) {
        next_begin = v < n ? indptr[v] : 0;
        next_end = v < n ? indptr[v + 1] : 0;
    };
    long long team = thread_id() / LANES, teams = thread_count() / LANES;
    find_row(team);
    for (long long v = team; v < n; v += teams) {
        OFFSET begin = next_begin, end = next_end;
        find_row(v + teams);
        if (!has_high || degrees[v] < LOW_DEGREE)
            problem.open_low((int)v, begin, end, mates);
        else if (threadIdx.x % LANES == 0)
            problem.open_high((int)v);
    }
    Block block = {(int)n, worklist, order == LDF && max_degree < LONG_DEGREE};
    if (block.sorts) block.sort(problem);
    grid_barrier(arrivals);

    // By degree, all warps first take the high ones and then the low ones; in row order, either kind may wait for the
    // other, so odd warps take the high ones and even warps the low ones.
    bool in_order = order == ROW_ORDER, takes_high = has_high, takes_low = true;
    int first = threadIdx.x / WARP, step = BLOCK / WARP;
    uint32* own_taken = taken[first];
    long long warp = thread_id() / WARP, warps = thread_count() / WARP;
    if (in_order && takes_high) {
        takes_high = first & 1;
        takes_low = !takes_high;
        first /= 2;
        step /= 2;
        warp /= 2;
        warps /= 2;
    }
    for (int p = first, size = takes_high ? block.size() : 0; p < size; p += step) {
        int v = ptx::load_l2(&worklist[block.place(p)]);
        CHECK(v, v >= 0 && v < n);
        if (degrees[v] >= LOW_DEGREE) {
            int visits = problem.color_high(v, own_taken);
            if (lane_id() == 0) visit_log.colored_after(visits);
        } else if (!in_order) {
            break;
        }
    }
    if (takes_low)
        color_low(problem, n, worklist, warp * (WARP / LANES) + lane_id() / LANES, warps * (WARP / LANES), has_high,
                  visit_log);
    visit_log.close();
}

#include "in_rounds.cuh"
