/* What the garbled path's functions take, for all instruction sets. Included by kernel.c.
 *
 * umpc/native/garbled.py has the same orders. */

#define EDGES_TOGETHER 64 /* edges that go through all gates together: 1 KiB a label */
#define MOST_FOLD 8
#define MOST_ROWS 256
#define LANES_OF_BLOCK 64 /* edges of a record that share a block of pads */

/* A gate: 0 for XOR, 1 for AND; places of labels; the number of the AND. */
typedef struct {
    int64_t is_and, left, right, out, number;
} gate_step;

/* A wire with output elements: its label's place, and its elements among `numbers`. */
typedef struct {
    int64_t place, first, count;
} output_wire;

enum { UNIT, PRODUCT, SWITCH };

/* An element of an edge. other: a product's switch as a place, or a switch's sum.
 * first, count: its terms. */
typedef struct {
    int64_t kind, place, other, first, count;
} output_element;

/* Of a unit: sum and weight. Of a switch: product, summand (both as elements) and weight. */
typedef struct {
    uint64_t one, other, weight;
} output_term;

typedef struct {
    const gate_step *gates;
    const output_wire *wires;
    const int64_t *numbers;
    const output_element *elements;
    const output_term *terms;
    size_t gates_count, wires_count, elements_count, inputs, places, ands;
} circuit;

/* Edges of a circuit, and what is made of them or read. labels: an input's edges after another's.
 * wide: whether ring elements have 64 bits, else 32. */
typedef struct {
    size_t count;
    uint64_t first_edge;
    const uint8_t *labels, *delta;
    uint8_t *tables, *elements, *shares;
    int wide;
} edges;

/* The pads of a chunk's rows: umpc/mpc/garbled/piece_tables.py says what these are. */
typedef struct {
    const block *keys, *offsets;
    const int64_t *record, *order, *ends;
    const uint64_t *number;
    size_t blocks;
    int rows;
    uint64_t first_edge, piece;
} row_places;

static inline size_t least(size_t one, size_t other)
{
    return one < other ? one : other;
}

/* The functions of the garbled path that umpc/native calls. Each returns 0, -1 where this processor
 * cannot run the kind, or -2 where there is no memory. Callers have checked all sizes. */

int umpc_stretch(int kind, const uint8_t *key, const void *starts, size_t digits, int fold,
                 int lacks_first, uint64_t next, size_t width, uint8_t *rows, uint8_t *u);
int umpc_blocks(int kind, const uint8_t *rows, size_t width, size_t count, uint8_t *blocks);
int umpc_rows(int kind, int makes, const uint8_t *key, const void *places, const uint8_t *table,
              const int64_t *own, const uint8_t *masks, size_t count, uint8_t *to);
int umpc_circuit(int kind, int garbles, const uint8_t *key, const void *circuit,
                 const void *edges);
