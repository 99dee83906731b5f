/* rng.c - the seeded generator; see rng.h. */
#include "rng.h"

#include <string.h>

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
