// ECL-GC where rows are short: rounds over all uncolored vertices, in their own order.
//
// A vertex of few neighbors waits for few of them, and not for long, so a sort by priority would take more time than the
// visits that it saves. A warp has every so many stretches of 32 vertices, and goes through those without a color again and
// again; they move up, so that all its threads have one. Since all warps are resident and each comes back to all its
// vertices, nobody waits for ever.
//
// Races that are meant: as in ecl_gc.cu.

#define FETCHED 4  // entries of a row that a thread has on the way at once

// A pointer to global memory, or a value, that the compiler may not compute again where it is used: it would, to save
// registers, and instructions are what takes time here.
template <typename T>
__device__ __forceinline__ T* kept(T* p) {
    asm volatile("" : "+l"(p));
    __builtin_assume(__isGlobal(p));
    return p;
}
__device__ __forceinline__ uint32 kept(uint32 value) {
    asm volatile("" : "+r"(value));
    return value;
}

// A vertex without a color, as its warp lists it.
struct __align__(sizeof(OFFSET) == 4 ? 16 : 8) Pending {
    int v;
    uint32 waits, mask;  // for which entries of its row, 0 if there is no such vertex; and its possible colors
    OFFSET begin;        // of its row
};

// The vertices of a warp that wait, 32 to a stretch of the list.
struct Waiting {
    Pending* list;
    int stretch, count;  // from one stretch to the next; how many there are

    __device__ __forceinline__ Pending* at(int i) const { return list + (i / WARP * stretch + i % WARP); }

    // Whole warps call this. What is written stood at the same place or further behind.
    __device__ __forceinline__ void append(const Pending& vertex) {
        uint32 those = __ballot_sync(FULL_WARP, vertex.waits);
        if (vertex.waits) *at(count + __popc(those & ((1u << lane_id()) - 1))) = vertex;
        count += __popc(those);
    }
};

// Find out which entries of v's row to wait for, as `Problem::open_low` does.
__device__ __forceinline__ Pending open_short(const Problem& problem, int v) {
    OFFSET begin = problem.indptr[v], end = problem.indptr[v + 1];
    int degree = problem.degrees[v];
    uint32 hash = kept(mix(v, problem.seed)), waits = 0, bit = 1;
    for (OFFSET e = begin; e < end; e += FETCHED, bit <<= FETCHED) {
        int u[FETCHED], degree_of_u[FETCHED];
#pragma unroll
        for (int j = 0; j < FETCHED; ++j) u[j] = e + j < end ? problem.indices[e + j] : v;
#pragma unroll
        for (int j = 0; j < FETCHED; ++j) degree_of_u[j] = problem.degrees[u[j]];
#pragma unroll
        for (int j = 0; j < FETCHED; ++j)
            if (degree_of_u[j] > degree || (degree_of_u[j] == degree && mix(u[j], problem.seed) > hash))
                waits |= bit << j;
    }
    uint32 mask = 0xffffffffu >> (31 - __popc(waits));
    problem.show_low(v, mask);
    if (waits == 0) problem.colors[v] = 0;
    return {v, waits, mask, begin};
}

// Look at the neighbors that a vertex waits for, as `visit_low` does.
__device__ __forceinline__ void visit_short(const Problem& problem, Pending& it) {
    const int* row = kept(problem.indices + it.begin);
    uint32 taken = 0, considered = 0, still = 0, left = it.waits, overlap = problem.shortcut2 ? it.mask : FULL_WARP;
#pragma unroll 1
    do {
        uint32 entry[FETCHED], theirs[FETCHED];  // a bit of the row each, or 0
        int u[FETCHED];
#pragma unroll
        for (int j = 0; j < FETCHED; ++j) {
            entry[j] = left & -left;
            left ^= entry[j];
        }
#pragma unroll
        for (int j = 0; j < FETCHED; ++j) u[j] = row[max(31 - __clz(entry[j]), 0)];
#pragma unroll
        for (int j = 0; j < FETCHED; ++j) {
            theirs[j] = 0;
            if (entry[j]) theirs[j] = fresh(&problem.possible[u[j]]);
        }
#pragma unroll
        for (int j = 0; j < FETCHED; ++j) {
            bool open = (theirs[j] & (theirs[j] - 1)) != 0, counts = open && (theirs[j] & overlap);
            taken |= open ? 0 : theirs[j];
            considered |= counts ? theirs[j] : 0;
            still |= counts ? entry[j] : 0;
        }
    } while (left);
    uint32 mask = it.mask & ~taken, best = mask & -mask;
    if (still == 0 || (problem.shortcut1 && (best & considered) == 0)) {
        mask = best;
        still = 0;
        problem.colors[it.v] = __ffs(best) - 1;
    } else {
        mask = best_colors(mask, __popc(still) + 1);
    }
    if (mask != it.mask) problem.show_low(it.v, mask);
    it.mask = mask;
    it.waits = still;
}

extern "C" __global__ void __launch_bounds__(BLOCK, 8) color_in_rounds(
        long long n, const OFFSET* indptr, const int* indices, const int* degrees, long long seed, long long shortcut1,
        long long shortcut2, int* colors, int* possible, Pending* pending, int2* log) {
    Problem problem = {indptr, indices, degrees, LDF, (uint32)seed, shortcut1 != 0, shortcut2 != 0,
                       colors, possible, nullptr, nullptr};
    __shared__ int counts[SHARED_ROUNDS];
    VisitLog visit_log = {log, n + SPARE_ROUNDS, counts};
    visit_log.open();
    Waiting waiting = {kept(pending + (thread_id() - lane_id())), (int)thread_count(), 0};
    int own = 0;
    for (long long v = thread_id(); v - lane_id() < n; v += thread_count()) {
        waiting.append(v < n ? open_short(problem, (int)v) : Pending{0, 0, 0, 0});
        own += (int)min(n - (v - lane_id()), (long long)WARP);
    }
    visit_log.colored_in(1, own - waiting.count);
    grid_barrier((uint32*)&log[0].y);  // of a number in the log that nobody reads

    for (int round = 2; waiting.count;) {
        int before = waiting.count;
        waiting.count = 0;
        for (int i = lane_id(); i - lane_id() < before; i += WARP) {
            Pending it = {0, 0, 0, 0};
            if (i < before) {
                it = *waiting.at(i);
                visit_short(problem, it);
            }
            waiting.append(it);
        }
        __syncwarp();
        visit_log.colored_in(round, before - waiting.count);
        round += waiting.count < before;
    }
    visit_log.close();
}
