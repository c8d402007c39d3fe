// This kernel runs all operators of Gunrock's hash coloring; see hashed.py. Gunrock launches a kernel for each
// operator; here a grid-wide barrier separates them. No thread reads what another thread may write during the
// same operator, with one exception: in `propose` a thread reads a proposal and, if it is lower than its own color,
// raises it by an atomic operation.

#include "coloring/graph.cuh"
#include "coloring/history.cuh"
#include "cuda/compact.cuh"
#include "cuda/hash.cuh"

__device__ __forceinline__ long long number_of(int v, uint32 seed) { return (long long)mix(v, seed) << 31 | v; }

// The hash table of a vertex. Entries with the same index are adjacent for all vertices, so that threads of a warp that
// work on neighboring vertices access consecutive memory.
struct Table {
    int* first;
    long long stride;
    int size;
    __device__ int* place(int j) const { return first + j * stride; }
};

__device__ void prohibit(Table table, int color) {
    for (int j = 0; j < table.size; ++j) {
        int stored = ptx::load_l2(table.place(j));
        if (stored == color || stored == NO_REUSE) return;
        if (stored == EMPTY) {
            *table.place(j) = color;
            return;
        }
    }
}

__device__ int color_of(int proposal, int new_color, Table table) {
    uint64 prohibited = 0;  // bit c: color c is; a color below table.size + 1 is not
    for (int j = 0; j < table.size; ++j) {
        int stored = ptx::load_l2(table.place(j));
        if (stored == NO_REUSE) return proposal;
        if (stored == EMPTY) break;
        if (stored <= LARGEST_TABLE) prohibited |= 1ull << stored;
    }
    int c = __ffsll((long long)~prohibited) - 1;
    return c < new_color ? c : proposal;
}

struct Problem {
    long long n;
    const OFFSET* indptr;
    const int* indices;
    uint32 seed;
    int table_size;
    int* tables;
    const int* C;  // before the round
    int *proposed, *after;

    __device__ Table table(int v) const { return {tables + v, n, table_size}; }
    __device__ bool is_left(int v) const { return ptx::load_l2(&C[v]) == UNCOLORED; }
};

__device__ __forceinline__ void propose(Problem it, int u, int role, int new_color) {
    int color = color_of(new_color + role, new_color, it.table(u));
    if (ptx::load_l2(&it.proposed[u]) < color) atomicMax(&it.proposed[u], color);
}

__device__ void hash_color(Problem it, int v, int new_color) {
    if (!it.is_left(v)) return;
    int largest = v, smallest = v;
    long long most = number_of(v, it.seed), least = most;
    for (OFFSET k = it.indptr[v]; k < it.indptr[v + 1]; ++k) {
        int u = it.indices[k];
        if (!it.is_left(u)) continue;
        long long number = number_of(u, it.seed);
        if (number > most) most = number, largest = u;
        if (number < least) least = number, smallest = u;
    }
    propose(it, largest, 0, new_color);
    propose(it, smallest, 1, new_color);
}

__device__ bool loses(Problem it, int v, int own) {
    bool lost = false;
    for (OFFSET k = it.indptr[v]; k < it.indptr[v + 1]; ++k) {
        int u = it.indices[k];
        if (u == v) continue;
        int before = ptx::load_l2(&it.C[u]);
        if ((before == UNCOLORED ? ptx::load_l2(&it.proposed[u]) : before) != own) continue;
        if (before != UNCOLORED) {
            *it.table(v).place(0) = NO_REUSE;
            return true;
        }
        lost |= number_of(u, it.seed) > number_of(v, it.seed);
    }
    return lost;
}

// Whether v loses what was proposed.
__device__ bool resolve(Problem it, int v) {
    int color = ptx::load_l2(&it.C[v]);
    bool lost = false;
    if (color == UNCOLORED) {
        int own = ptx::load_l2(&it.proposed[v]);
        lost = own != UNCOLORED && loses(it, v, own);
        if (!lost) color = own;
    }
    it.after[v] = color;
    return lost;
}

// Whether v has no color.
__device__ bool generate(Problem it, int v) {
    it.proposed[v] = UNCOLORED;
    if (ptx::load_l2(&it.after[v]) != UNCOLORED) return false;
    for (OFFSET k = it.indptr[v]; k < it.indptr[v + 1]; ++k) {
        int u = it.indices[k], color = ptx::load_l2(&it.after[u]);
        if (color != UNCOLORED && it.is_left(u)) prohibit(it.table(v), color);
    }
    return true;
}

struct Control {  // lies in `scratch`, which the host zeroes
    uint32 arrivals;
    int lost, left;  // added up over all rounds, so that nobody has to reset them
};

extern "C" __global__ void __launch_bounds__(BLOCK)
    color_by_operators(long long n, const OFFSET* indptr, const int* indices, long long seed, long long table_size,
                       int* colors, int* tables, void* scratch, int2* log) {
    Control* control = (Control*)scratch;
    Problem it = {n, indptr, indices, (uint32)seed, (int)table_size, tables, colors, colors + n, colors + 2 * n};
    int left = (int)n, lost_before = 0, left_before = 0;
    for (int round = 0; left; ++round) {
        for (long long v = thread_id(); v < n; v += thread_count()) hash_color(it, (int)v, 2 * round);
        grid_barrier(&control->arrivals);
        // Whole warps append to no list: its length is the count.
        for (long long v0 = thread_id() - lane_id(); v0 < n; v0 += thread_count()) {
            long long v = v0 + lane_id();
            warp_append(v < n && resolve(it, (int)v), &control->lost);
        }
        grid_barrier(&control->arrivals);
        for (long long v0 = thread_id() - lane_id(); v0 < n; v0 += thread_count()) {
            long long v = v0 + lane_id();
            warp_append(v < n && generate(it, (int)v), &control->left);
        }
        grid_barrier(&control->arrivals);
        int before = left, lost = ptx::load_l2(&control->lost) - lost_before;
        left = ptx::load_l2(&control->left) - left_before;
        lost_before += lost;
        left_before += left;
        if (thread_id() == 0) log_round(log, n, round + 1, before - left + lost, lost);
        int* next = it.after;
        it.after = (int*)it.C;
        it.C = next;
    }
    for (long long v = thread_id(); v < n; v += thread_count()) colors[2 * n + v] = ptx::load_l2(&it.C[v]);
}
