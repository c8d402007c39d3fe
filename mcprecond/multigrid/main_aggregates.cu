// Which blocks of P stay: a team of LANES threads per node. See main_aggregates.py.

#include "multigrid/team.cuh"

extern "C" __global__ void find_main(long long n, const OFFSET* P_indptr, const int* columns, const OFFSET* indptr,
                                     const int* indices, const int* labels, OFFSET* counts, int* found) {
    long long v = thread_id() / LANES;
    if (v >= n) return;
    if (thread_id() == 0) *counts = 0;
    OFFSET begin = P_indptr[v], place = begin;
    for (OFFSET first = begin; first < P_indptr[v + 1]; first += LANES) {
        OFFSET e = first + team_lane();
        bool is_main = false;
        if (e < P_indptr[v + 1]) {
            OFFSET count = 0;
            for (OFFSET k = indptr[v]; k < indptr[v + 1]; ++k) count += labels[indices[k]] == columns[e];
            bool is_own = labels[v] < 0 || labels[v] == columns[e];
            is_main = is_own || count * NEIGHBORS_OF_ONE >= indptr[v + 1] - indptr[v];
        }
        unsigned stays = __ballot_sync(team_mask(), is_main) & team_mask();
        if (is_main) found[place + __popc(stays & (1u << lane_id()) - 1)] = columns[e];
        place += __popc(stays);
    }
    if (team_lane() == 0) counts[v + 1] = place - begin;
}
