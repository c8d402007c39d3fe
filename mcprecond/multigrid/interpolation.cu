// Smoothed prolongators: a team of LANES threads per row. See interpolation.py.
//
// In each step a team loads LANES entries of its row of A, and each of its threads adds up one number of its row of P.

#include "cuda/search.cuh"
#include "multigrid/blocks.cuh"
#include "multigrid/team_sum.cuh"

constexpr int NO_COLUMN = 0x7fffffff;  // larger than all columns

// Whether entry k of a row, in column j, is strong. Both the row and the list of its strong entries are sorted by
// columns, so those among the next LANES entries of the row are among the next LANES of the list, which begin at `next`.
// Afterwards `next` is behind them.
__device__ __forceinline__ bool find_strong(int j, const int* strong, OFFSET& next, OFFSET stop) {
    int listed = next + team_lane() < stop ? strong[next + team_lane()] : NO_COLUMN, place = 0;
    for (int step = LANES / 2; step > 0; step /= 2)
        place += __shfl_sync(team_mask(), listed, place + step - 1, LANES) < j ? step : 0;
    bool is_strong = __shfl_sync(team_mask(), listed, place, LANES) == j && j != NO_COLUMN;
    next += __popc(__ballot_sync(team_mask(), is_strong) & team_mask());
    return is_strong;
}

// Where nodes have one unknown and T has one candidate.
extern "C" __global__ void smooth_filtered(long long n, long long count, const OFFSET* indptr, const int* indices,
                                           const VALUE* values, const OFFSET* strong_indptr, const int* strong,
                                           double factor, const int* labels, const VALUE* Q, const VALUE* B,
                                           const OFFSET* P_indptr, const int* P_columns, VALUE* P) {
    long long i = thread_id() / LANES;
    if (i >= n) return;
    OFFSET begin = indptr[i], end = indptr[i + 1], stop = strong_indptr[i + 1];
    for (OFFSET first = P_indptr[i]; first < P_indptr[i + 1]; first += LANES) {
        OFFSET own = first + team_lane();
        int label = own < P_indptr[i + 1] ? P_columns[own] : -1;
        OFFSET next = strong_indptr[i];
        VALUE sum = VALUE(), diagonal = VALUE();
        double size = 0;
        for (OFFSET before = begin; before < end; before += LANES) {
            OFFSET k = before + team_lane();
            int j = k < end ? indices[k] : NO_COLUMN, theirs = -1;
            bool is_strong = find_strong(j, strong, next, stop);
            VALUE value = k < end ? values[k] : VALUE();
            if (is_strong && j != i)
                theirs = labels[j], size += fabs(value), value = value * Q[j];
            else if (j == i)
                diagonal += value;
            else if (k < end && fabs(B[i]) > 0)
                diagonal += value * (B[j] / B[i]);
            for (int s = 0; s < LANES; ++s) {
                int lane = lane_id() / LANES * LANES + s;
                bool is_same = __shfl_sync(team_mask(), theirs, lane) == label;
                VALUE shown = value;
                each_part(shown, [&](REAL& part) { part = __shfl_sync(team_mask(), part, lane); });
                if (is_same && label >= 0) sum += shown;
            }
        }
        diagonal = team_sum(diagonal), size = team_sum(size) + fabs(diagonal);
        REAL scale = (REAL)(size > 0 ? factor / size : 0);
        bool is_own = label == labels[i];
        if (label >= 0) P[own] = (is_own ? Q[i] : VALUE()) - scale * (is_own ? sum + diagonal * Q[i] : sum);
    }
}

// Each thread of a team adds up one number of the row at a time; the team reads the entries of A together.
extern "C" __global__ void smooth_rows(long long n, long long b, long long k, long long count, const OFFSET* indptr,
                                       const int* indices, const VALUE* values, double factor, const VALUE* dinv,
                                       const int* labels, const VALUE* Q, long long moves, const VALUE* B,
                                       const VALUE* R, const OFFSET* P_indptr, const int* P_columns, VALUE* P) {
    long long i = thread_id() / LANES;
    if (i >= n) return;
    KNOWN_SIZES;
    long long v = i / b, list = P_indptr[v], stop = P_indptr[v + 1];
    int width = (int)k, numbers = (int)(stop - list) * width;
    VALUE *own = P + (list * b + (i - v * b) * (stop - list)) * k, scale = (REAL)factor * dinv[i];
    VALUE moved[CANDIDATES] = {};
    if (moves && labels[v] >= 0) {
        for (OFFSET e = indptr[i] + team_lane(); e < indptr[i + 1]; e += LANES) {
            int j = indices[e], theirs = labels[j / UNKNOWNS];
            long long place = lower_bound(P_columns, list, stop, theirs);
            if (theirs < 0 || (place < stop && P_columns[place] == theirs)) continue;
            VALUE a = scale * values[e];
            for (int c = 0; c < CANDIDATES; ++c) moved[c] -= a * B[(long long)j * k + c];
        }
        const VALUE* triangle = R + labels[v] * k * k;
        for (int c = 0; c < CANDIDATES; ++c) {
            VALUE rest = team_sum(moved[c]), pivot = triangle[c * k + c];
            for (int d = 0; d < c; ++d) rest -= moved[d] * triangle[d * k + c];
            moved[c] = fabs(pivot) > 0 ? rest / pivot : VALUE();
        }
    }
    for (int first = 0; first < numbers; first += LANES) {
        int q = first + team_lane(), label = q < numbers ? P_columns[list + q / width] : -1, c = q % width;
        VALUE sum = VALUE();
        for (OFFSET before = indptr[i]; before < indptr[i + 1]; before += LANES) {
            OFFSET e = before + team_lane();
            int j = e < indptr[i + 1] ? indices[e] : -1, theirs = j < 0 ? -1 : labels[j / UNKNOWNS];
            VALUE a = j < 0 ? VALUE() : scale * values[e];
            for (int s = 0; s < LANES; ++s) {
                int lane = lane_id() / LANES * LANES + s, column = __shfl_sync(team_mask(), j, lane);
                bool same = __shfl_sync(team_mask(), theirs, lane) == label;
                VALUE shown = a;
                each_part(shown, [&](REAL& part) { part = __shfl_sync(team_mask(), part, lane); });
                if (column >= 0 && label >= 0 && same) sum -= shown * Q[column * k + c];
            }
        }
        if (label < 0) continue;
        if (label == labels[v]) {
            sum += Q[i * k + c];
            for (int d = 0; moves && d < CANDIDATES; ++d)  // registers have no index that is not known
                if (d == c) sum += moved[d];
        }
        own[q] = sum;
    }
}
