// The functions of mcprecond/cuda/ptx.cuh in C++, in its place. Cache hints mean nothing here. A load of what other threads
// write lets these run first.

#include "cuda/types.cuh"

namespace ptx {

template <typename T>
inline const T* in_global(const T* p) {
    return p;
}

template <typename Piece>
inline Piece load_l2(const Piece* p) {
    give_way();
    return *p;
}
template <typename Piece>
inline Piece load_streaming(const Piece* p) { return *p; }
template <typename Piece>
inline void store_streaming(Piece* p, Piece piece) { *p = piece; }
template <typename Piece>
inline Piece load_no_allocate(const Piece* p) { return *p; }
template <typename Piece>
inline Piece load_evict_last(const Piece* p) { return *p; }
template <typename Piece>
inline Piece load_early(const Piece* p) { return *p; }
inline void load_early(const void* p, long long& first, long long& second) {
    first = ((const long long*)p)[0];
    second = ((const long long*)p)[1];
}
template <typename Piece>
inline Piece load_early_no_allocate(const Piece* p) { return *p; }

template <typename Piece>
inline Piece load_volatile(const Piece* p) {
    give_way();
    return *(const volatile Piece*)p;
}
inline ulonglong2 load_volatile(const ulonglong2* p) {
    give_way();
    return *p;
}
template <typename Piece>
inline void store_volatile(Piece* p, Piece piece) { *p = piece; }
template <typename Piece>
inline void store_release(Piece* p, Piece piece) { *p = piece; }
template <typename Piece>
inline Piece load_acquire(const Piece* p) {
    give_way();
    return *p;
}

template <typename T>
inline T keep_in_register(T x) { return x; }
template <typename T>
inline T keep_generic_in_register(T x) { return x; }
template <typename T>
inline T keep_where_used(T x) { return x; }

inline double widened(float x) { return x; }

}  // namespace ptx
