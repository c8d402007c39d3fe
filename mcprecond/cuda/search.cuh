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
