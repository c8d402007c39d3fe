// The places of a fingerprint: see fingerprint.py.

enum { PATTERN, ALL, NOT_FINITE, NO_PIVOTS, LARGEST, SMALLEST };

#define INFINITE_BITS 0x7ff0000000000000ull
// The largest and the smallest normal float32, as the bits of doubles.
#define LARGEST_FLOAT 0x47efffffe0000000ull
#define SMALLEST_FLOAT 0x3810000000000000ull
