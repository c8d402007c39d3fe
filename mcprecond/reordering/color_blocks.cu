// Color blocks: one thread per row of the color order. See color_blocks.py.

extern "C" __global__ void count_entries(long long n, const OFFSET* indptr, const int* indices, const int* perm,
                                         const int* inverse, OFFSET* lower_counts, OFFSET* upper_counts) {
    long long i = thread_id();
    if (i >= n) return;
    OFFSET lower = 0, upper = 0;
    for (OFFSET k = indptr[perm[i]], end = indptr[perm[i] + 1]; k < end; ++k) {
        int j = inverse[indices[k]];
        lower += j < i;
        upper += j > i;
    }
    lower_counts[i] = lower;
    upper_counts[i] = upper;
}

extern "C" __global__ void fill_indices(long long n, const OFFSET* indptr, const int* indices, const int* perm,
                                        const int* inverse, const OFFSET* lower_indptr, int* lower_indices,
                                        const OFFSET* upper_indptr, int* upper_indices) {
    long long i = thread_id();
    if (i >= n) return;
    OFFSET lower = lower_indptr[i], upper = upper_indptr[i];
    for (OFFSET k = indptr[perm[i]], end = indptr[perm[i] + 1]; k < end; ++k) {
        int j = inverse[indices[k]];
        if (j < i)
            lower_indices[lower++] = j;
        else if (j > i)
            upper_indices[upper++] = j;
    }
}

extern "C" __global__ void fill_values(long long n, const OFFSET* indptr, const int* indices, const VALUE* values,
                                       const int* perm, const int* inverse, const OFFSET* lower_indptr, STORED* lower,
                                       const OFFSET* upper_indptr, STORED* upper, VALUE* diagonal) {
    long long i = thread_id();
    if (i >= n) return;
    OFFSET next_lower = lower_indptr[i], next_upper = upper_indptr[i];
    VALUE own = 0;
    for (OFFSET k = indptr[perm[i]], end = indptr[perm[i] + 1]; k < end; ++k) {
        int j = inverse[indices[k]];
        if (j < i)
            lower[next_lower++] = (STORED)values[k];
        else if (j > i)
            upper[next_upper++] = (STORED)values[k];
        else
            own += values[k];
    }
    diagonal[i] = own;
}

__device__ bool row_differs(long long i, const OFFSET* indptr, const int* indices, const VALUE* values,
                            bool also_values, const int* perm, const int* inverse, const OFFSET* lower_indptr,
                            const int* lower_indices, const STORED* lower, const OFFSET* upper_indptr,
                            const int* upper_indices, const STORED* upper, const VALUE* diagonal) {
    OFFSET next_lower = lower_indptr[i], lower_end = lower_indptr[i + 1];
    OFFSET next_upper = upper_indptr[i], upper_end = upper_indptr[i + 1];
    VALUE own = 0;
    for (OFFSET k = indptr[perm[i]], end = indptr[perm[i] + 1]; k < end; ++k) {
        int j = inverse[indices[k]];
        if (j < i) {
            if (next_lower == lower_end || lower_indices[next_lower] != j) return true;
            if (also_values && lower[next_lower] != (STORED)values[k]) return true;
            ++next_lower;
        } else if (j > i) {
            if (next_upper == upper_end || upper_indices[next_upper] != j) return true;
            if (also_values && upper[next_upper] != (STORED)values[k]) return true;
            ++next_upper;
        } else {
            own += values[k];
        }
    }
    return (also_values && own != diagonal[i]) || next_lower != lower_end || next_upper != upper_end;
}

extern "C" __global__ void compare(long long n, const OFFSET* indptr, const int* indices, const VALUE* values,
                                   long long also_values, const int* perm, const int* inverse,
                                   const OFFSET* lower_indptr, const int* lower_indices, const STORED* lower,
                                   const OFFSET* upper_indptr, const int* upper_indices, const STORED* upper,
                                   const VALUE* diagonal, int* differing_row) {
    long long i = thread_id();
    if (i < n && row_differs(i, indptr, indices, values, also_values, perm, inverse, lower_indptr, lower_indices, lower,
                             upper_indptr, upper_indices, upper, diagonal))
        atomicMin(differing_row, perm[i]);
}

extern "C" __global__ void join(long long n, const OFFSET* lower_indptr, const int* lower_indices, const STORED* lower,
                                const OFFSET* upper_indptr, const int* upper_indices, const STORED* upper,
                                const VALUE* diagonal, const OFFSET* indptr, int* indices, VALUE* values) {
    long long i = thread_id();
    if (i >= n) return;
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
