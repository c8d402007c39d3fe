// ECL-GC in one resident kernel; the functions of a vertex are the parts of ecl_gc.py with the same names.
//
// Races that are meant: a vertex reads what its neighbors show while they change it. Possible colors only ever get
// fewer (and the best one of a high-degree vertex only grows), so an old value makes a vertex wait longer and never
// changes its color. Writes to `possible` and `colors` are single words, each by the one team or warp that has v.
//
// In row order and where ties go by number, the worklist is given. Otherwise there is no order of all vertices: each
// block sorts its own by falling priority, which is as good. Teams and warps take their vertices in that order and stay
// with each until it has its color. So the uncolored vertex of highest priority is always in somebody's hands, and
// nobody waits for ever.

#define LOW_DEGREE 32
#define LONG_DEGREE 128
#define BLOCK 256              // threads
#define TEAMS (BLOCK / LANES)  // of a block

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
    int *colors, *possible, *waiting, *dag;
    uint32* bitmaps;

    // What counts first, in row order nothing.
    __device__ __forceinline__ int rank(int v) const { return order == ROW_ORDER ? 0 : degrees[v]; }

    // Whether u has a higher priority than v.
    __device__ __forceinline__ bool precedes(int u, int v, int rank_of_u, int rank_of_v) const {
        if (rank_of_u != rank_of_v) return rank_of_u > rank_of_v;
        return order == LDF ? mix(u, seed) > mix(v, seed) : u < v;
    }

    __device__ __forceinline__ void show_low(int v, uint32 mask) const { *(volatile int*)&possible[v] = (int)mask; }

    __device__ __forceinline__ void show_high(int v, int best, bool colored) const {
        *(volatile int*)&colors[v] = colored ? best : ~best;
        show_low(v, best >= LOW_DEGREE ? 0 : colored ? 1u << best : FULL_WARP << best);
    }

    // ---- Long rows: one warp per vertex.

    __device__ __forceinline__ void open_high(int v) const {
        OFFSET begin = indptr[v], end = indptr[v + 1];
        int rank_of_v = rank(v), k = 0;
        for (OFFSET e0 = begin; e0 < end; e0 += WARP) {
            OFFSET e = e0 + lane_id();
            int u = e < end ? indices[e] : v;
            uint32 higher = __ballot_sync(FULL_WARP, precedes(u, v, rank(u), rank_of_v));
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

    __device__ __forceinline__ bool visit_high(int v) const {
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

    // ---- Other high degrees: one warp per vertex. Each thread keeps its share of the row in registers; so does it the
    // bitmap of colors that are taken. Visits until the vertex has its color, and returns how many found something new.

#define PART (LONG_DEGREE / WARP)

    __device__ __forceinline__ int color_high(int v) const {
        OFFSET begin = indptr[v] + lane_id(), end = indptr[v + 1];
        int rank_of_v = rank(v), neighbor[PART], worst[PART], best = 0;
        uint32 waits = 0, taken[PART] = {};
#pragma unroll
        for (int j = 0; j < PART; ++j) neighbor[j] = begin + j * WARP < end ? indices[begin + j * WARP] : v;
#pragma unroll
        for (int j = 0; j < PART; ++j) worst[j] = degrees[neighbor[j]];
#pragma unroll
        for (int j = 0; j < PART; ++j)
            if (precedes(neighbor[j], v, order == ROW_ORDER ? 0 : worst[j], rank_of_v)) waits |= 1u << j;
        for (int visits = 1, patience = 0;; ++patience) {
            int color[PART];
            uint32 found[PART] = {};
            bool considered = false, news = false;
#pragma unroll
            for (int j = 0; j < PART; ++j) color[j] = waits >> j & 1 ? fresh(&colors[neighbor[j]]) : ~0;
#pragma unroll
            for (int j = 0; j < PART; ++j)
                if (color[j] >= 0) {
                    news = true;
                    waits &= ~(1u << j);
#pragma unroll
                    for (int w = 0; w < PART; ++w)
                        if (color[j] / 32 == w) found[w] |= 1u << color[j] % 32;
                }
            news = __any_sync(FULL_WARP, news);
            if (news) {
#pragma unroll
                for (int w = PART - 1; w >= 0; --w) {
#pragma unroll
                    for (int step = WARP / 2; step > 0; step /= 2)
                        found[w] |= __shfl_xor_sync(FULL_WARP, found[w], step);
                    taken[w] |= found[w];
                    if (~taken[w]) best = w * 32 + __ffs(~taken[w]) - 1;
                }
                patience = 0;
                ++visits;
            }
#pragma unroll
            for (int j = 0; j < PART; ++j)
                if (waits >> j & 1) considered |= !shortcut1 || (~color[j] <= best && best <= worst[j]);
            considered = __any_sync(FULL_WARP, considered);
            if (lane_id() == 0 && (news || !considered)) show_high(v, best, !considered);
            if (!considered) return visits;
            if (patience > 4) __nanosleep(16 * min(patience, 32));
        }
    }

    // ---- Low degrees: LANES threads per vertex, its team.

#define LOOKS 4

    // Find out which entries of the row to wait for, one bit each; with k of them, the colors 0..k are possible.
    __device__ __forceinline__ void open_low(int v, uint32 mates) const {
        OFFSET begin = indptr[v], end = indptr[v + 1];
        int rank_of_v = rank(v);
        uint32 waits = 0;
        for (OFFSET e = begin + threadIdx.x % LANES; e < end; e += LOOKS * LANES) {
            int u[LOOKS], rank_of_u[LOOKS];
#pragma unroll
            for (int j = 0; j < LOOKS; ++j) u[j] = e + j * LANES < end ? indices[e + j * LANES] : v;
#pragma unroll
            for (int j = 0; j < LOOKS; ++j) rank_of_u[j] = rank(u[j]);
#pragma unroll
            for (int j = 0; j < LOOKS; ++j)
                if (precedes(u[j], v, rank_of_u[j], rank_of_v)) waits |= 1u << (e - begin + j * LANES);
        }
#pragma unroll
        for (int step = LANES / 2; step > 0; step /= 2) waits |= __shfl_xor_sync(mates, waits, step);
        if (threadIdx.x % LANES) return;
        waiting[v] = (int)waits;
        colors[v] = ~0;
        show_low(v, 0xffffffffu >> (31 - __popc(waits)));
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

// ---- The vertices of a block: those that its teams come to when all teams stride over row order. They stand in the
// same places of the worklist, so a team finds its own there as it would in a list of all vertices.

#define BUCKETS 512

struct Block {
    int n;
    int* worklist;

    __device__ __forceinline__ int place(int p) const {
        return (p / TEAMS * gridDim.x + blockIdx.x) * TEAMS + p % TEAMS;
    }
    __device__ __forceinline__ int size() const {
        int all_teams = gridDim.x * TEAMS, rest = n % all_teams - (int)blockIdx.x * TEAMS;
        return n / all_teams * TEAMS + max(min(rest, TEAMS), 0);
    }

    // Replace counts by the sums of those before.
    __device__ static void sum_up(int* counts, int length) {
        __syncthreads();
        int sum = 0;
        for (int k = threadIdx.x; threadIdx.x < WARP && k - lane_id() < length; k += WARP) {
            int count = k < length ? counts[k] : 0, upto = count;
#pragma unroll
            for (int step = 1; step < WARP; step *= 2) {
                int others = __shfl_up_sync(FULL_WARP, upto, step);
                if (lane_id() >= step) upto += others;
            }
            if (k < length) counts[k] = sum + upto - count;
            sum += __shfl_sync(FULL_WARP, upto, WARP - 1);
        }
        __syncthreads();
    }

    // Write them to the worklist, highest priority first. With the vertices of each degree counted, the hash tells
    // about where a vertex comes; what falls close together is then sorted one by one.
    __device__ __forceinline__ void sort(const Problem& problem) const {
        __shared__ int degrees[LONG_DEGREE + 2], buckets[BUCKETS];
        int length = size(), last = min(length, BUCKETS) - 1;
        float scale = min(1.0f, BUCKETS / (float)length);
        for (int k = threadIdx.x; k < LONG_DEGREE + 2; k += BLOCK) degrees[k] = 0;
        for (int k = threadIdx.x; k <= last; k += BLOCK) buckets[k] = 0;
        __syncthreads();
        auto falling = [&](int v) { return LONG_DEGREE - min(problem.degrees[v], LONG_DEGREE); };
        auto bucket = [&](int v) {
            int degree = falling(v), begin = degrees[degree];
            int about = begin + __umulhi(~mix((uint32)v, problem.seed), degrees[degree + 1] - begin);
            return min((int)(about * scale), last);
        };
        for (int p0 = 0; p0 < length; p0 += BLOCK) {
            int p = p0 + threadIdx.x, degree = p < length ? falling(place(p)) : -1;
            uint32 same = __match_any_sync(FULL_WARP, degree);  // mostly all: one of them adds
            if (degree >= 0 && lane_id() == __ffs(same) - 1) atomicAdd(&degrees[degree], __popc(same));
        }
        sum_up(degrees, LONG_DEGREE + 2);
        for (int p = threadIdx.x; p < length; p += BLOCK) atomicAdd(&buckets[bucket(place(p))], 1);
        sum_up(buckets, last + 1);
        for (int p = threadIdx.x; p < length; p += BLOCK) {
            int v = place(p);
            worklist[place(atomicAdd(&buckets[bucket(v)], 1))] = v;
        }
        __syncthreads();
        for (int k = threadIdx.x; k <= last; k += BLOCK) {  // now they hold where each ends
            int begin = k ? buckets[k - 1] : 0;
            for (int i = begin + 1; i < buckets[k]; ++i) {
                int v = worklist[place(i)], p = i;
                for (; p > begin; --p) {
                    int u = worklist[place(p - 1)];
                    if (problem.precedes(u, v, problem.rank(u), problem.rank(v))) break;
                    worklist[place(p)] = u;
                }
                worklist[place(p)] = v;
            }
        }
        __syncthreads();
    }
};

// ---- Low degrees, continued. A thread looks at SHARE entries of a row at once, its team at WIDTH of them.

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
        waits = fresh(&problem.waiting[v]);
    }
    // This thread's next neighbors.
    __device__ __forceinline__ void find_neighbors(const Problem& problem) {
        if (v < 0 || degree >= LOW_DEGREE) waits = 0;
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
    // The entries behind those that the team looks at.
    __device__ __forceinline__ uint32 rest() const { return WIDTH < 32 ? waits >> WIDTH % 32 : 0; }
};

// Each team takes its vertices in turn and looks at one until it has its color. It forgets a neighbor that has its
// color or cannot matter any more (shortcut 2). The teams of a warp look together, but each goes on by itself.
__device__ __forceinline__ void color_low(const Problem& problem, long long n, const int* worklist, long long team,
                                          long long teams, bool has_high, VisitLog& visit_log) {
    // What is loaded for a vertex is not touched before the team has gone on by one, so nobody waits for it.
    Row now, after, later;
    int far;
    auto next = [&] {
        int v = team < n ? fresh(&worklist[team]) : -1;
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
            theirs[j] = mine >> j * LANES & 1 ? fresh(&problem.possible[now.neighbor[j]]) : 0;
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
                *(volatile int*)&problem.colors[now.v] = __ffs(best) - 1;
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
        // Those whose turn is far off look more and more seldom.
        patience = __any_sync(FULL_WARP, colored) ? 0 : min(patience + 1, 32);
        if (patience > 4) __nanosleep(16 * patience);
    }
}

// A warp's vertices are warp, warp + warps, ...: visit those that are chosen, which 32 threads find out at once.
template <typename Chosen, typename Visit>
__device__ __forceinline__ void for_own(long long n, long long warp, long long warps, Chosen chosen, Visit visit) {
    for (long long v0 = warp; v0 < n; v0 += WARP * warps) {
        long long v = v0 + lane_id() * warps;
        uint32 those = __ballot_sync(FULL_WARP, v < n && chosen((int)v));
        for (; those; those &= those - 1) visit((int)(v0 + (__ffs(those) - 1) * warps));
    }
}

extern "C" __global__ void __launch_bounds__(256, 4) color_by_priority(
        long long n, const OFFSET* indptr, const int* indices, const int* degrees, long long order, long long seed,
        long long shortcut1, long long shortcut2, long long max_degree, int* colors, int* possible,
        int* worklist, int* waiting, int* dag, uint32* bitmaps, int2* log) {
    Problem problem = {indptr, indices, degrees, (int)order, (uint32)seed, shortcut1 != 0, shortcut2 != 0,
                       colors, possible, waiting, dag, bitmaps};
    uint32* arrivals = (uint32*)&log[0].y;  // which nobody reads
    bool has_high = max_degree >= LOW_DEGREE, has_long = max_degree >= LONG_DEGREE;
    __shared__ int counts[SHARED_ROUNDS];
    VisitLog visit_log = {log, n + SPARE_ROUNDS, counts};
    visit_log.open();
    uint32 mates = (LANES == WARP ? FULL_WARP : (1u << (LANES % WARP)) - 1) << (lane_id() & ~(LANES - 1));
    long long warp = thread_id() / WARP, warps = thread_count() / WARP;
    for (long long v = thread_id() / LANES; v < n; v += thread_count() / LANES) {
        int degree = has_high ? degrees[v] : 0;
        if (degree < LOW_DEGREE)
            problem.open_low((int)v, mates);
        else if (degree < LONG_DEGREE && threadIdx.x % LANES == 0)
            problem.show_high((int)v, 0, false);
    }
    auto is_long = [&](int v) { return degrees[v] >= LONG_DEGREE; };
    if (has_long) for_own(n, warp, warps, is_long, [&](int v) { problem.open_high(v); });
    Block block = {(int)n, worklist};
    if (order == LDF) block.sort(problem);
    grid_barrier(arrivals);

    // By degree, all warps first take the high ones and then the low ones; in row order, either kind may wait for the
    // other, so odd warps take the high ones and even warps the low ones.
    bool in_order = order == ROW_ORDER, takes_high = has_high, takes_low = true;
    int first = threadIdx.x / WARP, step = BLOCK / WARP;
    if (in_order && has_high) {
        takes_high = first & 1;
        takes_low = !takes_high;
        first /= 2;
        step /= 2;
        warp /= 2;
        warps /= 2;
    }
    if (has_long && !in_order) {
        // Long rows are not sorted: each warp visits its own ones again and again until all of them are colored.
        auto is_left = [&](int v) { return is_long(v) && fresh(&colors[v]) < 0; };
        bool left = true;
        for (int visits = 1; left; ++visits) {
            left = false;
            for_own(n, warp, warps, is_left, [&](int v) {
                bool colored = problem.visit_high(v);
                if (colored && lane_id() == 0) visit_log.colored_after(visits);
                left |= !colored;
            });
        }
    }
    for (int p = first, size = takes_high ? block.size() : 0; p < size; p += step) {
        int v = fresh(&worklist[block.place(p)]), degree = degrees[v], visits = 1;
        if (degree < LOW_DEGREE && !in_order) break;
        if (degree < LOW_DEGREE || (degree >= LONG_DEGREE && !in_order)) continue;
        if (degree < LONG_DEGREE)
            visits = problem.color_high(v);
        else
            while (!problem.visit_high(v)) ++visits;
        if (lane_id() == 0) visit_log.colored_after(visits);
    }
    if (takes_low)
        color_low(problem, n, worklist, warp * (WARP / LANES) + lane_id() / LANES, warps * (WARP / LANES), has_high,
                  visit_log);
    visit_log.close();
}
