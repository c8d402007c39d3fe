// RIG and SIRG in one resident kernel, a thread to a vertex; see rig.py.
//
// Intended data races: a vertex is checked and recolored while its neighbors are, too. If two neighbors take the same
// color at the same time, both stay in the worklist, and the one of lower priority detects the conflict in the next
// round. The color of a vertex that has left the worklist is final, and vertices that are recolored later see it.

#include "coloring/graph.cuh"
#include "coloring/history.cuh"
#include "cuda/compact.cuh"

#if BITS == 64
typedef uint64 Word;
#else
typedef uint32 Word;
#endif

#define AT_ONCE 8  // neighbors whose colors a thread loads before it uses one of them

__device__ __forceinline__ int first_set(uint32 word) { return __ffs((int)word) - 1; }
__device__ __forceinline__ int first_set(uint64 word) { return __ffsll((long long)word) - 1; }

// All bits are set at first, and again after find_color.
struct Palette {
    Word *words, only;  // if `words` is nullptr there is a single one, which stays in a register
    int count;

    __device__ __forceinline__ void unset(int color) {
        if (color < 0 || color >= count * BITS) return;
        Word others = ~((Word)1 << color % BITS);
        if (words)
            words[color / BITS] &= others;
        else
            only &= others;
    }
    __device__ __forceinline__ int find_color() {
        int found = UNCOLORED;
        if (words) {
            for (int w = 0; w < count && found == UNCOLORED; ++w)
                if (words[w]) found = w * BITS + first_set(words[w]);
            for (int w = 0; w < count; ++w) words[w] = ~(Word)0;
        } else {
            if (only) found = first_set(only);
            only = ~(Word)0;
        }
        return found;
    }
};

struct Problem {
    const OFFSET* indptr;
    const int *indices, *degrees;
    bool by_degree;
    int *C, *conflicting;
    OFFSET* next_vertices;  // where S(v) begins in `conflicting`; it ends with the row

    // Load the neighbors in list[k..end), and their colors; where there is none, v and UNCOLORED.
    __device__ __forceinline__ void load(int v, const int* list, OFFSET k, OFFSET end, int* u, int* color) const {
#pragma unroll
        for (int j = 0; j < AT_ONCE; ++j) u[j] = k + j < end ? list[k + j] : v;
#pragma unroll
        for (int j = 0; j < AT_ONCE; ++j) color[j] = u[j] != v ? ptx::load_l2(&C[u[j]]) : UNCOLORED;
    }

    __device__ __forceinline__ int minimum_color(int v, Palette& palette) const {
        for (OFFSET k = indptr[v], end = indptr[v + 1]; k < end; k += AT_ONCE) {
            int u[AT_ONCE], color[AT_ONCE];
            load(v, indices, k, end, u, color);
#pragma unroll
            for (int j = 0; j < AT_ONCE; ++j) palette.unset(color[j]);
        }
        return palette.find_color();
    }

    // Return the smallest free color, as minimum_color does, and find S(v), the set of the neighbors of v that have a
    // higher priority. If degrees decide the priority, S(v) is stored at the end of row v of `conflicting`. If indices
    // decide it, S(v) is the end of row v of `indices`, since rows are sorted. In both cases `next_vertices[v]` is the
    // place where S(v) begins.
    __device__ __forceinline__ int first_color(int v, Palette& palette) const {
        OFFSET end = indptr[v + 1], next = end;
        for (OFFSET k = indptr[v]; k < end; k += AT_ONCE) {
            int u[AT_ONCE], color[AT_ONCE];
            bool higher[AT_ONCE];
            load(v, indices, k, end, u, color);
#pragma unroll
            for (int j = 0; j < AT_ONCE; ++j) higher[j] = gives_way(v, u[j], by_degree, degrees);
#pragma unroll
            for (int j = 0; j < AT_ONCE; ++j) {
                palette.unset(color[j]);
                next -= higher[j];
                if (higher[j] && by_degree) conflicting[next] = u[j];
            }
        }
        next_vertices[v] = next;
        return palette.find_color();
    }

    __device__ __forceinline__ bool in_conflict(int v, int own) const {
        bool found = own == UNCOLORED;
        for (OFFSET k = next_vertices[v], end = indptr[v + 1]; k < end && !found; k += AT_ONCE) {
            int u[AT_ONCE], color[AT_ONCE];
            load(v, by_degree ? conflicting : indices, k, end, u, color);
#pragma unroll
            for (int j = 0; j < AT_ONCE; ++j) found |= color[j] == own;
        }
        return found;
    }
};

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
                        long long by_degree, long long of_vertices, int* C, int* conflicting, OFFSET* next_vertices,
                        int* worklists, long long rounds, long long length, Word* palettes, long long words,
                        void* scratch, int2* log) {
    int round = (int)rounds, left = (int)length;
    auto control = (Control*)scratch;
    Problem problem = {indptr, indices, degrees, by_degree != 0, C, conflicting, next_vertices};
    bool lacking = false;
    threads = min(threads, thread_count());  // whole blocks
    long long own_first = thread_id() < threads ? thread_id() : 0x7fffffffffffffff;
    Palette palette = {words == 1 && !of_vertices ? nullptr : palettes + thread_id() * words, ~(Word)0, (int)words};
    auto palette_of = [&](int v) -> Palette& {
        if (of_vertices) palette.words = palettes + v * words;
        return palette;
    };
    if (round == 0) {  // COLORING
        for (long long v = thread_id(); v < n; v += thread_count()) C[v] = UNCOLORED;
        grid_barrier(&control->arrivals);
        for (long long v = own_first; v < n; v += threads) {
            int color = problem.first_color((int)v, palette_of((int)v));
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
            bool recolor = i < left && problem.in_conflict(v, ptx::load_l2(&C[v]));
            if (recolor) {
                int color = problem.minimum_color(v, palette_of(v));
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
