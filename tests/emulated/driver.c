/* Prints the kinds that native/kernel.c, which is compiled with it, finds on its processor. */

#include <stdio.h>

int umpc_kinds(void);

int main(void)
{
    return printf("%d\n", umpc_kinds()) < 0;
}
