/* The sign gate on a processor's AES instructions: the functions that umpc/native calls, and all
 * parts that need no wide registers.
 *
 * One binary runs everywhere: x86.h and arm.h hold the walk once for each instruction set, and
 * umpc_kinds() says which of them this processor has. Elsewhere the library builds, and umpc
 * computes in numpy. Callers have checked all sizes. */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define KERNEL_VERSION 6 /* umpc/native/__init__.py has the same; raise both with the keys' format */

enum { AESNI = 1, VAES256 = 2, VAES512 = 4, ARM = 8 };

int umpc_kernel_version(void);
int umpc_kinds(void);
int umpc_evaluate(int kind, const uint8_t *key, int party, int width, size_t count,
                  const void *corrections, const uint32_t *leaves, const uint64_t *masked,
                  const void *roots, uint8_t *less, uint8_t *equal);
int umpc_generate(int kind, const uint8_t *key, int width, size_t count, const uint64_t *mask,
                  const void *roots, void *corrections, uint32_t *leaves);

#define LEAF_BITS 5
#define TILE 256 /* gates: 4 KiB of blocks */
#define PAD 32   /* gates: the most that one group of registers holds */

typedef struct {
    uint64_t low, high;
} block;

/* Words at any address. */
typedef uint32_t __attribute__((aligned(1), may_alias)) word32;
typedef uint64_t __attribute__((aligned(1), may_alias)) word64;

/* The functions compiled for one instruction set. */
typedef struct {
    int kind;
    void (*evaluate)(const block *expanded, int party, int width, size_t count,
                     const block *corrections, const uint32_t *leaves, const uint64_t *masked,
                     const block *roots, uint8_t *less, uint8_t *equal);
    void (*generate)(const block *expanded, int width, size_t count, const uint64_t *mask,
                     const block *roots, block *corrections, uint32_t *leaves);
} gate;

static inline int levels(int width)
{
    return width > 1 + LEAF_BITS ? width - 1 - LEAF_BITS : 0;
}

static inline size_t padded(size_t gates)
{
    return (gates + PAD - 1) / PAD * PAD;
}

/* Whole groups of registers are computed. Gates beyond the last one are zero, and dropped. */
static inline void *copy_padded(void *to, const void *from, size_t count, size_t size)
{
    memcpy(to, from, count * size);
    memset((uint8_t *)to + count * size, 0, (TILE - count) * size);
    return to;
}

static inline uint32_t rest_of(int width, uint64_t number)
{
    int bits = width - 1 < LEAF_BITS ? width - 1 : LEAF_BITS;
    return (uint32_t)number & ((1U << bits) - 1);
}

static inline void read_leaf(int width, uint64_t masked, const uint32_t *leaf, const block *pad,
                             uint64_t state, uint8_t *less, uint8_t *equal)
{
    uint64_t set = 0 - (state & 1);
    uint32_t corrections[3];
    memcpy(corrections, leaf, sizeof corrections);
    uint64_t equals = pad->low ^ (((uint64_t)corrections[1] << 32 | corrections[0]) & set);
    uint64_t lesses = pad->high ^ (corrections[2] & set);
    uint32_t rest = rest_of(width, masked), top = (uint32_t)(masked >> (width - 1)) & 1;
    *less = (uint8_t)((lesses >> rest ^ state >> 1) & 1);
    *equal = (uint8_t)(equals >> (rest | top << LEAF_BITS) & 1);
}

static inline void write_leaf(int width, uint64_t mask, const block *pad, const block *other,
                              uint64_t state, uint32_t *leaf)
{
    uint32_t rest = rest_of(width, mask), top = (uint32_t)(mask >> (width - 1)) & 1;
    uint64_t equals = pad->low ^ other->low ^ 1ULL << (rest | top << LEAF_BITS);
    uint32_t below = (1U << rest) - 1, sign = 0U - (uint32_t)(state >> 1 & 1);
    uint32_t lesses = (uint32_t)(pad->high ^ other->high) ^ below ^ sign;
    uint32_t corrections[3] = {(uint32_t)equals, (uint32_t)(equals >> 32), lesses};
    memcpy(leaf, corrections, sizeof corrections);
}

#include "garbled_types.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include "x86.h"
#elif defined(__aarch64__) && defined(__AARCH64EL__) && defined(__GNUC__)
#include "arm.h"
#else

static void expand_key(const uint8_t *key, block *expanded)
{
    (void)key, (void)expanded;
}

static int supported_kinds(void)
{
    return 0;
}

static const gate GATES[] = {{0, NULL, NULL}};

static const garbled_kernel GARBLED_KERNELS[] = {{0, NULL, NULL, NULL, NULL, NULL, NULL}};

#endif

int umpc_kernel_version(void)
{
    return KERNEL_VERSION;
}

/* The sum of the kinds that this processor can run. */
int umpc_kinds(void)
{
    return supported_kinds();
}

/* The functions of this kind; NULL if this processor cannot run it. */
static const gate *gate_of(int kind)
{
    for (size_t i = 0; i < sizeof GATES / sizeof *GATES; i++)
        if (GATES[i].kind == kind && supported_kinds() & kind)
            return GATES + i;
    return NULL;
}

/* Returns 0, or -1 if this processor cannot run the kind. */
int umpc_evaluate(int kind, const uint8_t *key, int party, int width, size_t count,
                  const void *corrections, const uint32_t *leaves, const uint64_t *masked,
                  const void *roots, uint8_t *less, uint8_t *equal)
{
    block expanded[11];
    const gate *gate = gate_of(kind);
    if (gate == NULL)
        return -1;
    expand_key(key, expanded);
    gate->evaluate(expanded, party, width, count, corrections, leaves, masked, roots, less, equal);
    return 0;
}

int umpc_generate(int kind, const uint8_t *key, int width, size_t count, const uint64_t *mask,
                  const void *roots, void *corrections, uint32_t *leaves)
{
    block expanded[11];
    const gate *gate = gate_of(kind);
    if (gate == NULL)
        return -1;
    expand_key(key, expanded);
    gate->generate(expanded, width, count, mask, roots, corrections, leaves);
    return 0;
}

#include "garbled_calls.h"
#include "field.h"
