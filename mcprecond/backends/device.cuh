// Shared by every .cu file of the package: the loader puts this text in front of each.
// backends/hashing.py has `mix` and `mix64` for Numba, and backends/atomics.py has the atomics.

#ifndef OFFSET
#define OFFSET int  // the type of row offsets: long long from 2^31 entries on
#endif

typedef unsigned short uint16;
typedef unsigned int uint32;
typedef unsigned long long uint64;

#define FULL_WARP 0xffffffffu
#define WARP 32
#define BLOCK 256  // threads, as in gpu.py

__device__ __forceinline__ long long thread_id() { return blockIdx.x * (long long)blockDim.x + threadIdx.x; }
__device__ __forceinline__ long long thread_count() { return gridDim.x * (long long)blockDim.x; }
__device__ __forceinline__ int lane_id() { return threadIdx.x & (WARP - 1); }

// The place of a thread in the grid, warp by warp around the blocks: where few threads have something to do, or those that
// follow one another have most, every processor has its share.
__device__ __forceinline__ long long spread_id() {
    return (threadIdx.x / WARP * (long long)gridDim.x + blockIdx.x) * WARP + lane_id();
}

// A load that sees what other processors wrote during this kernel: it bypasses L1, which is not coherent.
template <typename T>
__device__ __forceinline__ T fresh(const T* p) { return __ldcg(p); }

// Every thread of a resident (cooperatively launched) grid waits for all others and sees their writes.
// `arrivals` starts at zero and only grows, so nothing has to be reset between barriers.
__device__ __forceinline__ void grid_barrier(uint32* arrivals) {
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        uint32 ticket = atomicAdd(arrivals, 1u);
        uint32 target = (ticket / gridDim.x + 1) * gridDim.x;
        while ((int)(*(volatile uint32*)arrivals - target) < 0) {
        }
        __threadfence();
    }
    __syncthreads();
}

// Add what all threads of a block have to some sums, by one atomic each. All of them call it, once.
template <int COUNT>
__device__ __forceinline__ void add_of_block(uint64* sums, const uint64 (&values)[COUNT]) {
    __shared__ uint64 of_warps[BLOCK / WARP][COUNT];
#pragma unroll
    for (int k = 0; k < COUNT; ++k) {
        uint64 value = values[k];
#pragma unroll
        for (int step = WARP / 2; step > 0; step /= 2) value += __shfl_xor_sync(FULL_WARP, value, step);
        if (lane_id() == 0) of_warps[threadIdx.x / WARP][k] = value;
    }
    __syncthreads();
    if (threadIdx.x >= COUNT) return;
    uint64 of_block = 0;
    for (int w = 0; w < BLOCK / WARP; ++w) of_block += of_warps[w][threadIdx.x];
    if (of_block) atomicAdd(&sums[threadIdx.x], of_block);
}

// Append to a list: one atomic per warp. Returns this thread's position, meaningful where `keep` holds.
// Every thread of the warp must call it.
__device__ __forceinline__ int warp_append(bool keep, int* length) {
    uint32 keepers = __ballot_sync(FULL_WARP, keep);
    int position = 0;
    if (lane_id() == 0 && keepers) position = atomicAdd(length, __popc(keepers));
    return __shfl_sync(FULL_WARP, position, 0) + __popc(keepers & ((1u << lane_id()) - 1));
}

// ---- Numbers: real and complex ones, and small vectors of them.

template <typename T>
struct __align__(2 * sizeof(T)) Complex {
    T re, im;

    Complex() = default;
    __device__ __forceinline__ Complex(T re, T im = 0) : re(re), im(im) {}
    template <typename S>
    __device__ __forceinline__ explicit Complex(Complex<S> z) : re((T)z.re), im((T)z.im) {}
};

// B numbers side by side: those of a row of a matrix with B columns, for instance.
template <typename T, int B>
struct __align__(B * sizeof(T) % 16 == 0 ? 16 : B * sizeof(T) % 8 == 0 ? 8 : 4) Vec {
    T at[B];
};

// A B x B matrix, by rows.
template <typename T, int B>
struct Mat {
    T at[B * B];
};

template <typename T>
struct RealOf {
    typedef T Type;
};
template <typename T>
struct RealOf<Complex<T>> {
    typedef T Type;
};
template <typename T, int B>
struct RealOf<Vec<T, B>> : RealOf<T> {};
template <typename T>
using Real = typename RealOf<T>::Type;

// The upper half of a double: its range, and 21 bits.
struct Upper {
    uint32 bits;

    Upper() = default;
    __device__ __forceinline__ Upper(double x)
        : bits(x == x ? (uint32)(((uint64)__double_as_longlong(x) + 0x80000000ull) >> 32) : 0x7ff80000u) {}
    __device__ __forceinline__ operator double() const { return __hiloint2double((int)bits, 0); }
};

// The type of the same kind in double precision.
template <typename T>
struct WideOf {
    typedef double Type;
};
template <typename T>
struct WideOf<Complex<T>> {
    typedef Complex<double> Type;
};

// The type that has upper halves in the places of doubles.
template <typename T>
struct ShortOf {
    typedef T Type;
};
template <>
struct ShortOf<double> {
    typedef Upper Type;
};
template <typename T>
struct ShortOf<Complex<T>> {
    typedef Complex<typename ShortOf<T>::Type> Type;
};
template <typename T, int B>
struct ShortOf<Vec<T, B>> {
    typedef Vec<typename ShortOf<T>::Type, B> Type;
};

template <typename To, typename From>
__device__ __forceinline__ To converted(const From& x) {
    To y;
#pragma unroll
    for (int k = 0; k < sizeof(From) / sizeof(Real<From>); ++k)
        ((Real<To>*)&y)[k] = (Real<To>)((const Real<From>*)&x)[k];
    return y;
}

// Call `visit` with every real number that a value consists of.
template <typename Value, typename Visit>
__device__ __forceinline__ void each_part(Value& value, Visit visit) {
#pragma unroll
    for (int k = 0; k < sizeof(Value) / sizeof(Real<Value>); ++k) visit(((Real<Value>*)&value)[k]);
}

template <typename T>
__device__ __forceinline__ Complex<T> operator+(Complex<T> a, Complex<T> b) { return {a.re + b.re, a.im + b.im}; }
template <typename T>
__device__ __forceinline__ Complex<T> operator-(Complex<T> a, Complex<T> b) { return {a.re - b.re, a.im - b.im}; }
template <typename T>
__device__ __forceinline__ void operator+=(Complex<T>& a, Complex<T> b) { a = a + b; }
template <typename T>
__device__ __forceinline__ void operator-=(Complex<T>& a, Complex<T> b) { a = a - b; }
template <typename S, typename T>
__device__ __forceinline__ Complex<T> operator*(S a, Complex<T> b) { return {a * b.re, a * b.im}; }
template <typename S, typename T>
__device__ __forceinline__ Complex<T> operator*(Complex<S> a, Complex<T> b) {
    T re = a.re, im = a.im;
    return {fma(re, b.re, -im * b.im), fma(re, b.im, im * b.re)};
}
// Smith: Algorithm 116, Complex division, 1962. No square that may overflow.
template <typename T>
__device__ __forceinline__ Complex<T> operator/(Complex<T> a, Complex<T> b) {
    bool wide = fabs(b.re) >= fabs(b.im);
    T ratio = wide ? b.im / b.re : b.re / b.im, divisor = wide ? b.re + b.im * ratio : b.re * ratio + b.im;
    return {(wide ? a.re + a.im * ratio : a.re * ratio + a.im) / divisor,
            (wide ? a.im - a.re * ratio : a.im * ratio - a.re) / divisor};
}
template <typename T>
__device__ __forceinline__ T fabs(Complex<T> z) { return hypot(z.re, z.im); }
template <typename T>
__device__ __forceinline__ bool isfinite(Complex<T> z) { return isfinite(z.re) && isfinite(z.im); }

template <typename T>
__device__ __forceinline__ T real_part(T x) { return x; }
template <typename T>
__device__ __forceinline__ T real_part(Complex<T> z) { return z.re; }

// Converts to double without flushing subnormal floats to zero, as a cast would: CuPy compiles with -ftz=true.
__device__ __forceinline__ double widened(double x) { return x; }
__device__ __forceinline__ double widened(float x) {
    double wide;
    asm("cvt.f64.f32 %0, %1;" : "=d"(wide) : "f"(x));
    return wide;
}

// The real part of x conj(y).
template <typename T>
__device__ __forceinline__ double inner(T x, T y) { return (double)x * y; }
template <typename T>
__device__ __forceinline__ double inner(Complex<T> x, Complex<T> y) { return inner(x.re, y.re) + inner(x.im, y.im); }

template <typename T, int B>
__device__ __forceinline__ Vec<T, B> operator+(const Vec<T, B>& x, const Vec<T, B>& y) {
    Vec<T, B> sum;
#pragma unroll
    for (int p = 0; p < B; ++p) sum.at[p] = x.at[p] + y.at[p];
    return sum;
}
template <typename T, int B>
__device__ __forceinline__ Vec<T, B> operator-(const Vec<T, B>& x, const Vec<T, B>& y) {
    Vec<T, B> difference;
#pragma unroll
    for (int p = 0; p < B; ++p) difference.at[p] = x.at[p] - y.at[p];
    return difference;
}
template <typename T, int B>
__device__ __forceinline__ void operator+=(Vec<T, B>& x, const Vec<T, B>& y) { x = x + y; }
template <typename S, typename T, int B>
__device__ __forceinline__ Vec<T, B> operator*(S a, const Vec<T, B>& x) {
    Vec<T, B> product;
#pragma unroll
    for (int p = 0; p < B; ++p) product.at[p] = a * x.at[p];
    return product;
}

// a x, rounded by itself: where the compiler may choose which of two products to fuse with their sum, kernels for one and
// for several right-hand sides might round differently.
__device__ __forceinline__ double rounded_product(double a, double x) { return __dmul_rn(a, x); }
__device__ __forceinline__ float rounded_product(float a, float x) { return __fmul_rn(a, x); }
template <typename Value>
__device__ __forceinline__ Value rounded_product(Real<Value> a, Value x) {
    each_part(x, [&](Real<Value>& part) { part = rounded_product(a, part); });
    return x;
}

template <typename S, typename T, int B>
__device__ __forceinline__ Vec<T, B> operator*(const Mat<S, B>& a, const Vec<T, B>& x) {
    Vec<T, B> product = {};
#pragma unroll
    for (int p = 0; p < B; ++p)
#pragma unroll
        for (int q = 0; q < B; ++q) product.at[p] += a.at[p * B + q] * x.at[q];
    return product;
}
template <typename T, int B>
__device__ __forceinline__ double inner(const Vec<T, B>& x, const Vec<T, B>& y) {
    double sum = 0;
#pragma unroll
    for (int p = 0; p < B; ++p) sum += inner(x.at[p], y.at[p]);
    return sum;
}

template <typename T>
__device__ __forceinline__ T shuffle(T value, int lane, int width) {
    each_part(value, [&](Real<T>& part) { part = __shfl_sync(FULL_WARP, part, lane, width); });
    return value;
}
template <typename T>
__device__ __forceinline__ T shuffle_xor(T value, int step) {
    each_part(value, [&](Real<T>& part) { part = __shfl_xor_sync(FULL_WARP, part, step); });
    return value;
}

// What one load or store moves of a value.
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

// A value whose pieces `load(piece)` reads, one by one.
template <typename T, typename Load>
__device__ __forceinline__ T in_pieces(const T* p, Load load) {
    typedef typename PieceOf<alignof(T)>::Type Piece;
    T value;
#pragma unroll
    for (int k = 0; k < sizeof(T) / sizeof(Piece); ++k) ((Piece*)&value)[k] = load((const Piece*)p + k);
    return value;
}

// A load of what nobody reads again soon.
template <typename T>
__device__ __forceinline__ T streamed(const T* p) {
    return in_pieces(p, [](const auto* piece) { return __ldcs(piece); });
}

// A load past L1 of what no other thread reads.
__device__ __forceinline__ uint32 piece_past_l1(const uint32* p) {
    uint32 piece;
    asm("ld.global.L1::no_allocate.u32 %0, [%1];" : "=r"(piece) : "l"(__cvta_generic_to_global(p)));
    return piece;
}
__device__ __forceinline__ uint64 piece_past_l1(const uint64* p) {
    uint64 piece;
    asm("ld.global.L1::no_allocate.u64 %0, [%1];" : "=l"(piece) : "l"(__cvta_generic_to_global(p)));
    return piece;
}
__device__ __forceinline__ ulonglong2 piece_past_l1(const ulonglong2* p) {
    ulonglong2 piece;
    asm("ld.global.L1::no_allocate.v2.u64 {%0, %1}, [%2];"
        : "=l"(piece.x), "=l"(piece.y) : "l"(__cvta_generic_to_global(p)));
    return piece;
}
template <typename T>
__device__ __forceinline__ T past_l1(const T* p) {
    return in_pieces(p, [](const auto* piece) { return piece_past_l1(piece); });
}

// A load of what many threads read, which L2 is asked to keep.
#if __CUDA_ARCH__ >= 800
__device__ __forceinline__ uint64 to_keep() {
    uint64 policy;
    asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
    return policy;
}
__device__ __forceinline__ uint32 kept_piece(const uint32* p) {
    uint32 piece;
    asm volatile("ld.global.L2::cache_hint.u32 %0, [%1], %2;"
                 : "=r"(piece) : "l"(__cvta_generic_to_global(p)), "l"(to_keep()));
    return piece;
}
__device__ __forceinline__ uint64 kept_piece(const uint64* p) {
    uint64 piece;
    asm volatile("ld.global.L2::cache_hint.u64 %0, [%1], %2;"
                 : "=l"(piece) : "l"(__cvta_generic_to_global(p)), "l"(to_keep()));
    return piece;
}
__device__ __forceinline__ ulonglong2 kept_piece(const ulonglong2* p) {
    ulonglong2 piece;
    asm volatile("ld.global.L2::cache_hint.v2.u64 {%0, %1}, [%2], %3;"
                 : "=l"(piece.x), "=l"(piece.y) : "l"(__cvta_generic_to_global(p)), "l"(to_keep()));
    return piece;
}
#else
template <typename Piece>
__device__ __forceinline__ Piece kept_piece(const Piece* p) { return *p; }
#endif
template <typename T>
__device__ __forceinline__ T kept_in_l2(const T* p) {
    return in_pieces(p, [](const auto* piece) { return kept_piece(piece); });
}

// A store of what nobody reads soon.
template <typename T>
__device__ __forceinline__ void stream(T* p, const T& value) {
    typedef typename PieceOf<alignof(T)>::Type Piece;
#pragma unroll
    for (int k = 0; k < sizeof(T) / sizeof(Piece); ++k) __stcs((Piece*)p + k, ((const Piece*)&value)[k]);
}

// ---- The types of sweeps: an element of a vector, of a triangle, and of the diagonal. With RHS > 1 right-hand sides an
// element of a vector is a row of numbers. With BLOCK_SIZE unknowns to a node, vectors consist of vectors and the matrix of
// matrices.

#if RHS > 1
#define NUMBER Vec<VALUE, RHS>
#else
#define NUMBER VALUE
#endif
#ifdef BLOCK_SIZE
#define UNKNOWN Vec<NUMBER, BLOCK_SIZE>
#define COUPLING Mat<STORED, BLOCK_SIZE>
#define PIVOT Mat<VALUE, BLOCK_SIZE>
#else
#define UNKNOWN NUMBER
#define COUPLING STORED
#define PIVOT VALUE
#endif
#define REAL Real<VALUE>

// What sweeps keep of a vector for themselves: where the triangles are stored in half the bytes, so is this.
#ifdef SHORT_VECTORS
#define KEPT ShortOf<UNKNOWN>::Type
#else
#define KEPT UNKNOWN
#endif

// How many warps per processor registers are to leave room for.
#define BYTES_IN_HAND (sizeof(UNKNOWN) + sizeof(COUPLING))
#define WARPS_LIMIT (BYTES_IN_HAND > 24 ? 16 : BYTES_IN_HAND > 16 ? 24 : USUAL_WARPS)
// Vectors that do not fit into L2 take longer to come, so that more warps have something to wait for.
#if defined(LARGE_VECTORS) && !defined(DIAGONALS)
#define USUAL_WARPS (sizeof(KEPT) + sizeof(COUPLING) > 8 ? 32 : 40)
#else
#define USUAL_WARPS 32
#endif

// The sum over the TEAM threads that share an item, in a fixed order; every one of them gets it.
template <int TEAM, typename T>
__device__ __forceinline__ T lane_sum(T value) {
#pragma unroll
    for (int step = TEAM / 2; step > 0; step /= 2) value += shuffle_xor(value, step);
    return value;
}

// ---- Values that are waited for. A sweep writes each of its results once, and whoever needs one looks until it is there: that
// is its only synchronization. There are two ways to tell. A value may be empty, a NaN with all bits set, until it is there; or
// its last bit says of which turn it is: that of the sweep, or the one before.
//
// The race is meant: a first look may be served by L1 and come too early, but then it finds what was there before the sweep,
// and later looks go to L2.
//
// A value of several parts is there when all of them are; it is written and looked at in pieces of up to 16 bytes.

__device__ __forceinline__ bool is_empty(double value) { return __double_as_longlong(value) == -1ll; }
__device__ __forceinline__ bool is_empty(float value) { return __float_as_int(value) == -1; }
__device__ __forceinline__ bool is_empty(Upper value) { return value.bits == 0xffffffffu; }
template <typename Value>
__device__ __forceinline__ bool is_empty(Value value) {
    bool empty = false;
    each_part(value, [&](Real<Value>& part) { empty |= is_empty(part); });
    return empty;
}

__device__ __forceinline__ void make_empty(double* p) { *p = __longlong_as_double(-1ll); }
__device__ __forceinline__ void make_empty(float* p) { *p = __int_as_float(-1); }
__device__ __forceinline__ void make_empty(Upper* p) { p->bits = 0xffffffffu; }
template <typename Value>
__device__ __forceinline__ void make_empty(Value* p) {
    Value empty;
    each_part(empty, [](Real<Value>& part) { make_empty(&part); });
    *p = empty;
}

// What others see and have written: one access for each piece, which the compiler neither drops nor moves.
template <typename Piece>
__device__ __forceinline__ Piece look_at_piece(const Piece* p) { return *(const volatile Piece*)p; }
__device__ __forceinline__ ulonglong2 look_at_piece(const ulonglong2* p) {
    ulonglong2 piece;
    asm volatile("ld.volatile.global.v2.u64 {%0, %1}, [%2];"
                 : "=l"(piece.x), "=l"(piece.y) : "l"(__cvta_generic_to_global(p)));
    return piece;
}
template <typename Value>
__device__ __forceinline__ Value look_again(const Value* p) {
    return in_pieces(p, [](const auto* piece) { return look_at_piece(piece); });
}
template <typename Piece>
__device__ __forceinline__ void write_piece(Piece* p, Piece piece) { *(volatile Piece*)p = piece; }
__device__ __forceinline__ void write_piece(ulonglong2* p, ulonglong2 piece) {
    asm volatile("st.volatile.global.v2.u64 [%0], {%1, %2};"
                 :: "l"(__cvta_generic_to_global(p)), "l"(piece.x), "l"(piece.y) : "memory");
}
template <typename Value>
__device__ __forceinline__ void write_now(Value* p, const Value& value) {
    typedef typename PieceOf<alignof(Value)>::Type Piece;
#pragma unroll
    for (int k = 0; k < sizeof(Value) / sizeof(Piece); ++k) write_piece((Piece*)p + k, ((const Piece*)&value)[k]);
}

// The same behind all that this thread has written or, before a barrier of the warp, others of its warp.
__device__ __forceinline__ void release(uint32* p, uint32 piece) {
    asm volatile("st.release.gpu.global.u32 [%0], %1;" :: "l"(__cvta_generic_to_global(p)), "r"(piece) : "memory");
}
__device__ __forceinline__ void release(uint64* p, uint64 piece) {
    asm volatile("st.release.gpu.global.u64 [%0], %1;" :: "l"(__cvta_generic_to_global(p)), "l"(piece) : "memory");
}
__device__ __forceinline__ void release(ulonglong2* p, ulonglong2 piece) {
    asm volatile("st.release.gpu.global.v2.u64 [%0], {%1, %2};"
                 :: "l"(__cvta_generic_to_global(p)), "l"(piece.x), "l"(piece.y) : "memory");
}

// A look that also lets this thread see, and behind a barrier of the warp others of its warp, what was written before the
// value that it finds, if that was released.
__device__ __forceinline__ uint32 acquire(const uint32* p) {
    uint32 piece;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(piece) : "l"(__cvta_generic_to_global(p)) : "memory");
    return piece;
}
__device__ __forceinline__ uint64 acquire(const uint64* p) {
    uint64 piece;
    asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(piece) : "l"(__cvta_generic_to_global(p)) : "memory");
    return piece;
}
__device__ __forceinline__ ulonglong2 acquire(const ulonglong2* p) {
    ulonglong2 piece;
    asm volatile("ld.acquire.gpu.global.v2.u64 {%0, %1}, [%2];"
                 : "=l"(piece.x), "=l"(piece.y) : "l"(__cvta_generic_to_global(p)) : "memory");
    return piece;
}

// The value at p, once it is there, and what was released by it; `seen` is what a first look has found.
template <typename Value>
__device__ __forceinline__ Value acquire_if_there(const Value* p) {
    return in_pieces(p, [](const auto* piece) { return acquire(piece); });
}
template <typename Value>
__device__ __forceinline__ Value acquired(const Value* p, Value seen) {
    while (is_empty(seen)) {
        do {
            __nanosleep(20);
            seen = look_again(p);
        } while (is_empty(seen));
        seen = acquire_if_there(p);
    }
    return seen;
}

// Write a value that others wait for; those who acquire it also find what was written before it, if it RELEASES that.
// A NaN that happens to look empty becomes another NaN.
template <bool RELEASES = false, typename Value>
__device__ __forceinline__ void publish(Value* p, Value value) {
    typedef typename PieceOf<alignof(Value)>::Type Piece;
    each_part(value, [](Real<Value>& part) {
        if (is_empty(part)) part = __int_as_float(0x7fffffff);
    });
    if constexpr (RELEASES) {
#pragma unroll
        for (int k = 0; k < sizeof(Value) / sizeof(Piece); ++k) release((Piece*)p + k, ((const Piece*)&value)[k]);
    } else {
        write_now(p, value);
    }
}

// Turns. The result of a sweep may take the place of that of the sweep before, and nothing has to be emptied.

__device__ __forceinline__ uint32 last_bits(double value) { return (uint32)__double2loint(value); }
__device__ __forceinline__ uint32 last_bits(float value) { return (uint32)__float_as_int(value); }
__device__ __forceinline__ uint32 last_bits(Upper value) { return value.bits; }
__device__ __forceinline__ double with_last_bit(double value, uint32 bit) {
    return __hiloint2double(__double2hiint(value), (int)(((uint32)__double2loint(value) & ~1u) | bit));
}
__device__ __forceinline__ float with_last_bit(float value, uint32 bit) {
    return __int_as_float((int)(((uint32)__float_as_int(value) & ~1u) | bit));
}
__device__ __forceinline__ Upper with_last_bit(Upper value, uint32 bit) {
    value.bits = (value.bits & ~1u) | bit;
    return value;
}
// Whether a value is not of this turn: in the last bit of what this returns.
template <typename Value>
__device__ __forceinline__ uint32 off_turn(Value value, uint32 turn) {
    uint32 off = 0;
    each_part(value, [&](Real<Value>& part) { off |= last_bits(part) ^ turn; });
    return off;
}
template <typename Value>
__device__ __forceinline__ Value of_turn(Value value, uint32 turn) {
    each_part(value, [&](Real<Value>& part) { part = with_last_bit(part, turn); });
    return value;
}

#define UNCOLORED (-1)

// Whether `is_true(k)` for an entry k, indices[k] the vertex, of a row near v: its own, and at distance 2 those of its
// neighbors. See rows_near in coloring/graph.py. TEAM threads share every row; each stops when it has found one.
template <int TEAM, typename Predicate>
__device__ __forceinline__ bool any_near(int v, long long distance, const OFFSET* indptr, const int* indices,
                                         Predicate is_true) {
    OFFSET own = indptr[v], last = distance == 2 ? indptr[v + 1] : own;
    for (OFFSET j = own - 1; j < last; ++j) {
        int row = j < own ? v : indices[j];
        for (OFFSET k = indptr[row] + threadIdx.x % TEAM, end = indptr[row + 1]; k < end; k += TEAM)
            if (is_true(k)) return true;
    }
    return false;
}

#define PALETTE 64  // colors that are looked at together: the bits of a word

// What the TEAM threads that share a vertex, some of a warp or the block, have found together. Whole warps, and where the
// team is the block the block, call it.
template <int TEAM>
__device__ uint64 united(uint64 bits) {
    for (int step = (TEAM < WARP ? TEAM : WARP) / 2; step > 0; step /= 2)
        bits |= __shfl_xor_sync(FULL_WARP, bits, step);
    if constexpr (TEAM > WARP) {
        __shared__ uint64 parts[TEAM / WARP];
        if (lane_id() == 0) parts[threadIdx.x / WARP] = bits;
        __syncthreads();
        for (uint64 part : parts) bits |= part;
        __syncthreads();
    }
    return bits;
}

// The smallest color that no neighbor has. v is uncolored, so an entry on the diagonal takes nothing.
template <int TEAM>
__device__ int smallest_free_color(int v, const OFFSET* indptr, const int* indices, const int* C) {
    OFFSET first = indptr[v] + threadIdx.x % TEAM, end = indptr[v + 1];
    for (int offset = 0;; offset += PALETTE) {
        uint64 taken = 0;
        for (OFFSET k = first; k < end; k += TEAM) {
            int color = fresh(&C[indices[k]]) - offset;  // uncolored ones lie below every palette
            if (color >= 0 && color < PALETTE) taken |= 1ull << color;
        }
        taken = united<TEAM>(taken);
        if (~taken) return offset + __ffsll((long long)~taken) - 1;
    }
}

// Whether v is the end of a conflicting edge (v, u) that is recolored. See gives_way in speculative/vertex_based.py.
__device__ __forceinline__ bool gives_way(int v, int u, bool by_degree, const int* degrees) {
    if (by_degree && degrees[v] != degrees[u]) return degrees[v] < degrees[u];
    return v < u;
}

// Log a round of a coloring, which are counted from 1; always the same thread calls it. See coloring/history.py.
#define SPARE_ROUNDS 64

__device__ void log_round(int2* log, long long n, int round, int colored, int conflicts) {
    long long last = n + SPARE_ROUNDS, row = min((long long)round, last);
    if (round > last) {
        colored += log[row].x;
        conflicts += log[row].y;
    }
    log[row] = make_int2(colored, conflicts);
    log[0].x = (int)row;
}

// Color in rounds with a worklist of the uncolored vertices, TEAM threads each. `visit(v, round, active)` returns the
// color of v or UNCOLORED, the same for the whole team; whole warps call it, and inactive ones are ignored. `worklists`
// holds twice n vertices; the host zeroes `scratch` and `log`.
template <int TEAM, typename Visit>
__device__ void color_in_rounds(long long n, int* colors, int* worklists, void* scratch, int2* log, Visit visit) {
    struct Control {
        uint32 arrivals;
        int length[2];  // of the worklists, by parity of the round
    }* control = (Control*)scratch;
    for (long long v = thread_id(); v < n; v += thread_count()) {
        colors[v] = UNCOLORED;
        worklists[v] = (int)v;
    }
    grid_barrier(&control->arrivals);
    int length = (int)n;
    for (int round = 0;; ++round) {
        const int* left = worklists + (round & 1) * n;
        int* next = worklists + (~round & 1) * n;
        int* next_length = &control->length[round & 1];
        for (long long i0 = (thread_id() - lane_id()) / TEAM; i0 < length; i0 += thread_count() / TEAM) {
            long long i = i0 + lane_id() / TEAM;
            int v = i < length ? fresh(&left[i]) : 0;
            int color = visit(v, round, i < length);
            bool mine = i < length && lane_id() % TEAM == 0;
            if (mine && color != UNCOLORED) colors[v] = color;
            bool keep = mine && color == UNCOLORED;
            int position = warp_append(keep, next_length);
            if (keep) next[position] = v;
        }
        grid_barrier(&control->arrivals);
        int before = length;
        length = fresh(next_length);
        if (thread_id() == 0) log_round(log, n, round + 1, before - length, 0);
        if (length == 0) return;
        // The next round counts in the other slot; everyone has read it, since that was before the last barrier.
        if (thread_id() == 0) control->length[~round & 1] = 0;
        grid_barrier(&control->arrivals);
    }
}

// The first place from `low` on, before `high`, where a sorted array is not less than a value; `high` if there is none.
template <typename Place>
__device__ __forceinline__ Place lower_bound(const int* sorted, Place low, Place high, long long value) {
    while (low < high) {
        Place middle = low + (high - low) / 2;
        if (sorted[middle] < value)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

// The threads that share a row, TEAM of them, pick entries from it and store them in order. This thread's place: behind
// what those before it in the same stretch of TEAM entries keep; `next` then moves behind all of them. Whole warps call it.
template <int TEAM, typename Place>
__device__ __forceinline__ Place place_in_row(bool keep, Place& next) {
    uint32 team = (TEAM == WARP ? FULL_WARP : (1u << (TEAM % WARP)) - 1) << (lane_id() & ~(TEAM - 1));
    uint32 kept = __ballot_sync(FULL_WARP, keep) & team;
    Place place = next + __popc(kept & ((1u << lane_id()) - 1));
    next += __popc(kept);
    return place;
}

// A well-mixed hash of a vertex number: the random priority of a vertex.
__device__ __forceinline__ uint32 mix(uint32 v, uint32 seed) {
    v ^= seed * 0x9e3779b9u;
    v ^= v >> 16;
    v *= 0x85ebca6bu;
    v ^= v >> 13;
    v *= 0xc2b2ae35u;
    v ^= v >> 16;
    return v;
}
// A well-mixed 64-bit hash, of which sums tell patterns apart.
__device__ __forceinline__ uint64 mix64(uint64 x) {
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ x >> 27) * 0x94D049BB133111EBull;
    return x ^ x >> 31;
}
