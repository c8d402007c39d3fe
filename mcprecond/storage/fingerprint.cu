// One pass over the entries of a matrix. See fingerprint.py.

#include "cuda/hash.cuh"
#include "cuda/memory.cuh"
#include "cuda/numbers.cuh"
#include "cuda/reduce.cuh"

extern "C" __global__ void __launch_bounds__(BLOCK, 4)
    fingerprint(long long entries, long long n, const OFFSET* indptr, const int* indices, const VALUE* values,
                uint64* found) {
    uint64 pattern = 0, both = 0, not_finite = 0;
    for (long long i = thread_id(); i <= n; i += thread_count())
        pattern += mix64(mix64((uint64)i) ^ (uint64)(long long)indptr[i]);
    auto add = [&](long long k, int column, VALUE value) {
        uint64 entry = mix64((uint64)k << 32 ^ (uint64)(long long)column);
        pattern += entry;
        each_part(value, [&](REAL part) { entry = mix64(entry ^ (uint64)__double_as_longlong(widened(part))); });
        both += entry;
        not_finite += !isfinite(value);
    };
    constexpr int BATCH = 8;  // entries that a thread loads at once
    long long stride = thread_count(), k = thread_id();
    for (; k + (BATCH - 1) * stride < entries; k += BATCH * stride) {
        int column[BATCH];
        VALUE value[BATCH];
#pragma unroll
        for (int e = 0; e < BATCH; ++e) column[e] = indices[k + e * stride], value[e] = values[k + e * stride];
#pragma unroll
        for (int e = 0; e < BATCH; ++e) add(k + e * stride, column[e], value[e]);
    }
    for (; k < entries; k += stride) add(k, indices[k], values[k]);
    add_block_sums<3>(found, {pattern, pattern + both, not_finite});
}

extern "C" __global__ void find_range(long long entries, const VALUE* values, uint64* found) {
    uint64 largest = 0, smallest = 0;
    for (long long k = thread_id(); k < entries; k += thread_count()) {
        VALUE value = values[k];
        each_part(value, [&](REAL part) {
            uint64 magnitude = (uint64)__double_as_longlong(fabs(widened(part)));
            if (magnitude == 0 || magnitude >= INFINITY_BITS) return;
            largest = max(largest, magnitude);
            smallest = max(smallest, INFINITY_BITS - magnitude);
        });
    }
    for (int step = WARP / 2; step > 0; step /= 2) {
        largest = max(largest, __shfl_xor_sync(FULL_WARP, largest, step));
        smallest = max(smallest, __shfl_xor_sync(FULL_WARP, smallest, step));
    }
    if (lane_id() != 0) return;
    if (largest > ptx::load_l2(&found[LARGEST])) atomicMax(&found[LARGEST], largest);
    if (smallest > ptx::load_l2(&found[SMALLEST])) atomicMax(&found[SMALLEST], smallest);
}
