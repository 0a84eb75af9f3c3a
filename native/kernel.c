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

#define KERNEL_VERSION 4 /* umpc/native/library.py has the same; raise both with the keys' format */

enum { AESNI = 1, VAES256 = 2, VAES512 = 4, ARM = 8 };

int umpc_kernel_version(void);
int umpc_kinds(void);
int umpc_evaluate(int kind, const uint8_t *key, int party, int width, size_t count,
                  const void *corrections, const uint32_t *leaves, const uint64_t *masked,
                  const void *roots, uint8_t *less, uint8_t *equal);
int umpc_generate(int kind, const uint8_t *key, int width, size_t count, const uint64_t *mask,
                  const void *roots, void *corrections, uint32_t *leaves);
int umpc_run(int kind, const void *steps, size_t steps_count, const void *operands,
             uint8_t *const *sources, const uint8_t *are_streams, size_t sources_count,
             size_t scratch, const size_t *counts, size_t chunks, uint64_t *sums,
             size_t sums_count);
int umpc_key_streams(int kind, const uint8_t *keys, const size_t *sizes, size_t count,
                     uint8_t *streams);
int umpc_count_owners(size_t slots, size_t edges, const int32_t *const *rows,
                      const uint8_t *const *nodes, const size_t *records, const size_t *shape,
                      uint8_t *codes, uint64_t *sizes);
int umpc_place_edges(size_t slots, size_t edges, const int32_t *const *rows, const uint8_t *codes,
                     const int32_t *zeros, uint64_t *free_places, size_t room,
                     int32_t *const *placed);

#define LEAF_BITS 5
#define TILE 256 /* gates: 4 KiB of blocks */
#define PAD 32   /* gates: the most that one group of registers holds */

typedef struct {
    uint64_t low, high;
} block;

/* A program for chunks: umpc/native/programs.py has the same codes, numbers and orders. */
enum {
    XOR_BITS, AND_BITS, NOT_BITS, COPY, /* bits */
    TOP_BIT, ONE_HOT, LOOK_UP,          /* differences, and tables of them */
    ADD_IF, NEGATE_IF, DOT, FILL, ADD, ADD_TIMES, TIMES, SUBTRACT /* ring elements, or uint64 */
};

#define TILE_EDGES 1024
#define ROOM (TILE_EDGES / 2 + 2 * PAD) /* blocks: a row of uint64 that begins within a block */

typedef struct {
    int64_t code, to, one, other;
    uint64_t number;
} step;

/* source: its number, -1 for the scratch. before: where a row begins: rows of bits before it, bytes
 * of each edge before it, or bytes of the scratch. unit: bytes of an edge's word, 0 for bits. */
typedef struct {
    int64_t source, before, unit;
} operand;

/* sources: addresses. are_streams: whether a source is a key of 32 bytes, and stands for its key
 * stream. */
typedef struct {
    const step *steps;
    size_t steps_count;
    const operand *operands;
    uint8_t *const *sources;
    const uint8_t *are_streams;
    size_t sources_count, scratch, count;
} chunk;

/* Words at any address. */
typedef uint8_t word8;
typedef uint16_t __attribute__((aligned(1), may_alias)) word16;
typedef uint32_t __attribute__((aligned(1), may_alias)) word32;
typedef uint64_t __attribute__((aligned(1), may_alias)) word64;

/* The bits of a number of which a table has a row, and the word of the row. */
typedef struct {
    uint64_t below;
    int low, words, word;
} piece;

static inline piece piece_of(uint64_t number)
{
    int size = number >> 8 & 255;
    return (piece){(1ULL << size) - 1, (int)(number & 255), size > 6 ? 1 << (size - 6) : 1,
                   (int)(number >> 16)};
}

static inline size_t row_size(int64_t unit, size_t edges)
{
    return unit ? (size_t)unit * edges : (edges + 7) / 8;
}

/* The functions compiled for one instruction set. */
typedef struct {
    int kind;
    int (*run)(const chunk *chunk, uint64_t *sums);
    void (*evaluate)(const block *expanded, int party, int width, size_t count,
                     const block *corrections, const uint32_t *leaves, const uint64_t *masked,
                     const block *roots, uint8_t *less, uint8_t *equal);
    void (*generate)(const block *expanded, int width, size_t count, const uint64_t *mask,
                     const block *roots, block *corrections, uint32_t *leaves);
    void (*key_streams)(const uint8_t *keys, const size_t *sizes, size_t count, uint8_t *to);
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

static const gate GATES[] = {{0, NULL, NULL, NULL, NULL}};

static const garbled_kernel GARBLED_KERNELS[] = {{0, NULL, NULL, NULL, NULL, NULL, NULL}};

#endif

#include "edges.h"

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

/* Runs a program over several chunks of these numbers of edges, one after the other. sources: those
 * of the first chunk, then those of the next. sums: likewise; the program adds to them. Returns -2
 * where there is no memory. */
int umpc_run(int kind, const void *steps, size_t steps_count, const void *operands,
             uint8_t *const *sources, const uint8_t *are_streams, size_t sources_count,
             size_t scratch, const size_t *counts, size_t chunks, uint64_t *sums,
             size_t sums_count)
{
    const gate *gate = gate_of(kind);
    int answer = gate == NULL ? -1 : 0;
    for (size_t i = 0; i < chunks && !answer; i++) {
        const chunk chunk = {steps, steps_count, operands, sources + i * sources_count,
                             are_streams, sources_count, scratch, counts[i]};
        answer = gate->run(&chunk, sums + i * sums_count);
    }
    return answer;
}

/* Writes the first bytes of the AES-256-CTR streams of some keys, one behind the other. */
int umpc_key_streams(int kind, const uint8_t *keys, const size_t *sizes, size_t count,
                     uint8_t *streams)
{
    const gate *gate = gate_of(kind);
    if (gate == NULL)
        return -1;
    gate->key_streams(keys, sizes, count, streams);
    return 0;
}

#include "garbled_calls.h"
