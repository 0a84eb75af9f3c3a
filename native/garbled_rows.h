/* Rows of the tables of pieces, masked by pads: umpc/mpc/garbled/piece_tables.py does it in numpy.
 *
 * Each side reads a row by its own value, as numpy does; no other address depends on a secret. */

TARGET static inline block NAME(tweaked_key)(const row_places *places, size_t number)
{
    block key = places->keys[places->record[number]];
    key.low ^= places->first_edge;
    key.high ^= (places->number[number] << 16) + places->piece;
    return key;
}

/* Two bits of each of four lanes, for four rows to a byte: octets have a row's two bits of four
 * lanes, and packed[i] has rows 4i to 4i + 3, lane after lane. */
TARGET static inline void NAME(four_lanes)(const uint8_t *octets, int rows, uint32_t *packed)
{
    memcpy(packed, octets, (size_t)rows);
    for (int i = 0; i < rows / 4; i++) {
        uint32_t moved = (packed[i] >> 6 ^ packed[i]) & 0x00CC00CC;
        packed[i] ^= moved ^ moved << 6;
        moved = (packed[i] >> 12 ^ packed[i]) & 0x0000F0F0;
        packed[i] ^= moved ^ moved << 12;
    }
}

#define BYTES_TOGETHER 16 /* of an edge's row of a table */

/* made = table ^ mask ^ lane `lane` of `lanes`, for `size` bytes. */
TARGET static inline void NAME(mask_row)(const uint8_t *table, uint8_t mask, const uint32_t *lanes,
                                         size_t lane, size_t size, uint8_t *made)
{
    uint8_t some[BYTES_TOGETHER], pad[BYTES_TOGETHER];
    size_t at = 0;
    for (; at + BYTES_TOGETHER <= size; at += BYTES_TOGETHER) {
        memcpy(some, table + at, sizeof some);
        for (int i = 0; i < BYTES_TOGETHER; i++)
            pad[i] = (uint8_t)(lanes[at + i] >> 8 * lane);
        for (int i = 0; i < BYTES_TOGETHER; i++)
            some[i] ^= pad[i] ^ mask;
        memcpy(made + at, some, sizeof some);
    }
    for (; at < size; at++)
        made[at] = table[at] ^ mask ^ (uint8_t)(lanes[at] >> 8 * lane);
}

#undef BYTES_TOGETHER

/* The garbler's rows. packed: the piece's table, four rows to a byte, by the garbler's own value.
 * masks: of each edge, its two bits in all four rows of a byte. */
TARGET static void NAME(make_rows)(const block *expanded, const row_places *places,
                                   const uint8_t *packed, const int64_t *own,
                                   const uint8_t *masks, size_t count, uint8_t *to)
{
    VEC pads[MOST_ROWS + IN_FLIGHT];
    block offsets[MOST_ROWS + IN_FLIGHT * LANES];
    uint8_t octets[MOST_ROWS];
    uint32_t lanes[MOST_ROWS / 4];
    size_t rows = (size_t)places->rows, size = rows / 4;
    NAME(fixed_key) key;
    NAME(load_fixed_key)(&key, expanded);
    memset(offsets, 0, sizeof offsets);
    memcpy(offsets, places->offsets, rows * sizeof *offsets);
    (void)count;
    for (size_t number = 0; number < places->blocks; number++) {
        block own_key = NAME(tweaked_key)(places, number);
        VEC one = PAIR(own_key.low, own_key.high);
        for (size_t at = 0; at * LANES < rows; at += IN_FLIGHT) {
            for (int i = 0; i < IN_FLIGHT; i++)
                pads[at + i] = XOR(one, LOAD(offsets + (at + i) * LANES));
            NAME(hash_once)(&key, pads + at);
        }
        const uint8_t *bytes = (const uint8_t *)pads;
        size_t first = (size_t)places->ends[number], end = (size_t)places->ends[number + 1];
        for (size_t edge = first; edge < end; edge += 4) {
            for (size_t row = 0; row < rows; row++)
                octets[row] = bytes[16 * row + (edge - first) / 4];
            NAME(four_lanes)(octets, (int)rows, lanes);
            for (size_t lane = 0; lane < least(4, end - edge); lane++) {
                size_t place = (size_t)places->order[edge + lane];
                const uint8_t *table = packed + (size_t)own[place] * size;
                uint8_t *made = to + (edge + lane) * size;
                NAME(mask_row)(table, masks[place], lanes, lane, size, made);
            }
        }
    }
}

/* The evaluator's two bits of each edge: found has the first one of all edges, then the other. */
TARGET static void NAME(read_rows)(const block *expanded, const row_places *places,
                                   const uint8_t *table, const int64_t *own, size_t count,
                                   uint8_t *found)
{
    block keys[IN_FLIGHT * LANES];
    VEC pads[IN_FLIGHT];
    size_t size = (size_t)places->rows / 4;
    NAME(fixed_key) key;
    NAME(load_fixed_key)(&key, expanded);
    memset(keys, 0, sizeof keys);
    for (size_t number = 0; number < places->blocks; number += IN_FLIGHT * LANES) {
        size_t blocks = least(IN_FLIGHT * LANES, places->blocks - number);
        for (size_t i = 0; i < blocks; i++)
            keys[i] = NAME(tweaked_key)(places, number + i);
        for (int i = 0; i < IN_FLIGHT; i++)
            pads[i] = LOAD(keys + i * LANES);
        NAME(hash_once)(&key, pads);
        for (size_t i = 0; i < blocks; i++) {
            const uint8_t *pad = (const uint8_t *)pads + 16 * i;
            size_t first = (size_t)places->ends[number + i];
            for (size_t edge = first; edge < (size_t)places->ends[number + i + 1]; edge++) {
                size_t place = (size_t)places->order[edge], lane = edge - first;
                int row = table[edge * size + (size_t)(own[place] >> 2)] >> 2 * (own[place] & 3);
                row ^= pad[lane / 4] >> 2 * (lane % 4);
                found[place] = row & 1;
                found[count + place] = row >> 1 & 1;
            }
        }
    }
}
