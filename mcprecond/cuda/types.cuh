// Integers by their number of bits, and the type of row offsets.
#pragma once

#ifndef OFFSET
#define OFFSET int  // long long from 2^31 entries on
#endif

typedef unsigned short uint16;
typedef unsigned int uint32;
typedef unsigned long long uint64;
