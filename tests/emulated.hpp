// A GPU of one multiprocessor: what CUDA code of the package needs to compile as C++. See emulated.py.
//
// A block has 256 threads, the blocks of a grid run one after the other. The threads take turns: one runs until it waits for
// others, or loads what others write.

#include <setjmp.h>
#include <ucontext.h>

// Every variant of every source reads these anew, so <algorithm> and <functional> are left out: reading them takes longer
// than compiling a small kernel.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <type_traits>

#define __device__
#define __global__
#define __forceinline__ inline
#define __noinline__
#define __launch_bounds__(...)
#define __grid_constant__
#define __shared__ static
#define __align__(n) alignas(n)
#define __restrict__
#define __isGlobal(p) true
#define __builtin_assume(fact)
#define __trap() (fflush(stdout), abort())

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
    ucontext_t beginning;
    jmp_buf place;  // where it gave way: contexts would do, but their switches ask the system about signals
    bool has_begun, is_done;
    alignas(64) char stack[1 << 16];
};
static Thread threads[256];
static ucontext_t host;
// What each thread calls, and with what.
static void (*work)(const void*);
static const void* given;

[[noreturn]] inline void go_on_with(unsigned next) {
    threadIdx.x = next;
    Thread& thread = threads[next];
    if (thread.has_begun) _longjmp(thread.place, 1);
    thread.has_begun = true;
    setcontext(&thread.beginning);
    __builtin_unreachable();
}
inline void give_way() {
    unsigned own = threadIdx.x, next = own;
    do next = (next + 1) % blockDim.x;
    while (threads[next].is_done && next != own);
    if (next != own && _setjmp(threads[own].place) == 0) go_on_with(next);
}
inline void run_thread() {
    work(given);
    threads[threadIdx.x].is_done = true;
    for (unsigned next = 0; next < blockDim.x; ++next)
        if (!threads[next].is_done) go_on_with(next);
    setcontext(&host);
}
inline void run_block() {
    for (Thread& thread : threads) {
        thread.has_begun = thread.is_done = false;
        getcontext(&thread.beginning);
        thread.beginning.uc_stack.ss_sp = thread.stack;
        thread.beginning.uc_stack.ss_size = sizeof(thread.stack);
        thread.beginning.uc_link = nullptr;
        makecontext(&thread.beginning, run_thread, 0);
    }
    threadIdx.x = 0;
    threads[0].has_begun = true;
    swapcontext(&host, &threads[0].beginning);
}

// ---- Barriers, and what the threads of a warp tell each other. Whole warps take part, or those of an aligned team.

struct Barrier {
    int arrived = 0, passed = 0;
    void wait(int threads) {
        int before = passed;
        if (++arrived == threads) {
            arrived = 0;
            ++passed;
        } else {
            while (*(volatile int*)&passed == before) give_way();
        }
    }
};
static Barrier of_block, of_teams[6][256];  // those of teams by the logarithm of their size, and by their first thread
static unsigned char told[8][32][16];

inline void __syncthreads() { of_block.wait(256); }
inline void __syncwarp(unsigned team = ~0u) {
    int size = __builtin_popcount(team);
    of_teams[__builtin_ctz(size)][threadIdx.x / 32 * 32 + __builtin_ctz(team)].wait(size);
}

template <typename T, typename Visit>
inline void with_warp(unsigned team, T value, Visit visit) {
    auto& of_lanes = told[threadIdx.x / 32];
    memcpy(of_lanes[threadIdx.x % 32], &value, sizeof(T));
    __syncwarp(team);
    for (int lane = 0; lane < 32; ++lane) {
        if (!(team >> lane & 1)) continue;
        T other;
        memcpy(&other, of_lanes[lane], sizeof(T));
        visit(lane, other);
    }
    __syncwarp(team);
}
template <typename T>
inline T from_lane(unsigned team, T value, int lane) {
    T found = value;
    with_warp(team, value, [&](int other, T theirs) {
        if (other == lane) found = theirs;
    });
    return found;
}
template <typename T>
inline T __shfl_sync(unsigned team, T value, int lane, int width = 32) {
    return from_lane(team, value, threadIdx.x % 32 / width * width + lane % width);
}
template <typename T>
inline T __shfl_xor_sync(unsigned team, T value, int step, int = 32) {
    return from_lane(team, value, threadIdx.x % 32 ^ step);
}
template <typename T>
inline T __shfl_up_sync(unsigned team, T value, int step) {
    return from_lane(team, value, (int)(threadIdx.x % 32) - step);
}
inline unsigned __ballot_sync(unsigned team, bool vote) {
    unsigned votes = 0;
    with_warp(team, vote, [&](int lane, bool theirs) { votes |= (unsigned)theirs << lane; });
    return votes;
}
inline bool __any_sync(unsigned team, bool vote) { return __ballot_sync(team, vote); }
inline bool __all_sync(unsigned team, bool vote) { return __ballot_sync(team, vote) == team; }
inline bool __syncthreads_or(bool vote) {
    static int votes[2], turn;  // of this round, and of the next one
    int own = turn;
    votes[own] += vote;
    __syncthreads();
    bool any = votes[own] > 0;
    turn = 1 - own;
    __syncthreads();
    votes[own] = 0;
    return any;
}
inline unsigned __match_any_sync(unsigned team, int value) {
    unsigned same = 0;
    with_warp(team, value, [&](int lane, int theirs) { same |= (unsigned)(theirs == value) << lane; });
    return same;
}

// ---- Memory. Loads and stores of one kind or another are in emulated_ptx.hpp.

inline void __threadfence() {}
inline void __nanosleep(unsigned) { give_way(); }
template <typename T>
inline T atomicAdd(T* p, T value) {
    T before = *p;
    *p += value;
    return before;
}

template <typename T, typename Change>
inline T atomically(T* p, Change change) {
    T before = *p;
    *p = change(before);
    return before;
}
template <typename T>
inline T atomicCAS(T* p, T expected, T value) { return atomically(p, [=](T x) { return x == expected ? value : x; }); }
template <typename T>
inline T atomicSub(T* p, T value) { return atomically(p, [=](T x) { return T(x - value); }); }
template <typename T>
inline T atomicMin(T* p, T value) { return atomically(p, [=](T x) { return value < x ? value : x; }); }
template <typename T>
inline T atomicMax(T* p, T value) { return atomically(p, [=](T x) { return x < value ? value : x; }); }
template <typename T, typename Mask>
inline T atomicOr(T* p, Mask mask) { return atomically(p, [=](T x) { return T(x | mask); }); }
template <typename T, typename Mask>
inline T atomicAnd(T* p, Mask mask) { return atomically(p, [=](T x) { return T(x & mask); }); }

// ---- Numbers.

using std::fabs, std::fma, std::hypot, std::isfinite;
template <typename A, typename B>
inline std::common_type_t<A, B> min(A a, B b) {
    std::common_type_t<A, B> one = a, other = b;
    return other < one ? other : one;
}
template <typename A, typename B>
inline std::common_type_t<A, B> max(A a, B b) {
    std::common_type_t<A, B> one = a, other = b;
    return one < other ? other : one;
}
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
inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((unsigned long long)a * b >> 32); }
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
        const auto launched = [=] { KERNEL(arguments...); };
        work = [](const void* call) { (*static_cast<decltype(&launched)>(call))(); };
        given = &launched;
        for (blockIdx.x = 0; blockIdx.x < blocks; ++blockIdx.x) run_block();
    }
};
