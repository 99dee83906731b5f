/* rng_kernel.c - see rng_kernel.h. */
#include "os/rng_kernel.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/types.h>

static void fill(void *ctx, void *buf, size_t len)
{
    uint8_t *p = buf;

    while (len > 0) {
        ssize_t n = getrandom(p, len, 0);

        if (n < 0 && errno == EINTR)
            continue;
        /* A kernel without getrandom() is older than anything else here needs; going on
         * without randomness would be worse than ending. */
        if (n < 0)
            abort();
        p += n;
        len -= (size_t)n;
    }
}

struct rng rng_kernel(void)
{
    return (struct rng){.fill = fill};
}
