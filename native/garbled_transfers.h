/* The extension of transfers: streams of leaves, their sums, and rows turned into blocks.
 *
 * umpc/mpc/transfers/batch_columns.py and batch_columns.py compute the same in numpy. */

TARGET static inline void NAME(store_part)(uint8_t *to, VEC x, size_t size)
{
    if (size == sizeof x)
        STORE(to, x);
    else
        memcpy(to, &x, size);
}

/* The next bytes of all leaves' streams, combined: u of each digit, and v of each of its bits. */
TARGET static void NAME(stretch)(const block *expanded, const block *starts, size_t digits,
                                 int fold, int lacks_first, uint64_t next, size_t width,
                                 uint8_t *rows, uint8_t *u)
{
    size_t leaves = (size_t)1 << fold;
    VEC start[1 << MOST_FOLD], made[1 << MOST_FOLD];
    block numbers[LANES];
    NAME(fixed_key) key;
    NAME(load_fixed_key)(&key, expanded);
    for (size_t leaf = 0; leaf < IN_FLIGHT; leaf++)
        start[leaf] = PAIR(0, 0); /* a digit of few leaves fills no group */
    for (size_t digit = 0; digit < digits; digit++) {
        for (size_t leaf = 0; leaf < leaves; leaf++) {
            const block *from = starts + digit * leaves + leaf;
            start[leaf] = PAIR(from->low, from->high);
        }
        for (size_t at = 0; at < width; at += 16 * LANES) {
            for (size_t lane = 0; lane < LANES; lane++)
                numbers[lane] = (block){next + at / 16 + lane, 0};
            VEC number = LOAD(numbers);
            for (size_t leaf = 0; leaf < leaves; leaf += IN_FLIGHT) {
                for (int i = 0; i < IN_FLIGHT; i++)
                    made[leaf + i] = XOR(start[leaf + i], number);
                NAME(hash_once)(&key, made + leaf);
            }
            if (lacks_first)
                made[0] = PAIR(0, 0);
            size_t left = least(16 * LANES, width - at);
            for (int bit = fold - 1; bit >= 0; bit--) {
                size_t half = (size_t)1 << bit;
                VEC sum = made[half];
                for (size_t leaf = half + 1; leaf < 2 * half; leaf++)
                    sum = XOR(sum, made[leaf]);
                for (size_t leaf = 0; leaf < half; leaf++)
                    made[leaf] = XOR(made[leaf], made[half + leaf]);
                NAME(store_part)(rows + (digit * (size_t)fold + (size_t)bit) * width + at, sum, left);
            }
            NAME(store_part)(u + digit * width + at, made[0], left);
        }
    }
}

#define WORDS_TOGETHER 8 /* words of a row: matrices of 64 x 64 bits that are turned together */

/* Turns matrices of 64 x 64 bits (Eklundh 1972). */
TARGET static void NAME(turn)(uint64_t words[64][WORDS_TOGETHER])
{
    uint64_t low = 0x00000000FFFFFFFF;
    for (int step = 32; step; step /= 2, low ^= low << step)
        for (int upper = 0; upper < 64; upper = (upper + step + 1) & ~step)
            for (int i = 0; i < WORDS_TOGETHER; i++) {
                uint64_t *one = &words[upper][i], *other = &words[upper + step][i];
                uint64_t moved = (*one >> step ^ *other) & low;
                *other ^= moved;
                *one ^= moved << step;
            }
}

/* A part of a row; what lies behind its end is 0. */
TARGET static inline void NAME(load_words)(uint64_t *to, const uint8_t *from, size_t size)
{
    if (size == sizeof(uint64_t[WORDS_TOGETHER])) {
        memcpy(to, from, sizeof(uint64_t[WORDS_TOGETHER]));
        return;
    }
    memset(to, 0, sizeof(uint64_t[WORDS_TOGETHER]));
    memcpy(to, from, size);
}

/* 128 rows of packed bits as `count` blocks. */
TARGET static void NAME(transpose)(const uint8_t *rows, size_t width, size_t count,
                                   uint8_t *blocks)
{
    uint64_t words[128][WORDS_TOGETHER];
    for (size_t at = 0; 8 * at < count; at += sizeof words[0]) {
        size_t size = least(sizeof words[0], width - at);
        for (size_t row = 0; row < 128; row++)
            NAME(load_words)(words[row], rows + row * width + at, size);
        NAME(turn)(words);
        NAME(turn)(words + 64);
        for (size_t word = 0; word < WORDS_TOGETHER; word++) {
            size_t first = 8 * at + 64 * word, left = first < count ? least(64, count - first) : 0;
            for (size_t i = 0; i < left; i++) {
                uint64_t made[2] = {words[i][word], words[64 + i][word]};
                memcpy(blocks + 16 * (first + i), made, sizeof made);
            }
        }
    }
}

#undef WORDS_TOGETHER
