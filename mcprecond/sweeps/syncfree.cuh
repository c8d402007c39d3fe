// Sweeps without barriers. A row is written once a sweep, and whoever needs it polls until it is ready: its value is
// its own ready flag. There are two kinds of flag.
//
// Sentinel: before the sweep all values are NaNs with all bits set, which no result has. Epoch: the last bit of each
// number tells which sweep wrote it, this one or the one before. So a result may take the place of the old one, and
// nothing has to be reset.
//
// The race is meant. The first load may hit a stale line of L1; then it finds what was there before the sweep, which is
// not ready, and polls, which go to L2, follow. A value of several pieces is ready when all of them are.
#pragma once

#include "cuda/memory.cuh"
#include "cuda/numbers.cuh"

// ---- Sentinels.

__device__ __forceinline__ bool is_sentinel(double value) { return __double_as_longlong(value) == -1ll; }
__device__ __forceinline__ bool is_sentinel(float value) { return __float_as_int(value) == -1; }
__device__ __forceinline__ bool is_sentinel(TruncatedDouble value) { return value.bits == 0xffffffffu; }
template <typename Value>
__device__ __forceinline__ bool is_sentinel(Value value) {
    bool found = false;
    each_part(value, [&](Real<Value>& part) { found |= is_sentinel(part); });
    return found;
}

__device__ __forceinline__ void store_sentinel(double* p) { *p = __longlong_as_double(-1ll); }
__device__ __forceinline__ void store_sentinel(float* p) { *p = __int_as_float(-1); }
__device__ __forceinline__ void store_sentinel(TruncatedDouble* p) { p->bits = 0xffffffffu; }
template <typename Value>
__device__ __forceinline__ void store_sentinel(Value* p) {
    Value sentinel;
    each_part(sentinel, [](Real<Value>& part) { store_sentinel(&part); });
    *p = sentinel;
}

// Write a value whose flag is a sentinel; a result that happens to be that NaN becomes another NaN. With RELEASE,
// whoever finds the value by `spin_acquire` also sees everything written before it.
template <bool RELEASE = false, typename Value>
__device__ __forceinline__ void publish(Value* p, Value value) {
    each_part(value, [](Real<Value>& part) {
        if (is_sentinel(part)) part = __int_as_float(0x7fffffff);
    });
    if constexpr (RELEASE)
        store_release(p, value);
    else
        store_volatile(p, value);
}

// Wait for a value that is published with RELEASE; `prefetched` is what an earlier load_acquire has found.
template <typename Value>
__device__ __forceinline__ Value spin_acquire(const Value* p, Value prefetched) {
    while (is_sentinel(prefetched)) {
        do {
            __nanosleep(20);
            prefetched = load_volatile(p);
        } while (is_sentinel(prefetched));
        prefetched = load_acquire(p);
    }
    return prefetched;
}

// ---- Epochs: 0 or 1.

__device__ __forceinline__ uint32 last_bits(double value) { return (uint32)__double2loint(value); }
__device__ __forceinline__ uint32 last_bits(float value) { return (uint32)__float_as_int(value); }
__device__ __forceinline__ uint32 last_bits(TruncatedDouble value) { return value.bits; }
__device__ __forceinline__ double with_last_bit(double value, uint32 bit) {
    return __hiloint2double(__double2hiint(value), (int)(((uint32)__double2loint(value) & ~1u) | bit));
}
__device__ __forceinline__ float with_last_bit(float value, uint32 bit) {
    return __int_as_float((int)(((uint32)__float_as_int(value) & ~1u) | bit));
}
__device__ __forceinline__ TruncatedDouble with_last_bit(TruncatedDouble value, uint32 bit) {
    value.bits = (value.bits & ~1u) | bit;
    return value;
}
// Whether any part of a value is of the other epoch: in the last bit of the result, the others mean nothing.
template <typename Value>
__device__ __forceinline__ uint32 epoch_differs(Value value, uint32 epoch) {
    uint32 differs = 0;
    each_part(value, [&](Real<Value>& part) { differs |= last_bits(part) ^ epoch; });
    return differs;
}
template <typename Value>
__device__ __forceinline__ Value with_epoch(Value value, uint32 epoch) {
    each_part(value, [&](Real<Value>& part) { part = with_last_bit(part, epoch); });
    return value;
}

// ---- A vector that a sweep reads, by the kind of flag. Layouts know two functions of it: `load(j)` is the first load of
// element j, and `wait(prefetched, column, row)` waits until all elements are ready that a thread has loaded so, those of
// numbers column(e) for a row. `none()` stands for no element, and is ready. Whether a load has found an element not ready
// is in the last bit of `not_ready(value)`; `poll(j)` loads it again.

template <typename Value>
struct KnownVector {
    const Value* values;
    __device__ __forceinline__ Value none() const { return Value(); }
    __device__ __forceinline__ Value load(int j) const { return load_reused(values + j); }
    template <int BATCH, typename Column>
    __device__ __forceinline__ void wait(Value (&)[BATCH], Column, int) const {}
};
// What vectors share whose elements are awaited; `Own` is their type.
template <typename Own, typename Value>
struct AwaitedVector : KnownVector<Value> {
    template <int BATCH, typename Column>
    __device__ __forceinline__ void wait(Value (&prefetched)[BATCH], Column column, int row) const {
        spin_wait((const Own&)*this, prefetched, column, row);
    }
};
template <typename Value>
struct SentinelVector : AwaitedVector<SentinelVector<Value>, Value> {
    __device__ __forceinline__ uint32 not_ready(const Value& value) const { return is_sentinel(value); }
    __device__ __forceinline__ Value poll(int j) const { return load_volatile(&this->values[j]); }
};
template <typename Value>
struct EpochVector : AwaitedVector<EpochVector<Value>, Value> {
    uint32 epoch;
    __device__ __forceinline__ Value none() const { return with_epoch(Value(), epoch); }
    __device__ __forceinline__ uint32 not_ready(const Value& value) const { return epoch_differs(value, epoch); }
    __device__ __forceinline__ Value poll(int j) const { return load_volatile(&this->values[j]); }
};
// These deduce the type.
template <typename Value>
__device__ __forceinline__ KnownVector<Value> known(const Value* values) {
    return {values};
}
template <typename Value>
__device__ __forceinline__ SentinelVector<Value> by_sentinel(const Value* values) {
    return {{{values}}};
}
template <typename Value>
__device__ __forceinline__ EpochVector<Value> by_epoch(const Value* values, uint32 epoch) {
    return {{{values}}, epoch};
}

#ifndef CUT_ROWS
// Poll until all prefetched elements are ready, those that are not all at once; `column(e)` is the number of element e.
template <typename Vector, typename Value, int BATCH, typename Column>
__device__ __forceinline__ void spin_wait(const Vector& vector, Value (&prefetched)[BATCH], Column column, int) {
    while (true) {
        uint32 not_ready = 0;
#pragma unroll
        for (int e = 0; e < BATCH; ++e) not_ready |= vector.not_ready(prefetched[e]);
        if (!(not_ready & 1)) return;
#pragma unroll
        for (int e = 0; e < BATCH; ++e)
            if (vector.not_ready(prefetched[e]) & 1) prefetched[e] = vector.poll(column(e));
    }
}

#else
// The same by a whole warp, which polls one element at a time: that nearest to its row in the order of the sweep, which
// is probably the last one to be ready. Where thousands of warps wait for a few rows, polls for all that they need would
// keep the memory busy.
template <typename Vector, typename Value, int BATCH, typename Column>
__device__ __forceinline__ void spin_wait(const Vector& vector, Value (&prefetched)[BATCH], Column column, int row) {
    while (true) {
        int nearest = 0x7fffffff, awaited = 0;
#pragma unroll
        for (int e = 0; e < BATCH; ++e) {
            int distance = abs(column(e) - row);
            if ((vector.not_ready(prefetched[e]) & 1) && distance < nearest) nearest = distance, awaited = column(e);
        }
        int least = nearest;
#pragma unroll
        for (int step = WARP / 2; step > 0; step /= 2) least = min(least, __shfl_xor_sync(FULL_WARP, least, step));
        if (least == 0x7fffffff) return;
        awaited = __shfl_sync(FULL_WARP, awaited, __ffs(__ballot_sync(FULL_WARP, nearest == least)) - 1);
        while (vector.not_ready(vector.poll(awaited)) & 1) {
        }
#pragma unroll
        for (int e = 0; e < BATCH; ++e)
            if (vector.not_ready(prefetched[e]) & 1) prefetched[e] = vector.poll(column(e));
    }
}
#endif
