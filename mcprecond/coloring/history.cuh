// The log of a coloring's rounds. See history.py.
#pragma once

// Log a round; the first one is number 1. Always the same thread calls it.
__device__ void log_round(int2* log, long long n, int round, int colored, int conflicts) {
    long long last = n + SPARE_ROUNDS, row = min((long long)round, last);
    if (round > last) {
        colored += log[row].x;
        conflicts += log[row].y;
    }
    log[row] = make_int2(colored, conflicts);
    log[0].x = (int)row;
}
