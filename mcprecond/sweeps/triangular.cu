// Sweeps over color blocks: one warp per slice, in color order; values are waited for. See triangular.py.

#include "../storage/layouts/slices.cuh"

// In `substitute` and `back_substitute` z is null where the result is only put into y. Rows from `last` on have no entries in the
// other triangle: what `substitute` finds for them is the result.

extern "C" __global__ void __launch_bounds__(256, WARPS_LIMIT / 8) substitute(
        long long n_slices, const int* slices, long long backwards, const OFFSET* indptr, const int* columns,
        const COUPLING* values, const PIVOT* dinv, const int* perm, const UNKNOWN* r, double omega, double scale, KEPT* y,
        long long last, long long finish, UNKNOWN* z) {
    for_slices(0, n_slices, backwards, slices, columns, [&](const Slice& slice) {
        int i = slice.index();
        bool leads = slice.leads();
        PIVOT d = leads ? unshared(dinv + i) : PIVOT();
        UNKNOWN b = UNKNOWN(), total = UNKNOWN();
        int place = leads ? unshared_now(perm + i) : 0;
        slice.entries(
            indptr, columns, values, in_turn((const KEPT*)y, 1),
            [&](COUPLING a, int, KEPT y_j) { total += a * converted<UNKNOWN>(y_j); },
            [&] {
                if (leads) b = unshared(r + place);
            });
        total = slice.sum(total);
        if (leads) {
            b = rounded_product((REAL)scale, b);
            total = rounded_product((REAL)omega, total);
            UNKNOWN value = backwards ? d * b - divided(total, d) : d * (b - total);
            write_now(&y[i], of_turn(converted<KEPT>(value), i < last));
            if (z && (finish || i >= last)) z[place] = value;
        }
    });
}

extern "C" __global__ void __launch_bounds__(256, WARPS_LIMIT / 8) back_substitute(
        long long n_slices, const int* slices, const OFFSET* indptr, const int* columns, const COUPLING* values,
        const PIVOT* dinv, const int* perm, double omega, KEPT* y, UNKNOWN* z) {
    for_slices(0, n_slices, true, slices, columns, [&](const Slice& slice) {
        int i = slice.index();
        bool leads = slice.leads();
        PIVOT d = leads ? dinv[i] : PIVOT();
        UNKNOWN own = leads ? converted<UNKNOWN>(y[i]) : UNKNOWN(), total = UNKNOWN();
        int place = leads && z ? unshared_now(perm + i) : 0;
        slice.entries(
            indptr, columns, values, in_turn((const KEPT*)y, 0),
            [&](COUPLING a, int, KEPT y_j) { total += a * converted<UNKNOWN>(y_j); });
        total = slice.sum(total);
        if (leads) {
            UNKNOWN value = own - (REAL)omega * divided(total, d);
            write_now(&y[i], of_turn(converted<KEPT>(value), 0));
            if (z) z[place] = value;
        }
    });
}

extern "C" __global__ void __launch_bounds__(256, WARPS_LIMIT / 8 - WARPS_LIMIT / 32) relax(
        long long n_slices, const int* slices, long long backwards, const OFFSET* lower_indptr,
        const int* lower_columns, const COUPLING* lower, const OFFSET* upper_indptr, const int* upper_columns,
        const COUPLING* upper, const PIVOT* dinv, const int* perm, const UNKNOWN* r, double omega, const KEPT* old,
        KEPT* latest, UNKNOWN* z) {
    for_slices(0, n_slices, backwards, slices, backwards ? lower_columns : upper_columns, [&](const Slice& slice) {
        int i = slice.index();
        bool leads = slice.leads();
        PIVOT d = leads ? unshared(dinv + i) : PIVOT();
        UNKNOWN b = UNKNOWN(), own = leads ? converted<UNKNOWN>(old[i]) : UNKNOWN(), below = UNKNOWN(), above = UNKNOWN();
        int place = leads ? unshared_now(perm + i) : 0;
        auto fetch = [&] {
            if (leads) b = unshared(r + place);
        };
        auto add_below = [&](COUPLING a, int, KEPT value) { below += a * converted<UNKNOWN>(value); };
        auto add_above = [&](COUPLING a, int, KEPT value) { above += a * converted<UNKNOWN>(value); };
        if (backwards) {
            slice.entries(lower_indptr, lower_columns, lower, known(old), add_below, fetch);
            slice.entries(upper_indptr, upper_columns, upper, awaited(latest), add_above);
        } else {
            slice.entries(upper_indptr, upper_columns, upper, known(old), add_above, fetch);
            slice.entries(lower_indptr, lower_columns, lower, awaited(latest), add_below);
        }
        below = slice.sum(below);
        above = slice.sum(above);
        if (leads) {
            UNKNOWN value = rounded_product(1 - (REAL)omega, own) + (REAL)omega * (d * (b - below) - divided(above, d));
            publish(&latest[i], converted<KEPT>(value));
            z[place] = value;
        }
    });
}

#ifdef BLOCK_SIZE
__device__ __forceinline__ UNKNOWN undivided(const UNKNOWN& sum, const PIVOT&) { return sum; }
#else
__device__ __forceinline__ UNKNOWN undivided(const UNKNOWN& sum, const PIVOT& pivot) { return pivot * sum; }
#endif

extern "C" __global__ void __launch_bounds__(256, WARPS_LIMIT / 8 - WARPS_LIMIT / 32) residual(
        long long n_slices, const int* slices, long long substituted, const OFFSET* lower_indptr,
        const int* lower_columns, const COUPLING* lower, const OFFSET* upper_indptr, const int* upper_columns,
        const COUPLING* upper, const PIVOT* diagonal, const PIVOT* pivots, const int* perm, const UNKNOWN* b,
        const KEPT* y, UNKNOWN* r) {
    for_slices(0, n_slices, false, slices, upper_columns, [&](const Slice& slice) {
        int i = slice.index();
        bool leads = slice.leads();
        PIVOT pivot = leads ? pivots[i] : PIVOT();
        UNKNOWN below = UNKNOWN(), above = UNKNOWN();
        int place = leads ? unshared_now(perm + i) : 0;
        slice.entries(upper_indptr, upper_columns, upper, known(y),
                      [&](COUPLING a, int, KEPT value) { above += a * converted<UNKNOWN>(value); });
        if (!substituted)
            slice.entries(lower_indptr, lower_columns, lower, known(y),
                          [&](COUPLING a, int, KEPT value) { below += a * converted<UNKNOWN>(value); });
        below = slice.sum(below);
        above = slice.sum(above);
        if (leads) {
            above = undivided(above, pivot);
            UNKNOWN rest = substituted ? UNKNOWN() : b[place] - below - diagonal[i] * converted<UNKNOWN>(y[i]);
            r[place] = rest - above;
        }
    });
}
