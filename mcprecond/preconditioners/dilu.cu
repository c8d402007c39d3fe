// DILU: one warp per slice, in color order. A row waits for the pivots that it needs, see sweeps/syncfree.cuh. See
// dilu.py.

#include "cuda/elements.cuh"
#include "pivots.cuh"

extern "C" __global__ void __launch_bounds__(BLOCK)
    find_pivots(long long n_slices, const int* slices, void* sums, const OFFSET* lower_indptr, const int* lower_columns,
                const STORED* lower, const OFFSET* upper_indptr, const int* upper_columns, const STORED* upper,
                const VALUE* diagonal, const int* perm, const OFFSET* indptr, const int* indices, const VALUE* values,
                double tiny, double least, double theta, VALUE* pivots, VALUE* shifts, int* found) {
    for_slices(0, n_slices, false, slices, sums, upper_columns, [&](const Slice& slice) {
        int i = slice.index();
        int own = slice.row < slice.rows ? perm[i] : 0;
        VALUE subtracted = VALUE();
        REAL largest = 0;
        slice.entries(upper_indptr, upper_columns, upper, known(diagonal),
                      [&](MatrixEntry a, int, VALUE) { largest = max(largest, (REAL)fabs(a)); });
        slice.entries(lower_indptr, lower_columns, lower, by_sentinel(pivots), [&](MatrixEntry a, int j, VALUE pivot) {
            if (j < 0) return;
            largest = max(largest, (REAL)fabs(a));
            int row = perm[j];
            OFFSET place = find(indices, indptr[row], indptr[row + 1], own);
            if (place >= 0) subtracted += (VALUE)a / pivot * values[place];
        });
        Vec<VALUE, 2> found_by_row = {slice.sum(subtracted), VALUE(most(slice, largest))};
        bool has_result = slice.fold_pieces<sizeof(found_by_row)>(
            found_by_row, [](const Vec<VALUE, 2>& a, const Vec<VALUE, 2>& b) -> Vec<VALUE, 2> {
                return {a.at[0] + b.at[0], VALUE(max(real_part(a.at[1]), real_part(b.at[1])))};
            });
        if (has_result) {
            VALUE subtracted = found_by_row.at[0];
            REAL largest = real_part(found_by_row.at[1]);
            VALUE d = diagonal[i], relaxed = d - (REAL)theta * subtracted;
            VALUE pivot = safe_pivot(relaxed, max(largest, (REAL)fabs(d)), (REAL)tiny);
            publish(&pivots[i], pivot);
            note_pivot(pivot - relaxed + (REAL)(1 - theta) * subtracted, is_low(relaxed, d, (REAL)least), &shifts[i],
                       found);
        }
    });
}
