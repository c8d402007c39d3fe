// The masked product of GraphBLAS over two semirings: LANES threads per row. See semirings.py.

#include "cuda/grid.cuh"
#include "cuda/hash.cuh"

// A semiring: its domain, its addition, whose zero is 0, and what no addition changes any more. Its multiplication has
// nothing to do, since the entries of A are one.
struct MaxTimes {
    typedef long long Value;
    static __device__ Value add(Value a, Value b) { return max(a, b); }
    static __device__ bool is_terminal(Value) { return false; }
};

struct Boolean {
    typedef bool Value;
    static __device__ Value add(Value a, Value b) { return a || b; }
    static __device__ bool is_terminal(Value a) { return a; }
};

template <typename Semiring, typename Value = typename Semiring::Value>
__device__ void masked_product(long long n, const OFFSET* indptr, const int* indices, const Value* x,
                               const long long* mask, Value* y) {
    long long v = thread_id() / LANES;
    Value total = 0;
    if (v < n && mask[v])
        for (OFFSET k = indptr[v] + lane_id() % LANES, end = indptr[v + 1]; k < end; k += LANES) {
            if (indices[k] != v) total = Semiring::add(total, x[indices[k]]);
            if (Semiring::is_terminal(total)) break;
        }
#pragma unroll
    for (int step = LANES / 2; step > 0; step /= 2)
        total = Semiring::add(total, __shfl_xor_sync(FULL_WARP, total, step, LANES));
    if (v < n && lane_id() % LANES == 0) y[v] = total;
}

extern "C" __global__ void vxm(long long n, const OFFSET* indptr, const int* indices, long long semiring, const void* x,
                               const long long* mask, void* y) {
    if (semiring == MAX_TIMES)
        masked_product<MaxTimes>(n, indptr, indices, (const long long*)x, mask, (long long*)y);
    else
        masked_product<Boolean>(n, indptr, indices, (const bool*)x, mask, (bool*)y);
}

extern "C" __global__ void set_random(long long n, long long seed, long long* weight) {
    long long v = thread_id();
    if (v < n) weight[v] = (long long)((uint64)mix((uint32)v, (uint32)seed) << 31 | (uint64)(v + 1));
}
