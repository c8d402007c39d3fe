// All inline assembly and all cache hints of the package. Nothing else is in here, and nothing of it anywhere else: the
// C++ emulation of the tests replaces this file (tests/emulated_ptx.hpp has the same functions).
//
// Each function is one instruction on one piece: 4, 8 or 16 bytes. memory.cuh loads and stores whole values by them.
#pragma once

#include "cuda/types.cuh"

namespace ptx {

// ---- Cache hints.

// Load from L2. L1 is not coherent: this sees what other multiprocessors have written during the kernel.
template <typename Piece>
__device__ __forceinline__ Piece load_l2(const Piece* p) {
    return __ldcg(p);
}

// Load, or store, what nobody reads again soon: the line is the first one to be evicted.
template <typename Piece>
__device__ __forceinline__ Piece load_streaming(const Piece* p) {
    return __ldcs(p);
}
template <typename Piece>
__device__ __forceinline__ void store_streaming(Piece* p, Piece piece) {
    __stcs(p, piece);
}

// The pointer, of which the compiler learns that it points to global memory.
template <typename T>
__device__ __forceinline__ const T* in_global(const T* p) {
    __builtin_assume(__isGlobal(p));
    return p;
}

// Load without a line in L1.
__device__ __forceinline__ uint32 load_no_allocate(const uint32* p) {
    uint32 piece;
    asm("ld.global.L1::no_allocate.u32 %0, [%1];" : "=r"(piece) : "l"(__cvta_generic_to_global(p)));
    return piece;
}
__device__ __forceinline__ uint64 load_no_allocate(const uint64* p) {
    uint64 piece;
    asm("ld.global.L1::no_allocate.u64 %0, [%1];" : "=l"(piece) : "l"(__cvta_generic_to_global(p)));
    return piece;
}
__device__ __forceinline__ ulonglong2 load_no_allocate(const ulonglong2* p) {
    ulonglong2 piece;
    asm("ld.global.L1::no_allocate.v2.u64 {%0, %1}, [%2];"
        : "=l"(piece.x), "=l"(piece.y)
        : "l"(__cvta_generic_to_global(p)));
    return piece;
}

// Load what is to stay in L2: the line is the last one to be evicted.
#if __CUDA_ARCH__ >= 800
__device__ __forceinline__ uint64 evict_last_policy() {
    uint64 policy;
    asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
    return policy;
}
__device__ __forceinline__ uint32 load_evict_last(const uint32* p) {
    uint32 piece;
    asm volatile("ld.global.L2::cache_hint.u32 %0, [%1], %2;"
                 : "=r"(piece)
                 : "l"(__cvta_generic_to_global(p)), "l"(evict_last_policy()));
    return piece;
}
__device__ __forceinline__ uint64 load_evict_last(const uint64* p) {
    uint64 piece;
    asm volatile("ld.global.L2::cache_hint.u64 %0, [%1], %2;"
                 : "=l"(piece)
                 : "l"(__cvta_generic_to_global(p)), "l"(evict_last_policy()));
    return piece;
}
__device__ __forceinline__ ulonglong2 load_evict_last(const ulonglong2* p) {
    ulonglong2 piece;
    asm volatile("ld.global.L2::cache_hint.v2.u64 {%0, %1}, [%2], %3;"
                 : "=l"(piece.x), "=l"(piece.y)
                 : "l"(__cvta_generic_to_global(p)), "l"(evict_last_policy()));
    return piece;
}
#else
template <typename Piece>
__device__ __forceinline__ Piece load_evict_last(const Piece* p) {
    return *p;
}
#endif

// ---- The order of loads and stores.

// Load through the read-only path, at this place in the program: the compiler may not move the load down to where its
// result is needed.
__device__ __forceinline__ int load_early(const int* p) {
    int piece;
    asm volatile("ld.global.nc.s32 %0, [%1];" : "=r"(piece) : "l"(__cvta_generic_to_global(p)));
    return piece;
}
__device__ __forceinline__ int2 load_early(const int2* p) {
    int2 piece;
    asm volatile("ld.global.nc.v2.s32 {%0, %1}, [%2];"
                 : "=r"(piece.x), "=r"(piece.y)
                 : "l"(__cvta_generic_to_global(p)));
    return piece;
}
// Both halves of 16 bytes.
__device__ __forceinline__ void load_early(const void* p, long long& first, long long& second) {
    asm volatile("ld.global.nc.v2.u64 {%0, %1}, [%2];" : "=l"(first), "=l"(second) : "l"(__cvta_generic_to_global(p)));
}
__device__ __forceinline__ int load_early_no_allocate(const int* p) {
    int piece;
    asm volatile("ld.global.nc.L1::no_allocate.s32 %0, [%1];" : "=r"(piece) : "l"(__cvta_generic_to_global(p)));
    return piece;
}

// One access each time, which the compiler neither drops nor moves and no stale line of L1 serves. Words are written
// whole.
template <typename Piece>
__device__ __forceinline__ Piece load_volatile(const Piece* p) {
    return *(const volatile Piece*)p;
}
__device__ __forceinline__ ulonglong2 load_volatile(const ulonglong2* p) {
    ulonglong2 piece;
    asm volatile("ld.volatile.global.v2.u64 {%0, %1}, [%2];"
                 : "=l"(piece.x), "=l"(piece.y)
                 : "l"(__cvta_generic_to_global(p)));
    return piece;
}
template <typename Piece>
__device__ __forceinline__ void store_volatile(Piece* p, Piece piece) {
    *(volatile Piece*)p = piece;
}
__device__ __forceinline__ void store_volatile(ulonglong2* p, ulonglong2 piece) {
    asm volatile("st.volatile.global.v2.u64 [%0], {%1, %2};" ::"l"(__cvta_generic_to_global(p)), "l"(piece.x),
                 "l"(piece.y)
                 : "memory");
}

// Store behind everything that this thread has written or, before a barrier of its warp, other threads of the warp.
__device__ __forceinline__ void store_release(uint32* p, uint32 piece) {
    asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(__cvta_generic_to_global(p)), "r"(piece) : "memory");
}
__device__ __forceinline__ void store_release(uint64* p, uint64 piece) {
    asm volatile("st.release.gpu.global.u64 [%0], %1;" ::"l"(__cvta_generic_to_global(p)), "l"(piece) : "memory");
}
__device__ __forceinline__ void store_release(ulonglong2* p, ulonglong2 piece) {
    asm volatile("st.release.gpu.global.v2.u64 [%0], {%1, %2};" ::"l"(__cvta_generic_to_global(p)), "l"(piece.x),
                 "l"(piece.y)
                 : "memory");
}

// Load before everything that this thread and, behind a barrier of its warp, other threads of the warp read afterwards:
// they see what was written before a store_release of the value that this finds.
__device__ __forceinline__ uint32 load_acquire(const uint32* p) {
    uint32 piece;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(piece) : "l"(__cvta_generic_to_global(p)) : "memory");
    return piece;
}
__device__ __forceinline__ uint64 load_acquire(const uint64* p) {
    uint64 piece;
    asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(piece) : "l"(__cvta_generic_to_global(p)) : "memory");
    return piece;
}
__device__ __forceinline__ ulonglong2 load_acquire(const ulonglong2* p) {
    ulonglong2 piece;
    asm volatile("ld.acquire.gpu.global.v2.u64 {%0, %1}, [%2];"
                 : "=l"(piece.x), "=l"(piece.y)
                 : "l"(__cvta_generic_to_global(p))
                 : "memory");
    return piece;
}

// ---- Keeping the compiler from moving or repeating what it computes.

// A value that stays in a register. The compiler, which cannot see what it is, does not compute it again at each use.
__device__ __forceinline__ int keep_in_register(int value) {
    asm volatile("" : "+r"(value));
    return value;
}
// The same for an address, and for one in global memory, which is kept without its generic part.
template <typename T>
__device__ __forceinline__ T* keep_generic_in_register(T* p) {
    asm volatile("" : "+l"(p));
    return p;
}
template <typename T>
__device__ __forceinline__ const T* keep_in_register(const T* p) {
    size_t address = __cvta_generic_to_global(p);
    asm volatile("" : "+l"(address));
    return (const T*)__cvta_global_to_generic(address);
}
// The same for a value of which only uses count: an instruction, which may be dropped or moved.
__device__ __forceinline__ uint32 keep_where_used(uint32 value) {
    asm("mov.u32 %0, %0;" : "+r"(value));
    return value;
}

// ---- Conversion.

// Unlike a cast, this does not flush subnormal numbers to zero: CuPy compiles with -ftz=true.
__device__ __forceinline__ double widened(float x) {
    double wide;
    asm("cvt.f64.f32 %0, %1;" : "=d"(wide) : "f"(x));
    return wide;
}

}  // namespace ptx
