/* Point keys: generated; and expanded, rotated and added up, for LANES blocks in a register.
 * Included by garbled.h, whose macros it has.
 *
 * umpc/mpc/fss/point.py says what a key is, and computes the same in numpy. A state is a block: the
 * seed in the upper 125 bits, the control bit in bit 0. A person's tree goes breadth first to at
 * most MOST_TOPS nodes, and from each of these to at most SUBTREE leaves, so it stays in the first
 * cache. Whole registers are computed; nodes beyond the last one are dropped. No branch and no
 * address depends on a secret: an aggregator knows the numbers by which it rotates.
 *
 * A number of F takes 96 bits of the pads: a word, and half a word for 2^64 = 2^32 - 1. Sums are
 * reduced once, at the end. */

#define SELECT(mask, one, zero) XOR(zero, AND(mask, XOR(one, zero)))
#define THIRD_BIT(x) SIGN(SHIFT_LEFT(x, 29)) /* bit 2 of a block, over its first 32 bits */

TARGET static void NAME(expand_level)(const NAME(fixed_key) * key, const block *from, size_t nodes,
                                      const block *word, block *to)
{
    const VEC seed = PAIR(~7ULL, ~0ULL), one = PAIR(1, 0), correction = PAIR(word->low, word->high);
    for (size_t at = 0; at < nodes; at += IN_FLIGHT / 2 * LANES) {
        VEC state[IN_FLIGHT / 2], child[IN_FLIGHT];
        for (int i = 0; i < IN_FLIGHT / 2; i++) {
            state[i] = LOAD(from + at + i * LANES);
            child[2 * i] = AND(state[i], seed);
            child[2 * i + 1] = XOR(child[2 * i], one);
        }
        NAME(hash_once)(key, child);
        for (int i = 0; i < IN_FLIGHT / 2; i++) {
            VEC corrected = AND(FIRST_BIT(state[i]), correction);
            VEC left = XOR(child[2 * i], corrected), right = XOR(child[2 * i + 1], corrected);
            left = XOR(AND(left, seed), AND(left, one));
            right = XOR(AND(right, seed), AND(THIRD_BIT(right), one));
            block *target = to + 2 * (at + i * LANES);
            STORE(target, ZIP_LOW(left, right));
            STORE(target + LANES, ZIP_HIGH(left, right));
        }
    }
}

#define TOGETHER (2 * LANES) /* leaves */
#define ADD_TO(to, x) STORE(to, ADD64(LOAD(to), x))

/* In memory: with the registers of a caller beside its own, a compiler would spill each round. */
TARGET static __attribute__((noinline)) void NAME(hash_pads)(const NAME(fixed_key) * key, VEC *pad,
                                                            int count)
{
    for (int i = 0; i < count; i += IN_FLIGHT)
        NAME(hash_once)(key, pad + i);
}

TARGET static inline __attribute__((always_inline)) void NAME(add_kind)(
    const NAME(fixed_key) * key, const block *states, size_t leaves, int paired,
    const uint64_t *correction, uint64_t *to)
{
    const VEC seed = PAIR(~7ULL, ~0ULL), low = PAIR(0xFFFFFFFF, 0xFFFFFFFF);
    const int pads = paired ? PAIR_PADS : PADS, of_leaf = pads / LANES;
    for (const block *end = states + leaves; states < end; states += TOGETHER) {
        VEC pad[2 * PAIR_PADS], *own = pad;
        for (int leaf = 0; leaf < TOGETHER; leaf++)
            for (int i = 0; i < of_leaf; i++)
                pad[leaf * of_leaf + i] =
                    XOR(AND(SPREAD(states + leaf), seed), LOAD(PAD_LABELS + i * LANES));
        if (paired)
            NAME(hash_pads)(key, pad, 2 * pads);
        else
            NAME(hash_once)(key, pad);
        for (int leaf = 0; leaf < TOGETHER; leaf++, own += of_leaf) {
            VEC control = FIRST_BIT(SPREAD(states + leaf));
            for (int i = 0; i < (1 + paired) * PADS / LANES; i++) {
                int at = 2 * (1 + paired) * LANES * i, next = at + 2 * LANES;
                if (!paired) {
                    ADD_TO(to + at, ADD64(own[i], AND(control, LOAD(correction + at))));
                    continue;
                }
                /* a register has the upper 32 bits of two others */
                VEC both = own[2 * PADS / LANES + i % (PADS / LANES)];
                VEC third = i < PADS / LANES ? AND(both, low) : UPPER32(both);
                VEC lower = SUBTRACT64(AND(own[i], low), third);
                VEC upper = ADD64(UPPER32(own[i]), third);
                VEC one = ZIP_LOW(lower, upper), other = ZIP_HIGH(lower, upper);
                ADD_TO(to + at, ADD64(one, AND(control, LOAD(correction + at))));
                ADD_TO(to + next, ADD64(other, AND(control, LOAD(correction + next))));
            }
            to += words_of_cell(paired) * LEAF_CELLS;
        }
    }
}

/* Adds the numbers of some leaves, a multiple of TOGETHER, corrected where a control bit is set. */
TARGET static void NAME(add_leaves)(const NAME(fixed_key) * key, const block *states,
                                    size_t leaves, int paired, const uint64_t *correction,
                                    uint64_t *to)
{
    if (paired)
        NAME(add_kind)(key, states, leaves, 1, correction, to);
    else
        NAME(add_kind)(key, states, leaves, 0, correction, to);
}

/* All leaves below one node, rotated and added to a table. */
TARGET static void NAME(add_subtree)(const NAME(fixed_key) * key, const block *top,
                                     const tree *tree, size_t first_leaf, uint64_t *table)
{
    block states[2][SUBTREE + 2 * GROUP];
    size_t leaves = least(tree->leaves - first_leaf, (size_t)1 << tree->below), nodes = 1;
    size_t cells = tree->cells, words = words_of_cell(tree->paired);
    const block *word = tree->words + tree->above;
    int side = 0;
    states[0][0] = *top;
    for (int left = tree->below; left-- > 0; side = !side) {
        NAME(expand_level)(key, states[side], nodes, word++, states[!side]);
        nodes = nodes_above(leaves, left);
    }
    for (size_t leaf = 0, some; leaf < leaves; leaf += some) {
        size_t cell = LEAF_CELLS * (first_leaf + leaf), count, at = rotated(tree, cell, &count);
        some = least(leaves - leaf, count / LEAF_CELLS) / TOGETHER * TOGETHER;
        if (some) {
            NAME(add_leaves)(key, states[side] + leaf, some, tree->paired, tree->leaf,
                             table + words * at);
            continue;
        }
        /* across the end of a row, or beyond the last cell */
        uint64_t values[WORDS_OF_LEAF * TOGETHER] = {0}, *next = values;
        some = TOGETHER;
        NAME(add_leaves)(key, states[side] + leaf, some, tree->paired, tree->leaf, values);
        for (size_t end = least(cells, cell + LEAF_CELLS * some); cell < end; cell += count) {
            uint64_t *to = table + words * rotated(tree, cell, &count);
            count = least(count, end - cell);
            for (size_t i = 0; i < words * count; i++)
                to[i] += *next++;
        }
    }
}

TARGET static void NAME(add_points)(const block *expanded, int paired, int party, int depth,
                                    size_t cells, size_t row, size_t count,
                                    const block *corrections, const word64 *leaves,
                                    const word64 *numbers, const block *roots, uint64_t *table)
{
    block tops[2][MOST_TOPS + 2 * GROUP];
    tree tree = {.cells = cells, .rows = cells / row, .row = row, .paired = paired};
    tree.leaves = (cells + LEAF_CELLS - 1) / LEAF_CELLS;
    NAME(fixed_key) key;
    NAME(load_fixed_key)(&key, expanded);
    tree.below = depth < SUBTREE_LEVELS ? depth : SUBTREE_LEVELS;
    tree.above = depth - tree.below;
    for (size_t person = 0; person < count; person++) {
        size_t nodes = 1;
        int side = 0;
        for (int level = 0; level < depth; level++)
            memcpy(tree.words + level, corrections + (size_t)level * count + person, sizeof(block));
        set_correction(tree.leaf, leaves + (person * LEAF_CELLS << paired), paired);
        tree.down = numbers[person] / row;
        tree.right = numbers[person] % row;
        memcpy(tops[0], roots + person, sizeof(block));
        tops[0][0].low = (tops[0][0].low & ~7ULL) | (uint64_t)party;
        for (int level = 0; level < tree.above; level++, side = !side) {
            NAME(expand_level)(&key, tops[side], nodes, tree.words + level, tops[!side]);
            nodes = nodes_above(tree.leaves, depth - 1 - level);
        }
        for (size_t top = 0; top < nodes; top++)
            NAME(add_subtree)(&key, &tops[side][top], &tree, top << tree.below, table);
    }
}

/* One level of the paths to some leaves, in both parties' trees. Party 0's states have the control
 * bit, and V_0 ^ V_1 in bit 1. Party 1's control bit is the opposite one. `place` is the bit of the
 * leaves' numbers that chooses a child. */
TARGET static void NAME(generate_level)(const NAME(fixed_key) * key, int place, size_t count,
                                        const block *numbers, block *words, block *first,
                                        block *second)
{
    const VEC seed = PAIR(~7ULL, ~0ULL), one = PAIR(1, 0), value = PAIR(2, 0), four = PAIR(4, 0),
        low = PAIR(7, 0);
    for (size_t at = 0; at < count; at += IN_FLIGHT / 4 * LANES) {
        VEC child[IN_FLIGHT / 4][4], bits[IN_FLIGHT / 4], state[IN_FLIGHT / 4]; /* kept, lost; of
            both */
        for (int i = 0; i < IN_FLIGHT / 4; i++) {
            bits[i] = SIGN(SHIFT_LEFT(FIRST32(LOAD(numbers + at + i * LANES)), 31 - place));
            state[i] = LOAD(first + at + i * LANES);
            VEC right = AND(bits[i], one);
            child[i][0] = XOR(AND(state[i], seed), right);
            child[i][2] = XOR(AND(LOAD(second + at + i * LANES), seed), right);
            child[i][1] = XOR(child[i][0], one);
            child[i][3] = XOR(child[i][2], one);
        }
        NAME(hash_once)(key, child[0]);
        for (int i = 0; i < IN_FLIGHT / 4; i++) {
            VEC kept = XOR(child[i][0], child[i][2]), lost = XOR(child[i][1], child[i][3]);
            VEC its_control = SELECT(bits[i], four, one);
            VEC target = XOR(AND(bits[i], low), one); /* 001 if the left child is kept, else 110 */
            VEC word = XOR(SELECT(its_control, kept, lost), XOR(target, AND(state[i], value)));
            STORE(words + at + i * LANES, word);
            VEC corrected = AND(FIRST_BIT(state[i]), word);
            VEC next = XOR(child[i][0], corrected), other = XOR(child[i][2], XOR(word, corrected));
            VEC control = AND(SELECT(bits[i], THIRD_BIT(next), next), one);
            VEC values = AND(XOR(XOR(kept, lost), target), value);
            STORE(first + at + i * LANES, XOR(AND(next, seed), XOR(control, values)));
            STORE(second + at + i * LANES, other);
        }
    }
}

/* beta - first + second, with the sign of party 1's control bit: the leaves of some keys. */
TARGET static void NAME(generate_leaves)(const NAME(fixed_key) * key, int paired, uint64_t alpha,
                                         size_t count, const word64 *places, const block *first,
                                         const block *second, word64 *leaves)
{
    const uint64_t zeros[WORDS_OF_LEAF] = {0};
    uint64_t one[WORDS_OF_LEAF * TOGETHER] = {0}, other[WORDS_OF_LEAF * TOGETHER] = {0};
    NAME(add_leaves)(key, first, TOGETHER, paired, zeros, one);
    NAME(add_leaves)(key, second, TOGETHER, paired, zeros, other);
    for (size_t i = 0; i < count * LEAF_CELLS << paired; i++) {
        size_t cell = i >> paired, owner = cell / LEAF_CELLS;
        uint64_t is_place = 0 - (uint64_t)(places[owner] % LEAF_CELLS == cell % LEAF_CELLS);
        uint64_t beta = is_place & (i & (size_t)paired ? alpha : 1);
        uint64_t sign = (first[owner].low & 1) - 1; /* party 1 has the opposite control bit */
        if (paired) {
            uint64_t pads = field_subtract(sum_of_pairs(other, i), sum_of_pairs(one, i));
            uint64_t number = field_add(beta, pads);
            leaves[i] = number ^ (sign & (number ^ field_subtract(0, number)));
        } else
            leaves[i] = ((beta - one[i] + other[i]) ^ sign) - sign;
    }
}

TARGET static void NAME(generate_points)(const block *expanded, int paired, uint64_t alpha,
                                         int depth, size_t count, const word64 *places,
                                         const block *roots, block *corrections, word64 *leaves)
{
    NAME(fixed_key) key;
    NAME(load_fixed_key)(&key, expanded);
    for (size_t start = 0; start < count; start += TILE) {
        block first[TILE] = {{0, 0}}, second[TILE] = {{0, 0}}, numbers[TILE] = {{0, 0}};
        block words[TILE];
        size_t some = least(count - start, TILE);
        memcpy(first, roots + start, some * sizeof *first);
        memcpy(second, roots + count + start, some * sizeof *second);
        for (size_t i = 0; i < some; i++) {
            first[i].low &= ~7ULL; /* its control bit and V_0 ^ V_1 are zero */
            numbers[i].low = places[start + i] / LEAF_CELLS;
        }
        for (int level = 0; level < depth; level++) {
            NAME(generate_level)(&key, depth - 1 - level, some, numbers, words, first, second);
            memcpy(corrections + (size_t)level * count + start, words, some * sizeof *words);
        }
        for (size_t at = 0; at < some; at += TOGETHER)
            NAME(generate_leaves)(&key, paired, alpha, least(some - at, TOGETHER),
                                  places + start + at, first + at, second + at,
                                  leaves + ((start + at) * LEAF_CELLS << paired));
    }
}

#undef TOGETHER
#undef ADD_TO
#undef SELECT
#undef THIRD_BIT
