/* The garbled path for one instruction set. Included before walk.h, with its macros. */

#include "garbled_hash.h"
#include "garbled_transfers.h"
#include "garbled_rows.h"
#include "garbled_gates.h"

#undef IN_FLIGHT
#undef FIRST_BIT
