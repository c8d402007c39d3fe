// Tentative and smoothed prolongators, a thread per aggregate, node or row. See transfer.py.

#include "cuda/grid.cuh"
#include "cuda/numbers.cuh"

// Loops over the unknowns of an aggregate: `i` is the row in Q.
#define FOR_ROWS(i) \
    for (int m_ = first; m_ < end; ++m_) \
        for (long long i = members[m_] * b; i < (members[m_] + 1) * b; ++i)

extern "C" __global__ void fit_candidates(long long n_aggregates, const int* offsets, const int* members, long long b,
                                          long long k, double tiny, VALUE* Q, VALUE* R) {
    long long a = thread_id();
    if (a >= n_aggregates) return;
    int first = offsets[a], end = offsets[a + 1];
    R += a * k * k;
    for (long long c = 0; c < k; ++c) {
        double before = 0, after = 0;
        FOR_ROWS(i) before += inner(Q[i * k + c], Q[i * k + c]);
        for (int pass = 0; pass < 2; ++pass)
            for (long long d = 0; d < c; ++d) {
                VALUE product = VALUE();
                FOR_ROWS(i) product += conjugate(Q[i * k + d]) * Q[i * k + c];
                FOR_ROWS(i) Q[i * k + c] -= product * Q[i * k + d];
                R[d * k + c] += product;
            }
        FOR_ROWS(i) after += inner(Q[i * k + c], Q[i * k + c]);
        double norm = sqrt(after);
        bool vanished = !(norm > tiny * sqrt(before));
        R[c * k + c] = VALUE((REAL)(vanished ? 0 : norm));
        REAL factor = (REAL)(vanished ? 0 : 1 / norm);
        FOR_ROWS(i) Q[i * k + c] = factor * Q[i * k + c];
    }
}

extern "C" __global__ void list_touched(long long n, const OFFSET* indptr, const int* indices, const int* labels,
                                        int* room, OFFSET* counts) {
    int v = (int)thread_id(), count = 0;
    if (v >= n) return;
    int* own = room + indptr[v] + v;
    for (OFFSET k = indptr[v] - 1; k < indptr[v + 1]; ++k) {
        int label = labels[k < indptr[v] ? v : indices[k]], place = count;
        if (label < 0) continue;
        while (place > 0 && own[place - 1] > label) --place;
        if (place > 0 && own[place - 1] == label) continue;
        for (int p = count; p > place; --p) own[p] = own[p - 1];
        own[place] = label;
        ++count;
    }
    counts[v] = count;
}

extern "C" __global__ void copy_touched(long long n, const OFFSET* indptr, const int* room, const OFFSET* touched_indptr,
                                        int* touched) {
    int v = (int)thread_id();
    if (v >= n) return;
    const int* own = room + indptr[v] + v;
    OFFSET first = touched_indptr[v];
    for (OFFSET k = first; k < touched_indptr[v + 1]; ++k) touched[k] = own[k - first];
}

extern "C" __global__ void smooth_rows(long long n, long long b, long long k, const OFFSET* indptr, const int* indices,
                                       const VALUE* values, const VALUE* scale, const int* labels, const VALUE* Q,
                                       const OFFSET* touched_indptr, const int* touched, OFFSET* P_indptr,
                                       int* P_indices, VALUE* P) {
    long long i = thread_id();
    if (i >= n) return;
    long long node = i / b;
    OFFSET list = touched_indptr[node], m = touched_indptr[node + 1] - list;
    OFFSET first = (OFFSET)((list * b + (i - node * b) * m) * k);
    P_indptr[i] = first;
    if (i == n - 1) P_indptr[n] = (OFFSET)(touched_indptr[node + 1] * b * k);
    for (OFFSET t = 0; t < m; ++t)
        for (int c = 0; c < k; ++c) {
            P_indices[first + t * k + c] = (int)(touched[list + t] * k + c);
            P[first + t * k + c] = VALUE();
        }
    auto place_of = [&](int label) {
        OFFSET low = 0, high = m - 1;
        while (low < high) {
            OFFSET middle = low + (high - low) / 2;
            if (touched[list + middle] < label) low = middle + 1;
            else high = middle;
        }
        return first + low * k;
    };
    for (OFFSET e = indptr[i]; e < indptr[i + 1]; ++e) {
        long long j = indices[e];
        int label = labels[j / b];
        if (label < 0) continue;
        VALUE a = scale[i] * values[e];
        OFFSET place = place_of(label);
        for (int c = 0; c < k; ++c) P[place + c] -= a * Q[j * k + c];
    }
    if (labels[node] >= 0) {
        OFFSET place = place_of(labels[node]);
        for (int c = 0; c < k; ++c) P[place + c] += Q[i * k + c];
    }
}
