// Union-find for the connected components of a graph. First a thread for each edge joins the sets of its two ends. Then
// a thread for each vertex finds the root. See weak_parts.py.
//
// Each set is a tree. The parent of a vertex has a smaller number, and a root is its own parent. Threads change parents
// while other threads read them. A thread that reads an old parent still gets correct results: the old parent is an
// ancestor, too, and a vertex that has stopped being a root never becomes one again.

#include "cuda/grid.cuh"
#include "cuda/memory.cuh"

// Return the root of the tree of vertex i. Vertices on the path to the root get their grandparents as parents, so that
// later searches take fewer steps.
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
        one = root_of(there, parts);  // another thread has given `last` a parent in the meantime
        other = root_of(first, parts);
    }
}

// Store the root of each vertex as its parent. Each thread writes to its own vertex only. If it shortened the paths of
// other vertices, it could overwrite a root that another thread has just stored.
extern "C" __global__ void name_parts(long long n, int* parts) {
    long long i = thread_id();
    if (i >= n) return;
    int root = parts[i];
    while (parts[root] != root) root = parts[root];
    parts[i] = root;
}
