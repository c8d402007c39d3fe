// A sparse matrix as kernels take it, and products of a vector and its long rows, which all warps share. See csr.py.
#pragma once

#include "cuda/memory.cuh"
#include "cuda/numbers.cuh"
#include "cuda/reduce.cuh"

// The rows with more than `longest` entries are cut into pieces, and each warp multiplies some of the pieces.
template <typename T>
struct Matrix {
    const OFFSET* indptr;
    const int* indices;
    const T* values;
    long long longest, n_long, n_pieces;
    const int* plan;
    double* work;
    long long pitch;  // how many numbers of `work` belong to a column

    __device__ __forceinline__ bool is_long(long long i) const { return indptr[i + 1] - indptr[i] > longest; }

    // Multiply the long rows with x: `row_done(i, total)` puts the product of row i where it belongs, and returns what it
    // adds to the inner product. The terms of a column go to its own part of `work`.
    template <typename SUM, typename Vector, typename RowDone>
    __device__ __forceinline__ void multiply_long_rows(Vector x, RowDone row_done, double* work) const {
        const int *rows = plan + n_pieces, *firsts = rows + n_long;
        uint64* done = (uint64*)(work + n_long);
        SUM* sums = (SUM*)(work + 2 * n_long);
        for (long long piece = thread_id() / WARP; piece < n_pieces; piece += thread_count() / WARP) {
            int k = plan[piece], first = firsts[k], count = firsts[k + 1] - first, i = rows[k];
            CHECK(k, k >= 0 && k < n_long);
            CHECK(piece, piece >= first && piece < first + count);
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
