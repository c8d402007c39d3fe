// Products of a sparse matrix and a vector, by rows: LANES threads share a row, and all warps those that are long.
// See csr.py.
#pragma once

#include "cuda/memory.cuh"
#include "cuda/numbers.cuh"
#include "cuda/reduce.cuh"

// Loop over the rows in strides. All threads of a warp stay in the loop until its last row, since lane_sum needs them.
#define FOR_EACH_ROW(i, n) \
    for (long long i = thread_id() / LANES, i##_of_warp = (thread_id() - lane_id()) / LANES; i##_of_warp < n; \
         i += thread_count() / LANES, i##_of_warp += thread_count() / LANES)

// Compute the product of row i of A and x. All LANES threads that share the row get the sum, which is accumulated in
// the type SUM. x is a pointer, or an object whose operator[] loads an element of the vector.
template <typename SUM, typename STORED_VALUE, typename Vector>
__device__ __forceinline__ SUM row_product(bool active, long long i, const OFFSET* indptr, const int* indices,
                                           const STORED_VALUE* values, Vector x) {
    SUM total = SUM();
    if (active)
        for (OFFSET k = indptr[i] + threadIdx.x % LANES, end = indptr[i + 1]; k < end; k += LANES)
            total += (SUM)values[k] * (SUM)x[indices[k]];
    return lane_sum<LANES>(total);
}

// The rows with more than `longest` entries. They are cut into pieces, and each warp multiplies some of the pieces.
struct LongRows {
    long long longest, n_rows, n_pieces;
    const int* plan;
    double* work;

    __device__ __forceinline__ bool has(OFFSET length) const { return length > longest; }

    // Multiply the long rows with x: `row_done(i, total)` puts the product of row i where it belongs, and returns what it adds
    // to the inner product.
    template <typename SUM, typename STORED_VALUE, typename Vector, typename RowDone>
    __device__ __forceinline__ void multiply(const OFFSET* indptr, const int* indices, const STORED_VALUE* values,
                                             Vector x, RowDone row_done) const {
        const int *rows = plan + n_pieces, *firsts = rows + n_rows;
        uint64* done = (uint64*)(work + n_rows);
        SUM* sums = (SUM*)(work + 2 * n_rows);
        for (long long piece = thread_id() / WARP; piece < n_pieces; piece += thread_count() / WARP) {
            int k = plan[piece], first = firsts[k], count = firsts[k + 1] - first, i = rows[k];
            OFFSET begin = indptr[i] + (OFFSET)(piece - first) * PIECE, row_end = indptr[i + 1];
            OFFSET end = row_end - begin > PIECE ? begin + PIECE : row_end;
            SUM total = SUM();
            for (OFFSET e = begin + lane_id(); e < end; e += WARP) total += (SUM)values[e] * (SUM)x[indices[e]];
            total = lane_sum<WARP>(total);
            bool is_last = false;
            if (lane_id() == 0) {
                sums[piece] = total;
                __threadfence();
                is_last = atomicAdd(&done[k], 1ull) == (uint64)(count - 1);
            }
            if (!__any_sync(FULL_WARP, is_last)) continue;
            __threadfence();
            total = SUM();
            for (int s = lane_id(); s < count; s += WARP) total += load_l2(&sums[first + s]);
            total = lane_sum<WARP>(total);
            if (lane_id() == 0) {
                done[k] = 0;
                work[k] = row_done(i, total);
            }
        }
    }
};

// All rows of A times x. `row_done(i, total)` is called by one thread for each row, and returns what the row adds to an
// inner product; the sum of that over the short rows of this thread is returned, and the long rows' share is in `work`.
template <typename SUM, typename STORED_VALUE, typename Vector, typename RowDone>
__device__ __forceinline__ double multiply_rows(long long n, const OFFSET* indptr, const int* indices,
                                                const STORED_VALUE* values, const LongRows& long_rows, Vector x,
                                                RowDone row_done) {
    long_rows.multiply<SUM>(indptr, indices, values, x, row_done);
    double sum = 0;
    FOR_EACH_ROW(i, n) {
        bool is_short = i < n && !long_rows.has(indptr[i + 1] - indptr[i]);
        SUM total = row_product<SUM>(is_short, i, indptr, indices, values, x);
        if (is_short && threadIdx.x % LANES == 0) sum += row_done(i, total);
    }
    return sum;
}

// The same without an inner product, in a grid that has LANES threads for each row. The code for long rows is compiled
// only if the matrix has some (LONG_ROWS), since its registers would slow down the products of short rows.
template <typename SUM, typename STORED_VALUE, typename Vector, typename RowDone>
__device__ __forceinline__ void multiply_each_row(long long n, const OFFSET* indptr, const int* indices,
                                                  const STORED_VALUE* values, const LongRows& long_rows, Vector x,
                                                  RowDone row_done) {
#ifdef LONG_ROWS
    multiply_rows<SUM>(n, indptr, indices, values, long_rows, x, row_done);
#else
    long long i = thread_id() / LANES;
    SUM total = row_product<SUM>(i < n, i, indptr, indices, values, x);
    if (i < n && threadIdx.x % LANES == 0) row_done(i, total);
#endif
}
