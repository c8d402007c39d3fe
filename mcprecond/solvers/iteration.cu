// What solvers need beside their iterations. A kernel has at most as many blocks as the device runs at once, and its
// threads stride over the rows.

#include "iteration.cuh"
#include "linalg/csr.cuh"

extern "C" __global__ void residual(long long n, Matrix<VALUE> A, const VALUE* x, const VALUE* b, VALUE* r,
                                    Recurrence recurrence) {
    typedef typename WideOf<VALUE>::Type Wide;
    double square = multiply_rows<Wide>(n, A, x, [&](long long i, Wide total) {
        Wide rest = (Wide)b[i] - total;
        r[i] = (VALUE)rest;
        return inner(rest, rest);
    });
    recurrence.finish<1>({square}, [=](const double* totals) { recurrence.scalars[RR] = totals[0]; }, A.work, A.n_long);
}

extern "C" __global__ void subtract_from(long long n, const VALUE* b, VALUE* r, Recurrence recurrence) {
    double square = 0;
    for (long long i = thread_id(); i < n; i += thread_count()) {
        VALUE rest = b[i] - r[i];
        r[i] = rest;
        square += inner(rest, rest);
    }
    recurrence.finish<1>({square}, [=](const double* totals) { recurrence.scalars[RR] = totals[0]; });
}

extern "C" __global__ void square(long long n, const VALUE* v, Recurrence recurrence) {
    if (!recurrence.is_running()) return;
    double square = 0;
    for (long long i = thread_id(); i < n; i += thread_count()) square += inner(v[i], v[i]);
    recurrence.finish<1>({square}, [=](const double* totals) { recurrence.scalars[RR] = totals[0]; });
}
