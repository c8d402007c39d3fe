// Products of a sparse matrix and a vector. Each block loads the entries of neighboring rows, and LANES threads sum one
// row. The warps of all blocks share the long rows. See csr.py.
#pragma once

#include "cuda/memory.cuh"
#include "cuda/numbers.cuh"
#include "cuda/reduce.cuh"

#define ROWS_OF_BLOCK (BLOCK / LANES)
#define AT_ONCE (BLOCK * LOADS)  // entries

// Multiply ROWS_OF_BLOCK rows with x, from row `first` on, and return the product of one row to each of the LANES threads
// that share it, or 0 beyond row n. Sums are accumulated in the type SUM. x is a pointer, or an object whose operator[]
// loads an element of the vector.
//
// The entries of neighboring rows are contiguous in memory. In each round the threads of the block load AT_ONCE entries,
// whichever rows these belong to, and store their products with x in shared memory. Then the threads of each row add up
// its products. If the rows have so many entries that this takes too many rounds, the threads of each row load its entries
// themselves.
template <typename SUM, typename STORED_VALUE, typename Vector>
__device__ __forceinline__ SUM block_row_product(long long first, long long n, const OFFSET* indptr, const int* indices,
                                                 const STORED_VALUE* values, Vector x) {
    __shared__ SUM products[AT_ONCE];
    long long i = first + threadIdx.x / LANES;
    OFFSET base = indptr[first], total = indptr[min(first + ROWS_OF_BLOCK, n)] - base;
    OFFSET next = i < n ? indptr[i] - base + threadIdx.x % LANES : 0, end = i < n ? indptr[i + 1] - base : 0;
    indices += base, values += base;
    SUM sum = SUM();
    if (total > MOST_ROUNDS * AT_ONCE) {
        for (; next < end; next += LANES) sum += (SUM)values[next] * (SUM)x[indices[next]];
        return lane_sum<LANES>(sum);
    }
    for (int begin = 0; begin < (int)total; begin += AT_ONCE) {
        int columns[LOADS];
        STORED_VALUE loaded[LOADS];
        int there = min(AT_ONCE, (int)total - begin);
#pragma unroll
        for (int l = 0; l < LOADS; ++l) {
            int k = l * BLOCK + threadIdx.x;
            columns[l] = k < there ? indices[begin + k] : 0;
            loaded[l] = k < there ? values[begin + k] : STORED_VALUE();
        }
        if (begin) __syncthreads();
#pragma unroll
        for (int l = 0; l < LOADS; ++l) {
            int k = l * BLOCK + threadIdx.x;
            if (k < there) products[k] = (SUM)loaded[l] * (SUM)x[columns[l]];
        }
        __syncthreads();
        for (; next < end && next < begin + there; next += LANES) sum += products[next - begin];
    }
    return lane_sum<LANES>(sum);
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
    for (long long first = (long long)blockIdx.x * ROWS_OF_BLOCK; first < n;
         first += (long long)gridDim.x * ROWS_OF_BLOCK) {
        long long i = first + threadIdx.x / LANES;
        SUM total = block_row_product<SUM>(first, n, indptr, indices, values, x);
        if (i < n && threadIdx.x % LANES == 0 && !long_rows.has(indptr[i + 1] - indptr[i])) sum += row_done(i, total);
        __syncthreads();  // before the next products
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
    long long first = (long long)blockIdx.x * ROWS_OF_BLOCK, i = first + threadIdx.x / LANES;
    if (first >= n) return;
    SUM total = block_row_product<SUM>(first, n, indptr, indices, values, x);
    if (i < n && threadIdx.x % LANES == 0) row_done(i, total);
#endif
}
