// Smallest degree last, batch by batch, in one resident kernel: remove_in_batches in orders.py. A warp removes a
// vertex.
//
// Batches do not depend on timing: the degree of a vertex falls to d once, and the thread whose atomic takes it there
// adds the vertex to the batch.

#include "cuda/compact.cuh"
#include "cuda/hash.cuh"
#include "cuda/memory.cuh"

struct Control {  // lies in `scratch`, which the host zeroes
    uint32 arrivals;
    int batches;
    int length[3];  // by number of the batch; with three of them nobody resets what others still read
};

extern "C" __global__ void __launch_bounds__(BLOCK)
    remove_in_batches(long long n, const OFFSET* indptr, const int* indices, int* left, int* batch, int* removed,
                      void* scratch) {
    Control* control = (Control*)scratch;
    long long warp = thread_id() / WARP, warps = thread_count() / WARP;
    for (long long v = thread_id(); v < n; v += thread_count()) batch[v] = -1;
    grid_barrier(&control->arrivals);

    int number = 0;
    long long gone = 0;
    for (int d = 0; gone < n; ++d) {
        for (long long v0 = thread_id() - lane_id(); v0 < n; v0 += thread_count()) {
            long long v = v0 + lane_id();
            bool first = v < n && ptx::load_l2(&batch[v]) < 0 && ptx::load_l2(&left[v]) <= d;
            int position = warp_append(first, &control->length[number % 3]);
            if (first) {
                batch[v] = number;
                removed[(number & 1) * n + position] = (int)v;
            }
        }
        grid_barrier(&control->arrivals);
        while (int length = ptx::load_l2(&control->length[number % 3])) {
            const int* vertices = removed + (number & 1) * n;
            int* following = removed + (~number & 1) * n;
            int* following_length = &control->length[(number + 1) % 3];
            if (thread_id() == 0) control->length[(number + 2) % 3] = 0;
            for (long long i = warp; i < length; i += warps) {
                int v = ptx::load_l2(&vertices[i]);
                for (OFFSET k = indptr[v] + lane_id(); k < indptr[v + 1]; k += WARP) {
                    int u = indices[k];
                    CHECK(u, u >= 0 && u < n);
                    if (u != v && atomicSub(&left[u], 1) == d + 1) {
                        batch[u] = number + 1;
                        following[atomicAdd(following_length, 1)] = u;
                    }
                }
            }
            gone += length;
            ++number;
            grid_barrier(&control->arrivals);
        }
        // All see that nothing is left for d before the same length counts what is left for d + 1.
        grid_barrier(&control->arrivals);
    }
    if (thread_id() == 0) control->batches = number;
}

extern "C" __global__ void random_keys(long long n, long long seed, uint32* keys) {
    long long v = thread_id();
    if (v < n) keys[v] = mix((uint32)v, (uint32)seed);
}
