// RIG and SIRG in one resident kernel, a thread to a vertex; see rig.py.
//
// Races that are meant: vertices are checked and recolored while their neighbors are. Of two neighbors that take the
// same color at once, both stay in the worklist, and the one of lower priority sees it in the next round. A vertex that
// has left the worklist does not change, so that whoever is recolored from then on sees its color.

#include "coloring/graph.cuh"
#include "coloring/history.cuh"
#include "cuda/compact.cuh"

#if BITS == 64
typedef uint64 Word;
#else
typedef uint32 Word;
#endif

__device__ __forceinline__ int first_set(uint32 word) { return __ffs((int)word); }
__device__ __forceinline__ int first_set(uint64 word) { return __ffsll((long long)word); }

__device__ int minimum_color(int v, const OFFSET* indptr, const int* indices, const int* C, Word* palette, int words) {
    for (OFFSET k = indptr[v]; k < indptr[v + 1]; ++k) {
        int u = indices[k], color = ptx::load_l2(&C[u]);
        if (u != v && color >= 0 && color < words * BITS) palette[color / BITS] &= ~((Word)1 << color % BITS);
    }
    int found = UNCOLORED;
    for (int w = 0; w < words && found == UNCOLORED; ++w)
        if (palette[w]) found = w * BITS + first_set(palette[w]) - 1;
    for (int w = 0; w < words; ++w) palette[w] = ~(Word)0;
    return found;
}

__device__ bool in_conflict(int v, const OFFSET* indptr, const int* indices, const int* degrees, bool by_degree,
                            const int* C) {
    int own = ptx::load_l2(&C[v]);
    for (OFFSET k = indptr[v]; k < indptr[v + 1]; ++k) {
        int u = indices[k];
        if (ptx::load_l2(&C[u]) == own && gives_way(v, u, by_degree, degrees)) return true;
    }
    return false;
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
    Slot slots[3];  // by round; with three of them nobody resets what others still read
};

// The first `threads` threads have palettes and color.
extern "C" __global__ void __launch_bounds__(BLOCK)
    color_with_palettes(long long threads, long long n, const OFFSET* indptr, const int* indices, const int* degrees,
                        long long by_degree, long long of_vertices, int* C, int* worklists, long long rounds,
                        long long length, Word* palettes, long long words, void* scratch, int2* log) {
    int round = (int)rounds, left = (int)length;
    auto control = (Control*)scratch;
    bool lacking = false;
    threads = min(threads, thread_count());  // whole blocks
    long long own_first = thread_id() < threads ? thread_id() : 0x7fffffffffffffff;
    auto colored = [&](int v) {
        return minimum_color(v, indptr, indices, C, palettes + (of_vertices ? v : thread_id()) * words, (int)words);
    };
    if (round == 0) {  // COLORING
        for (long long v = thread_id(); v < n; v += thread_count()) C[v] = UNCOLORED;
        grid_barrier(&control->arrivals);
        for (long long v = own_first; v < n; v += threads) {
            int color = colored((int)v);
            C[v] = color;
            if (color == UNCOLORED) control->slots[0].lacking = 1;
        }
        grid_barrier(&control->arrivals);
        lacking = ptx::load_l2(&control->slots[0].lacking);
        if (thread_id() == 0) log_round(log, n, 1, (int)n, 0);
        round = 1;
    }
    for (; left && !lacking; ++round) {  // CONFLICTRESOLVEANDRECOLOR
        const int* W_in = worklists + (round & 1) * n;
        int* W_out = worklists + (~round & 1) * n;
        Slot* slot = &control->slots[round % 3];
        if (thread_id() == 0) control->slots[(round + 1) % 3] = {0, 0};
        for (long long i0 = own_first - (thread_id() < threads ? lane_id() : 0); i0 < left; i0 += threads) {
            long long i = i0 + lane_id();
            int v = i >= left ? 0 : round == 1 ? (int)i : ptx::load_l2(&W_in[i]);
            bool recolor = i < left &&
                           (ptx::load_l2(&C[v]) == UNCOLORED || in_conflict(v, indptr, indices, degrees, by_degree, C));
            if (recolor) {
                int color = colored(v);
                C[v] = color;
                if (color == UNCOLORED) slot->lacking = 1;
            }
            int place = warp_append(recolor, &slot->length);
            if (recolor) W_out[place] = v;
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
