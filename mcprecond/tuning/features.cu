// Features of sampled rows, a block for each; see features.py.

#include "cuda/reduce.cuh"
#include "cuda/search.cuh"

// A share of the diagonal, cut off so that sums are finite; also where it is no number.
__device__ __forceinline__ double bounded(double share) {
    return share < HUGE_SHARE ? share : HUGE_SHARE;
}

// A set of at most MOST_REACHED columns, in shared memory: a hash table with open addresses, and a list of them.
struct Reached {
    int table[2 * MOST_REACHED], list[MOST_REACHED], count;
};

__device__ __forceinline__ void add(Reached& set, int column) {
    unsigned place = (unsigned)column * 2654435761u % (2 * MOST_REACHED);
    while (true) {
        int before = atomicCAS(&set.table[place], -1, column);
        if (before == column) return;
        if (before == -1) break;
        place = (place + 1) % (2 * MOST_REACHED);
    }
    int position = atomicAdd(&set.count, 1);
    if (position < MOST_REACHED) set.list[position] = column;
}

// How many rows can be reached from row i in two and in three steps, -1 if they are too many; the block calls it.
__device__ void count_reached(int i, const OFFSET* indptr, const int* indices, double* in_two, double* in_three) {
    __shared__ Reached set;
    for (int place = threadIdx.x; place < 2 * MOST_REACHED; place += BLOCK) set.table[place] = -1;
    if (threadIdx.x == 0) set.count = 0;
    __syncthreads();
    if (threadIdx.x == 0) add(set, i);
    __syncthreads();
    for (int step = 1, first = 0; step <= 3; ++step) {
        int end = set.count;
        __syncthreads();
        for (int member = first + threadIdx.x / WARP; member < end; member += BLOCK / WARP) {
            int row = set.list[member];
            for (OFFSET k = indptr[row] + lane_id(); k < indptr[row + 1]; k += WARP)
                if (atomicAdd(&set.count, 0) < MOST_REACHED) add(set, indices[k]);
        }
        __syncthreads();
        bool is_full = set.count >= MOST_REACHED;
        if (threadIdx.x == 0 && (step == 2 || is_full)) *in_two = is_full ? -1 : set.count;
        if (threadIdx.x == 0 && (step == 3 || is_full)) *in_three = is_full ? -1 : set.count;
        if (is_full) return;
        first = end;
        __syncthreads();
    }
}

// Let `most` be at least a number that is not negative: such numbers stand in the order of their bits.
__device__ __forceinline__ void raise_to(uint64* most, double number) {
    atomicMax((unsigned long long*)most, (unsigned long long)__double_as_longlong(number));
}

// Replace `most` by the maximum of itself and the magnitudes of the off-diagonal entries of row i. Every thread of the
// warp has to call this function.
__device__ __forceinline__ void raise_to_largest(uint64* most, int i, const OFFSET* indptr, const int* indices,
                                                 const VALUE* values) {
    double largest = 0;
    for (OFFSET k = indptr[i] + lane_id(); k < indptr[i + 1]; k += WARP)
        if (indices[k] != i) largest = max(largest, (double)fabs(values[k]));
    raise_to(most, largest);
}

// Whether a row has its entries in the same columns as row i; all threads of a warp get it.
__device__ __forceinline__ bool is_alike(int i, int other, long long n, const OFFSET* indptr, const int* indices) {
    if (other < 0 || other >= n) return false;
    OFFSET begin = indptr[i], length = indptr[i + 1] - begin;
    bool differs = length < 2 || indptr[other + 1] - indptr[other] != length;
    for (OFFSET k = lane_id(); k < length && !differs; k += WARP)
        differs = indices[begin + k] != indices[indptr[other] + k];
    return !__any_sync(FULL_WARP, differs);
}

// What ILU0 changes in row i, for this thread: see `products_of_ilu0` in features.py.
__device__ void add_products(long long i, const OFFSET* indptr, const int* indices, const VALUE* values,
                             const VALUE* diagonal, double& sizes, double& dropped) {
    OFFSET begin = indptr[i], end = indptr[i + 1];
    if (!(fabs(diagonal[i]) > 0)) return;
    for (OFFSET k = begin + threadIdx.x / WARP; k < end; k += BLOCK / WARP) {
        int before = indices[k];
        if (before >= i || !(fabs(diagonal[before]) > 0)) continue;
        for (OFFSET m = indptr[before] + lane_id(); m < indptr[before + 1]; m += WARP) {
            int j = indices[m];
            if (j <= before) continue;
            VALUE product = values[k] / diagonal[i] * (values[m] / diagonal[before]);
            sizes += bounded(fabs(product));
            OFFSET place = lower_bound(indices, begin, end, j);
            if (place == end || indices[place] != j) dropped += real_part(product);
        }
    }
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    sample_rows(long long count, long long near, long long far, long long n, const int* rows, const OFFSET* indptr,
                const int* indices, const VALUE* values, const VALUE* diagonal, double* found) {
    __shared__ uint64 own_largest, largest_beside;
    __shared__ bool alike[2];
    int sampled = blockIdx.x, i = rows[sampled], warp = threadIdx.x / WARP;
    OFFSET begin = indptr[i], end = indptr[i + 1];
    double *of_row = found + sampled * FIELDS, sums[4] = {0, 0, 0, 0};
    VALUE pivot = diagonal[i];
    bool has_pivot = fabs(pivot) > 0;
    for (OFFSET k = begin + threadIdx.x; k < end && has_pivot; k += BLOCK) {
        int j = indices[k];
        if (j == i) continue;
        double size = bounded((double)fabs(values[k]) / (double)fabs(pivot));
        double other = fabs(diagonal[j]), share = real_part(values[k] / pivot);
        sums[0] += size;
        sums[1] += other > 0 ? bounded(size * sqrt((double)fabs(pivot) / other)) : 0;
        sums[share > 0 ? 2 : 3] += bounded(fabs(share));
    }
    for (int field = 0; field < 4; ++field) {
        double sum = block_sum(sums[field]);
        if (threadIdx.x == 0) of_row[BESIDE + field] = sum;
    }
    if (threadIdx.x == 0) {
        of_row[HAS_PIVOT] = has_pivot;
        of_row[FARTHEST] = end > begin ? max(abs(indices[begin] - i), abs(indices[end - 1] - i)) : 0;
        own_largest = largest_beside = 0;
    }
    __syncthreads();
    if (sampled >= near) return;
    if (warp == 0) raise_to_largest(&own_largest, i, indptr, indices, values);
    for (OFFSET k = begin + warp; k < end; k += BLOCK / WARP)
        raise_to_largest(&largest_beside, indices[k], indptr, indices, values);
    if (warp < 2) {
        bool same = is_alike(i, i + 2 * warp - 1, n, indptr, indices);
        if (lane_id() == 0) alike[warp] = same;
    }
    double sizes = 0, dropped = 0;
    add_products(i, indptr, indices, values, diagonal, sizes, dropped);
    sizes = block_sum(sizes), dropped = fabs(block_sum(dropped));
    if (threadIdx.x == 0) {
        of_row[PRODUCTS] = sizes, of_row[DROPPED] = bounded(dropped);
        double own = __longlong_as_double(own_largest);
        of_row[CONTRAST] = own > 0 ? max(__longlong_as_double(largest_beside) / own, 1.0) : 1.0;
        of_row[IN_NODES] = alike[0] || alike[1];
    }
    if (sampled < far) count_reached(i, indptr, indices, &of_row[IN_TWO], &of_row[IN_THREE]);
}
