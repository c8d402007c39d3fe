// The kernels of CG for the rows of one rank. They sum over these rows; petsc_cg.py adds the sums of all ranks.

#include "linalg/reduce.cuh"

extern "C" __global__ void find_pAp(long long n, const VALUE* p, const VALUE* q, double* sums, double* parts,
                                    uint32* arrivals) {
    double total = 0;
    for (long long i = thread_id(); i < n; i += thread_count()) total += (double)p[i] * q[i];
    sum_over_grid<1>({total}, parts, arrivals, [=](const double* totals) {
        sums[PAP] = totals[0];
        sums[OLD_RZ] = sums[RZ];
    });
}

extern "C" __global__ void advance(long long n, const VALUE* p, const VALUE* q, VALUE* x, VALUE* r, double* sums,
                                   double* parts, uint32* arrivals) {
    bool advances = sums[RR] > sums[LIMIT] && sums[PAP] > 0;
    VALUE alpha = (VALUE)(advances ? sums[OLD_RZ] / sums[PAP] : 0);
    double total = 0;
    for (long long i = thread_id(); i < n; i += thread_count()) {
        x[i] += alpha * p[i];
        VALUE rest = r[i] - alpha * q[i];
        r[i] = rest;
        total += (double)rest * rest;
    }
    sum_over_grid<1>({total}, parts, arrivals, [=](const double* totals) {
        sums[RR] = totals[0];
        sums[ADVANCED] = advances;
    });
}

extern "C" __global__ void find_rz(long long n, const VALUE* r, const VALUE* z, double* sums, double* parts,
                                   uint32* arrivals) {
    double total = 0;
    for (long long i = thread_id(); i < n; i += thread_count()) total += (double)r[i] * z[i];
    sum_over_grid<1>({total}, parts, arrivals, [=](const double* totals) { sums[RZ] = totals[0]; });
}

extern "C" __global__ void turn(long long n, const VALUE* z, VALUE* p, double* sums, double* history) {
    VALUE beta = (VALUE)(sums[ADVANCED] > 0 ? sums[RZ] / sums[OLD_RZ] : 0);
    for (long long i = thread_id(); i < n; i += thread_count()) p[i] = z[i] + beta * p[i];
    if (thread_id() == 0 && sums[ADVANCED] > 0) {
        long long count = (long long)sums[DONE];
        history[count % HISTORY] = sums[RR];
        sums[DONE] = (double)(count + 1);
    }
}
