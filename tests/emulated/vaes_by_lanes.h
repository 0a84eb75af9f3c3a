/* Included before native/kernel.c, for processors with AVX2 and AES-NI and without VAES.
 *
 * The instructions of VAES are computed lane by lane on AES-NI. All other instructions of the wide
 * walks run as they are. */

#include <immintrin.h>

#define LANES_TARGET __attribute__((target("aes,avx2")))
#define PER_LANE(name, one)                                                                   \
    LANES_TARGET static inline __m256i name##_256(__m256i x, __m256i key)                     \
    {                                                                                         \
        __m128i low = one(_mm256_castsi256_si128(x), _mm256_castsi256_si128(key));            \
        __m128i high = one(_mm256_extracti128_si256(x, 1), _mm256_extracti128_si256(key, 1)); \
        return _mm256_set_m128i(high, low);                                                   \
    }

PER_LANE(by_lanes_round, _mm_aesenc_si128)
PER_LANE(by_lanes_last, _mm_aesenclast_si128)

#define _mm256_aesenc_epi128(x, key) by_lanes_round_256(x, key)
#define _mm256_aesenclast_epi128(x, key) by_lanes_last_256(x, key)
#define __builtin_cpu_supports(name) 1
