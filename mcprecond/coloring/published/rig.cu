// RIG and SIRG in one resident kernel: see rig.py. A team of LANES threads has a vertex; LANES is chosen by the
// degrees. In the worklists, where nothing else makes up for it, a block has the vertices of very many neighbors.
//
// Races that are meant: vertices are checked and recolored while their neighbors are. Of two neighbors that take the
// same color at once, both stay in the worklist, and the one of lower priority sees it in the next round. A vertex that
// has left the worklist does not change, so that whoever is recolored from then on sees its color. For both it is
// enough that a color is as recent as the last barrier; so the first check of all vertices, which is most of the
// reading, reads through L1. One traversal of a row finds a conflict and the free colors alike: it reads each color
// once, and so forbids at most `degree` colors.

#include "balanced.cuh"
#include "coloring/history.cuh"
#include "cuda/compact.cuh"
#include "rows.cuh"

#define SOME_WORDS 4  // of a palette in registers: the first ones of SIRG
#define NONE 0x7fffffff

struct Problem {
    const OFFSET* indptr;
    const int *indices, *degrees;
    bool by_degree;
    int* C;
    uint64* palettes;  // one for each team, where SOME_WORDS are not enough
    int words;         // of a palette
};

// What a team finds in the row of a vertex.
struct Found {
    bool in_conflict;
    int minimum_color;  // free in the palette; UNCOLORED if there is none
};

// Visit the neighbors of v, of which `own` is the color; forbid(color) is called for every color among them. Returns
// whether v is in conflict and has to be recolored.
template <int TEAM, typename Load, typename Forbid>
__device__ __forceinline__ bool visit_neighbors(const Problem& problem, int v, int own, const int* row, int entries,
                                                Load load, Forbid forbid) {
    bool in_conflict = false;
    visit_row<TEAM>(row, entries, load, [&](int u, int color) {
        if (color < 0 || u == v) return;
        forbid(color);
        if (color == own) in_conflict |= gives_way(v, u, problem.by_degree, problem.degrees);
    });
    return team_or<TEAM>(in_conflict);
}

// Every thread has a palette of the colors that it has found, in registers: it may be indexed by constants only.
template <int TEAM, int WORDS, typename Load>
__device__ __forceinline__ Found find_in_registers(const Problem& problem, int v, int own, const int* row, int entries,
                                                   Load load) {
    uint64 taken[WORDS] = {};
    Found found = {false, UNCOLORED};
    found.in_conflict = visit_neighbors<TEAM>(problem, v, own, row, entries, load, [&](int color) {
#pragma unroll
        for (int w = 0; w < WORDS; ++w)
            if (color >= w * WORD && color < (w + 1) * WORD) taken[w] |= 1ull << color % WORD;
    });
#pragma unroll
    for (int w = WORDS - 1; w >= 0; --w) {
        uint64 free = ~team_or<TEAM>(taken[w]);
        if (free) found.minimum_color = w * WORD + __ffsll((long long)free) - 1;
    }
    return found;
}

// The team has one palette in memory. Most neighbors have one of a few colors, which only the first of them forbids.
template <int TEAM, typename Load>
__device__ __noinline__ Found find_in_memory(const Problem& problem, int v, int own, const int* row, int entries,
                                             int words, Load load) {
    constexpr int SEARCHERS = TEAM < WARP ? TEAM : WARP;  // every warp of a block finds the same
    uint64* palette = problem.palettes + thread_id() / TEAM * TEAM / LANES * problem.words;
    for (int w = threadIdx.x % TEAM; w < words; w += TEAM) palette[w] = ~0ull;
    team_barrier<TEAM>();
    Found found = {false, NONE};
    found.in_conflict = visit_neighbors<TEAM>(problem, v, own, row, entries, load, [&](int color) {
        uint64 bit = 1ull << color % WORD;
        if (color < words * WORD && (ptx::load_volatile(&palette[color / WORD]) & bit))
            atomicAnd(&palette[color / WORD], ~bit);
    });
    team_barrier<TEAM>();
    for (int w = threadIdx.x % SEARCHERS; w < words && found.minimum_color == NONE; w += SEARCHERS)
        if (uint64 free = ptx::load_volatile(&palette[w]))
            found.minimum_color = w * WORD + __ffsll((long long)free) - 1;
#pragma unroll
    for (int step = SEARCHERS / 2; step > 0; step /= 2)
        found.minimum_color = min(found.minimum_color, __shfl_xor_sync(FULL_WARP, found.minimum_color, step));
    if (found.minimum_color == NONE) found.minimum_color = UNCOLORED;
    team_barrier<TEAM>();
    return found;
}

// Whole warps call it; a team without a vertex has no entries.
template <int TEAM, typename Load>
__device__ __forceinline__ Found find(const Problem& problem, int v, int own, const int* row, int entries, Load load) {
    int words = min(problem.words, entries / WORD + 1);
    if (!__any_sync(FULL_WARP, words > 1)) return find_in_registers<TEAM, 1>(problem, v, own, row, entries, load);
    if (!__any_sync(FULL_WARP, words > SOME_WORDS))
        return find_in_registers<TEAM, SOME_WORDS>(problem, v, own, row, entries, load);
    return find_in_memory<TEAM>(problem, v, own, row, entries, words, load);
}

struct Slot {
    int length;   // of the next worklist
    int lacking;  // whether some vertex found nothing free in its palette
};

struct Control {  // lies in `scratch`, which the host zeroes
    uint32 arrivals;
    int rounds;
    int left;
    int unused;
    Slot slots[3];  // by round; with three of them a round needs one barrier only
};

extern "C" __global__ void __launch_bounds__(BLOCK)
    color_and_resolve(long long teams, long long n, const OFFSET* indptr, const int* indices, const int* degrees,
                      long long by_degree, int* C, int* worklists, long long rounds, long long length, uint64* palettes,
                      long long words, long long chunk, void* scratch, int2* log) {
    Problem problem = {indptr, indices, degrees, by_degree != 0, C, palettes, (int)words};
    Control* control = (Control*)scratch;
    int round = (int)rounds, left = (int)length;
    bool lacking = false;
    auto latest = [&](int u) { return ptx::load_l2(&C[u]); };

    if (round == 0) {  // COLORING
        for (long long v = thread_id(); v < n; v += thread_count()) C[v] = UNCOLORED;
        grid_barrier(&control->arrivals);
        color_stretches(n, indptr, indices, chunk, C, [&](int v, const int* row, int entries) {
            int color = find<LANES>(problem, v, UNCOLORED, row, entries, latest).minimum_color;
            if (color == UNCOLORED) control->slots[0].lacking = 1;
            return color;
        });
        grid_barrier(&control->arrivals);
        lacking = ptx::load_l2(&control->slots[0].lacking);
        if (thread_id() == 0) log_round(log, n, 1, (int)n, 0);
        round = 1;
    }
    for (; left && !lacking; ++round) {  // CONFLICTRESOLVEANDRECOLOR
        const int* W_in = worklists + (round & 1) * n;
        int* W_out = worklists + (~round & 1) * n;
        bool of_all = round == 1;  // the first W_in is not written
        Slot* slot = &control->slots[round % 3];
        // All have read the next round's slot before the last barrier, two rounds after it was used.
        if (thread_id() == 0) control->slots[(round + 1) % 3] = {0, 0};
        auto vertex = [&](long long i) { return i >= left ? 0 : of_all ? (int)i : ptx::load_l2(&W_in[i]); };
        // Whether v is recolored.
        auto resolve = [&](int v, int entries, auto team) {
            const int* row = indices + indptr[v];
            int own = ptx::load_l2(&C[v]);
            Found found = of_all ? find<team.size>(problem, v, own, row, entries, [&](int u) { return C[u]; })
                                 : find<team.size>(problem, v, own, row, entries, latest);
            bool recolor = own == UNCOLORED || found.in_conflict;
            if (recolor && entries && threadIdx.x % team.size == 0) {
                C[v] = found.minimum_color;
                if (found.minimum_color == UNCOLORED) slot->lacking = 1;
            }
            return recolor;
        };
        auto append = [&](int v, bool keep) {
            int position = warp_append(keep, &slot->length);
            if (keep) W_out[position] = v;
        };
        auto entries = [&](int v) { return (int)(indptr[v + 1] - indptr[v]); };
        // Vertices that follow one another go to different blocks.
        for (long long first = 0; LANES == WARP && first < left; first += thread_count()) {
            long long i = first + threadIdx.x * (long long)gridDim.x + blockIdx.x;
            int v = vertex(i);
            append(v, visit_block_rows(v, i < left && entries(v) >= BLOCK_ROW,
                                       [&](int v, auto team) { return resolve(v, entries(v), team); }));
        }
        long long first = (of_all ? thread_id() : spread_id()) - lane_id();
        for (long long i0 = first / LANES; i0 < left; i0 += thread_count() / LANES) {
            long long i = i0 + lane_id() / LANES;
            int v = vertex(i), length = i < left ? entries(v) : 0;
            if (LANES == WARP && length >= BLOCK_ROW) continue;
            bool recolor = resolve(v, length, Team<LANES>());
            append(v, recolor && i < left && threadIdx.x % LANES == 0);
        }
        grid_barrier(&control->arrivals);
        left = ptx::load_l2(&slot->length);
        lacking = ptx::load_l2(&slot->lacking);
        if (thread_id() == 0) log_round(log, n, round + 1, left, left);
    }
    if (thread_id() == 0) {
        control->rounds = round;
        control->left = left;
    }
}
