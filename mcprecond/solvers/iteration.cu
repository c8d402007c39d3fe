// What solvers need beside their iterations. A kernel has at most as many blocks as the device runs at once, and its
// threads stride over the rows.

#include "iteration.cuh"
#include "linalg/csr.cuh"

extern "C" __global__ void residual(long long n, Matrix<VALUE> A, const VALUE* x, const VALUE* b, VALUE* r,
                                    long long* control, double* scalars, double* history, double* partials) {
    typedef typename WideOf<VALUE>::Type Wide;
    double square = multiply_rows<Wide>(n, A, x, [&](long long i, Wide total) {
        Wide rest = (Wide)b[i] - total;
        r[i] = (VALUE)rest;
        return inner(rest, rest);
    });
    finish<1>({square}, control, partials, [=](const double* totals) { scalars[RR] = totals[0]; }, A.work, A.n_long);
}

extern "C" __global__ void subtract_from(long long n, const VALUE* b, VALUE* r, long long* control, double* scalars,
                                         double* history, double* partials) {
    double square = 0;
    for (long long i = thread_id(); i < n; i += thread_count()) {
        VALUE rest = b[i] - r[i];
        r[i] = rest;
        square += inner(rest, rest);
    }
    finish<1>({square}, control, partials, [=](const double* totals) { scalars[RR] = totals[0]; });
}

extern "C" __global__ void square(long long n, const VALUE* v, long long* control, double* scalars, double* history,
                                  double* partials) {
    if (control[STATE] != RUNNING) return;
    double square = 0;
    for (long long i = thread_id(); i < n; i += thread_count()) square += inner(v[i], v[i]);
    finish<1>({square}, control, partials, [=](const double* totals) { scalars[RR] = totals[0]; });
}
