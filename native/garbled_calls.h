/* The functions that umpc/native calls, which choose the kind: garbled_types.h declares them. */

int umpc_stretch(int kind, const uint8_t *key, const void *starts, size_t digits, int fold,
                 int lacks_first, uint64_t next, size_t width, uint8_t *rows, uint8_t *u)
{
    block expanded[11];
    const kernel *kernel = kernel_of(kind);
    if (kernel == NULL)
        return -1;
    expand_key(key, expanded);
    kernel->stretch(expanded, starts, digits, fold, lacks_first, next, width, rows, u);
    return 0;
}

int umpc_blocks(int kind, const uint8_t *rows, size_t width, size_t count, uint8_t *blocks)
{
    const kernel *kernel = kernel_of(kind);
    if (kernel == NULL)
        return -1;
    kernel->transpose(rows, width, count, blocks);
    return 0;
}

int umpc_rows(int kind, int makes, const uint8_t *key, const void *places, const uint8_t *table,
              const int64_t *own, const uint8_t *masks, size_t count, uint8_t *to)
{
    block expanded[11];
    const kernel *kernel = kernel_of(kind);
    if (kernel == NULL)
        return -1;
    expand_key(key, expanded);
    if (makes)
        kernel->make_rows(expanded, places, table, own, masks, count, to);
    else
        kernel->read_rows(expanded, places, table, own, count, to);
    return 0;
}

int umpc_circuit(int kind, int garbles, const uint8_t *key, const void *circuit,
                 const void *edges)
{
    block expanded[11];
    const kernel *kernel = kernel_of(kind);
    if (kernel == NULL)
        return -1;
    expand_key(key, expanded);
    return (garbles ? kernel->garble : kernel->evaluate)(expanded, circuit, edges);
}
