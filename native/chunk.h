/* The steps of a chunk under masks, tile by tile, for one instruction set. Included before walk.h,
 * with its macros.
 *
 * umpc/native/programs.py says what a step does and what its operands are. Rows of a tile stay in
 * the processor's cache from the key stream to the last sum. The loops are plain C, and the
 * compiler makes them wide. No branch and no address depends on a secret: programs are public. */

/* AES-256 of FIPS 197, section 5.2: the keys of 14 rounds. */
TARGET static void NAME(expand_long_key)(const uint8_t *key, VEC *round)
{
    uint32_t words[60], constant = 1;
    memcpy(words, key, 32);
    for (int i = 8; i < 60; i++) {
        uint32_t word = words[i - 1];
        if (i % 4 == 0)
            word = substituted(i % 8 ? word : word >> 8 | word << 24);
        if (i % 8 == 0) {
            word ^= constant;
            constant <<= 1;
        }
        words[i] = words[i - 8] ^ word;
    }
    for (int i = 0; i < 15; i++) {
        uint64_t halves[2];
        memcpy(halves, words + 4 * i, sizeof halves);
        round[i] = PAIR(halves[0], halves[1]);
    }
}

/* Bytes [offset, offset + size) of a key stream: AES-256-CTR, which counts from zero. */
TARGET static uint8_t *NAME(key_stream)(const VEC *round, size_t offset, size_t size, block *room)
{
    size_t first = offset / 16, count = (offset % 16 + size + 15) / 16;
    for (size_t i = 0; i < count; i++)
        room[i] = (block){0, __builtin_bswap64(first + i)};
    for (size_t at = 0; at < count; at += GROUP_EVALUATED * LANES) {
        VEC x[GROUP_EVALUATED];
        for (int i = 0; i < GROUP_EVALUATED; i++)
            x[i] = AES_FIRST(LOAD(room + at + i * LANES), round);
        for (int r = 1; r < 14; r++)
            for (int i = 0; i < GROUP_EVALUATED; i++)
                x[i] = AES_ROUND(x[i], round, r);
        for (int i = 0; i < GROUP_EVALUATED; i++)
            STORE(room + at + i * LANES, AES_LAST(x[i], round, 14));
    }
    return (uint8_t *)room + offset % 16;
}

/* The first bytes of each key's stream, one stream behind the other. keys: 32 bytes each. */
TARGET static void NAME(key_streams)(const uint8_t *keys, const size_t *sizes, size_t count,
                                     uint8_t *to)
{
    VEC round[15];
    block room[ROOM];
    for (size_t i = 0; i < count; i++) {
        NAME(expand_long_key)(keys + 32 * i, round);
        for (size_t at = 0; at < sizes[i]; at += sizeof(uint64_t) * TILE_EDGES) {
            size_t left = sizes[i] - at, most = sizeof(uint64_t) * TILE_EDGES;
            size_t part = left < most ? left : most;
            memcpy(to, NAME(key_stream)(round, at, part, room), part);
            to += part;
        }
    }
}

/* A run of a program. streams: the keys of all rounds, of each source that is a stream. */
typedef struct {
    const chunk *chunk;
    const VEC *streams;
    uint8_t *scratch;
    block *rooms;
    size_t start, edges;
} NAME(tile);

/* Where a tile's part of an operand stands. A key stream is written into one of the rooms. */
TARGET static uint8_t *NAME(row)(const NAME(tile) * tile, int64_t number, int room)
{
    const operand *of = tile->chunk->operands + number;
    if (of->source < 0)
        return tile->scratch + of->before;
    size_t each = of->unit ? 1 : (tile->chunk->count + 7) / 8;
    size_t before = of->before * (of->unit ? tile->chunk->count : each);
    size_t offset = before + row_size(of->unit, tile->start);
    if (!tile->chunk->are_streams[of->source])
        return tile->chunk->sources[of->source] + offset;
    return NAME(key_stream)(tile->streams + 15 * of->source, offset,
                            row_size(of->unit, tile->edges), tile->rooms + room * ROOM);
}

/* Packs the low bit of each byte, or the parity of each byte. */
TARGET static void NAME(pack)(uint8_t *to, const uint64_t *octets, size_t edges, int parity)
{
    for (size_t i = 0; i < (edges + 7) / 8; i++) {
        uint64_t x = octets[i], folded = x ^ x >> 4;
        folded ^= folded >> 2;
        folded ^= folded >> 1;
        x = (parity ? folded : x) & 0x0101010101010101;
        to[i] = (uint8_t)(x * 0x0102040810204080 >> 56);
    }
}

/* The loops over words of one type. Bit e of packed bits is that of edge e. */
#define BIT_OF(bits, e) ((bits)[(e) / 8] >> (e) % 8 & 1)
#define WORD_LOOPS(W, BITS)                                                                        \
    TARGET static void NAME(one_hot##BITS)(W *restrict to, const word64 *restrict numbers,       \
                                           const W *restrict share, size_t edges, piece of)        \
    {                                                                                              \
        for (size_t e = 0; e < edges; e++) {                                                       \
            W place = (W)(numbers[e] >> of.low & of.below);                                        \
            W here = BITS < 64 ? 1 : (W)(place >> 6 == (W)of.word);                                \
            to[e] = (W)(here << (place & (BITS - 1))) ^ share[e];                                  \
        }                                                                                          \
    }                                                                                              \
    TARGET static void NAME(look_up##BITS)(uint8_t *restrict at, uint8_t *restrict from,           \
                                           const word64 *restrict numbers,                       \
                                           const W *restrict share, size_t edges, piece of)        \
    {                                                                                              \
        for (size_t e = 0; e < edges; e++) {                                                       \
            W place = (W)(numbers[e] >> of.low & of.below), word = share[e], higher = 0;           \
            W x = (W)(word >> (place & (BITS - 1)));                                               \
            if (BITS == 64) {                                                                      \
                x &= (W)-(W)(place >> 6 == (W)of.word);                                            \
                higher = word & (W)-(W)(place >> 6 < (W)of.word);                                  \
            }                                                                                      \
            at[e] ^= (uint8_t)x & 1;                                                               \
            x ^= higher;                                                                           \
            for (int half = BITS / 2; half >= 8; half /= 2)                                        \
                x ^= (W)(x >> half);                                                               \
            from[e] ^= (uint8_t)x;                                                                 \
        }                                                                                          \
    }

#define RING_LOOPS(W, BITS)                                                                        \
    TARGET static void NAME(add_if##BITS)(W *restrict to, const uint8_t *restrict bits, W number,  \
                                          size_t edges)                                            \
    {                                                                                              \
        size_t e = 0;                                                                              \
        for (; e + 32 <= edges; e += 32) {                                                         \
            uint32_t word;                                                                         \
            memcpy(&word, bits + e / 8, 4);                                                        \
            for (int i = 0; i < 32; i++)                                                           \
                to[e + i] += number & (W)-(W)(word >> i & 1);                                      \
        }                                                                                          \
        for (; e < edges; e++)                                                                     \
            to[e] += number & (W)-(W)BIT_OF(bits, e);                                              \
    }                                                                                              \
    TARGET static void NAME(negate_if##BITS)(W *restrict to, const uint8_t *restrict bits,         \
                                             size_t edges)                                         \
    {                                                                                              \
        size_t e = 0;                                                                              \
        for (; e + 32 <= edges; e += 32) {                                                         \
            uint32_t word;                                                                         \
            memcpy(&word, bits + e / 8, 4);                                                        \
            for (int i = 0; i < 32; i++) {                                                         \
                W bit = word >> i & 1;                                                             \
                to[e + i] = (to[e + i] ^ (W)-bit) + bit;                                           \
            }                                                                                      \
        }                                                                                          \
        for (; e < edges; e++)                                                                     \
            to[e] = (to[e] ^ (W)-(W)BIT_OF(bits, e)) + BIT_OF(bits, e);                            \
    }                                                                                              \
    TARGET static W NAME(dot##BITS)(const W *restrict one, const W *restrict other, size_t edges)  \
    {                                                                                              \
        W sum = 0;                                                                                 \
        for (size_t e = 0; e < edges; e++)                                                         \
            sum += one[e] * (other ? other[e] : 1);                                                \
        return sum;                                                                                \
    }                                                                                              \
    TARGET static void NAME(combine##BITS)(W *restrict to, const W *restrict one,                  \
                                           const W *restrict other, int code, W number,            \
                                           size_t edges)                                           \
    {                                                                                              \
        for (size_t e = 0; code == FILL && e < edges; e++)                                         \
            to[e] = number;                                                                        \
        for (size_t e = 0; code == ADD_TIMES && e < edges; e++)                                    \
            to[e] += one[e] * number;                                                              \
        for (size_t e = 0; code == ADD && e < edges; e++)                                          \
            to[e] += one[e];                                                                       \
        for (size_t e = 0; code == TIMES && e < edges; e++)                                        \
            to[e] *= one[e];                                                                       \
        for (size_t e = 0; code == SUBTRACT && e < edges; e++)                                     \
            to[e] = one[e] - other[e];                                                             \
    }                                                                                              \
    TARGET static uint64_t NAME(ring##BITS)(W *to, const void *one, const void *other,             \
                                            const step *step, size_t edges)                        \
    {                                                                                              \
        if (step->code == DOT)                                                                     \
            return NAME(dot##BITS)(one, other, edges);                                             \
        if (step->code == ADD_IF)                                                                  \
            NAME(add_if##BITS)(to, one, (W)step->number, edges);                                   \
        else if (step->code == NEGATE_IF)                                                          \
            NAME(negate_if##BITS)(to, one, edges);                                                 \
        else                                                                                       \
            NAME(combine##BITS)(to, one, other, (int)step->code, (W)step->number, edges);          \
        return 0;                                                                                  \
    }

WORD_LOOPS(word8, 8)
WORD_LOOPS(word16, 16)
WORD_LOOPS(word32, 32)
WORD_LOOPS(word64, 64)
RING_LOOPS(word32, 32)
RING_LOOPS(word64, 64)
#undef WORD_LOOPS
#undef RING_LOOPS

TARGET static void NAME(combine_bits)(uint8_t *to, const uint8_t *one, const uint8_t *other,
                                      int64_t code, size_t size)
{
    for (size_t i = 0; code == XOR_BITS && i < size; i++)
        to[i] = one[i] ^ other[i];
    for (size_t i = 0; code == AND_BITS && i < size; i++)
        to[i] = one[i] & other[i];
    for (size_t i = 0; code == NOT_BITS && i < size; i++)
        to[i] = ~one[i];
    if (code == COPY)
        memcpy(to, one, size);
}

/* to: the packed bits [number < place], and behind them [number = place], of shares of a table. */
TARGET static void NAME(look_up)(const NAME(tile) * tile, const step *step, const word64 *numbers)
{
    uint64_t at[TILE_EDGES / 8], from[TILE_EDGES / 8];
    piece of = piece_of(step->number);
    memset(at, 0, sizeof at);
    memset(from, 0, sizeof from);
    for (of.word = 0; of.word < of.words; of.word++) {
        const void *share = NAME(row)(tile, step->other + of.word, 1);
        uint8_t *equal = (uint8_t *)at, *parity = (uint8_t *)from;
        switch (tile->chunk->operands[step->other].unit) {
        case 1: NAME(look_up8)(equal, parity, numbers, share, tile->edges, of); break;
        case 2: NAME(look_up16)(equal, parity, numbers, share, tile->edges, of); break;
        case 4: NAME(look_up32)(equal, parity, numbers, share, tile->edges, of); break;
        default: NAME(look_up64)(equal, parity, numbers, share, tile->edges, of);
        }
    }
    /* The shifted word has the bits from the place on, so its parity counts the place's bit, too. */
    uint8_t *less = NAME(row)(tile, step->to, 0), *equal = NAME(row)(tile, step->to + 1, 0);
    for (size_t i = 0; i < TILE_EDGES / 8; i++)
        from[i] ^= at[i];
    NAME(pack)(less, from, tile->edges, 1);
    NAME(pack)(equal, at, tile->edges, 0);
}

TARGET static void NAME(top_bit)(uint8_t *to, const word64 *numbers, uint64_t number,
                                 size_t edges)
{
    uint64_t octets[TILE_EDGES / 8];
    memset(octets, 0, sizeof octets);
    for (size_t e = 0; e < edges; e++)
        ((uint8_t *)octets)[e] = (uint8_t)(numbers[e] >> number);
    NAME(pack)(to, octets, edges, 0);
}

TARGET static void NAME(step)(const NAME(tile) * tile, const step *step, uint64_t *sums)
{
    const int64_t unit = tile->chunk->operands[step->to].unit;
    size_t edges = tile->edges;
    const void *one = step->one < 0 ? NULL : NAME(row)(tile, step->one, 0);
    if (step->code == LOOK_UP) {
        NAME(look_up)(tile, step, one);
        return;
    }
    const void *other = step->other < 0 ? NULL : NAME(row)(tile, step->other, 1);
    void *to = NAME(row)(tile, step->to, 2);
    if (step->code <= COPY) {
        NAME(combine_bits)(to, one, other, step->code, row_size(unit, edges));
    } else if (step->code == TOP_BIT) {
        NAME(top_bit)(to, one, step->number, edges);
    } else if (step->code == ONE_HOT) {
        piece of = piece_of(step->number);
        switch (unit) {
        case 1: NAME(one_hot8)(to, one, other, edges, of); break;
        case 2: NAME(one_hot16)(to, one, other, edges, of); break;
        case 4: NAME(one_hot32)(to, one, other, edges, of); break;
        default: NAME(one_hot64)(to, one, other, edges, of);
        }
    } else {
        uint64_t sum = unit == 4 ? NAME(ring32)(to, one, other, step, edges)
                                 : NAME(ring64)(to, one, other, step, edges);
        if (step->code == DOT)
            sums[step->number] += sum;
    }
}

/* Returns 0, or -2 where there is no memory. */
TARGET static int NAME(run)(const chunk *chunk, uint64_t *sums)
{
    size_t keys = 15 * sizeof(VEC) * (chunk->sources_count + 1);
    size_t size = chunk->scratch + 3 * ROOM * sizeof(block) + keys;
    uint8_t *memory = aligned_alloc(64, (size + 63) / 64 * 64);
    if (memory == NULL)
        return -2;
    block *rooms = (block *)memory;
    VEC *streams = (VEC *)(rooms + 3 * ROOM);
    NAME(tile) tile = {chunk, streams, (uint8_t *)streams + keys, rooms, 0, 0};
    for (size_t i = 0; i < chunk->sources_count; i++)
        if (chunk->are_streams[i] && chunk->sources[i] != NULL)
            NAME(expand_long_key)(chunk->sources[i], streams + 15 * i);
    for (; tile.start < chunk->count; tile.start += TILE_EDGES) {
        size_t left = chunk->count - tile.start;
        tile.edges = left < TILE_EDGES ? left : TILE_EDGES;
        for (size_t i = 0; i < chunk->steps_count; i++)
            NAME(step)(&tile, chunk->steps + i, sums);
    }
    free(memory);
    return 0;
}
