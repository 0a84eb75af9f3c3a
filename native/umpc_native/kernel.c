/* The sign gate on AES instructions: the functions that __init__.py calls, and all parts that need
 * no wide registers.
 *
 * kind 1: AES-NI, one block in a register. kind 2: VAES and AVX-512, four blocks.
 * Callers have checked all sizes. */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

int umpc_kinds(void);
int umpc_evaluate(int kind, const uint8_t *key, int party, int width, size_t count,
                  const void *corrections, const uint32_t *leaves, const uint64_t *masked,
                  const void *roots, uint8_t *less, uint8_t *equal);
int umpc_generate(int kind, const uint8_t *key, int width, size_t count, const uint64_t *mask,
                  const void *roots, void *corrections, uint32_t *leaves);

#if defined(__x86_64__) && defined(__GNUC__)

#include <immintrin.h>

#define LEAF_BITS 5
#define TILE 256 /* gates: 4 KiB of blocks */
#define PAD 32   /* gates: the most that one group of registers holds */

typedef struct {
    uint64_t low, high;
} block;

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

/* FIPS 197, section 5.2, for 128 bits. */
__attribute__((target("aes,sse4.1"))) static void expand_key(const uint8_t *key, block *expanded)
{
    __m128i round = _mm_loadu_si128((const __m128i *)key);
    _mm_storeu_si128((__m128i *)expanded, round);
#define NEXT(i, constant)                                                                     \
    do {                                                                                      \
        __m128i word = _mm_shuffle_epi32(_mm_aeskeygenassist_si128(round, constant), 0xFF);   \
        for (int j = 0; j < 3; j++)                                                           \
            round = _mm_xor_si128(round, _mm_slli_si128(round, 4));                           \
        round = _mm_xor_si128(round, word);                                                   \
        _mm_storeu_si128((__m128i *)(expanded + i), round);                                   \
    } while (0)
    NEXT(1, 0x01);
    NEXT(2, 0x02);
    NEXT(3, 0x04);
    NEXT(4, 0x08);
    NEXT(5, 0x10);
    NEXT(6, 0x20);
    NEXT(7, 0x40);
    NEXT(8, 0x80);
    NEXT(9, 0x1B);
    NEXT(10, 0x36);
#undef NEXT
}

#define NAME(x) x##_aesni
#define TARGET __attribute__((target("aes,sse4.1")))
#define VEC __m128i
#define LANES 1
#define GROUP_EVALUATED 8
#define GROUP_GENERATED 2
#define LOAD(p) _mm_loadu_si128((const __m128i *)(p))
#define STORE(p, x) _mm_storeu_si128((__m128i *)(p), x)
#define PAIR(low, high) _mm_set_epi64x((long long)(high), (long long)(low))
#define WORD(values, half) _mm_set1_epi32((int)(*(values) >> 32 * (half)))
#define AND(x, y) _mm_and_si128(x, y)
#define OR(x, y) _mm_or_si128(x, y)
#define XOR(x, y) _mm_xor_si128(x, y)
#define AESENC(x, key) _mm_aesenc_si128(x, key)
#define AESENCLAST(x, key) _mm_aesenclast_si128(x, key)
#define FIRST32(x) _mm_shuffle_epi32(x, 0)
#define SHIFT_LEFT(x, count) _mm_sll_epi32(x, _mm_cvtsi32_si128(count))
#define SHIFT_RIGHT(x, count) _mm_srli_epi32(x, count)
#define SIGN(x) _mm_srai_epi32(x, 31)
#include "walk.h"

#define NAME(x) x##_vaes
#define TARGET __attribute__((target("aes,vaes,avx512f,avx512bw,avx512dq,avx512vl")))
#define VEC __m512i
#define LANES 4
#define GROUP_EVALUATED 4
#define GROUP_GENERATED 1
#define LOAD(p) _mm512_loadu_si512(p)
#define STORE(p, x) _mm512_storeu_si512(p, x)
#define PAIR(low, high) _mm512_broadcast_i64x2(_mm_set_epi64x((long long)(high), (long long)(low)))
#define LANE_WORDS _mm512_set_epi32(6, 6, 6, 6, 4, 4, 4, 4, 2, 2, 2, 2, 0, 0, 0, 0)
#define WORD(values, half)                                                                 \
    _mm512_permutexvar_epi32(                                                              \
        _mm512_add_epi32(LANE_WORDS, _mm512_set1_epi32(half)),                             \
        _mm512_castsi256_si512(_mm256_loadu_si256((const __m256i *)(values))))
#define AND(x, y) _mm512_and_si512(x, y)
#define OR(x, y) _mm512_or_si512(x, y)
#define XOR(x, y) _mm512_xor_si512(x, y)
#define AESENC(x, key) _mm512_aesenc_epi128(x, key)
#define AESENCLAST(x, key) _mm512_aesenclast_epi128(x, key)
#define FIRST32(x) _mm512_shuffle_epi32(x, 0)
#define SHIFT_LEFT(x, count) _mm512_sll_epi32(x, _mm_cvtsi32_si128(count))
#define SHIFT_RIGHT(x, count) _mm512_srli_epi32(x, count)
#define SIGN(x) _mm512_srai_epi32(x, 31)
#include "walk.h"

/* Bit k - 1 is set if this processor can run kind k. */
int umpc_kinds(void)
{
    __builtin_cpu_init();
    int aesni = __builtin_cpu_supports("aes") && __builtin_cpu_supports("sse4.1");
    int vaes = aesni && __builtin_cpu_supports("vaes") && __builtin_cpu_supports("avx512f") &&
               __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("avx512vl");
    return aesni | vaes << 1;
}

/* Returns 0, or -1 if this processor cannot run the kind. */
int umpc_evaluate(int kind, const uint8_t *key, int party, int width, size_t count,
                  const void *corrections, const uint32_t *leaves, const uint64_t *masked,
                  const void *roots, uint8_t *less, uint8_t *equal)
{
    block expanded[11];
    if ((kind != 1 && kind != 2) || !(umpc_kinds() & kind))
        return -1;
    expand_key(key, expanded);
    (kind == 1 ? evaluate_aesni : evaluate_vaes)(expanded, party, width, count, corrections,
                                                 leaves, masked, roots, less, equal);
    return 0;
}

int umpc_generate(int kind, const uint8_t *key, int width, size_t count, const uint64_t *mask,
                  const void *roots, void *corrections, uint32_t *leaves)
{
    block expanded[11];
    if ((kind != 1 && kind != 2) || !(umpc_kinds() & kind))
        return -1;
    expand_key(key, expanded);
    (kind == 1 ? generate_aesni : generate_vaes)(expanded, width, count, mask, roots, corrections,
                                                 leaves);
    return 0;
}

#else /* another processor: the library builds, and umpc computes in numpy */

int umpc_kinds(void)
{
    return 0;
}

int umpc_evaluate(int kind, const uint8_t *key, int party, int width, size_t count,
                  const void *corrections, const uint32_t *leaves, const uint64_t *masked,
                  const void *roots, uint8_t *less, uint8_t *equal)
{
    (void)kind, (void)key, (void)party, (void)width, (void)count, (void)corrections;
    (void)leaves, (void)masked, (void)roots, (void)less, (void)equal;
    return -1;
}

int umpc_generate(int kind, const uint8_t *key, int width, size_t count, const uint64_t *mask,
                  const void *roots, void *corrections, uint32_t *leaves)
{
    (void)kind, (void)key, (void)width, (void)count, (void)mask, (void)roots, (void)corrections,
        (void)leaves;
    return -1;
}

#endif
