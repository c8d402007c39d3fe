// Sweeps over color blocks, without barriers: one warp per slice, in color order. A row waits for the values that it
// needs, see sweeps/syncfree.cuh. See triangular.py for what each kernel computes.

#include "cuda/occupancy.cuh"
#include "storage/layouts/slices.cuh"
#include "sweeps/syncfree.cuh"

// In `substitute` and `back_substitute` z is null where only y gets the result. Rows from `last` on have no entries in
// the other triangle, so that `substitute` finds their final result; it leaves them at epoch 0.

extern "C" __global__ void __launch_bounds__(BLOCK, SWEEP_BLOCKS)
    substitute(long long n_slices, const int* slices, void* sums, long long backwards, const OFFSET* indptr,
               const int* columns, const MatrixEntry* values, const DiagonalEntry* dinv, const int* perm,
               long long pitch, const VectorEntry* r, double omega, double scale, WorkEntry* y, long long last,
               long long finish, VectorEntry* z) {
    for_slices(0, n_slices, backwards, slices, sums, columns, [&](const Slice& slice) {
        int i = slice.index();
        bool is_leader = slice.is_row_leader();
        DiagonalEntry d = is_leader ? load_once(dinv + i) : DiagonalEntry();
        VectorEntry b = VectorEntry(), total = VectorEntry();
        int place = is_leader ? load_once_early(perm + i) : 0;
        slice.entries(
            indptr, columns, values, by_epoch((const WorkEntry*)y, 1),
            [&](MatrixEntry a, int, WorkEntry y_j) { total += a * converted<VectorEntry>(y_j); },
            [&] {
                if (is_leader) b = load_row_once(r, place, pitch);
            });
        if (slice.sum_row(total)) {
            b = rounded_product((REAL)scale, b);
            total = rounded_product((REAL)omega, total);
            VectorEntry value = backwards ? d * b - divided(total, d) : d * (b - total);
            store_volatile(&y[i], with_epoch(converted<WorkEntry>(value), i < last));
            if (z && (finish || i >= last)) store_row(z, place, pitch, value);
        }
    });
}

extern "C" __global__ void __launch_bounds__(BLOCK, SWEEP_BLOCKS)
    back_substitute(long long n_slices, const int* slices, void* sums, const OFFSET* indptr, const int* columns,
                    const MatrixEntry* values, const DiagonalEntry* dinv, const int* perm, long long pitch,
                    double omega, WorkEntry* y, VectorEntry* z) {
    for_slices(0, n_slices, true, slices, sums, columns, [&](const Slice& slice) {
        int i = slice.index();
        bool is_leader = slice.is_row_leader();
        DiagonalEntry d = is_leader ? dinv[i] : DiagonalEntry();
        VectorEntry own = is_leader ? converted<VectorEntry>(y[i]) : VectorEntry(), total = VectorEntry();
        int place = is_leader && z ? load_once_early(perm + i) : 0;
        slice.entries(indptr, columns, values, by_epoch((const WorkEntry*)y, 0),
                      [&](MatrixEntry a, int, WorkEntry y_j) { total += a * converted<VectorEntry>(y_j); });
        if (slice.sum_row(total)) {
            VectorEntry value = own - (REAL)omega * divided(total, d);
            store_volatile(&y[i], with_epoch(converted<WorkEntry>(value), 0));
            if (z) store_row(z, place, pitch, value);
        }
    });
}

extern "C" __global__ void __launch_bounds__(BLOCK, TWO_SUMS_BLOCKS)
    relax(long long n_slices, const int* slices, void* sums, long long backwards, const OFFSET* lower_indptr,
          const int* lower_columns, const MatrixEntry* lower, const OFFSET* upper_indptr, const int* upper_columns,
          const MatrixEntry* upper, const DiagonalEntry* dinv, const int* perm, long long pitch, const VectorEntry* r,
          double omega, const WorkEntry* old, WorkEntry* latest, VectorEntry* z) {
    for_slices(
        0, n_slices, backwards, slices, sums, backwards ? lower_columns : upper_columns, [&](const Slice& slice) {
            int i = slice.index();
            bool is_leader = slice.is_row_leader();
            DiagonalEntry d = is_leader ? load_once(dinv + i) : DiagonalEntry();
            VectorEntry b = VectorEntry(), own = is_leader ? converted<VectorEntry>(old[i]) : VectorEntry();
            VectorEntry below = VectorEntry(), above = VectorEntry();
            int place = is_leader ? load_once_early(perm + i) : 0;
            auto fetch = [&] {
                if (is_leader) b = load_row_once(r, place, pitch);
            };
            auto add_below = [&](MatrixEntry a, int, WorkEntry value) { below += a * converted<VectorEntry>(value); };
            auto add_above = [&](MatrixEntry a, int, WorkEntry value) { above += a * converted<VectorEntry>(value); };
            if (backwards) {
                slice.entries(lower_indptr, lower_columns, lower, known(old), add_below, fetch);
                slice.entries(upper_indptr, upper_columns, upper, by_sentinel(latest), add_above);
            } else {
                slice.entries(upper_indptr, upper_columns, upper, known(old), add_above, fetch);
                slice.entries(lower_indptr, lower_columns, lower, by_sentinel(latest), add_below);
            }
            if (slice.sum_row(below, above)) {
                VectorEntry value =
                    rounded_product(1 - (REAL)omega, own) + (REAL)omega * (d * (b - below) - divided(above, d));
                publish(&latest[i], converted<WorkEntry>(value));
                store_row(z, place, pitch, value);
            }
        });
}

#ifdef BLOCK_SIZE
__device__ __forceinline__ VectorEntry undivided(const VectorEntry& sum, const DiagonalEntry&) { return sum; }
#else
__device__ __forceinline__ VectorEntry undivided(const VectorEntry& sum, const DiagonalEntry& pivot) {
    return pivot * sum;
}
#endif

extern "C" __global__ void __launch_bounds__(BLOCK, TWO_SUMS_BLOCKS)
    residual(long long n_slices, const int* slices, void* sums, long long substituted, const OFFSET* lower_indptr,
             const int* lower_columns, const MatrixEntry* lower, const OFFSET* upper_indptr, const int* upper_columns,
             const MatrixEntry* upper, const DiagonalEntry* diagonal, const DiagonalEntry* pivots, const int* perm,
             long long pitch, const VectorEntry* b, const WorkEntry* y, VectorEntry* r) {
    for_slices(0, n_slices, false, slices, sums, upper_columns, [&](const Slice& slice) {
        int i = slice.index();
        bool is_leader = slice.is_row_leader();
        DiagonalEntry pivot = is_leader ? pivots[i] : DiagonalEntry();
        VectorEntry below = VectorEntry(), above = VectorEntry();
        int place = is_leader ? load_once_early(perm + i) : 0;
        slice.entries(upper_indptr, upper_columns, upper, known(y),
                      [&](MatrixEntry a, int, WorkEntry value) { above += a * converted<VectorEntry>(value); });
        if (!substituted)
            slice.entries(lower_indptr, lower_columns, lower, known(y),
                          [&](MatrixEntry a, int, WorkEntry value) { below += a * converted<VectorEntry>(value); });
        if (slice.sum_row(below, above)) {
            above = undivided(above, pivot);
            VectorEntry rest =
                substituted ? VectorEntry()
                            : load_row(b, place, pitch) - below - diagonal[i] * converted<VectorEntry>(y[i]);
            store_row(r, place, pitch, rest - above);
        }
    });
}
