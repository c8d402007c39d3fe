// Hashes. backends/hashing.py has them for Numba.
#pragma once

#include "cuda/types.cuh"

// The random priority of a vertex.
__device__ __forceinline__ uint32 mix(uint32 v, uint32 seed) {
    v ^= seed * 0x9e3779b9u;
    v ^= v >> 16;
    v *= 0x85ebca6bu;
    v ^= v >> 13;
    v *= 0xc2b2ae35u;
    v ^= v >> 16;
    return v;
}

// 64 bits, the sums of which tell patterns apart.
__device__ __forceinline__ uint64 mix64(uint64 x) {
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ x >> 27) * 0x94D049BB133111EBull;
    return x ^ x >> 31;
}
