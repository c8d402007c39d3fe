// The residual as accurate as if it were computed with twice the digits, a team of LANES threads per row. See accurate.py.

#include "cuda/reduce.cuh"

// A sum in double precision, and what has been rounded off so far.
struct AccurateSum {
    double total, error;

    __device__ __forceinline__ void add(double a, double x) {
        double product = rounded_product(a, x);
        error += fma(a, x, -product);
        add(product);
    }
    __device__ __forceinline__ void add(double term) {
        double moved = total + term, taken = moved - total;
        error += (total - (moved - taken)) + (term - taken);
        total = moved;
    }
};

extern "C" __global__ void residual(long long n, const OFFSET* indptr, const int* indices, const REAL* values,
                                    const REAL* x, const REAL* b, REAL* r) {
    constexpr int PARTS = sizeof(VALUE) / sizeof(REAL);
    long long i = thread_id() / LANES;
    int lane = threadIdx.x % LANES;
    OFFSET begin = i < n ? indptr[i] + lane : 0, end = i < n ? indptr[i + 1] : 0;
    for (int part = 0; part < PARTS; ++part) {
        AccurateSum sum = {0, 0};
        for (OFFSET k = begin; k < end; k += LANES)
            for (int other = 0; other < PARTS; ++other) {
                double a = values[(long long)k * PARTS + other];
                sum.add(part >= other ? a : -a, x[(long long)indices[k] * PARTS + (part ^ other)]);
            }
        for (int step = LANES / 2; step > 0; step /= 2) {
            AccurateSum theirs = {shuffle_xor(sum.total, step), shuffle_xor(sum.error, step)};
            sum.add(theirs.total);
            sum.error += theirs.error;
        }
        if (i >= n || lane > 0) continue;
        AccurateSum rest = {(double)b[i * PARTS + part], -sum.error};
        rest.add(1, -sum.total);
        r[i * PARTS + part] = (REAL)(rest.total + rest.error);
    }
}
