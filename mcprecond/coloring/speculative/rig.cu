// RIG and SIRG in one resident kernel; every __device__ function is the part of rig.py with the same name.
//
// Races that are meant: vertices are checked and recolored while their neighbors are. Of two neighbors that take the
// same color at once, both stay in the worklist, and the one of lower priority sees it in the next round. A vertex that
// has left the worklist does not change, so that whoever is recolored from then on sees its color. One traversal of the
// neighbors reads each color once and so forbids at most `degree` colors.

#define WORD 64

__device__ bool in_conflict(int v, const OFFSET* indptr, const int* indices, const int* degrees, bool by_degree,
                            const int* C) {
    int color = fresh(&C[v]);
    for (OFFSET k = indptr[v]; k < indptr[v + 1]; ++k) {
        int u = indices[k];
        if (fresh(&C[u]) == color && gives_way(v, u, by_degree, degrees)) return true;
    }
    return false;
}

// A palette of a few words in registers, which it may be indexed in by constants only.
template <int WORDS>
__device__ int minimum_color_in_registers(int v, const OFFSET* indptr, const int* indices, const int* C) {
    uint64 palette[WORDS];
#pragma unroll
    for (int w = 0; w < WORDS; ++w) palette[w] = ~0ull;
    for (OFFSET k = indptr[v]; k < indptr[v + 1]; ++k) {
        int u = indices[k], color = fresh(&C[u]);
        if (u == v) continue;
#pragma unroll
        for (int w = 0; w < WORDS; ++w)
            if (color >= w * WORD && color < (w + 1) * WORD) palette[w] &= ~(1ull << color % WORD);
    }
#pragma unroll
    for (int w = 0; w < WORDS; ++w)
        if (palette[w]) return w * WORD + __ffsll((long long)palette[w]) - 1;
    return UNCOLORED;
}

// Palettes in memory are interleaved: word w of all threads lies together.
__device__ int minimum_color(int v, const OFFSET* indptr, const int* indices, const int* degrees, const int* C,
                             uint64* palette, int words) {
    words = min(words, degrees[v] / WORD + 1);
    if (words == 1) return minimum_color_in_registers<1>(v, indptr, indices, C);
    if (words <= 4) return minimum_color_in_registers<4>(v, indptr, indices, C);
    long long stride = thread_count();
    for (int w = 0; w < words; ++w) palette[w * stride] = ~0ull;
    for (OFFSET k = indptr[v]; k < indptr[v + 1]; ++k) {
        int u = indices[k], color = fresh(&C[u]);
        if (u != v && color >= 0 && color < words * WORD) palette[color / WORD * stride] &= ~(1ull << color % WORD);
    }
    for (int w = 0; w < words; ++w)
        if (uint64 free = palette[w * stride]) return w * WORD + __ffsll((long long)free) - 1;
    return UNCOLORED;
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

extern "C" __global__ void __launch_bounds__(256) color_and_resolve(
        long long threads, long long n, const OFFSET* indptr, const int* indices, const int* degrees,
        long long by_degree, int* C, int* worklists, long long rounds, long long length, uint64* palettes,
        long long words, void* scratch, int2* log) {
    Control* control = (Control*)scratch;
    uint64* palette = palettes + thread_id();
    int round = (int)rounds, left = (int)length;
    bool lacking = false;

    if (round == 0) {  // COLORING
        for (long long v = thread_id(); v < n; v += thread_count()) {
            int color = minimum_color((int)v, indptr, indices, degrees, C, palette, (int)words);
            C[v] = color;
            worklists[n + v] = (int)v;
            if (color == UNCOLORED) control->slots[0].lacking = 1;
        }
        grid_barrier(&control->arrivals);
        lacking = fresh(&control->slots[0].lacking);
        if (thread_id() == 0) log_round(log, n, 1, (int)n, 0);
        round = 1;
    }
    for (; left && !lacking; ++round) {  // CONFLICTRESOLVEANDRECOLOR
        const int* W_in = worklists + (round & 1) * n;
        int* W_out = worklists + (~round & 1) * n;
        Slot* slot = &control->slots[round % 3];
        // All have read the next round's slot before the last barrier, two rounds after it was used.
        if (thread_id() == 0) control->slots[(round + 1) % 3] = {0, 0};
        for (long long i0 = thread_id() - lane_id(); i0 < left; i0 += thread_count()) {
            long long i = i0 + lane_id();
            int v = i < left ? fresh(&W_in[i]) : 0;
            bool recolor = i < left && (fresh(&C[v]) == UNCOLORED ||
                                        in_conflict(v, indptr, indices, degrees, by_degree, C));
            if (recolor) {
                int color = minimum_color(v, indptr, indices, degrees, C, palette, (int)words);
                C[v] = color;
                if (color == UNCOLORED) slot->lacking = 1;
            }
            int position = warp_append(recolor, &slot->length);
            if (recolor) W_out[position] = v;
        }
        grid_barrier(&control->arrivals);
        left = fresh(&slot->length);
        lacking = fresh(&slot->lacking);
        if (thread_id() == 0) log_round(log, n, round + 1, left, left);
    }
    if (thread_id() == 0) {
        control->rounds = round;
        control->left = left;
    }
}
