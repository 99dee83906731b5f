/* clock.c - see clock.h. */
#include "os/clock.h"

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
