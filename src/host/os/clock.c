/* clock.c - see clock.h. */
#include "os/clock.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/types.h>
#include <time.h>

static nsec_t read_clock(clockid_t id)
{
    struct timespec ts;

    /* Cannot fail: both clocks exist on every Linux and the pointer is good. */
    (void)clock_gettime(id, &ts);
    return (nsec_t)ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

nsec_t clock_now(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

nsec_t clock_wall(void)
{
    return read_clock(CLOCK_REALTIME);
}

int64_t clock_wall_s(void)
{
    return clock_wall() / NSEC_PER_SEC;
}

/* ---- randomness ---- */

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
