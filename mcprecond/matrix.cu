// The checks of a user's matrix: LANES threads per row, a block for long rows. See matrix.py.

#include "cuda/hash.cuh"
#include "cuda/memory.cuh"
#include "cuda/reduce.cuh"
#include "cuda/search.cuh"

#define LOADS 4          // entries that a thread loads at once
#define LONG_ROW 512     // entries from which on a row is left to the whole block
#define MOST_LISTED 512  // of them, in a block; others are not

// Raise a number to the largest one of a warp, if it is smaller.
__device__ __forceinline__ void raise(long long number, long long* largest) {
    for (int step = WARP / 2; step > 0; step /= 2) number = max(number, __shfl_xor_sync(FULL_WARP, number, step));
    if (lane_id() == 0 && number > ptx::load_l2(largest)) atomicMax(largest, number);
}

// The extremes of diagonal entries, as they are reported. Magnitudes are compared as the bits of doubles, which are in
// the same order.
struct Pivots {
    long long least = 0, largest = 0;

    __device__ __forceinline__ void take(VALUE pivot) {
        long long bits = real_part(pivot) > 0 ? __double_as_longlong(widened(real_part(pivot))) : 0;
        least = max(least, INFINITY_BITS - bits), largest = max(largest, bits);
    }
    __device__ __forceinline__ void report_to(long long* report) const {
        raise(least, &report[LEAST_PIVOT]), raise(largest, &report[LARGEST_PIVOT]);
    }
};

template <bool HAS_VALUES>
struct Check {
    int n;
    const int* indices;
    const VALUE* values;
    VALUE* diagonal;
    int flaws = 0;
    uint64 surplus = 0, surplus_of_values = 0, not_finite = 0;
    long long least = 0, largest = 0;
    Pivots pivots = {};

    __device__ __forceinline__ void take_value(VALUE value) {
        if (!isfinite(value)) {
            ++not_finite;
            return;
        }
        long long bits = 0;
        each_part(value, [&](REAL part) { bits = max(bits, __double_as_longlong(fabs(widened(part)))); });
        largest = max(largest, bits);
        if (bits) least = max(least, INFINITY_BITS - bits);
    }
    __device__ __forceinline__ void take_pivot(int v, VALUE pivot) { diagonal[v] = pivot, pivots.take(pivot); }

    // A hash of an edge and of the entry that its upper end stores, if the matrix is Hermitian.
    __device__ __forceinline__ uint64 hash_value(uint64 edge, VALUE value, bool is_upper) {
        VALUE upper = is_upper ? value : conjugate(value);
        uint64 hashed = edge;
        bool is_real_part = true;
        each_part(upper, [&](REAL part) {
            if (is_real_part || part != 0) hashed = mix64(hashed ^ __double_as_longlong(widened(part) + 0.0));  // -0 is 0
            is_real_part = false;
        });
        return hashed;
    }

    // Every `step`-th entry of a row from `first` on; returns how many neighbors these are.
    __device__ __forceinline__ int row(int v, OFFSET begin, OFFSET end, OFFSET first, int step) {
        int degree = 0;
        for (OFFSET k = first; k < end; k += LOADS * step) {
            int u[LOADS], before[LOADS];
            VALUE a[LOADS];
#pragma unroll
            for (int j = 0; j < LOADS; ++j) {
                OFFSET e = k + j * step;
                u[j] = e < end ? indices[e] : v;
                before[j] = e < end && e > begin ? indices[e - 1] : -1;
                a[j] = HAS_VALUES && e < end ? values[e] : VALUE();
            }
#pragma unroll
            for (int j = 0; j < LOADS; ++j) {
                if (HAS_VALUES) take_value(a[j]);
                if (HAS_VALUES && u[j] == v && k + j * step < end) take_pivot(v, a[j]);
                if (u[j] < 0 || u[j] >= n) {
                    flaws |= OUT_OF_RANGE;
                    continue;
                }
                if (before[j] >= u[j]) flaws |= NOT_SORTED;
                if (u[j] != v) {
                    uint64 edge = mix64((uint64)min(u[j], v) << 32 | (uint64)max(u[j], v));
                    surplus += u[j] > v ? edge : 0 - edge;
                    ++degree;
                    if (HAS_VALUES) {
                        uint64 hashed = hash_value(edge, a[j], u[j] > v);
                        surplus_of_values += u[j] > v ? hashed : 0 - hashed;
                    }
                } else if (HAS_VALUES && fabs(a[j] - conjugate(a[j])) > 0) {
                    surplus_of_values += mix64((uint64)v);
                }
            }
        }
        return degree;
    }
};

template <bool HAS_VALUES>
__device__ void check_all(long long n, long long entries, const OFFSET* indptr, const int* indices, const VALUE* values,
                          int* degrees, VALUE* diagonal, long long* report) {
    __shared__ int listed[MOST_LISTED], n_listed, degree_of_listed;
    if (threadIdx.x == 0) n_listed = 0;
    __syncthreads();
    Check<HAS_VALUES> check{(int)n, indices, values, diagonal};
    if (thread_id() == 0 && (indptr[0] != 0 || indptr[n] != entries)) check.flaws |= BROKEN_OFFSETS;
    int largest = 0, lane = lane_id() % LANES;
    OFFSET next_begin, next_end;  // of rows, prefetched one row ahead
    auto find_row = [&](long long v) {
        next_begin = v < n ? indptr[v] : 0;
        next_end = v < n ? indptr[v + 1] : 0;
        if (next_begin < 0 || next_end < next_begin || next_end > entries) {  // no entry of it is read
            check.flaws |= BROKEN_OFFSETS;
            next_begin = next_end = 0;
        }
    };
    long long rows = thread_count() / LANES, v = thread_id() / LANES;
    find_row(v);
    for (long long first = (thread_id() - lane_id()) / LANES; first < n; first += rows, v += rows) {  // by whole warps
        OFFSET begin = next_begin, end = next_end;
        find_row(v + rows);
        int place = end - begin >= LONG_ROW && lane == 0 ? atomicAdd(&n_listed, 1) : MOST_LISTED;
        if (place < MOST_LISTED) listed[place] = (int)v;
        bool is_listed = __shfl_sync(FULL_WARP, place, lane_id() - lane) < MOST_LISTED;
        int degree = lane_sum<LANES>(is_listed ? 0 : check.row((int)v, begin, end, begin + lane, LANES));
        if (v < n && lane == 0 && !is_listed) {
            degrees[v] = degree;
            if (HAS_VALUES && degree == end - begin) check.take_pivot((int)v, VALUE());  // it is not stored
        }
        largest = max(largest, degree);
    }
    __syncthreads();
    for (int k = 0; k < min(n_listed, MOST_LISTED); ++k) {
        int row = listed[k];
        if (threadIdx.x == 0) degree_of_listed = 0;
        __syncthreads();
        OFFSET begin = indptr[row];
        int degree = lane_sum<WARP>(check.row(row, begin, indptr[row + 1], begin + threadIdx.x, blockDim.x));
        if (lane_id() == 0) atomicAdd(&degree_of_listed, degree);
        __syncthreads();
        largest = max(largest, degree_of_listed);
        if (threadIdx.x == 0) {
            degrees[row] = degree_of_listed;
            if (HAS_VALUES && degree_of_listed == indptr[row + 1] - begin) check.take_pivot(row, VALUE());
        }
        __syncthreads();
    }
    for (int step = WARP / 2; step > 0; step /= 2) {
        check.flaws |= __shfl_xor_sync(FULL_WARP, check.flaws, step);
        largest = max(largest, __shfl_xor_sync(FULL_WARP, largest, step));
    }
    if (lane_id() == 0) {
        if (check.flaws) atomicOr((uint64*)&report[FLAWS], (uint64)check.flaws);
        if (largest > ptx::load_l2(&report[MAX_DEGREE])) atomicMax(&report[MAX_DEGREE], (long long)largest);
    }
    add_block_sums<3>((uint64*)&report[SURPLUS], {check.surplus, check.surplus_of_values, check.not_finite});
    if (!HAS_VALUES) return;
    raise(check.least, &report[LEAST]), raise(check.largest, &report[LARGEST]);
    check.pivots.report_to(report);
}

extern "C" __global__ void check_pattern(long long n, long long entries, const OFFSET* indptr, const int* indices,
                                         int* degrees, long long* report) {
    check_all<false>(n, entries, indptr, indices, nullptr, degrees, nullptr, report);
}

extern "C" __global__ void check_matrix(long long n, long long entries, const OFFSET* indptr, const int* indices,
                                        const VALUE* values, int* degrees, VALUE* diagonal, long long* report) {
    check_all<true>(n, entries, indptr, indices, values, degrees, diagonal, report);
}

extern "C" __global__ void find_degrees(long long n, const OFFSET* indptr, int* degrees) {
    long long v = thread_id();
    if (v < n) degrees[v] = (int)(indptr[v + 1] - indptr[v]) - 1;
}

extern "C" __global__ void find_places(long long n, const long long* rows, const OFFSET* indptr, const int* indices,
                                       long long* places) {
    long long t = thread_id();
    if (t < n) places[t] = lower_bound(indices, indptr[rows[t]], indptr[rows[t] + 1], rows[t]);
}

extern "C" __global__ void find_diagonal(long long n, const OFFSET* indptr, const int* indices, const VALUE* values,
                                         VALUE* diagonal, long long* report) {
    Pivots pivots;
    for (long long i = thread_id(); i < n; i += thread_count()) {
        OFFSET k = lower_bound(indices, indptr[i], indptr[i + 1], i);
        diagonal[i] = k < indptr[i + 1] && indices[k] == i ? values[k] : VALUE();
        pivots.take(diagonal[i]);
    }
    pivots.report_to(report);
}
