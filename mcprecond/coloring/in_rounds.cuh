// ECL-GC where rows are short: rounds over all uncolored vertices, in their own order.
//
// A vertex of few neighbors waits for few of them, and not for long, so a sort by priority would take more time than
// the visits that it saves. A warp has every so many stretches of 32 vertices. It opens one after another, and visits
// those of one for the first time while it opens the next. Then it goes through its vertices without a color again and
// again; they move up, so that all its threads have one. A vertex shows the colors that it cannot get, at first none,
// so that nobody needs to know whether it is opened. Since all warps are resident and each comes back to all its
// vertices, nobody waits for ever.
//
// Races that are meant: as in ecl_gc.cu, with colors that are not possible, which only get more.
#pragma once

#define FETCHED 5  // entries of a row that a thread loads at once
#define POLLED 4   // the same, of those that a vertex waits for
#define STAGED \
    224  // waiting vertices of a warp that are listed in shared memory; the others are listed in global memory

// Instructions are what takes time here: an address is not computed again where it is used.
template <typename T>
__device__ __forceinline__ T* global_in_register(T* p) {
    p = ptx::keep_generic_in_register(p);
    __builtin_assume(__isGlobal(p));
    return p;
}

struct ShortRows {
    const OFFSET* indptr;
    const int *indices, *degrees;
    uint32 seed;
    bool shortcut1, shortcut2;
    int *colors, *excluded;

    __device__ __forceinline__ uint64 priority(int v, int degree) const { return (uint64)degree << 32 | mix(v, seed); }
    __device__ __forceinline__ void show(int v, uint32 possible) const {
        ptx::store_volatile(&excluded[v], (int)~possible);
    }
    __device__ __forceinline__ uint32 possible(int u) const { return ~(uint32)ptx::load_l2(&excluded[u]); }
};

// A vertex without a color, as its warp lists it.
struct __align__(sizeof(OFFSET) == 4 ? 16 : 8) Pending {
    int v;
    uint32 waits, mask;  // for which entries of its row, 0 if there is no such vertex; and its possible colors
    OFFSET begin;        // of its row
};

// The vertices of a warp that wait: the first ones in shared memory, the others 32 to a stretch of the list.
struct Waiting {
    Pending *staged, *list;
    int stretch, count;  // from one stretch to the next; how many there are
    uint32 before;       // the lanes before this one

    __device__ __forceinline__ Pending* at(int i) const {
        return i < STAGED ? staged + i : list + (i / WARP * stretch + i % WARP);
    }

    // All threads of a warp call this function. It compacts the list in place, so vertices only move forward.
    __device__ __forceinline__ void append(const Pending& vertex) {
        uint32 those = __ballot_sync(FULL_WARP, vertex.waits);
        if (vertex.waits) *at(count + __popc(those & before)) = vertex;
        count += __popc(those);
    }
};

// A vertex that was opened last, and its neighbors, if its row has no more entries than are fetched at once.
struct Opened : Pending {
    int u[FETCHED];
    bool has_all;

    __device__ __forceinline__ Opened() : Pending{0, 0, 0, 0}, has_all(false) {}

    // Find out which entries of v's row to wait for, as `Problem::open_low` does.
    __device__ __forceinline__ Opened(const ShortRows& rows, int vertex) {
        v = vertex;
        begin = rows.indptr[v];
        int left = (int)(rows.indptr[v + 1] - begin);
        const int* row = global_in_register(rows.indices + begin);
        uint64 own = rows.priority(v, rows.degrees[v]);
        uint32 bit = 1;
        waits = 0;
        has_all = left <= FETCHED;
        do {
            int degree_of_u[FETCHED];
#pragma unroll
            for (int j = 0; j < FETCHED; ++j) u[j] = j < left ? row[j] : v;
#pragma unroll
            for (int j = 0; j < FETCHED; ++j) degree_of_u[j] = rows.degrees[u[j]];
#pragma unroll
            for (int j = 0; j < FETCHED; ++j) waits |= rows.priority(u[j], degree_of_u[j]) > own ? bit << j : 0;
            left -= FETCHED;
            row += FETCHED;
            bit <<= FETCHED;
        } while (left > 0);
        mask = 0xffffffffu >> (31 - __popc(waits));
        rows.show(v, mask);
        if (waits == 0) rows.colors[v] = 0;
    }
};

// One poll of the neighbors that a vertex waits for, as in `visit_low`.
struct Visit {
    uint32 taken = 0, considered = 0, still = 0;

    // A neighbor's possible colors, none if there is no neighbor; `entry` is its bit. It counts if it may get one of
    // `overlap`.
    __device__ __forceinline__ void add(uint32 possible, uint32 entry, uint32 overlap) {
        bool open = (possible & (possible - 1)) != 0, counts = open && (possible & overlap);
        taken |= open ? 0 : possible;
        considered |= counts ? possible : 0;
        still |= counts ? entry : 0;
    }
    __device__ __forceinline__ void end(const ShortRows& rows, Pending& it) const {
        uint32 mask = it.mask & ~taken, best = mask & -mask, waits = still;
        if (waits == 0 || (rows.shortcut1 && (best & considered) == 0)) {
            mask = best;
            waits = 0;
            rows.colors[it.v] = __ffs(best) - 1;
        } else {
            mask = best_colors(mask, __popc(waits) + 1);
        }
        if (mask != it.mask) rows.show(it.v, mask);
        it.mask = mask;
        it.waits = waits;
    }
};

__device__ __forceinline__ void visit_short(const ShortRows& rows, Pending& it) {
    const int* row = global_in_register(rows.indices + it.begin);
    uint32 left = it.waits, overlap = rows.shortcut2 ? it.mask : FULL_WARP;
    Visit visit;
#pragma unroll 1
    do {
        uint32 entry[POLLED], possible[POLLED];
        int u[POLLED];
#pragma unroll
        for (int j = 0; j < POLLED; ++j) {
            entry[j] = left & -left;
            left ^= entry[j];
        }
#pragma unroll
        for (int j = 0; j < POLLED; ++j) u[j] = row[max(31 - __clz(entry[j]), 0)];
#pragma unroll
        for (int j = 0; j < POLLED; ++j) possible[j] = entry[j] ? rows.possible(u[j]) : 0;
#pragma unroll
        for (int j = 0; j < POLLED; ++j) visit.add(possible[j], entry[j], overlap);
    } while (left);
    visit.end(rows, it);
}

// `zeros` holds the log, of so many rows, and behind it what vertices show.
extern "C" __global__ void __launch_bounds__(BLOCK, 4)
    color_in_rounds(long long n, const OFFSET* indptr, const int* indices, const int* degrees, long long seed,
                    long long shortcut1, long long shortcut2, int* colors, Pending* pending, long long log_rows,
                    int* zeros) {
    ShortRows rows = {indptr,
                      indices,
                      global_in_register(degrees),
                      (uint32)seed,
                      shortcut1 != 0,
                      shortcut2 != 0,
                      colors,
                      global_in_register(zeros + 2 * log_rows)};
    __shared__ int counts[SHARED_ROUNDS];
    __shared__ Pending staged[BLOCK / WARP][STAGED];
    VisitLog visit_log = {(int2*)zeros, log_rows - 1, counts};
    visit_log.open();
    int lane = ptx::keep_in_register(lane_id()), threads = ptx::keep_in_register((int)thread_count());
    int first = (int)thread_id() - lane;
    Waiting waiting = {staged[threadIdx.x / WARP], global_in_register(pending + first), threads, 0,
                       (uint32)ptx::keep_in_register((1 << lane) - 1)};
    Opened last;
    for (uint32 stretch = first, end = (uint32)n; stretch < end + threads;
         stretch += threads) {  // one more: see `last`
        uint32 v = stretch + lane;
        uint32 visits = last.has_all ? last.waits : 0, possible[FETCHED];
#pragma unroll
        for (int j = 0; j < FETCHED; ++j) possible[j] = visits >> j & 1 ? rows.possible(last.u[j]) : 0;
        Opened next;
        if (v < end) next = Opened(rows, (int)v);
        if (visits) {
            Visit visit;
#pragma unroll
            for (int j = 0; j < FETCHED; ++j)
                visit.add(possible[j], visits & 1u << j, rows.shortcut2 ? last.mask : FULL_WARP);
            visit.end(rows, last);
        }
        waiting.append(last);
        last = next;
    }
    int own = (int)n / threads * WARP + min(max((int)n % threads - first, 0), WARP);
    visit_log.colored_in(1, own - waiting.count);

    for (int round = 2; waiting.count;) {
        int before = waiting.count;
        waiting.count = 0;
        __syncwarp();
        for (int i = lane; i - lane < before; i += WARP) {
            Pending it = {0, 0, 0, 0};
            if (i < before) {
                it = *waiting.at(i);
                visit_short(rows, it);
            }
            waiting.append(it);
        }
        visit_log.colored_in(round, before - waiting.count);
        round += waiting.count < before;
    }
    visit_log.close();
}
