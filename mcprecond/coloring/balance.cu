// Balancing: one thread per member of a class. See balance.py.
// Meant races: sizes are read while others move; the atomics that take and give up places decide.

#include "coloring/graph.cuh"

__device__ int best_class(int v, long long distance, const OFFSET* indptr, const int* indices, long long target,
                          long long n_goals, const int* goals, const int* place, long long* begin, const int* colors,
                          const long long* sizes) {
    for (long long offset = ptx::load_l2(begin); offset < n_goals; offset += 64) {
        int many = (int)min(64LL, n_goals - offset);
        bool room = false;
        for (int i = 0; i < many && !room; ++i) room = ptx::load_l2(&sizes[goals[offset + i]]) < target;
        if (!room) {
            atomicMax(begin, offset + 64);
            continue;
        }
        uint64 taken = 0;
        any_near<1>(v, distance, indptr, indices, [&](OFFSET k) {
            long long bit = place[colors[indices[k]]] - offset;  // others near v are in classes that do not move now
            if (bit >= 0 && bit < 64) taken |= 1ull << bit;
            return false;
        });
        int best = -1;
        long long best_size = target;
        for (int i = 0; i < 64; ++i) {
            int bit = (v + i) % 64;  // of equally small ones not all take the first
            if (bit >= many || taken >> bit & 1) continue;
            int goal = goals[offset + bit];
            long long size = ptx::load_l2(&sizes[goal]);
            if (size < best_size) {
                best = goal;
                best_size = size;
            }
        }
        if (best >= 0) return best;
    }
    return -1;
}

extern "C" __global__ void leave_class(long long items, const int* members, long long distance, const OFFSET* indptr,
                                       const int* indices, long long c, long long target, long long n_goals,
                                       const int* goals, const int* place, long long* begin, int* colors,
                                       long long* sizes) {
    long long i = thread_id();
    if (i >= items) return;
    const uint64 one = 1, minus_one = ~0ull;
    int v = members[i];
    while (ptx::load_l2(&sizes[c]) > target) {
        int goal = best_class(v, distance, indptr, indices, target, n_goals, goals, place, begin, colors, sizes);
        if (goal < 0) return;
        uint64 *its = (uint64*)&sizes[goal], *own = (uint64*)&sizes[c];
        if ((long long)atomicAdd(its, one) >= target) {
            atomicAdd(its, minus_one);
            continue;  // somebody else took the last place
        }
        if ((long long)atomicAdd(own, minus_one) <= target) {
            atomicAdd(own, one);
            atomicAdd(its, minus_one);
        } else {
            colors[v] = goal;
        }
        return;
    }
}
