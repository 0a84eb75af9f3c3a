/* Calls the garbled path and point keys of native/kernel.c, which is compiled with it, as a program of its own:
 *
 *   garbled_driver NAME KIND NUMBERS...    arrays → arrays
 *
 * garbled_machine.py has the numbers and arrays of each name, in this order. Arrays come from
 * standard input, each after its size, and go to standard output. */

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    uint64_t low, high;
} block;

#include "../../native/garbled_types.h"

int umpc_add_points(int kind, const uint8_t *key, int paired, int party, int depth, size_t cells,
                    size_t row, size_t count, const void *corrections, const void *leaves,
                    const void *numbers, const void *roots, void *table);
int umpc_generate_points(int kind, const uint8_t *key, int paired, uint64_t alpha, int depth,
                         size_t count, const void *places, const void *roots, void *corrections,
                         void *leaves);

static size_t last_size;

static void *taken(void)
{
    uint64_t size;
    if (fread(&size, 1, sizeof size, stdin) != sizeof size)
        exit(3);
    void *bytes = malloc(size + 1);
    if (bytes == NULL || fread(bytes, 1, size, stdin) != size)
        exit(3);
    last_size = size;
    return bytes;
}

/* An array of no bytes stands for none. */
static void *taken_or_none(void)
{
    void *bytes = taken();
    return last_size ? bytes : NULL;
}

static void *room(size_t *size)
{
    void *bytes = taken();
    *size = last_size;
    return bytes;
}

static int given(int failed, const void *bytes, size_t size)
{
    if (failed)
        exit(4);
    return fwrite(bytes, 1, size, stdout) != size;
}

static int stretch(int kind, const uint64_t *n)
{
    size_t size, other;
    const void *key = taken(), *starts = taken();
    uint8_t *rows = room(&size), *u = room(&other);
    int failed = umpc_stretch(kind, key, starts, n[0], (int)n[1], (int)n[2], n[3], n[4], rows, u);
    return given(failed, rows, size) || given(failed, u, other);
}

static int transpose(int kind, const uint64_t *n)
{
    size_t size;
    const uint8_t *rows = taken();
    uint8_t *blocks = room(&size);
    int failed = umpc_blocks(kind, rows, n[0], n[1], blocks);
    return given(failed, blocks, size);
}

static int rows(int kind, const uint64_t *n)
{
    size_t size;
    const uint8_t *key = taken();
    row_places places = {.blocks = n[1], .rows = (int)n[2], .first_edge = n[3], .piece = n[4]};
    places.keys = taken();
    places.offsets = taken();
    places.record = taken();
    places.order = taken();
    places.ends = taken();
    places.number = taken();
    const uint8_t *table = taken();
    const int64_t *own = taken();
    const uint8_t *masks = taken();
    uint8_t *to = room(&size);
    int failed = umpc_rows(kind, (int)n[0], key, &places, table, own, masks, n[5], to);
    return given(failed, to, size);
}

static int circuits(int kind, const uint64_t *n)
{
    size_t sizes[3];
    const uint8_t *key = taken();
    circuit circuit = {.gates_count = n[4], .wires_count = n[5], .elements_count = n[6],
                       .inputs = n[7], .places = n[8], .ands = n[9]};
    edges edges = {.count = n[1], .first_edge = n[2], .wide = (int)n[3]};
    circuit.gates = taken();
    circuit.wires = taken();
    circuit.numbers = taken();
    circuit.elements = taken();
    circuit.terms = taken();
    edges.labels = taken();
    edges.delta = taken_or_none();
    edges.tables = room(sizes);
    edges.elements = room(sizes + 1);
    edges.shares = room(sizes + 2);
    int failed = umpc_circuit(kind, (int)n[0], key, &circuit, &edges);
    return given(failed, edges.tables, sizes[0]) || given(failed, edges.elements, sizes[1]) ||
           given(failed, edges.shares, sizes[2]);
}

static int add_points(int kind, const uint64_t *n)
{
    size_t size;
    const void *key = taken(), *corrections = taken(), *leaves = taken();
    const void *numbers = taken(), *roots = taken();
    uint8_t *table = room(&size);
    int failed = umpc_add_points(kind, key, (int)n[0], (int)n[1], (int)n[2], n[3], n[4],
                                 n[5], corrections, leaves, numbers, roots, table);
    return given(failed, table, size);
}

static int make_points(int kind, const uint64_t *n)
{
    size_t sizes[2];
    const void *key = taken(), *places = taken(), *roots = taken();
    uint8_t *corrections = room(sizes), *leaves = room(sizes + 1);
    int failed = umpc_generate_points(kind, key, (int)n[0], n[1], (int)n[2], n[3], places, roots,
                                      corrections, leaves);
    return given(failed, corrections, sizes[0]) || given(failed, leaves, sizes[1]);
}

int main(int count, char **words)
{
    uint64_t numbers[10] = {0};
    if (count < 3)
        return 2;
    for (int i = 3; i < count && i < 13; i++)
        numbers[i - 3] = strtoull(words[i], NULL, 10);
    int kind = (int)strtol(words[2], NULL, 10);
    if (strcmp(words[1], "stretch") == 0)
        return stretch(kind, numbers);
    if (strcmp(words[1], "transpose") == 0)
        return transpose(kind, numbers);
    if (strcmp(words[1], "rows") == 0)
        return rows(kind, numbers);
    if (strcmp(words[1], "add_points") == 0)
        return add_points(kind, numbers);
    if (strcmp(words[1], "make_points") == 0)
        return make_points(kind, numbers);
    return strcmp(words[1], "circuit") == 0 ? circuits(kind, numbers) : 2;
}
