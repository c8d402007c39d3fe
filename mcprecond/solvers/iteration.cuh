// The recurrence of CG on the device: what follows from each of its inner products, which the kernel that finishes one
// finds out. The control block is its state. See iteration.py, which has the same for the CPU.
#pragma once

#include "linalg/reduce.cuh"

struct Recurrence {
    long long* control;
    double *scalars, *history, *partials;

    __device__ bool is_running() const { return control[STATE] == RUNNING; }

    __device__ bool is_finite(double total) {
        if (!isfinite(total)) control[STATE] = NOT_A_NUMBER;
        return isfinite(total);
    }

    // alpha = r'z / p'A p.
    __device__ void take_pAp(double pAp) {
        if (!is_finite(pAp)) return;
        if (pAp <= 0)
            control[STATE] = BAD_A;
        else
            scalars[ALPHA] = scalars[RZ] / pAp;
    }

    // The end of an iteration.
    __device__ void take_rr(double rr) {
        if (!is_finite(rr)) return;
        scalars[RR] = rr;
        control[ITERATION] += 1;
        history[control[ITERATION] % HISTORY] = sqrt(rr);
        if (rr <= scalars[TOLERANCE])
            control[STATE] = REACHED;
        else if (control[ITERATION] >= control[MAXITER])
            control[STATE] = EXHAUSTED;
    }

    // The end of an iteration of CG. Its step reduces the square of the error's energy norm by alpha r'z.
    __device__ void end_iteration(double rr) {
        double gain = scalars[ALPHA] * scalars[RZ];
        long long place = (control[ITERATION] + 1) % HISTORY;
        history[HISTORY + place] = scalars[ALPHA];
        history[2 * HISTORY + place] = scalars[RZ];
        scalars[ENERGY] += gain;
        take_rr(rr);
        if (is_running() && gain < fmax(scalars[SHARE] * scalars[ENERGY], scalars[LEAST_GAIN])) control[STATE] = REACHED;
    }

    // beta = r'z / r'z of the iteration before; the first iteration has 0 for that.
    __device__ void take_rz(double rz) {
        if (scalars[RZ] == 0) return take_first_rz(rz);
        if (!is_finite(rz)) return;
        scalars[BETA] = rz / scalars[RZ];
        scalars[RZ] = rz;
        if (!is_running()) return;
        if (rz < 0)
            control[STATE] = BAD_M;
        else if (rz <= scalars[LEAST_RZ])
            control[STATE] = REACHED;
    }

    // The first direction is z.
    __device__ void take_first_rz(double rz) {
        if (!is_finite(rz)) return;
        scalars[BETA] = 0;
        scalars[RZ] = rz;
        scalars[LEAST_RZ] = fmax(rz * scalars[ROUNDING], scalars[LIMIT_RZ] * scalars[UNIT]);
        if (!is_running()) return;
        if (rz <= 0)
            control[STATE] = BAD_M;
        else if (rz <= scalars[LEAST_RZ])
            control[STATE] = REACHED;
    }

    // Sum up values over the grid, to the first of which belong `count` more terms, and hand the totals to a function.
    template <int COUNT, typename Function>
    __device__ __forceinline__ void finish(const double (&values)[COUNT], Function take, const double* terms = nullptr,
                                           long long count = 0) const {
        sum_over_grid(values, partials, (uint64*)&control[ARRIVALS], take, terms, count);
    }

    // Sum up an inner product, which may be complex, and a square over the grid, and hand both to a function.
    template <typename Wide, typename Function>
    __device__ __forceinline__ void finish_with(Wide product, double square, Function take) const {
        constexpr int PARTS = sizeof(Wide) / sizeof(double);
        double sums[PARTS + 1];
        for (int k = 0; k < PARTS; ++k) sums[k] = ((double*)&product)[k];
        sums[PARTS] = square;
        finish<PARTS + 1>(sums, [&](const double* totals) {
            Wide total;
            for (int k = 0; k < PARTS; ++k) ((double*)&total)[k] = totals[k];
            take(total, totals[PARTS]);
        });
    }
};

// conj(a) b in double precision.
template <typename T>
__device__ __forceinline__ typename WideOf<T>::Type conjugated_product(T a, T b) {
    typedef typename WideOf<T>::Type Wide;
    return conjugate((Wide)a) * (Wide)b;
}
