// ILU(0): one warp per slice, in the order of the levels; pivots are waited for. See ilu.py.
//
// A row is written by the threads that share it, and read by others after its pivot is there: the pivot is published
// behind a fence. Their reads bypass L1, which may hold an older state of a line that two rows share.

#include "pivots.cuh"

extern "C" __global__ void __launch_bounds__(256) factorize(
        long long n_slices, const int* slices, const OFFSET* lower_indptr, const int* lower_indices, VALUE* lower,
        const OFFSET* upper_indptr, const int* upper_indices, VALUE* upper, const VALUE* diagonal, double tiny,
        VALUE* pivots, VALUE* shifts, int* cliques) {
    for_slices(n_slices, false, slices, [&](const Slice& slice) {
        long long i = slice.index();
        int lanes = 1 << slice.log_lanes, lane = slice.lane;
        bool active = slice.row < slice.rows, changes = false;
        uint32 team = (lanes == WARP ? FULL_WARP : (1u << lanes) - 1) << (slice.row * lanes);
        REAL largest = 0;
        VALUE subtracted = VALUE();
        if (active) {
            OFFSET begin_lower = lower_indptr[i], end_lower = lower_indptr[i + 1];
            OFFSET begin_upper = upper_indptr[i], end_upper = upper_indptr[i + 1];
            for (OFFSET e = begin_lower + lane; e < end_lower; e += lanes) largest = max(largest, fabs(lower[e]));
            for (OFFSET e = begin_upper + lane; e < end_upper; e += lanes) largest = max(largest, fabs(upper[e]));
            for (OFFSET e = begin_lower; e < end_lower; ++e) {
                int j = lower_indices[e];
                OFFSET begin = upper_indptr[j], end = upper_indptr[j + 1];
                VALUE pivot = arrived(&pivots[j], pivots[j]);
                __threadfence();
                __syncwarp(team);  // what the others have subtracted from this row
                VALUE factor = lower[e] / pivot;
                OFFSET left_lower = end_lower - e - 1, left = left_lower + 1 + (end_upper - begin_upper);
                if (end - begin <= left) {  // look for the other row's columns in this one
                    for (OFFSET m = begin + lane; m < end; m += lanes) {
                        int column = upper_indices[m];
                        VALUE product = factor * fresh(&upper[m]);
                        if (column == i) {
                            subtracted += product;
                        } else if (column < i) {
                            OFFSET place = find(lower_indices, e + 1, end_lower, column);
                            if (place >= 0) lower[place] -= product;
                            changes |= place >= 0;
                        } else {
                            OFFSET place = find(upper_indices, begin_upper, end_upper, column);
                            if (place >= 0) upper[place] -= product;
                            changes |= place >= 0;
                        }
                    }
                } else {  // look for the columns of this row in the other one
                    for (OFFSET m = lane; m < left; m += lanes) {
                        OFFSET in_upper = begin_upper + m - left_lower - 1;
                        int column = m < left_lower ? lower_indices[e + 1 + m]
                                     : m == left_lower ? (int)i : upper_indices[in_upper];
                        OFFSET place = find(upper_indices, begin, end, column);
                        if (place < 0) continue;
                        VALUE product = factor * fresh(&upper[place]);
                        if (m == left_lower) {
                            subtracted += product;
                        } else {
                            (m < left_lower ? lower[e + 1 + m] : upper[in_upper]) -= product;
                            changes = true;
                        }
                    }
                }
            }
        }
        __threadfence();  // before the pivot tells that the row is done
        __syncwarp();
        subtracted = slice.sum(subtracted);
        largest = most(slice, largest);
        if (changes && !*cliques) *cliques = 1;
        if (slice.leads()) {
            VALUE d = diagonal[i] - subtracted, pivot = safe_pivot(d, max(largest, fabs(diagonal[i])), (REAL)tiny);
            shifts[i] = pivot - d;
            publish(&pivots[i], pivot);
        }
    });
}
