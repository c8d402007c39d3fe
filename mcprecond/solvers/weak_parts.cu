// The connected components of a graph by joining sets: a thread per edge, then one per vertex. See weak_parts.py.
//
// A vertex refers to another one of its set with a smaller number; the first vertex of a set refers to itself. While sets
// are joined, threads change what others read. This does no harm: a vertex that does not refer to itself never will
// again, and whatever it refers to, now or before, is in its set.

#include "cuda/grid.cuh"
#include "cuda/memory.cuh"

// The vertex that stands for the set of vertex i. The way there becomes shorter.
__device__ __forceinline__ int root_of(int i, int* parts) {
    for (int next = load_volatile(&parts[i]); next != i; next = load_volatile(&parts[i])) {
        int behind = load_volatile(&parts[next]);
        if (behind != next) parts[i] = behind;
        i = next;
    }
    return i;
}

extern "C" __global__ void join_strong(long long edges, const int* ends, const int* others, const double* sizes,
                                       double limit, int* parts) {
    long long k = thread_id();
    if (k >= edges || !(sizes[k] >= limit)) return;
    int one = root_of(ends[k], parts), other = root_of(others[k], parts);
    while (one != other) {
        int last = max(one, other), first = min(one, other);
        int there = atomicCAS(&parts[last], last, first);
        if (there == last) return;
        one = root_of(there, parts);  // another thread was faster
        other = root_of(first, parts);
    }
}

// A thread changes no entry but its own: otherwise one could undo what another has found.
extern "C" __global__ void name_parts(long long n, int* parts) {
    long long i = thread_id();
    if (i >= n) return;
    int root = parts[i];
    while (parts[root] != root) root = parts[root];
    parts[i] = root;
}
