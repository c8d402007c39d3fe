// The residual as accurate as if it were computed with twice the digits. See accurate.py.

#include "cuda/grid.cuh"
#include "cuda/numbers.cuh"

// A sum in double precision, and what has been rounded off so far.
struct AccurateSum {
    double total, error;

    __device__ __forceinline__ void add(double a, double x) {
        double product = rounded_product(a, x);
        error += fma(a, x, -product);
        double moved = total + product, taken = moved - total;
        error += (total - (moved - taken)) + (product - taken);
        total = moved;
    }
};

extern "C" __global__ void residual(long long n, const OFFSET* indptr, const int* indices, const REAL* values,
                                    const REAL* x, const REAL* b, REAL* r) {
    constexpr int PARTS = sizeof(VALUE) / sizeof(REAL);
    long long i = thread_id();
    if (i >= n) return;
    for (int part = 0; part < PARTS; ++part) {
        AccurateSum sum = {0, 0};
        for (OFFSET k = indptr[i]; k < indptr[i + 1]; ++k)
            for (int other = 0; other < PARTS; ++other) {
                double a = values[(long long)k * PARTS + other];
                sum.add(part >= other ? a : -a, x[(long long)indices[k] * PARTS + (part ^ other)]);
            }
        AccurateSum rest = {(double)b[i * PARTS + part], -sum.error};
        rest.add(1, -sum.total);
        r[i * PARTS + part] = (REAL)(rest.total + rest.error);
    }
}
