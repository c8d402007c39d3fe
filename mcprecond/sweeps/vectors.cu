// Vectors from one order into the other: one thread per row. See vectors.py.

extern "C" __global__ void to_color_order(long long n, const int* inverse, const UNKNOWN* r, KEPT* ordered) {
    long long i = thread_id();
    if (i < n) ordered[inverse[i]] = of_turn(converted<KEPT>(r[i]), 0);
}

extern "C" __global__ void to_row_order(long long n, const int* inverse, const KEPT* ordered, UNKNOWN* z) {
    long long i = thread_id();
    if (i < n) z[i] = converted<UNKNOWN>(ordered[inverse[i]]);
}
