// Loads and stores of whole values, by cache hint and order. A value is moved in pieces of up to 16 bytes, as its
// alignment allows: one instruction each.
#pragma once

#include "cuda/check.cuh"
#include "cuda/ptx.cuh"

template <int BYTES>
struct PieceOf;
template <>
struct PieceOf<4> {
    typedef uint32 Type;
};
template <>
struct PieceOf<8> {
    typedef uint64 Type;
};
template <>
struct PieceOf<16> {
    typedef ulonglong2 Type;
};

template <typename T, typename Load>
__device__ __forceinline__ T load_in_pieces(const T* p, Load load) {
    typedef typename PieceOf<alignof(T)>::Type Piece;
    T value;
#pragma unroll
    for (int k = 0; k < sizeof(T) / sizeof(Piece); ++k) ((Piece*)&value)[k] = load((const Piece*)p + k);
    return value;
}
// See ptx.cuh for each of these, and use that file's own on single words.
template <typename T>
__device__ __forceinline__ T load_l2(const T* p) {
    return load_in_pieces(p, [](const auto* piece) { return ptx::load_l2(piece); });
}
template <typename T>
__device__ __forceinline__ T load_streaming(const T* p) {
    return load_in_pieces(p, [](const auto* piece) { return ptx::load_streaming(piece); });
}
template <typename T>
__device__ __forceinline__ void store_streaming(T* p, const T& value) {
    typedef typename PieceOf<alignof(T)>::Type Piece;
#pragma unroll
    for (int k = 0; k < sizeof(T) / sizeof(Piece); ++k) ptx::store_streaming((Piece*)p + k, ((const Piece*)&value)[k]);
}
template <typename T>
__device__ __forceinline__ T load_volatile(const T* p) {
    return load_in_pieces(p, [](const auto* piece) { return ptx::load_volatile(piece); });
}
template <typename T>
__device__ __forceinline__ void store_volatile(T* p, const T& value) {
    typedef typename PieceOf<alignof(T)>::Type Piece;
#pragma unroll
    for (int k = 0; k < sizeof(T) / sizeof(Piece); ++k) ptx::store_volatile((Piece*)p + k, ((const Piece*)&value)[k]);
}
template <typename T>
__device__ __forceinline__ T load_acquire(const T* p) {
    return load_in_pieces(p, [](const auto* piece) { return ptx::load_acquire(piece); });
}
template <typename T>
__device__ __forceinline__ void store_release(T* p, const T& value) {
    typedef typename PieceOf<alignof(T)>::Type Piece;
#pragma unroll
    for (int k = 0; k < sizeof(T) / sizeof(Piece); ++k) ptx::store_release((Piece*)p + k, ((const Piece*)&value)[k]);
}

// If the matrix does not fit into L2 (LARGE_MATRIX), a sweep finds nothing of it there that the sweep before has loaded.
// Then the hints of these functions let the caches keep what many rows read: L1 evicts what a single row reads first,
// and L2 evicts the matrix first.

// Load what many rows read.
template <typename T>
__device__ __forceinline__ T load_reused(const T* p) {
#ifdef LARGE_MATRIX
    return load_in_pieces(p, [](const auto* piece) { return ptx::load_evict_last(piece); });
#else
    return *p;
#endif
}
// Load what one row reads.
template <typename T>
__device__ __forceinline__ T load_once(const T* p) {
#ifdef LARGE_MATRIX
    return load_in_pieces(p, [](const auto* piece) { return ptx::load_no_allocate(piece); });
#else
    return *p;
#endif
}
__device__ __forceinline__ int load_once_early(const int* p) {
#ifdef LARGE_MATRIX
    return ptx::load_early_no_allocate(p);
#else
    return ptx::load_early(p);
#endif
}
