/* The AES instructions of 64-bit ARM (FEAT_AES), one block in a register.
 *
 * AESE adds the round's key before it substitutes, and x86 adds it at the end of a round. So a round
 * here takes the key of the round before. */

#include <arm_neon.h>

#if defined(__linux__)
#include <sys/auxv.h>
#define AES_IN_HWCAP (1UL << 3) /* HWCAP_AES of asm/hwcap.h */
#endif

#if defined(__ARM_FEATURE_AES) || defined(__ARM_FEATURE_CRYPTO)
#define WITH_AES /* the compiler was told that every processor has them, as on macOS */
#elif defined(__clang__)
#define WITH_AES __attribute__((target("aes")))
#else
#define WITH_AES __attribute__((target("+crypto")))
#endif

/* Substitutes each byte of the word. All columns are alike, so AESE's shift of rows changes
 * nothing. */
WITH_AES static inline uint32_t substituted(uint32_t word)
{
    uint8x16_t block = vaeseq_u8(vreinterpretq_u8_u32(vdupq_n_u32(word)), vdupq_n_u8(0));
    return vgetq_lane_u32(vreinterpretq_u32_u8(block), 0);
}

/* FIPS 197, section 5.2, for 128 bits. */
WITH_AES static void expand_key(const uint8_t *key, block *expanded)
{
    uint32_t words[44], constant = 1;
    memcpy(words, key, 16);
    for (int i = 4; i < 44; i++) {
        uint32_t word = words[i - 1];
        if (i % 4 == 0) {
            word = substituted(word >> 8 | word << 24) ^ constant;
            constant = constant << 1 ^ (constant >> 7) * 0x11B;
        }
        words[i] = words[i - 4] ^ word;
    }
    memcpy(expanded, words, sizeof words);
}

#define AS32(x) vreinterpretq_u32_u8(x)
#define AS64(x) vreinterpretq_u64_u8(x)
#define FROM32(x) vreinterpretq_u8_u32(x)

#define NAME(x) x##_arm
#define TARGET WITH_AES
#define VEC uint8x16_t
#define LANES 1
#define LOAD(p) vld1q_u8((const uint8_t *)(p))
#define STORE(p, x) vst1q_u8((uint8_t *)(p), x)
#define PAIR(low, high) vreinterpretq_u8_u64(vcombine_u64(vcreate_u64(low), vcreate_u64(high)))
#define AND(x, y) vandq_u8(x, y)
#define XOR(x, y) veorq_u8(x, y)
#define AES_FIRST(x, keys) (x)
#define AES_ROUND(x, keys, r) vaesmcq_u8(vaeseq_u8(x, (keys)[(r) - 1]))
#define AES_LAST(x, keys, r) XOR(vaeseq_u8(x, (keys)[(r) - 1]), (keys)[r])
#define FIRST32(x) FROM32(vdupq_laneq_u32(AS32(x), 0))
#define SHIFT_LEFT(x, count) FROM32(vshlq_u32(AS32(x), vdupq_n_s32(count)))
#define SIGN(x) vreinterpretq_u8_s32(vshrq_n_s32(vreinterpretq_s32_u8(x), 31))
#define SPREAD(p) LOAD(p)
#define ZIP_LOW(x, y) (x)
#define ZIP_HIGH(x, y) (y)
#define ADD64(x, y) vreinterpretq_u8_u64(vaddq_u64(AS64(x), AS64(y)))
#define SUBTRACT64(x, y) vreinterpretq_u8_u64(vsubq_u64(AS64(x), AS64(y)))
#define UPPER32(x) vreinterpretq_u8_u64(vshrq_n_u64(AS64(x), 32))
#include "garbled.h"

static int supported_kinds(void)
{
#if defined(__linux__)
    return getauxval(AT_HWCAP) & AES_IN_HWCAP ? ARM : 0;
#elif defined(__APPLE__)
    return ARM; /* every processor of Apple's with 64 bits has them */
#else
    return 0;
#endif
}

static const kernel KERNELS[] = {KERNEL(ARM, arm)};
