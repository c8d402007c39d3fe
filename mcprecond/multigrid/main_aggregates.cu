// Which blocks of P stay: a thread per block. See main_aggregates.py.

#include "cuda/grid.cuh"

extern "C" __global__ void find_main(long long blocks, const int* nodes, const int* columns, const OFFSET* indptr,
                                     const int* indices, const int* labels, int* is_main) {
    long long e = thread_id();
    if (e >= blocks) return;
    long long v = nodes[e];
    OFFSET count = 0;
    for (OFFSET k = indptr[v]; k < indptr[v + 1]; ++k) count += labels[indices[k]] == columns[e];
    bool is_own = labels[v] < 0 || labels[v] == columns[e];
    is_main[e] = is_own || count * NEIGHBORS_OF_ONE >= indptr[v + 1] - indptr[v];
}
