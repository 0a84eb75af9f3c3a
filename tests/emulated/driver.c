/* Calls the gate of native/kernel.c, which is compiled with it, as a program of its own:
 *
 *   driver kinds
 *   driver evaluate KIND PARTY WIDTH COUNT    key, corrections, leaves, masked, roots → shares
 *   driver generate KIND WIDTH COUNT          key, mask, roots → corrections, leaves
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

int main(int count, char **words)
{
    long numbers[4] = {0};
    for (int i = 2; i < count && i < 6; i++)
        numbers[i - 2] = strtol(words[i], NULL, 10);
    if (count == 2 && strcmp(words[1], "kinds") == 0)
        return printf("%d\n", umpc_kinds()) < 0;
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
