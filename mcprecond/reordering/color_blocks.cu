// Color blocks: LANES threads per row of the color order, which take its entries LANES at a time. See color_blocks.py.

// Stretches of LANES entries, until the longest row of the warp is done; k may lie behind the end of this row.
#define FOR_STRETCHES(k, begin, end) \
    for (OFFSET k = (begin) + threadIdx.x % LANES; __any_sync(FULL_WARP, k < (end)); k += LANES)

extern "C" __global__ void count_entries(long long n, const OFFSET* indptr, const int* indices, const int* perm,
                                         const int* inverse, OFFSET* lower_counts, OFFSET* upper_counts) {
    long long i = thread_id() / LANES;
    int lower = 0, upper = 0;
    if (i < n)
        for (OFFSET k = indptr[perm[i]] + threadIdx.x % LANES, end = indptr[perm[i] + 1]; k < end; k += LANES) {
            int j = inverse[indices[k]];
            lower += j < i;
            upper += j > i;
        }
    lower = lane_sum<LANES>(lower);
    upper = lane_sum<LANES>(upper);
    if (i < n && threadIdx.x % LANES == 0) {
        lower_counts[i] = lower;
        upper_counts[i] = upper;
    }
}

extern "C" __global__ void fill_indices(long long n, const OFFSET* indptr, const int* indices, const int* perm,
                                        const int* inverse, const OFFSET* lower_indptr, int* lower_indices,
                                        const OFFSET* upper_indptr, int* upper_indices) {
    long long i = thread_id() / LANES;
    bool active = i < n;
    OFFSET begin = active ? indptr[perm[i]] : 0, end = active ? indptr[perm[i] + 1] : 0;
    OFFSET next_lower = active ? lower_indptr[i] : 0, next_upper = active ? upper_indptr[i] : 0;
    FOR_STRETCHES(k, begin, end) {
        int j = k < end ? inverse[indices[k]] : (int)i;
        bool lower = k < end && j < i, upper = k < end && j > i;
        OFFSET lower_place = place_in_row<LANES>(lower, next_lower), upper_place = place_in_row<LANES>(upper, next_upper);
        if (lower) lower_indices[lower_place] = j;
        if (upper) upper_indices[upper_place] = j;
    }
}

extern "C" __global__ void fill_values(long long n, const OFFSET* indptr, const int* indices, const VALUE* values,
                                       const int* perm, const int* inverse, const OFFSET* lower_indptr, STORED* lower,
                                       const OFFSET* upper_indptr, STORED* upper, VALUE* diagonal) {
    long long i = thread_id() / LANES;
    bool active = i < n;
    OFFSET begin = active ? indptr[perm[i]] : 0, end = active ? indptr[perm[i] + 1] : 0;
    OFFSET next_lower = active ? lower_indptr[i] : 0, next_upper = active ? upper_indptr[i] : 0;
    VALUE own = 0;
    FOR_STRETCHES(k, begin, end) {
        int j = k < end ? inverse[indices[k]] : (int)i;
        VALUE value = k < end ? values[k] : 0;
        bool is_lower = k < end && j < i, is_upper = k < end && j > i;
        OFFSET lower_place = place_in_row<LANES>(is_lower, next_lower), upper_place = place_in_row<LANES>(is_upper, next_upper);
        if (is_lower)
            lower[lower_place] = (STORED)value;
        else if (is_upper)
            upper[upper_place] = (STORED)value;
        else
            own += value;
    }
    own = lane_sum<LANES>(own);
    if (active && threadIdx.x % LANES == 0) diagonal[i] = own;
}

// The triangles are read in the places that fill_* wrote.
extern "C" __global__ void compare(long long n, const OFFSET* indptr, const int* indices, const VALUE* values,
                                   long long also_values, const int* perm, const int* inverse,
                                   const OFFSET* lower_indptr, const int* lower_indices, const STORED* lower,
                                   const OFFSET* upper_indptr, const int* upper_indices, const STORED* upper,
                                   const VALUE* diagonal, int* differing_row) {
    long long i = thread_id() / LANES;
    bool active = i < n, differs = false;
    OFFSET begin = active ? indptr[perm[i]] : 0, end = active ? indptr[perm[i] + 1] : 0;
    OFFSET next_lower = active ? lower_indptr[i] : 0, lower_end = active ? lower_indptr[i + 1] : 0;
    OFFSET next_upper = active ? upper_indptr[i] : 0, upper_end = active ? upper_indptr[i + 1] : 0;
    VALUE own = 0;
    FOR_STRETCHES(k, begin, end) {
        int j = k < end ? inverse[indices[k]] : (int)i;
        VALUE value = also_values && k < end ? values[k] : 0;
        bool is_lower = k < end && j < i, is_upper = k < end && j > i;
        OFFSET lower_place = place_in_row<LANES>(is_lower, next_lower), upper_place = place_in_row<LANES>(is_upper, next_upper);
        if (is_lower)
            differs |= lower_place >= lower_end || lower_indices[lower_place] != j ||
                       (also_values && lower[lower_place] != (STORED)value);
        else if (is_upper)
            differs |= upper_place >= upper_end || upper_indices[upper_place] != j ||
                       (also_values && upper[upper_place] != (STORED)value);
        else
            own += value;
    }
    own = lane_sum<LANES>(own);
    differs |= next_lower != lower_end || next_upper != upper_end;
    if (active && (differs || (also_values && own != diagonal[i]))) atomicMin(differing_row, perm[i]);
}

extern "C" __global__ void join(long long n, const OFFSET* lower_indptr, const int* lower_indices, const STORED* lower,
                                const OFFSET* upper_indptr, const int* upper_indices, const STORED* upper,
                                const VALUE* diagonal, const OFFSET* indptr, int* indices, VALUE* values) {
    long long i = thread_id() / LANES;
    if (i >= n || threadIdx.x % LANES) return;  // a single thread: nothing waits for this
    OFFSET place = indptr[i];
    for (OFFSET k = lower_indptr[i]; k < lower_indptr[i + 1]; ++k, ++place) {
        indices[place] = lower_indices[k];
        values[place] = lower[k];
    }
    indices[place] = (int)i;
    values[place++] = diagonal[i];
    for (OFFSET k = upper_indptr[i]; k < upper_indptr[i + 1]; ++k, ++place) {
        indices[place] = upper_indices[k];
        values[place] = upper[k];
    }
}
