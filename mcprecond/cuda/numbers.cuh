// Numbers: real and complex ones, and small vectors and matrices of them.
#pragma once

#include "cuda/ptx.cuh"

template <typename T>
struct __align__(2 * sizeof(T)) Complex {
    T re, im;

    Complex() = default;
    __device__ __forceinline__ Complex(T re, T im = 0) : re(re), im(im) {}
    template <typename S>
    __device__ __forceinline__ explicit Complex(Complex<S> z) : re((T)z.re), im((T)z.im) {}
};

// B numbers, aligned for loads of up to 16 bytes: a row of a matrix with B columns, for instance.
template <typename T, int B>
struct __align__(B * sizeof(T) % 16 == 0  ? 16
                 : B * sizeof(T) % 8 == 0 ? 8
                                          : 4) Vec {
    T at[B];
};

// A B x B matrix in row-major order.
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
#define REAL Real<VALUE>

// A double rounded to its upper 32 bits: the same range, and a significand of 21 bits.
struct TruncatedDouble {
    uint32 bits;

    TruncatedDouble() = default;
    __device__ __forceinline__ TruncatedDouble(double x)
        : bits(x == x ? (uint32)(((uint64)__double_as_longlong(x) + 0x80000000ull) >> 32) : 0x7ff80000u) {}
    __device__ __forceinline__ operator double() const { return __hiloint2double((int)bits, 0); }
};

// Real or complex as T is, in double precision.
template <typename T>
struct WideOf {
    typedef double Type;
};
template <typename T>
struct WideOf<Complex<T>> {
    typedef Complex<double> Type;
};

// T with truncated doubles in the places of doubles.
template <typename T>
struct TruncatedOf {
    typedef T Type;
};
template <>
struct TruncatedOf<double> {
    typedef TruncatedDouble Type;
};
template <typename T>
struct TruncatedOf<Complex<T>> {
    typedef Complex<typename TruncatedOf<T>::Type> Type;
};
template <typename T, int B>
struct TruncatedOf<Vec<T, B>> {
    typedef Vec<typename TruncatedOf<T>::Type, B> Type;
};

// Each real number by a cast.
template <typename To, typename From>
__device__ __forceinline__ To converted(const From& x) {
    To y;
#pragma unroll
    for (int k = 0; k < sizeof(From) / sizeof(Real<From>); ++k)
        ((Real<To>*)&y)[k] = (Real<To>)((const Real<From>*)&x)[k];
    return y;
}

// Call `visit` with each real number that a value consists of.
template <typename Value, typename Visit>
__device__ __forceinline__ void each_part(Value& value, Visit visit) {
#pragma unroll
    for (int k = 0; k < sizeof(Value) / sizeof(Real<Value>); ++k) visit(((Real<Value>*)&value)[k]);
}

template <typename T>
__device__ __forceinline__ Complex<T> operator+(Complex<T> a, Complex<T> b) {
    return {a.re + b.re, a.im + b.im};
}
template <typename T>
__device__ __forceinline__ Complex<T> operator-(Complex<T> a, Complex<T> b) {
    return {a.re - b.re, a.im - b.im};
}
template <typename T>
__device__ __forceinline__ void operator+=(Complex<T>& a, Complex<T> b) {
    a = a + b;
}
template <typename T>
__device__ __forceinline__ void operator-=(Complex<T>& a, Complex<T> b) {
    a = a - b;
}
template <typename S, typename T>
__device__ __forceinline__ Complex<T> operator*(S a, Complex<T> b) {
    return {a * b.re, a * b.im};
}
template <typename S, typename T>
__device__ __forceinline__ Complex<T> operator*(Complex<S> a, Complex<T> b) {
    T re = a.re, im = a.im;
    return {fma(re, b.re, -im * b.im), fma(re, b.im, im * b.re)};
}
// Smith, Algorithm 116: Complex division, 1962. It takes no squares, which might overflow.
template <typename T>
__device__ __forceinline__ Complex<T> operator/(Complex<T> a, Complex<T> b) {
    bool wide = fabs(b.re) >= fabs(b.im);
    T ratio = wide ? b.im / b.re : b.re / b.im, divisor = wide ? b.re + b.im * ratio : b.re * ratio + b.im;
    return {(wide ? a.re + a.im * ratio : a.re * ratio + a.im) / divisor,
            (wide ? a.im - a.re * ratio : a.im * ratio - a.re) / divisor};
}
template <typename T>
__device__ __forceinline__ T fabs(Complex<T> z) {
    return hypot(z.re, z.im);
}
template <typename T>
__device__ __forceinline__ bool isfinite(Complex<T> z) {
    return isfinite(z.re) && isfinite(z.im);
}

template <typename T>
__device__ __forceinline__ T real_part(T x) {
    return x;
}
template <typename T>
__device__ __forceinline__ T real_part(Complex<T> z) {
    return z.re;
}

template <typename T>
__device__ __forceinline__ T conjugate(T x) {
    return x;
}
template <typename T>
__device__ __forceinline__ Complex<T> conjugate(Complex<T> z) {
    return {z.re, -z.im};
}

// To double precision, also subnormal numbers; a cast might flush them to zero.
__device__ __forceinline__ double widened(double x) { return x; }
__device__ __forceinline__ double widened(float x) { return ptx::widened(x); }

// The real part of x conj(y).
template <typename T>
__device__ __forceinline__ double inner(T x, T y) {
    return (double)x * y;
}
template <typename T>
__device__ __forceinline__ double inner(Complex<T> x, Complex<T> y) {
    return inner(x.re, y.re) + inner(x.im, y.im);
}

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
__device__ __forceinline__ void operator+=(Vec<T, B>& x, const Vec<T, B>& y) {
    x = x + y;
}
template <typename S, typename T, int B>
__device__ __forceinline__ Vec<T, B> operator*(S a, const Vec<T, B>& x) {
    Vec<T, B> product;
#pragma unroll
    for (int p = 0; p < B; ++p) product.at[p] = a * x.at[p];
    return product;
}

// a x, rounded before anything is added to it. In a x + b y the compiler may fuse either product with the sum, and
// kernels for one and for several right-hand sides would round differently.
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
