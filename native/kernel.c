/* The functions that umpc/native calls: the garbled path on a processor's AES instructions, and the
 * field.
 *
 * One binary runs everywhere: x86.h and arm.h hold the path once for each instruction set, and
 * umpc_kinds() says which of them this processor has. Elsewhere the library builds, and umpc
 * computes in numpy. Callers have checked all sizes. */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define KERNEL_VERSION 8 /* umpc/native/__init__.py has the same */

enum { AESNI = 1, VAES256 = 2, ARM = 8 };

int umpc_kernel_version(void);
int umpc_kinds(void);

typedef struct {
    uint64_t low, high;
} block;

/* Words at any address. */
typedef uint32_t __attribute__((aligned(1), may_alias)) word32;
typedef uint64_t __attribute__((aligned(1), may_alias)) word64;

#include "garbled_types.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include "x86.h"
#elif defined(__aarch64__) && defined(__AARCH64EL__) && defined(__GNUC__)
#include "arm.h"
#else

static void expand_key(const uint8_t *key, block *expanded)
{
    (void)key, (void)expanded;
}

static int supported_kinds(void)
{
    return 0;
}

static const garbled_kernel GARBLED_KERNELS[] = {{0, NULL, NULL, NULL, NULL, NULL, NULL}};

#endif

int umpc_kernel_version(void)
{
    return KERNEL_VERSION;
}

/* The sum of the kinds that this processor can run. */
int umpc_kinds(void)
{
    return supported_kinds();
}

#include "garbled_calls.h"
#include "field.h"
