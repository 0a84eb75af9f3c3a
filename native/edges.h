/* Edges by the owners of their records, for umpc/native/edges.py. Plain C, the same for every
 * instruction set. A number of a record that is out of its table ends a call. */

/* Counts the edges of every combination of owners, and writes down each edge's combination. */
static inline __attribute__((always_inline)) int
count_owners(size_t slots, size_t edges, const int32_t *const *rows, const uint8_t *const *nodes,
             const size_t *records, const size_t *shape, uint8_t *codes, uint64_t *sizes)
{
    for (size_t e = 0; e < edges; e++) {
        size_t code = 0;
        for (size_t slot = 0; slot < slots; slot++) {
            size_t record = (uint32_t)rows[slot][e];
            if (record >= records[slot])
                return -1;
            code = code * shape[slot] + nodes[slot][record];
        }
        codes[e] = (uint8_t)code;
        sizes[codes[e]]++;
    }
    return 0;
}

/* Puts each edge at the next free place of its combination. room: the places in all. */
static inline __attribute__((always_inline)) int
place_edges(size_t slots, size_t edges, const int32_t *const *rows, const uint8_t *codes,
            const int32_t *zeros, uint64_t *free_places, size_t room, int32_t *const *placed)
{
    for (size_t e = 0; e < edges; e++) {
        size_t place = free_places[codes[e]]++;
        if (place >= room)
            return -1;
        for (size_t slot = 0; slot < slots; slot++)
            placed[slot][place] = rows[slot][e] - zeros[codes[e] * slots + slot];
    }
    return 0;
}

/* sizes: of 256 combinations; the calls of all blocks add to them. Returns 0, or -1. */
int umpc_count_owners(size_t slots, size_t edges, const int32_t *const *rows,
                      const uint8_t *const *nodes, const size_t *records, const size_t *shape,
                      uint8_t *codes, uint64_t *sizes)
{
    if (slots == 2)
        return count_owners(2, edges, rows, nodes, records, shape, codes, sizes);
    return count_owners(slots, edges, rows, nodes, records, shape, codes, sizes);
}

int umpc_place_edges(size_t slots, size_t edges, const int32_t *const *rows, const uint8_t *codes,
                     const int32_t *zeros, uint64_t *free_places, size_t room,
                     int32_t *const *placed)
{
    if (slots == 2)
        return place_edges(2, edges, rows, codes, zeros, free_places, room, placed);
    return place_edges(slots, edges, rows, codes, zeros, free_places, room, placed);
}
