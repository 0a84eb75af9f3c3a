/* The garbled path and point keys for LANES blocks in a register. Included once for each set of
 * instructions.
 * No branch and no address depends on a secret.
 *
 * Needs:
 *   NAME(x), TARGET, VEC, LANES;
 *   LOAD, STORE, AND, XOR;
 *   AES_FIRST, AES_ROUND for the rounds between, AES_LAST: AES with the keys of all rounds;
 *   PAIR(low, high): a block with these halves, in every block of the register;
 *   FIRST32: a block's first 32 bits, repeated over it;
 *   SHIFT_LEFT, and SIGN, which repeats the sign of 32 bits over them;
 *   SPREAD(p): the block at p in every block of the register;
 *   ZIP_LOW, ZIP_HIGH: the first and the second half of x0 y0 x1 y1 …, by blocks;
 *   ADD64, SUBTRACT64: sums and differences of 64-bit words; UPPER32: their upper halves. */

#include "garbled_hash.h"
#include "garbled_transfers.h"
#include "garbled_rows.h"
#include "garbled_gates.h"
#include "points.h"

#undef IN_FLIGHT
#undef FIRST_BIT
#undef NAME
#undef TARGET
#undef VEC
#undef LANES
#undef LOAD
#undef STORE
#undef PAIR
#undef AND
#undef XOR
#undef AES_FIRST
#undef AES_ROUND
#undef AES_LAST
#undef FIRST32
#undef SHIFT_LEFT
#undef SIGN
#undef SPREAD
#undef ZIP_LOW
#undef ZIP_HIGH
#undef ADD64
#undef SUBTRACT64
#undef UPPER32
