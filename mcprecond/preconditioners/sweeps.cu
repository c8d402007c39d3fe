// Sweeps over color blocks: one warp per slice, in color order; values are waited for. See sweeps.py.

extern "C" __global__ void __launch_bounds__(256, 4) substitute(
        long long n_slices, const int* slices, long long backwards, const OFFSET* indptr, const int* indices,
        const STORED* values, const VALUE* dinv, const int* perm, const VALUE* r, double omega, double scale, VALUE* y,
        VALUE* spent, long long finish, VALUE* z) {
    for_slices(n_slices, backwards, slices, [&](const Slice& slice) {
        long long i = slice.index();
        bool leads = slice.leads();
        VALUE d = leads ? dinv[i] : 0, b = leads ? r[perm[i]] : 0, total = 0;
        slice.entries(indptr, indices, values, [&](int j) { return y[j]; },
                      [&](VALUE a, int j, VALUE seen) { total += a * arrived(&y[j], seen); });
        total = slice.sum(total);
        if (leads) {
            VALUE value = ((VALUE)scale * b - (VALUE)omega * total) * d;
            publish(&y[i], value);
            make_empty(&spent[i]);
            if (finish) z[perm[i]] = value;
        }
    });
}

extern "C" __global__ void __launch_bounds__(256, 4) back_substitute(
        long long n_slices, const int* slices, const OFFSET* indptr, const int* indices, const STORED* values,
        const VALUE* dinv, const int* perm, double omega, VALUE* y, VALUE* t, VALUE* z) {
    for_slices(n_slices, true, slices, [&](const Slice& slice) {
        long long i = slice.index();
        bool leads = slice.leads();
        VALUE d = leads ? dinv[i] : 0, own = leads ? y[i] : 0, total = 0;
        slice.entries(indptr, indices, values, [&](int j) { return t[j]; },
                      [&](VALUE a, int j, VALUE seen) { total += a * arrived(&t[j], seen); });
        total = slice.sum(total);
        if (leads) {
            VALUE value = own - (VALUE)omega * d * total;
            publish(&t[i], value);
            z[perm[i]] = value;
            make_empty(&y[i]);
        }
    });
}

extern "C" __global__ void __launch_bounds__(256, 3) relax(
        long long n_slices, const int* slices, long long backwards, const OFFSET* lower_indptr,
        const int* lower_indices, const STORED* lower, const OFFSET* upper_indptr, const int* upper_indices,
        const STORED* upper, const VALUE* dinv, const int* perm, const VALUE* r, double omega, const VALUE* old,
        VALUE* latest, VALUE* z) {
    for_slices(n_slices, backwards, slices, [&](const Slice& slice) {
        long long i = slice.index();
        bool leads = slice.leads();
        VALUE d = leads ? dinv[i] : 0, b = leads ? r[perm[i]] : 0, own = leads ? old[i] : 0, total = 0;
        auto wait_for_new = [&](VALUE a, int j, VALUE seen) { total += a * arrived(&latest[j], seen); };
        auto take_old = [&](VALUE a, int j, VALUE value) { total += a * value; };
        auto look_at_new = [&](int j) { return latest[j]; };
        auto look_at_old = [&](int j) { return old[j]; };
        if (backwards) {
            slice.entries(lower_indptr, lower_indices, lower, look_at_old, take_old);
            slice.entries(upper_indptr, upper_indices, upper, look_at_new, wait_for_new);
        } else {
            slice.entries(upper_indptr, upper_indices, upper, look_at_old, take_old);
            slice.entries(lower_indptr, lower_indices, lower, look_at_new, wait_for_new);
        }
        total = slice.sum(total);
        if (leads) {
            VALUE value = (1 - (VALUE)omega) * own + (VALUE)omega * (b - total) * d;
            publish(&latest[i], value);
            z[perm[i]] = value;
        }
    });
}
