// Sweeps over color blocks: one warp per slice, in color order; values are waited for. See sweeps.py.

#include "../reordering/slices.cuh"

// In `substitute` and `back_substitute` perm is null where r is in color order, kept like y, and t is the result in that
// order. Rows from `last` on have no entries in the other triangle: what `substitute` finds for them is the result.

extern "C" __global__ void __launch_bounds__(256, WARPS_LIMIT / 8) substitute(
        long long n_slices, const int* slices, long long backwards, const OFFSET* indptr, const int* columns,
        const COUPLING* values, const PIVOT* dinv, const int* perm, const UNKNOWN* r, double omega, double scale, KEPT* y,
        KEPT* t, long long last, long long finish, UNKNOWN* z) {
    for_slices(0, n_slices, backwards, slices, columns, [&](const Slice& slice) {
        long long i = slice.index();
        bool leads = slice.leads();
        PIVOT d = leads ? dinv[i] : PIVOT();
        UNKNOWN b = UNKNOWN(), total = UNKNOWN();
        if (leads) b = perm ? r[perm[i]] : converted<UNKNOWN>(((const KEPT*)r)[i]);
        slice.entries(indptr, columns, values, awaited(y),
                      [&](COUPLING a, int, KEPT y_j) { total += a * converted<UNKNOWN>(y_j); });
        total = slice.sum(total);
        if (leads) {
            UNKNOWN value = d * (rounded_product((REAL)scale, b) - (REAL)omega * total);
            if (i < last) {
                publish(&y[i], converted<KEPT>(value));
                make_empty(&t[i]);
            } else {
                t[i] = converted<KEPT>(value);
            }
            if (perm && (finish || i >= last)) z[perm[i]] = value;
        }
    });
}

extern "C" __global__ void __launch_bounds__(256, WARPS_LIMIT / 8) back_substitute(
        long long n_slices, const int* slices, const OFFSET* indptr, const int* columns, const COUPLING* values,
        const PIVOT* dinv, const int* perm, double omega, KEPT* y, KEPT* t, UNKNOWN* z) {
    for_slices(0, n_slices, true, slices, columns, [&](const Slice& slice) {
        long long i = slice.index();
        bool leads = slice.leads();
        PIVOT d = leads ? dinv[i] : PIVOT();
        UNKNOWN own = leads ? converted<UNKNOWN>(y[i]) : UNKNOWN(), total = UNKNOWN();
        slice.entries(indptr, columns, values, awaited(t),
                      [&](COUPLING a, int, KEPT t_j) { total += a * converted<UNKNOWN>(t_j); });
        total = slice.sum(total);
        if (leads) {
            UNKNOWN value = own - (REAL)omega * (d * total);
            publish(&t[i], converted<KEPT>(value));
            if (perm) z[perm[i]] = value;
            make_empty(&y[i]);
        }
    });
}

extern "C" __global__ void __launch_bounds__(256, WARPS_LIMIT / 8 - WARPS_LIMIT / 32) relax(
        long long n_slices, const int* slices, long long backwards, const OFFSET* lower_indptr,
        const int* lower_columns, const COUPLING* lower, const OFFSET* upper_indptr, const int* upper_columns,
        const COUPLING* upper, const PIVOT* dinv, const int* perm, const UNKNOWN* r, double omega, const KEPT* old,
        KEPT* latest, UNKNOWN* z) {
    for_slices(0, n_slices, backwards, slices, backwards ? lower_columns : upper_columns, [&](const Slice& slice) {
        long long i = slice.index();
        bool leads = slice.leads();
        PIVOT d = leads ? dinv[i] : PIVOT();
        UNKNOWN b = leads ? r[perm[i]] : UNKNOWN(), own = leads ? converted<UNKNOWN>(old[i]) : UNKNOWN();
        UNKNOWN total = UNKNOWN();
        auto add = [&](COUPLING a, int, KEPT value) { total += a * converted<UNKNOWN>(value); };
        if (backwards) {
            slice.entries(lower_indptr, lower_columns, lower, known(old), add);
            slice.entries(upper_indptr, upper_columns, upper, awaited(latest), add);
        } else {
            slice.entries(upper_indptr, upper_columns, upper, known(old), add);
            slice.entries(lower_indptr, lower_columns, lower, awaited(latest), add);
        }
        total = slice.sum(total);
        if (leads) {
            UNKNOWN value = rounded_product(1 - (REAL)omega, own) + (REAL)omega * (d * (b - total));
            publish(&latest[i], converted<KEPT>(value));
            z[perm[i]] = value;
        }
    });
}
