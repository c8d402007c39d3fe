// The steps of PCG. Kernels are launched with at most as many blocks as the device holds and stride over the rows.
// Sums are deterministic: each block writes its part, and the last block to arrive adds the parts in order.
// See iteration.py; `close` there is the twin of `close` here.

enum { STATE, ITERATION, MAXITER, ARRIVALS };
enum { RUNNING, REACHED, EXHAUSTED, BAD_A, BAD_M, NOT_A_NUMBER };
enum { ALPHA, BETA, RZ, RR, TOLERANCE };
enum { PAP, RESIDUAL, RESIDUAL_IS_RZ, BETA_OF_RZ, FRESH_RESIDUAL, FRESH_RZ, NOTHING };
#define HISTORY 1024

__device__ void close(int role, double total, long long* control, double* scalars, double* history) {
    if (role == FRESH_RESIDUAL) {
        scalars[RR] = total;
        return;
    }
    if (!isfinite(total)) {
        control[STATE] = NOT_A_NUMBER;
        return;
    }
    if (role == PAP) {
        if (total <= 0)
            control[STATE] = BAD_A;
        else
            scalars[ALPHA] = scalars[RZ] / total;
    } else if (role == RESIDUAL || role == RESIDUAL_IS_RZ) {
        scalars[RR] = total;
        control[ITERATION] += 1;
        history[control[ITERATION] % HISTORY] = sqrt(total);
        if (total <= scalars[TOLERANCE])
            control[STATE] = REACHED;
        else if (control[ITERATION] >= control[MAXITER])
            control[STATE] = EXHAUSTED;
    }
    if (role == RESIDUAL_IS_RZ || role == BETA_OF_RZ) scalars[BETA] = total / scalars[RZ];
    if (role == RESIDUAL_IS_RZ || role == BETA_OF_RZ || role == FRESH_RZ) {
        scalars[RZ] = total;
        if (total <= 0 && control[STATE] == RUNNING) control[STATE] = BAD_M;
    }
}

// The sum over the block, in a fixed order; thread 0 gets it.
__device__ double block_sum(double value) {
    __shared__ double parts[WARP];
    value = lane_sum<WARP>(value);
    __syncthreads();
    if (lane_id() == 0) parts[threadIdx.x / WARP] = value;
    __syncthreads();
    double sum = 0;
    if (threadIdx.x == 0)
        for (int w = 0; w < blockDim.x / WARP; ++w) sum += parts[w];
    return sum;
}

__device__ void finish(int role, double value, long long* control, double* scalars, double* history,
                       double* partials) {
    if (role == NOTHING) return;
    __shared__ bool last;
    double sum = block_sum(value);
    if (threadIdx.x == 0) {
        partials[blockIdx.x] = sum;
        __threadfence();
        last = atomicAdd((uint64*)&control[ARRIVALS], 1ull) == gridDim.x - 1;
    }
    __syncthreads();
    if (!last) return;
    __threadfence();
    double total = 0;
    for (int b = threadIdx.x; b < gridDim.x; b += blockDim.x) total += fresh(&partials[b]);
    total = block_sum(total);
    if (threadIdx.x == 0) {
        control[ARRIVALS] = 0;
        close(role, total, control, scalars, history);
    }
}

// Row i of A times p, summed over the LANES threads that share it; all of them get it.
__device__ __forceinline__ VALUE row_product(bool active, long long i, const OFFSET* indptr, const int* indices,
                                             const VALUE* values, const VALUE* p) {
    VALUE total = 0;
    if (active)
        for (OFFSET k = indptr[i] + threadIdx.x % LANES, end = indptr[i + 1]; k < end; k += LANES)
            total += values[k] * p[indices[k]];
    return lane_sum<LANES>(total);
}

// Rows in strides: whole warps take part until the last row, as lane_sum needs it.
#define FOR_EACH_ROW(i, n)                                                                              \
    for (long long i = thread_id() / LANES, i##_of_warp = (thread_id() - lane_id()) / LANES; i##_of_warp < n; \
         i += thread_count() / LANES, i##_of_warp += thread_count() / LANES)

extern "C" __global__ void multiply(long long n, const OFFSET* indptr, const int* indices, const VALUE* values,
                                    const VALUE* p, VALUE* q, long long role, long long* control, double* scalars,
                                    double* history, double* partials) {
    if (control[STATE] != RUNNING) return;
    double product = 0;
    FOR_EACH_ROW(i, n) {
        VALUE total = row_product(i < n, i, indptr, indices, values, p);
        if (i < n && threadIdx.x % LANES == 0) {
            q[i] = total;
            product += (double)total * p[i];
        }
    }
    finish((int)role, product, control, scalars, history, partials);
}

extern "C" __global__ void residual(long long n, const OFFSET* indptr, const int* indices, const VALUE* values,
                                    const VALUE* x, const VALUE* b, VALUE* r, long long role, long long* control,
                                    double* scalars, double* history, double* partials) {
    double square = 0;
    FOR_EACH_ROW(i, n) {
        VALUE total = row_product(i < n, i, indptr, indices, values, x);
        if (i < n && threadIdx.x % LANES == 0) {
            VALUE rest = b[i] - total;
            r[i] = rest;
            square += (double)rest * rest;
        }
    }
    finish((int)role, square, control, scalars, history, partials);
}

extern "C" __global__ void inner_product(long long n, const VALUE* a, const VALUE* b, long long role,
                                         long long* control, double* scalars, double* history, double* partials) {
    if (control[STATE] != RUNNING) return;
    double product = 0;
    for (long long i = thread_id(); i < n; i += thread_count()) product += (double)a[i] * b[i];
    finish((int)role, product, control, scalars, history, partials);
}

extern "C" __global__ void advance(long long n, const VALUE* p, const VALUE* q, VALUE* x, VALUE* r, long long role,
                                   long long* control, double* scalars, double* history, double* partials) {
    if (control[STATE] != RUNNING) return;
    VALUE alpha = (VALUE)scalars[ALPHA];
    double square = 0;
    for (long long i = thread_id(); i < n; i += thread_count()) {
        x[i] += alpha * p[i];
        VALUE rest = r[i] - alpha * q[i];
        r[i] = rest;
        square += (double)rest * rest;
    }
    finish((int)role, square, control, scalars, history, partials);
}

extern "C" __global__ void turn(long long n, const VALUE* z, VALUE* p, const long long* control,
                                const double* scalars) {
    if (control[STATE] != RUNNING) return;
    VALUE beta = (VALUE)scalars[BETA];
    for (long long i = thread_id(); i < n; i += thread_count()) p[i] = z[i] + beta * p[i];
}
