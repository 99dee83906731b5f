/* courtesy.c - see courtesy.h. */
#include "sys/courtesy.h"

#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/parse.h"

/* Turns from one look at pace and wait to the next. */
#define LOOK_EVERY 16

/* On average between two turns. What comes faster than that would pile up meanwhile. */
#define TURN_MIN NSEC_PER_MSEC

/* On average, for one run: more means that others compute where the thread should run. */
#define WAIT_MAX (200 * NSEC_PER_USEC)

/* Turns without courtesy after a trial that failed: at the least, which is doubled each time, so
 * that trials cost a machine that is always busy nothing, and at the most. */
#define REST_MIN 1024
#define REST_MAX 65536

/* "on the processor, waited, times run": Documentation/scheduler/sched-stats.rst. */
static bool read_wait(struct courtesy *c)
{
    char text[96], *rest = text;
    ssize_t n = pread(c->fd, text, sizeof(text) - 1, 0);
    const char *waited, *n_runs;

    if (n <= 0)
        return false;
    text[n] = '\0';
    (void)strsep(&rest, " ");
    waited = strsep(&rest, " ");
    n_runs = strsep(&rest, "\n");
    return waited && n_runs && parse_u64(&c->waited, waited, 0, UINT64_MAX, "wait", NULL) == 0 &&
           parse_u64(&c->n_runs, n_runs, 0, UINT64_MAX, "runs", NULL) == 0;
}

/* Has the thread come to its turn in time, since the last look? */
static bool is_served(struct courtesy *c)
{
    uint64_t waited = c->waited, n_runs = c->n_runs;

    if (!read_wait(c))
        return false;
    return c->waited - waited <= (c->n_runs - n_runs) * (uint64_t)WAIT_MAX;
}

static void set(struct courtesy *c, bool on)
{
    struct sched_param none = {0};

    /* For the calling thread. A thread may always change between the two. */
    if (sched_setscheduler(0, on ? SCHED_BATCH : SCHED_OTHER, &none) == 0)
        c->is_on = on;
}

void courtesy_begin(struct courtesy *c)
{
    c->next_rest = REST_MIN;
    c->is_rare = true;
    c->fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
}

void courtesy_end(struct courtesy *c)
{
    if (c->is_on)
        set(c, false);
    if (c->fd >= 0)
        (void)close(c->fd);
    c->fd = -1;
}

/* A trial is over. */
static void judge(struct courtesy *c, bool is_good)
{
    c->rest = is_good ? 0 : c->next_rest;
    if (is_good)
        c->next_rest = REST_MIN;
    else if (c->next_rest < REST_MAX)
        c->next_rest *= 2;
}

void courtesy_turn(struct courtesy *c, bool may, nsec_t now)
{
    bool is_look = ++c->turn == LOOK_EVERY;

    if (c->rest > 0)
        c->rest--;
    if (is_look) {
        c->is_rare = now - c->looked >= LOOK_EVERY * TURN_MIN;
        c->looked = now;
        c->turn = 0;
        if (c->is_on && c->is_rare)
            judge(c, is_served(c));
    }
    may = may && c->is_rare && c->rest == 0 && c->fd >= 0;
    if (may == c->is_on || (may && !read_wait(c)))
        return;
    set(c, may);
    atomic_fetch_add_explicit(&c->n_begun, c->is_on, memory_order_relaxed);
}
