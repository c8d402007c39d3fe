// The connected components of a graph by joining sets: a thread per edge, then one per vertex. See weak_parts.py.
//
// A vertex refers to another one of its set with a smaller number; the first vertex of a set refers to itself. Threads
// change what others read. This does no harm: a vertex that does not refer to itself never will again, and whatever it
// refers to, now or before, is in its set.

#include "cuda/grid.cuh"

// The vertex that stands for the set of vertex i. The way there becomes shorter.
__device__ __forceinline__ int root_of(int i, volatile int* parts) {
    for (int next = parts[i]; next != i; next = parts[i]) {
        int behind = parts[next];
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

extern "C" __global__ void name_parts(long long n, int* parts) {
    long long i = thread_id();
    if (i < n) parts[i] = root_of((int)i, parts);
}
