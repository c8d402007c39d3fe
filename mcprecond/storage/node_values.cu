// The numbers of blocks of nodes: those of A, in the order of slices. See node_values.py.

#include "cuda/search.cuh"
#include "layouts/slices.cuh"
#include "values.cuh"

#define WARPS (BLOCK / WARP)
#define ROOM (int)(32768 / sizeof(VALUE))  // numbers of A that a block of threads stages in shared memory

// The block of A in node row `row`, node column `column`: number (p, q) goes to block[(p * BLOCK_SIZE + q) * stride].
template <typename Number>
__device__ void copy_block(long long row, long long column, const OFFSET* indptr, const int* indices,
                           const VALUE* values, Number* block, int stride) {
    for (int p = 0; p < BLOCK_SIZE; ++p) {
        VALUE numbers[BLOCK_SIZE] = {};
        OFFSET end = indptr[row * BLOCK_SIZE + p + 1];
        OFFSET k = lower_bound(indices, indptr[row * BLOCK_SIZE + p], end, column * BLOCK_SIZE);
        for (; k < end && indices[k] / BLOCK_SIZE == column; ++k)
#pragma unroll
            for (int q = 0; q < BLOCK_SIZE; ++q)
                if (indices[k] % BLOCK_SIZE == q) numbers[q] = values[k];
#pragma unroll
        for (int q = 0; q < BLOCK_SIZE; ++q) block[(p * BLOCK_SIZE + q) * (long long)stride] = (Number)numbers[q];
    }
}

// A row of nodes without holes: number (p, q) of its block k is values[first + k * BLOCK_SIZE + p * length + q].
struct FullRow {
    OFFSET first;
    int length;
    __device__ __forceinline__ FullRow(long long row, const OFFSET* indptr)
        : first(indptr[row * BLOCK_SIZE]), length((int)(indptr[row * BLOCK_SIZE + 1] - first)) {}
    __device__ __forceinline__ int size() const { return BLOCK_SIZE * length; }

    // A block of it, from where its first number is; number (p, q) goes to block[(p * BLOCK_SIZE + q) * stride].
    template <typename Number>
    __device__ __forceinline__ void copy(const VALUE* first_number, int k, Number* block, int stride) const {
        const VALUE* numbers = first_number + k * BLOCK_SIZE;
#pragma unroll
        for (int p = 0; p < BLOCK_SIZE; ++p)
#pragma unroll
            for (int q = 0; q < BLOCK_SIZE; ++q)
                block[(p * BLOCK_SIZE + q) * (long long)stride] = (Number)numbers[p * length + q];
    }
};

// Stage numbers in shared memory: by a whole warp, several loads at once.
__device__ __forceinline__ void stage(const VALUE* numbers, int count, VALUE* staged) {
    constexpr int BATCH = 8;
    for (int begin = lane_id(); begin < count; begin += BATCH * WARP) {
        VALUE number[BATCH];
#pragma unroll
        for (int e = 0; e < BATCH; ++e)
            if (begin + e * WARP < count) number[e] = numbers[begin + e * WARP];
#pragma unroll
        for (int e = 0; e < BATCH; ++e)
            if (begin + e * WARP < count) staged[begin + e * WARP] = number[e];
    }
}

// A block of threads for each slice. Its rows of A are read from one end to the other, as many at once as there is room
// for, and what is stored of them comes from there. Rows with holes, or too long for that, are read where they are.
extern "C" __global__ void __launch_bounds__(BLOCK, 5)
    fill_blocks(long long n_slices, const int* slices, const OFFSET* lower_indptr, const int* lower_columns,
                const SOURCE* lower_source, STORED* lower, const OFFSET* upper_indptr, const int* upper_columns,
                const SOURCE* upper_source, STORED* upper, const SOURCE* diagonal_source, VALUE* diagonal,
                const int* perm, long long full, const OFFSET* indptr, const int* indices, const VALUE* values,
                const uint64* expected, const uint64* found) {
    __shared__ VALUE staged[ROOM];
    if (!are_taken(expected, found)) return;
    Slice slice(slices, blockIdx.x);
    int warp = threadIdx.x / WARP;
    auto row_of_A = [&](int number) { return number < slice.rows ? perm[slice.first + number] : 0; };

    int own = row_of_A(slice.row);
    FullRow own_row(own, indptr);
    int longest = own_row.size();
    for (int step = WARP / 2; step > 0; step /= 2) longest = max(longest, __shfl_xor_sync(FULL_WARP, longest, step));
    bool stages = full && longest <= ROOM;
    int at_once = stages ? ROOM / longest : slice.rows;

    for (int begin = 0; begin < slice.rows; begin += at_once) {
        int end = min(begin + at_once, slice.rows);
        if (stages) {
            __syncthreads();
            for (int number = begin + warp; number < end; number += WARPS) {
                FullRow row(row_of_A(number), indptr);
                stage(values + row.first, row.size(), staged + (number - begin) * longest);
            }
            __syncthreads();
        }
        auto numbers_of = [&](int number, const FullRow& row) {
            return stages ? staged + (number - begin) * longest : values + row.first;
        };

        bool is_among = begin <= slice.row && slice.row < end;
        int taker = 0;  // the warp that takes this step
        for (bool above : {false, true})
            for (Slice::Steps steps(slice, above ? upper_indptr : lower_indptr); steps.more();
                 taker = (taker + 1) % WARPS) {
                Step step;
                if (!steps.next(step) || !is_among || taker != warp) continue;
                STORED* block = (above ? upper : lower) + step.first * (BLOCK_SIZE * BLOCK_SIZE) + step.rank;
                int number = (above ? upper_source : lower_source)[step.place()];
                if (full)
                    own_row.copy(numbers_of(slice.row, own_row), number, block, step.count);
                else
                    copy_block(own, perm[(above ? upper_columns : lower_columns)[step.place()]], indptr, indices,
                               values, block, step.count);
            }

        int number = begin + lane_id();
        if (warp < WARPS - 1 || number >= end) continue;  // the last warp has the diagonal
        int i = (int)slice.first + number, k = diagonal_source[i];
        VALUE* block = diagonal + i * (long long)(BLOCK_SIZE * BLOCK_SIZE);
        FullRow row(row_of_A(number), indptr);
        if (full && k < row.length / BLOCK_SIZE)
            row.copy(numbers_of(number, row), k, block, 1);
        else  // also where there is none: zeros
            copy_block(row_of_A(number), row_of_A(number), indptr, indices, values, block, 1);
    }
}

// Write the inverse of a block, and return whether it is finite.
__device__ bool invert_block(const VALUE* block, VALUE* inverse) {
    VALUE rest[BLOCK_SIZE][2 * BLOCK_SIZE];  // the block and beside it the unit matrix, which becomes its inverse
#pragma unroll
    for (int p = 0; p < BLOCK_SIZE; ++p)
#pragma unroll
        for (int q = 0; q < BLOCK_SIZE; ++q) {
            rest[p][q] = block[p * BLOCK_SIZE + q];
            rest[p][BLOCK_SIZE + q] = (VALUE)(REAL)(p == q);
        }
#pragma unroll
    for (int c = 0; c < BLOCK_SIZE; ++c) {
#pragma unroll
        for (int p = c + 1; p < BLOCK_SIZE; ++p)
            if (fabs(rest[p][c]) > fabs(rest[c][c]))
#pragma unroll
                for (int q = 0; q < 2 * BLOCK_SIZE; ++q) {
                    VALUE other = rest[p][q];
                    rest[p][q] = rest[c][q];
                    rest[c][q] = other;
                }
        VALUE pivot = rest[c][c];
#pragma unroll
        for (int q = 0; q < 2 * BLOCK_SIZE; ++q) rest[c][q] = rest[c][q] / pivot;
#pragma unroll
        for (int p = 0; p < BLOCK_SIZE; ++p) {
            VALUE factor = rest[p][c];
#pragma unroll
            for (int q = 0; q < 2 * BLOCK_SIZE; ++q)
                if (p != c) rest[p][q] -= factor * rest[c][q];
        }
    }
    bool finite = true;
#pragma unroll
    for (int p = 0; p < BLOCK_SIZE; ++p)
#pragma unroll
        for (int q = 0; q < BLOCK_SIZE; ++q) {
            inverse[p * BLOCK_SIZE + q] = rest[p][BLOCK_SIZE + q];
            finite &= isfinite(rest[p][BLOCK_SIZE + q]);
        }
    return finite;
}

extern "C" __global__ void invert_diagonal(long long n_nodes, const VALUE* diagonal, VALUE* dinv,
                                           const uint64* expected, uint64* found) {
    if (!are_taken(expected, found)) return;
    for (long long i = thread_id(); i < n_nodes; i += thread_count()) {
        const long long first = i * (BLOCK_SIZE * BLOCK_SIZE);
        if (!invert_block(diagonal + first, dinv + first)) atomicAdd(&found[NO_PIVOTS], 1ull);
    }
}
