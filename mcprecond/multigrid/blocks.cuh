// Matrices of dense blocks, UNKNOWNS x CANDIDATES each.
#pragma once

// Sizes of blocks as the compiler knows them: to divide by others takes many instructions.
#define KNOWN_SIZES b = UNKNOWNS, k = CANDIDATES
