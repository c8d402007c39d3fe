// Binary search.
#pragma once

// The first place in [low, high) where a sorted array is not less than a value; `high` if there is none.
template <typename Place>
__device__ __forceinline__ Place lower_bound(const int* sorted, Place low, Place high, long long value) {
    while (low < high) {
        Place middle = low + (high - low) / 2;
        if (sorted[middle] < value)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

// The row that an entry is in.
template <typename Offset>
__device__ __forceinline__ long long row_of(const Offset* indptr, long long n, long long entry) {
    long long low = 0, high = n;  // row `low` does not begin behind the entry, row `high` does
    while (high - low > 1) {
        long long middle = low + (high - low) / 2;
        (indptr[middle] <= entry ? low : high) = middle;
    }
    return low;
}
