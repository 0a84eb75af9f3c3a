/* Calls the gate of native/kernel.c, which is compiled with it, as a program of its own:
 *
 *   driver kinds
 *   driver evaluate KIND PARTY WIDTH COUNT    key, corrections, leaves, masked, roots → shares
 *   driver generate KIND WIDTH COUNT          key, mask, roots → corrections, leaves
 *   driver run KIND COUNT SCRATCH SUMS        numbers of steps, operands and sources; steps,
 *                                             operands; of each source whether it is a key stream,
 *                                             its size and its bytes → all sources, sums
 *
 * Arrays come from standard input and go to standard output, without lengths. */

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int umpc_kinds(void);
int umpc_evaluate(int kind, const uint8_t *key, int party, int width, size_t count,
                  const void *corrections, const uint32_t *leaves, const uint64_t *masked,
                  const void *roots, uint8_t *less, uint8_t *equal);
int umpc_generate(int kind, const uint8_t *key, int width, size_t count, const uint64_t *mask,
                  const void *roots, void *corrections, uint32_t *leaves);

int umpc_run(int kind, const void *steps, size_t steps_count, const void *operands,
             uint8_t *const *sources, const uint8_t *are_streams, size_t sources_count,
             size_t scratch, const size_t *counts, size_t chunks, uint64_t *sums,
             size_t sums_count);

#define MOST_SOURCES 64
#define STEP_BYTES 40
#define OPERAND_BYTES 24

static void *taken(size_t size)
{
    void *bytes = malloc(size + 1);
    if (bytes == NULL || fread(bytes, 1, size, stdin) != size)
        exit(3);
    return bytes;
}

static int given(int failed, const void *first, size_t size, const void *second, size_t other)
{
    if (failed)
        return 4;
    return fwrite(first, 1, size, stdout) != size || fwrite(second, 1, other, stdout) != other;
}

static size_t taken_number(void)
{
    uint64_t *number = taken(8);
    return (size_t)*number;
}

static int run(int kind, size_t count, size_t scratch, size_t sums_count)
{
    uint8_t *sources[MOST_SOURCES], are_streams[MOST_SOURCES];
    size_t sizes[MOST_SOURCES];
    size_t steps_count = taken_number(), operands = taken_number(), number = taken_number();
    void *steps = taken(STEP_BYTES * steps_count), *places = taken(OPERAND_BYTES * operands);
    if (number > MOST_SOURCES)
        return 3;
    for (size_t i = 0; i < number; i++) {
        are_streams[i] = taken_number() != 0;
        sizes[i] = taken_number();
        sources[i] = taken(sizes[i]);
    }
    uint64_t *sums = calloc(sums_count + 1, 8);
    if (umpc_run(kind, steps, steps_count, places, sources, are_streams, number, scratch, &count,
                 1, sums, sums_count))
        return 4;
    for (size_t i = 0; i < number; i++)
        if (fwrite(sources[i], 1, sizes[i], stdout) != sizes[i])
            return 1;
    return fwrite(sums, 8, sums_count, stdout) != sums_count;
}

int main(int count, char **words)
{
    long numbers[4] = {0};
    for (int i = 2; i < count && i < 6; i++)
        numbers[i - 2] = strtol(words[i], NULL, 10);
    if (count == 2 && strcmp(words[1], "kinds") == 0)
        return printf("%d\n", umpc_kinds()) < 0;
    if (count == 6 && strcmp(words[1], "run") == 0)
        return run((int)numbers[0], (size_t)numbers[1], (size_t)numbers[2], (size_t)numbers[3]);
    int kind = (int)numbers[0], is_evaluation = count == 6;
    int width = (int)numbers[is_evaluation ? 2 : 1];
    size_t gates = (size_t)numbers[is_evaluation ? 3 : 2];
    size_t words_size = 16 * gates * (width > 6 ? (size_t)width - 6 : 0);
    uint8_t *key = taken(16);
    if (is_evaluation) {
        void *corrections = taken(words_size);
        uint32_t *leaves = taken(12 * gates);
        uint64_t *masked = taken(8 * gates);
        void *roots = taken(16 * gates);
        uint8_t *less = malloc(gates + 1), *equal = malloc(gates + 1);
        int failed = umpc_evaluate(kind, key, (int)numbers[1], width, gates, corrections, leaves,
                                   masked, roots, less, equal);
        return given(failed, less, gates, equal, gates);
    }
    uint64_t *mask = taken(8 * gates);
    void *roots = taken(32 * gates);
    void *corrections = malloc(words_size + 1);
    uint32_t *leaves = malloc(12 * gates + 1);
    int failed = umpc_generate(kind, key, width, gates, mask, roots, corrections, leaves);
    return given(failed, corrections, words_size, leaves, 12 * gates);
}
