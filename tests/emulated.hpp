// A GPU of one multiprocessor: what CUDA code of the package needs to compile as C++. See emulated.py.
//
// A block has 256 threads, the blocks of a grid run one after the other. The threads take turns: one runs until it waits for
// others, or looks at what others write.

#include <ucontext.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <type_traits>

#define __device__
#define __global__
#define __forceinline__ inline
#define __noinline__
#define __launch_bounds__(...)
#define __shared__ static
#define __align__(n) alignas(n)
#define __restrict__

struct Dim {
    unsigned x;
};
static Dim threadIdx, blockIdx, gridDim, blockDim = {256};

struct int2 {
    int x, y;
};
struct alignas(16) int4 {
    int x, y, z, w;
};
struct alignas(16) ulonglong2 {
    unsigned long long x, y;
};
inline int2 make_int2(int x, int y) { return {x, y}; }

// ---- Threads and their turns.

struct Thread {
    ucontext_t context;
    bool is_done;
    alignas(64) char stack[1 << 16];
};
static Thread threads[256];
static ucontext_t host;
static std::function<void()> work;

inline void give_way() {
    unsigned own = threadIdx.x, next = own;
    do next = (next + 1) % blockDim.x;
    while (threads[next].is_done && next != own);
    if (next == own) return;
    threadIdx.x = next;
    swapcontext(&threads[own].context, &threads[next].context);
}
inline void run_thread() {
    work();
    Thread& own = threads[threadIdx.x];
    own.is_done = true;
    give_way();
    setcontext(&host);  // the last one
}
inline void run_block() {
    for (Thread& thread : threads) {
        thread.is_done = false;
        getcontext(&thread.context);
        thread.context.uc_stack.ss_sp = thread.stack;
        thread.context.uc_stack.ss_size = sizeof(thread.stack);
        thread.context.uc_link = nullptr;
        makecontext(&thread.context, run_thread, 0);
    }
    threadIdx.x = 0;
    swapcontext(&host, &threads[0].context);
}

// ---- Barriers, and what the threads of a warp tell each other. Whole warps take part, as in the package.

struct Barrier {
    int threads, arrived = 0, passed = 0;
    void wait() {
        int before = passed;
        if (++arrived == threads) {
            arrived = 0;
            ++passed;
        } else {
            while (*(volatile int*)&passed == before) give_way();
        }
    }
};
static Barrier of_warp[8] = {{32}, {32}, {32}, {32}, {32}, {32}, {32}, {32}}, of_block = {256};
static unsigned char told[8][32][16];

inline void __syncwarp() { of_warp[threadIdx.x / 32].wait(); }
inline void __syncthreads() { of_block.wait(); }

template <typename T, typename Visit>
inline void with_warp(T value, Visit visit) {
    auto& of_lanes = told[threadIdx.x / 32];
    memcpy(of_lanes[threadIdx.x % 32], &value, sizeof(T));
    __syncwarp();
    for (int lane = 0; lane < 32; ++lane) {
        T other;
        memcpy(&other, of_lanes[lane], sizeof(T));
        visit(lane, other);
    }
    __syncwarp();
}
template <typename T>
inline T from_lane(T value, int lane) {
    T found = value;
    with_warp(value, [&](int other, T theirs) {
        if (other == lane) found = theirs;
    });
    return found;
}
template <typename T>
inline T __shfl_sync(unsigned, T value, int lane, int width = 32) {
    return from_lane(value, threadIdx.x % 32 / width * width + lane % width);
}
template <typename T>
inline T __shfl_xor_sync(unsigned, T value, int step) { return from_lane(value, threadIdx.x % 32 ^ step); }
template <typename T>
inline T __shfl_up_sync(unsigned, T value, int step) { return from_lane(value, (int)(threadIdx.x % 32) - step); }
inline unsigned __ballot_sync(unsigned, bool vote) {
    unsigned votes = 0;
    with_warp(vote, [&](int lane, bool theirs) { votes |= (unsigned)theirs << lane; });
    return votes;
}
inline bool __any_sync(unsigned all, bool vote) { return __ballot_sync(all, vote); }
inline bool __all_sync(unsigned all, bool vote) { return __ballot_sync(all, vote) == all; }

// ---- Memory. Looks at what others write give way to them.

template <typename T>
inline T __ldcg(const T* p) {
    give_way();
    return *p;
}
template <typename T>
inline T __ldcs(const T* p) { return *p; }
template <typename T>
inline void __stcs(T* p, T value) { *p = value; }
inline void __threadfence() {}
inline void __nanosleep(unsigned) { give_way(); }
template <typename T>
inline T atomicAdd(T* p, T value) {
    T before = *p;
    *p += value;
    return before;
}

// ---- Numbers.

using std::fabs, std::fma, std::hypot, std::isfinite;
template <typename A, typename B>
inline auto min(A a, B b) { return std::min<std::common_type_t<A, B>>(a, b); }
template <typename A, typename B>
inline auto max(A a, B b) { return std::max<std::common_type_t<A, B>>(a, b); }
template <typename To, typename From>
inline To same_bits(From from) {
    static_assert(sizeof(To) == sizeof(From));
    To to;
    memcpy(&to, &from, sizeof(To));
    return to;
}
inline long long __double_as_longlong(double x) { return same_bits<long long>(x); }
inline double __longlong_as_double(long long x) { return same_bits<double>(x); }
inline int __float_as_int(float x) { return same_bits<int>(x); }
inline float __int_as_float(int x) { return same_bits<float>(x); }
inline int __double2loint(double x) { return (int)__double_as_longlong(x); }
inline int __double2hiint(double x) { return (int)(__double_as_longlong(x) >> 32); }
inline double __hiloint2double(int high, int low) {
    return __longlong_as_double((long long)((unsigned long long)(unsigned)high << 32 | (unsigned)low));
}
inline double __dmul_rn(double a, double b) { return a * b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __clz(int x) { return x ? __builtin_clz(x) : 32; }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }

// ---- A launch.

template <auto KERNEL, typename Signature = decltype(KERNEL)>
struct Launch;
template <auto KERNEL, typename... Arguments>
struct Launch<KERNEL, void (*)(Arguments...)> {
    static void run(unsigned blocks, Arguments... arguments) {
        gridDim.x = blocks;
        work = [=] { KERNEL(arguments...); };
        for (blockIdx.x = 0; blockIdx.x < blocks; ++blockIdx.x) run_block();
    }
};
