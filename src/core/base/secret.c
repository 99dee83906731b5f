/* secret.c - see secret.h. */
#include "secret.h"

#include <stdint.h>
#include <string.h>

void secret_wipe(void *p, size_t len)
{
    explicit_bzero(p, len);
}

bool secret_equal(const void *a, const void *b, size_t len)
{
    const volatile uint8_t *x = a;
    const volatile uint8_t *y = b;
    uint8_t diff = 0;

    for (size_t i = 0; i < len; i++)
        diff = (uint8_t)(diff | (x[i] ^ y[i]));
    return diff == 0;
}

bool secret_is_zero(const void *p, size_t len)
{
    const volatile uint8_t *x = p;
    uint8_t any = 0;

    for (size_t i = 0; i < len; i++)
        any = (uint8_t)(any | x[i]);
    return any == 0;
}
