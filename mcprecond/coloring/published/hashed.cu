// Gunrock's hash coloring in one resident kernel; every __device__ function is the part of hashed.py of that name.
//
// No phase reads what another thread may write in it, with one exception: in `generate_and_propose` a thread loads a
// proposal to see whether it has to be raised, and then raises it by an atomic. If the loaded value is outdated, the
// atomic is superfluous, and the result is the same. The phase also reads the proposals of colored vertices, which no
// longer change.

#include "hash_tables.cuh"
#include "coloring/graph.cuh"
#include "coloring/history.cuh"
#include "cuda/compact.cuh"

__device__ __forceinline__ void raise_to(int* proposal, int value) {
    if (ptx::load_l2(proposal) < value) atomicMax(proposal, value);
}

__device__ void generate_and_propose(int v, int new_color, const OFFSET* indptr, const int* indices, uint32 seed,
                                     const int* colors, int* proposals, Table table) {
    int largest = v, smallest = v;
    long long most = number_of(v, seed), least = most;
    for (OFFSET k = indptr[v]; k < indptr[v + 1]; ++k) {
        int u = indices[k], color = ptx::load_l2(&colors[u]);
        if (color == UNCOLORED) {
            long long number = number_of(u, seed);
            if (number > most) most = number, largest = u;
            if (number < least) least = number, smallest = u;
        } else if (ptx::load_l2(&proposals[u]) >= new_color - 2) {
            prohibit(table, color);
        }
    }
    raise_to(&proposals[largest], new_color);
    raise_to(&proposals[smallest], new_color + 1);
}

__device__ bool loses(int v, int new_color, const OFFSET* indptr, const int* indices, uint32 seed, const int* colors,
                      const int* proposals, Table table) {
    int own = ptx::load_l2(&colors[v]);
    bool lost = false;
    for (OFFSET k = indptr[v]; k < indptr[v + 1]; ++k) {
        int u = indices[k];
        if (u == v || ptx::load_l2(&colors[u]) != own) continue;
        if (ptx::load_l2(&proposals[u]) < new_color) {  // u has been colored before
            *table.place(0) = NO_REUSE;
            return true;
        }
        lost |= number_of(u, seed) > number_of(v, seed);
    }
    return lost;
}

struct Control {  // lies in `scratch`, which the host zeroes
    uint32 arrivals;
    int conflicts;  // in all rounds
    int length[2];  // of the worklists, by parity of the round
};

extern "C" __global__ void __launch_bounds__(BLOCK)
    color_by_proposals(long long n, const OFFSET* indptr, const int* indices, long long seed, long long table_size,
                       int* colors, int* proposals, int* tables, int* worklists, void* scratch, int2* log) {
    Control* control = (Control*)scratch;
    for (long long v = thread_id(); v < n; v += thread_count()) worklists[v] = (int)v;
    grid_barrier(&control->arrivals);
    int length = (int)n, conflicts = 0;
    for (int round = 0;; ++round) {
        const int* left = worklists + (round & 1) * n;
        int* next = worklists + (~round & 1) * n;
        int* next_length = &control->length[round & 1];
        int new_color = 2 * round;  // `new` in hashed.py

        for (long long i = thread_id(); i < length; i += thread_count()) {
            int v = ptx::load_l2(&left[i]);
            Table table = {tables + v, n, (int)table_size};
            generate_and_propose(v, new_color, indptr, indices, (uint32)seed, colors, proposals, table);
        }
        grid_barrier(&control->arrivals);

        for (long long i = thread_id(); i < length; i += thread_count()) {
            int v = ptx::load_l2(&left[i]), proposal = ptx::load_l2(&proposals[v]);
            if (proposal >= new_color) colors[v] = color_of(proposal, new_color, {tables + v, n, (int)table_size});
        }
        grid_barrier(&control->arrivals);

        for (long long i0 = thread_id() - lane_id(); i0 < length; i0 += thread_count()) {
            long long i = i0 + lane_id();
            int v = i < length ? ptx::load_l2(&left[i]) : 0;
            Table table = {tables + v, n, (int)table_size};
            bool proposed = i < length && ptx::load_l2(&proposals[v]) >= new_color;
            bool lost = proposed && loses(v, new_color, indptr, indices, (uint32)seed, colors, proposals, table);
            bool stays = i < length && (lost || !proposed);
            warp_append(lost, &control->conflicts);
            int position = warp_append(stays, next_length);
            if (stays) next[position] = v;
        }
        grid_barrier(&control->arrivals);

        int before = length, conflicts_before = conflicts;
        length = ptx::load_l2(next_length);
        conflicts = ptx::load_l2(&control->conflicts);
        int lost = conflicts - conflicts_before;
        if (thread_id() == 0) log_round(log, n, round + 1, before - length + lost, lost);
        if (length == 0) return;
        // The next round counts in the other slot; everyone has read it, since that was before the last barriers.
        if (thread_id() == 0) control->length[~round & 1] = 0;
        // Only now: all conflicts are judged by the same colors.
        for (long long i = thread_id(); i < length; i += thread_count()) colors[ptx::load_l2(&next[i])] = UNCOLORED;
        grid_barrier(&control->arrivals);
    }
}
