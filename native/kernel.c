/* The functions that umpc/native calls: the garbled path and point keys on a processor's AES
 * instructions, and the field.
 *
 * One binary runs everywhere: x86.h and arm.h hold the path once for each instruction set, and
 * umpc_kinds() says which of them this processor has. Elsewhere the library builds, and umpc
 * computes in numpy. Callers have checked all sizes. */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define KERNEL_VERSION 11 /* umpc/native/__init__.py has the same */

enum { AESNI = 1, VAES256 = 2, ARM = 8 };

int umpc_kernel_version(void);
int umpc_kinds(void);
int umpc_add_points(int kind, const uint8_t *key, int paired, int party, int depth, size_t cells,
                    size_t row, size_t count, const void *corrections, const void *leaves,
                    const void *numbers, const void *roots, void *table);
int umpc_generate_points(int kind, const uint8_t *key, int paired, uint64_t alpha, int depth,
                         size_t count, const void *places, const void *roots, void *corrections,
                         void *leaves);

typedef struct {
    uint64_t low, high;
} block;

/* Words at any address. */
typedef uint32_t __attribute__((aligned(1), may_alias)) word32;
typedef uint64_t __attribute__((aligned(1), may_alias)) word64;

typedef struct kernel kernel;
static const kernel *kernel_of(int kind);

#include "field.h"
#include "garbled_types.h"

/* --- point keys: points.h --- */

#define LEAF_CELLS 8
#define PADS 4       /* blocks of a leaf */
#define PAIR_PADS 12 /* blocks of a leaf of pairs */
#define WORDS_OF_LEAF (4 * LEAF_CELLS) /* of pairs */
#define GROUP 8      /* the most nodes or keys that one group of registers holds */
#define SUBTREE_LEVELS 9
#define SUBTREE 512    /* leaves that are expanded together: 8 KiB */
#define MOST_TOPS 256  /* nodes above them: 2^20 cells */
#define MOST_DEPTH 17
#define TILE 256       /* keys that are made together: 4 KiB of blocks */

static const block PAD_LABELS[PAIR_PADS] = {{2, 0}, {3, 0},  {4, 0},  {5, 0},  {6, 0},  {7, 0},
                                            {10, 0}, {11, 0}, {12, 0}, {13, 0}, {14, 0}, {15, 0}};

/* One person's key, its rotation by `down` rows and `right` cells of a row, and the shape of its
 * tree: levels `above` subtrees and `below`. rows, row: D1 and D2. paired: whether a cell has two
 * numbers of F. */
typedef struct {
    size_t cells, leaves, rows, row, down, right;
    int paired, above, below;
    block words[MOST_DEPTH];
    uint64_t leaf[WORDS_OF_LEAF];
} tree;

/* A number x of F is two words in sums, x = lower + 2^32 upper. A person adds less than 2^34 to each,
 * so 2^28 people do not overflow it. A cell of pairs has both lower words, then both upper ones. */
FIXED int words_of_cell(int paired)
{
    return paired ? 4 : 1;
}

FIXED void set_correction(uint64_t *words, const word64 *numbers, int paired)
{
    for (int i = 0; i < LEAF_CELLS << paired; i++) {
        int lower = paired ? i + (i & ~1) : i;
        words[lower] = paired ? numbers[i] & FIELD_EPSILON : numbers[i];
        if (paired)
            words[lower + 2] = numbers[i] >> 32;
    }
}

/* The number i of a table of pairs. Its lower word is signed. */
FIXED uint64_t sum_of_pairs(const uint64_t *words, size_t i)
{
    const uint64_t *lower = words + i + (i & ~(size_t)1);
    /* with p added, the signed word is not negative */
    double_word sum = FIELD_P + (double_word)(__int128)(int64_t)lower[0];
    return field_reduced(sum + ((double_word)lower[2] << 32));
}

/* The nodes of a level that have one of the first leaves below them, `left` levels further. */
static inline size_t nodes_above(size_t leaves, int left)
{
    return (leaves + ((size_t)1 << left) - 1) >> left;
}

/* Where a cell goes. together: how many cells from this one on go to neighbours of its place. */
FIXED size_t rotated(const tree *tree, size_t cell, size_t *together)
{
    size_t down = cell / tree->row + tree->down, column = cell % tree->row;
    size_t right = column + tree->right;
    down -= down < tree->rows ? 0 : tree->rows;
    right -= right < tree->row ? 0 : tree->row;
    *together = tree->row - (right < column ? column : right);
    return down * tree->row + right;
}

/* The functions compiled for one instruction set. */
struct kernel {
    int kind;
    void (*stretch)(const block *expanded, const block *starts, size_t digits, int fold,
                    int lacks_first, uint64_t next, size_t width, uint8_t *rows, uint8_t *u);
    void (*transpose)(const uint8_t *rows, size_t width, size_t count, uint8_t *blocks);
    void (*make_rows)(const block *expanded, const row_places *places, const uint8_t *packed,
                      const int64_t *own, const uint8_t *masks, size_t count, uint8_t *to);
    void (*read_rows)(const block *expanded, const row_places *places, const uint8_t *table,
                      const int64_t *own, size_t count, uint8_t *found);
    int (*garble)(const block *expanded, const circuit *circuit, const edges *edges);
    int (*evaluate)(const block *expanded, const circuit *circuit, const edges *edges);
    void (*add_points)(const block *expanded, int paired, int party, int depth, size_t cells,
                       size_t row, size_t count, const block *corrections, const word64 *leaves,
                       const word64 *numbers, const block *roots, uint64_t *table);
    void (*generate_points)(const block *expanded, int paired, uint64_t alpha, int depth,
                            size_t count, const word64 *places, const block *roots,
                            block *corrections, word64 *leaves);
};

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

static const kernel KERNELS[] = {{0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL}};

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
static const kernel *kernel_of(int kind)
{
    for (size_t i = 0; i < sizeof KERNELS / sizeof *KERNELS; i++)
        if (KERNELS[i].kind == kind && supported_kinds() & kind)
            return KERNELS + i;
    return NULL;
}

/* Adds to a table of `cells` words that are zero, in rows of `row` cells. Of pairs, it has four
 * words a cell. Its first half becomes their sums in F, those of a cell together. Returns 0, or -1 if
 * this processor cannot run the kind. */
int umpc_add_points(int kind, const uint8_t *key, int paired, int party, int depth, size_t cells,
                    size_t row, size_t count, const void *corrections, const void *leaves,
                    const void *numbers, const void *roots, void *table)
{
    block expanded[11];
    uint64_t *sums = table;
    const kernel *kernel = kernel_of(kind);
    if (kernel == NULL || depth > MOST_DEPTH)
        return -1;
    expand_key(key, expanded);
    kernel->add_points(expanded, paired, party, depth, cells, row, count, corrections, leaves,
                       numbers, roots, sums);
    for (size_t i = 0; paired && i < 2 * cells; i++)
        sums[i] = sum_of_pairs(sums, i);
    for (size_t i = 0; party && i < (paired ? 2 * cells : cells); i++)
        sums[i] = paired ? field_subtract(0, sums[i]) : 0 - sums[i];
    return 0;
}

int umpc_generate_points(int kind, const uint8_t *key, int paired, uint64_t alpha, int depth,
                         size_t count, const void *places, const void *roots, void *corrections,
                         void *leaves)
{
    block expanded[11];
    const kernel *kernel = kernel_of(kind);
    if (kernel == NULL)
        return -1;
    expand_key(key, expanded);
    kernel->generate_points(expanded, paired, alpha, depth, count, places, roots, corrections,
                            leaves);
    return 0;
}

#include "garbled_calls.h"
