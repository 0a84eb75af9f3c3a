/* The sign gate's tree, level by level, for blocks of LANES gates in a register. Included once for
 * each instruction set.
 *
 * umpc/mpc/masked/dcf.py says what a key is, and umpc/mpc/masked/dcf.py computes the same in
 * numpy. Between levels a gate's state is one block. The seed is in the upper 125 bits. The control
 * bit is in bit 0, whichever child it came from. The sum of value bits is in bit 1. Gates go
 * through a level in tiles, so that corrections are read and written in long runs.
 * No branch and no address depends on a secret.
 *
 * Needs:
 *   NAME(x), TARGET, VEC, LANES;
 *   GROUP_EVALUATED and GROUP_GENERATED: registers in flight;
 *   LOAD, STORE, AND, OR, XOR;
 *   AES_FIRST, AES_ROUND for the rounds between, AES_LAST: AES with the keys of all rounds;
 *   PAIR(low, high): a block with these halves, in every block of the register;
 *   WORD(values, half): 32 bits of each of LANES uint64, repeated over its block;
 *   FIRST32: a block's first 32 bits, repeated over it;
 *   SHIFT_LEFT, SHIFT_RIGHT, and SIGN, which repeats the sign of 32 bits over them. */

#define SELECT(mask, one, zero) XOR(zero, AND(mask, XOR(one, zero)))
#define BLOCK_MASK(x) SIGN(SHIFT_LEFT(FIRST32(x), 31)) /* bit 0, all over its block */

typedef struct {
    VEC round[11];
} NAME(keys);

TARGET static inline void NAME(load_keys)(NAME(keys) * keys, const block *expanded)
{
    for (int i = 0; i < 11; i++)
        keys->round[i] = PAIR(expanded[i].low, expanded[i].high);
}

/* x becomes pi(x) ^ x, for `count` registers in flight. */
TARGET static inline __attribute__((always_inline)) void NAME(hash)(const NAME(keys) * keys,
                                                                    VEC *x, int count)
{
    VEC y[8];
    for (int i = 0; i < count; i++)
        y[i] = AES_FIRST(x[i], keys->round);
    for (int r = 1; r < 10; r++)
        for (int i = 0; i < count; i++)
            y[i] = AES_ROUND(y[i], keys->round, r);
    for (int i = 0; i < count; i++)
        x[i] = XOR(x[i], AES_LAST(y[i], keys->round, 10));
}

/* All ones in the blocks of gates whose number has its bit `place` set. */
TARGET static inline __attribute__((always_inline)) VEC NAME(bit)(const uint64_t *numbers,
                                                                  int place)
{
    return SIGN(SHIFT_LEFT(WORD(numbers, place >> 5), 31 - (place & 31)));
}

TARGET static void NAME(evaluate_level)(const NAME(keys) * keys, int place, size_t gates,
                                        const uint64_t *masked, const block *corrections,
                                        block *states)
{
    const VEC seed = PAIR(~7ULL, ~0ULL), control = PAIR(1, 0), value = PAIR(2, 0);
    for (size_t at = 0; at < gates; at += GROUP_EVALUATED * LANES) {
        VEC state[GROUP_EVALUATED], child[GROUP_EVALUATED], right[GROUP_EVALUATED];
        for (int i = 0; i < GROUP_EVALUATED; i++) {
            right[i] = NAME(bit)(masked + at + i * LANES, place);
            state[i] = LOAD(states + at + i * LANES);
            child[i] = OR(AND(state[i], seed), AND(right[i], control));
        }
        NAME(hash)(keys, child, GROUP_EVALUATED);
        for (int i = 0; i < GROUP_EVALUATED; i++) {
            VEC next = XOR(child[i], AND(BLOCK_MASK(state[i]), LOAD(corrections + at + i * LANES)));
            VEC its_control = SELECT(right[i], SHIFT_RIGHT(next, 2), next);
            VEC low = OR(AND(its_control, control), AND(XOR(next, state[i]), value));
            STORE(states + at + i * LANES, OR(AND(next, seed), low));
        }
    }
}

/* states: the blocks at the leaves become the pads of the truth tables. */
TARGET static void NAME(hash_leaves)(const NAME(keys) * keys, size_t gates, const block *states,
                                     block *tables)
{
    const VEC seed = PAIR(~7ULL, ~0ULL), leaf = PAIR(2, 0);
    for (size_t at = 0; at < gates; at += GROUP_EVALUATED * LANES) {
        VEC table[GROUP_EVALUATED];
        for (int i = 0; i < GROUP_EVALUATED; i++)
            table[i] = OR(AND(LOAD(states + at + i * LANES), seed), leaf);
        NAME(hash)(keys, table, GROUP_EVALUATED);
        for (int i = 0; i < GROUP_EVALUATED; i++)
            STORE(tables + at + i * LANES, table[i]);
    }
}

/* The path of r in both parties' trees. Party 0's states have the control bit, and V_0 ^ V_1 in
 * bit 1. Party 1's control bit is the opposite one. */
TARGET static void NAME(generate_level)(const NAME(keys) * keys, int place, size_t gates,
                                        const uint64_t *mask, block *corrections, block *first,
                                        block *second)
{
    const VEC seed = PAIR(~7ULL, ~0ULL), one = PAIR(1, 0), value = PAIR(2, 0), four = PAIR(4, 0),
        low = PAIR(7, 0);
    for (size_t at = 0; at < gates; at += GROUP_GENERATED * LANES) {
        VEC child[GROUP_GENERATED][4], bits[GROUP_GENERATED], state[GROUP_GENERATED]; /* kept,
            lost; of both */
        for (int i = 0; i < GROUP_GENERATED; i++) {
            bits[i] = NAME(bit)(mask + at + i * LANES, place);
            state[i] = LOAD(first + at + i * LANES);
            VEC right = AND(bits[i], one);
            child[i][0] = OR(AND(state[i], seed), right);
            child[i][2] = OR(AND(LOAD(second + at + i * LANES), seed), right);
            child[i][1] = XOR(child[i][0], one);
            child[i][3] = XOR(child[i][2], one);
        }
        NAME(hash)(keys, child[0], 4 * GROUP_GENERATED);
        for (int i = 0; i < GROUP_GENERATED; i++) {
            VEC kept = XOR(child[i][0], child[i][2]), lost = XOR(child[i][1], child[i][3]);
            VEC its_control = SELECT(bits[i], four, one);
            VEC target = XOR(AND(bits[i], low), one); /* 001 if the left child is kept, else 110 */
            VEC word = XOR(SELECT(its_control, kept, lost), XOR(target, AND(state[i], value)));
            STORE(corrections + at + i * LANES, word);
            VEC corrected = AND(BLOCK_MASK(state[i]), word);
            VEC next = XOR(child[i][0], corrected), other = XOR(child[i][2], XOR(word, corrected));
            VEC control = AND(SELECT(bits[i], SHIFT_RIGHT(next, 2), next), one);
            VEC values = AND(XOR(XOR(kept, lost), target), value);
            STORE(first + at + i * LANES, OR(AND(next, seed), OR(control, values)));
            STORE(second + at + i * LANES, other);
        }
    }
}

TARGET static void NAME(evaluate)(const block *expanded, int party, int width, size_t count,
                                  const block *corrections, const uint32_t *leaves,
                                  const uint64_t *masked, const block *roots, uint8_t *less,
                                  uint8_t *equal)
{
    block states[TILE], tables[TILE], words[TILE];
    uint64_t numbers[TILE];
    NAME(keys) keys;
    NAME(load_keys)(&keys, expanded);
    for (size_t start = 0; start < count; start += TILE) {
        size_t gates = count - start < TILE ? count - start : TILE;
        copy_padded(numbers, masked + start, gates, sizeof *numbers);
        copy_padded(states, roots + start, gates, sizeof *states);
        for (size_t i = 0; i < TILE; i++)
            states[i].low = (states[i].low & ~7ULL) | (uint64_t)party;
        for (int level = 0; level < levels(width); level++) {
            const block *word = corrections + (size_t)level * count + start;
            if (gates < TILE)
                word = copy_padded(words, word, gates, sizeof *words);
            NAME(evaluate_level)(&keys, width - 2 - level, padded(gates), numbers, word, states);
        }
        NAME(hash_leaves)(&keys, padded(gates), states, tables);
        for (size_t i = 0; i < gates; i++)
            read_leaf(width, numbers[i], leaves + 3 * (start + i), &tables[i], states[i].low,
                      less + start + i, equal + start + i);
    }
}

TARGET static void NAME(generate)(const block *expanded, int width, size_t count,
                                  const uint64_t *mask, const block *roots, block *corrections,
                                  uint32_t *leaves)
{
    block first[TILE], second[TILE], tables[2][TILE], words[TILE];
    uint64_t numbers[TILE];
    NAME(keys) keys;
    NAME(load_keys)(&keys, expanded);
    for (size_t start = 0; start < count; start += TILE) {
        size_t gates = count - start < TILE ? count - start : TILE;
        copy_padded(numbers, mask + start, gates, sizeof *numbers);
        copy_padded(first, roots + start, gates, sizeof *first);
        copy_padded(second, roots + count + start, gates, sizeof *second);
        for (size_t i = 0; i < TILE; i++)
            first[i].low &= ~7ULL; /* its control bit and V_0 ^ V_1 are zero */
        for (int level = 0; level < levels(width); level++) {
            block *word = corrections + (size_t)level * count + start;
            block *target = gates < TILE ? words : word;
            NAME(generate_level)(&keys, width - 2 - level, padded(gates), numbers, target, first,
                                 second);
            if (gates < TILE)
                memcpy(word, words, gates * sizeof *words);
        }
        NAME(hash_leaves)(&keys, padded(gates), first, tables[0]);
        NAME(hash_leaves)(&keys, padded(gates), second, tables[1]);
        for (size_t i = 0; i < gates; i++)
            write_leaf(width, numbers[i], &tables[0][i], &tables[1][i], first[i].low,
                       leaves + 3 * (start + i));
    }
}

#undef SELECT
#undef BLOCK_MASK
#undef NAME
#undef TARGET
#undef VEC
#undef LANES
#undef GROUP_EVALUATED
#undef GROUP_GENERATED
#undef LOAD
#undef STORE
#undef PAIR
#undef WORD
#undef AND
#undef OR
#undef XOR
#undef AES_FIRST
#undef AES_ROUND
#undef AES_LAST
#undef FIRST32
#undef SHIFT_LEFT
#undef SHIFT_RIGHT
#undef SIGN
