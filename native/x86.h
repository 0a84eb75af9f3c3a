/* The instruction sets of x86-64. All are in one binary: each function is compiled for its own set,
 * and supported_kinds() asks the processor and the system which of them may run.
 *
 *   AESNI:   AES-NI, one block in a register;
 *   VAES256: VAES and AVX2, two blocks (Zen 3, Intel's servers since Ice Lake, desktops since 2021). */

#include <immintrin.h>

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
#define LOAD(p) _mm_loadu_si128((const __m128i *)(p))
#define STORE(p, x) _mm_storeu_si128((__m128i *)(p), x)
#define PAIR(low, high) _mm_set_epi64x((long long)(high), (long long)(low))
#define AND(x, y) _mm_and_si128(x, y)
#define XOR(x, y) _mm_xor_si128(x, y)
#define AES_FIRST(x, keys) XOR(x, (keys)[0])
#define AES_ROUND(x, keys, r) _mm_aesenc_si128(x, (keys)[r])
#define AES_LAST(x, keys, r) _mm_aesenclast_si128(x, (keys)[r])
#define FIRST32(x) _mm_shuffle_epi32(x, 0)
#define SHIFT_LEFT(x, count) _mm_sll_epi32(x, _mm_cvtsi32_si128(count))
#define SIGN(x) _mm_srai_epi32(x, 31)
#define SPREAD(p) LOAD(p)
#define ZIP_LOW(x, y) (x)
#define ZIP_HIGH(x, y) (y)
#define ADD64(x, y) _mm_add_epi64(x, y)
#define SUBTRACT64(x, y) _mm_sub_epi64(x, y)
#define UPPER32(x) _mm_srli_epi64(x, 32)
#include "garbled.h"

#define NAME(x) x##_vaes256
#define TARGET __attribute__((target("aes,vaes,avx2")))
#define VEC __m256i
#define LANES 2
#define LOAD(p) _mm256_loadu_si256((const __m256i *)(p))
#define STORE(p, x) _mm256_storeu_si256((__m256i *)(p), x)
#define PAIR(low, high)                                                                       \
    _mm256_broadcastsi128_si256(_mm_set_epi64x((long long)(high), (long long)(low)))
#define AND(x, y) _mm256_and_si256(x, y)
#define XOR(x, y) _mm256_xor_si256(x, y)
#define AES_FIRST(x, keys) XOR(x, (keys)[0])
#define AES_ROUND(x, keys, r) _mm256_aesenc_epi128(x, (keys)[r])
#define AES_LAST(x, keys, r) _mm256_aesenclast_epi128(x, (keys)[r])
#define FIRST32(x) _mm256_shuffle_epi32(x, 0)
#define SHIFT_LEFT(x, count) _mm256_sll_epi32(x, _mm_cvtsi32_si128(count))
#define SIGN(x) _mm256_srai_epi32(x, 31)
#define SPREAD(p) _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(p)))
#define ZIP_LOW(x, y) _mm256_permute2x128_si256(x, y, 0x20)
#define ZIP_HIGH(x, y) _mm256_permute2x128_si256(x, y, 0x31)
#define ADD64(x, y) _mm256_add_epi64(x, y)
#define SUBTRACT64(x, y) _mm256_sub_epi64(x, y)
#define UPPER32(x) _mm256_srli_epi64(x, 32)
#include "garbled.h"

/* The test of a feature also asks whether the system saves its registers. */
static int supported_kinds(void)
{
    __builtin_cpu_init();
    int aesni = __builtin_cpu_supports("aes") && __builtin_cpu_supports("sse4.1");
    int vaes = aesni && __builtin_cpu_supports("vaes") && __builtin_cpu_supports("avx2");
    return (aesni ? AESNI : 0) | (vaes ? VAES256 : 0);
}

static const kernel KERNELS[] = {
    KERNEL(AESNI, aesni),
    KERNEL(VAES256, vaes256),
};
