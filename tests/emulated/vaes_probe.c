/* Ends with 0 if the processor's VAES gives what AES-NI gives in both lanes. QEMU 7.2 does not. */

#include <immintrin.h>
#include <string.h>

__attribute__((target("aes,vaes,avx2"))) int main(void)
{
    unsigned char block[32], key[32], wide[32], narrow[32];
    for (int i = 0; i < 32; i++)
        block[i] = (unsigned char)(7 * i + 3), key[i] = (unsigned char)(5 * i + 1);
    __m256i x = _mm256_loadu_si256((const __m256i *)block);
    __m256i k = _mm256_loadu_si256((const __m256i *)key);
    _mm256_storeu_si256((__m256i *)wide, _mm256_aesenc_epi128(x, k));
    for (int lane = 0; lane < 32; lane += 16) {
        __m128i one = _mm_loadu_si128((const __m128i *)(block + lane));
        __m128i its_key = _mm_loadu_si128((const __m128i *)(key + lane));
        _mm_storeu_si128((__m128i *)(narrow + lane), _mm_aesenc_si128(one, its_key));
    }
    return memcmp(wide, narrow, sizeof wide) != 0;
}
