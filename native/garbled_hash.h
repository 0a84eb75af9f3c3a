/* AES-128 under a public key for many blocks in flight, for one instruction set.
 *
 * It has the macros that garbled.h names, as all headers named garbled_*. No branch depends on a secret. */

#define IN_FLIGHT 8 /* registers */
#define FIRST_BIT(x) SIGN(SHIFT_LEFT(FIRST32(x), 31)) /* bit 0 of a block, all over it */

typedef struct {
    VEC round[11];
} NAME(fixed_key);

TARGET static inline void NAME(load_fixed_key)(NAME(fixed_key) * key, const block *expanded)
{
    for (int i = 0; i < 11; i++)
        key->round[i] = PAIR(expanded[i].low, expanded[i].high);
}

/* pi of IN_FLIGHT registers, in place. */
TARGET static inline __attribute__((always_inline)) void NAME(permute)(const NAME(fixed_key) * key,
                                                                       VEC *x)
{
    for (int i = 0; i < IN_FLIGHT; i++)
        x[i] = AES_FIRST(x[i], key->round);
    for (int r = 1; r < 10; r++)
        for (int i = 0; i < IN_FLIGHT; i++)
            x[i] = AES_ROUND(x[i], key->round, r);
    for (int i = 0; i < IN_FLIGHT; i++)
        x[i] = AES_LAST(x[i], key->round, 10);
}

/* x becomes pi(x) ^ x. */
TARGET static inline __attribute__((always_inline)) void NAME(hash_once)(
    const NAME(fixed_key) * key, VEC *x)
{
    VEC y[IN_FLIGHT];
    for (int i = 0; i < IN_FLIGHT; i++)
        y[i] = x[i];
    NAME(permute)(key, y);
    for (int i = 0; i < IN_FLIGHT; i++)
        x[i] = XOR(x[i], y[i]);
}

/* x becomes pi(y) ^ y with y = pi(x) ^ tweak. */
TARGET static inline __attribute__((always_inline)) void NAME(hash_twice)(
    const NAME(fixed_key) * key, VEC *x, const VEC *tweaks)
{
    NAME(permute)(key, x);
    for (int i = 0; i < IN_FLIGHT; i++)
        x[i] = XOR(x[i], tweaks[i]);
    NAME(hash_once)(key, x);
}
