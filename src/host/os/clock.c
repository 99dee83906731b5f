/* clock.c - see clock.h. */
#include "os/clock.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
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

/* ---- times as text ---- */

#define TEXT_FORM "%Y-%m-%dT%H:%M:%SZ"
#define TEXT_LEN  20

const char *clock_text(char buf[static CLOCK_TEXT_MAX], int64_t wall_s)
{
    time_t at = (time_t)wall_s;
    struct tm tm = {.tm_year = 0};

    if (!gmtime_r(&at, &tm) || strftime(buf, CLOCK_TEXT_MAX, TEXT_FORM, &tm) != TEXT_LEN)
        buf[0] = '\0';
    return buf;
}

bool clock_text_parse(const char *text, int64_t *ret_wall_s)
{
    struct tm tm = {.tm_year = 0};
    char again[CLOCK_TEXT_MAX];
    const char *end;
    time_t at;

    if (!text || strlen(text) != TEXT_LEN)
        return false;
    end = strptime(text, TEXT_FORM, &tm);
    at = end && *end == '\0' ? timegm(&tm) : -1;
    /* strptime() takes blanks, and days that a month does not have. */
    if (at < 0 || strcmp(clock_text(again, at), text) != 0)
        return false;
    *ret_wall_s = at;
    return true;
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
