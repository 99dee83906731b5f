/* secret.c - see secret.h. */
#include "base/secret.h"

#include <stdint.h>
#include <stdlib.h>
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

void *secret_grow(void *items, size_t n, size_t size, size_t *cap)
{
    size_t more = *cap ? *cap * 2 : 16;
    void *grown;

    if (n < *cap)
        return items;
    grown = calloc(more, size);
    if (!grown)
        return NULL;
    if (n > 0) {
        memcpy(grown, items, n * size);
        secret_wipe(items, n * size);
    }
    free(items);
    *cap = more;
    return grown;
}

/* ---- randomness ---- */

/* Steele, Lea, Flood: "Fast splittable pseudorandom number generators" (2014). */
static uint64_t splitmix64(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static void fill_seeded(void *ctx, void *buf, size_t len)
{
    uint8_t *p = buf;

    while (len > 0) {
        uint64_t v = splitmix64(ctx);
        size_t n = len < sizeof(v) ? len : sizeof(v);

        memcpy(p, &v, n);
        p += n;
        len -= n;
    }
}

struct rng rng_seeded(uint64_t *state)
{
    return (struct rng){.fill = fill_seeded, .ctx = state};
}
