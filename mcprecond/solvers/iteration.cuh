// The control block of a CG run on the device: its state (`control`), its scalars and its residual history. And the
// reductions over the grid whose results go into it. Reductions are deterministic: each block writes its sum into the
// workspace `partials`, and the last block to arrive adds these in order and calls `apply_reduction`. iteration.py has
// a function of the same name for the CPU.
#pragma once

#include "cuda/memory.cuh"
#include "cuda/reduce.cuh"

// Update the control block by the result of a reduction; its role tells what has been summed up.
__device__ void apply_reduction(int role, double total, long long* control, double* scalars, double* history) {
    if (role == FRESH_RESIDUAL) {
        scalars[RR] = total;
        scalars[LEFT] = 1;
        return;
    }
    if (role == OF_FIRST_RR || role == OF_FIRST_RZ) {
        scalars[role == OF_FIRST_RR ? FIRST_RR : FIRST_RZ] = total;
        return;
    }
    double left = scalars[LEFT], step = scalars[STEP];
    if (role == PAP) total += step * step * scalars[FIRST_RZ];
    if (role == RESIDUAL) total += left * left * scalars[FIRST_RR];
    if (role == BETA_OF_RZ) total += left * left * scalars[FIRST_RZ];
    if (!isfinite(total)) {
        control[STATE] = NOT_A_NUMBER;
        return;
    }
    if (role == PAP) {
        if (total <= 0) {
            control[STATE] = BAD_A;
        } else {
            scalars[ALPHA] = scalars[RZ] / total;
            scalars[LEFT] = left - scalars[ALPHA] * step;
        }
    } else if (role == RESIDUAL || role == RESIDUAL_IS_RZ) {
        scalars[RR] = total;
        control[ITERATION] += 1;
        history[control[ITERATION] % HISTORY] = sqrt(total);
        if (total <= scalars[TOLERANCE])
            control[STATE] = REACHED;
        else if (control[ITERATION] >= control[MAXITER])
            control[STATE] = EXHAUSTED;
    }
    if (role == BETA_OF_QZ) scalars[BETA] *= -scalars[ALPHA] * total / scalars[RZ];
    if (role == RESIDUAL_IS_RZ || role == BETA_OF_RZ) {
        if (role == RESIDUAL_IS_RZ) total *= scalars[UNIT];
        scalars[BETA] = total / scalars[RZ];
        scalars[STEP] = left + scalars[BETA] * step;
    }
    if (role == FRESH_RZ) scalars[LEFT] = scalars[STEP] = scalars[FIRST_RZ] > 0;
    if (role == RESIDUAL_IS_RZ || role == BETA_OF_RZ || role == FRESH_RZ) {
        scalars[RZ] = total;
        if (role == FRESH_RZ) {
            scalars[BETA] = 0;
            scalars[LEAST_RZ] = total * scalars[ROUNDING];
        }
        if (control[STATE] == RUNNING) {
            if (total < 0 || (total == 0 && role == FRESH_RZ))
                control[STATE] = BAD_M;
            else if (total <= scalars[LEAST_RZ])
                control[STATE] = REACHED;
        }
    }
}

// Sum up a value, or several, over the grid, and apply the results one after the other. All threads call it once, at
// the end. To the first value belong `count` more terms, which the grid has written.
template <int COUNT>
__device__ void finish(const int (&roles)[COUNT], const double (&values)[COUNT], long long* control, double* scalars,
                       double* history, double* partials, const double* terms = nullptr, long long count = 0) {
    __shared__ bool last;
    for (int s = 0; s < COUNT; ++s) {
        double sum = block_sum(values[s]);
        if (threadIdx.x == 0) partials[s * gridDim.x + blockIdx.x] = sum;
    }
    if (threadIdx.x == 0) {
        __threadfence();
        last = atomicAdd((uint64*)&control[ARRIVALS], 1ull) == gridDim.x - 1;
    }
    __syncthreads();
    if (!last) return;
    __threadfence();
    if (threadIdx.x == 0) control[ARRIVALS] = 0;
    for (int s = 0; s < COUNT; ++s) {
        double total = 0;
        for (int b = threadIdx.x; b < gridDim.x; b += blockDim.x) total += ptx::load_l2(&partials[s * gridDim.x + b]);
        if (s == 0)
            for (long long k = threadIdx.x; k < count; k += blockDim.x) total += ptx::load_l2(&terms[k]);
        total = block_sum(total);
        if (threadIdx.x == 0) apply_reduction(roles[s], total, control, scalars, history);
    }
}

__device__ __forceinline__ void finish(int role, double value, long long* control, double* scalars, double* history,
                                       double* partials, const double* terms = nullptr, long long count = 0) {
    if (role != NOTHING) finish<1>({role}, {value}, control, scalars, history, partials, terms, count);
}
