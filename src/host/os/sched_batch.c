/* sched_batch.c - see sched_batch.h. */
#include "os/sched_batch.h"

#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/parse.h"

/* The policy is looked at again after so many turns. */
#define LOOK_EVERY 16

/* Least average time between two turns under the policy. Packets that come faster would pile up
 * while the thread waits. */
#define TURN_MIN NSEC_PER_MSEC

/* Greatest average wait for a processor: a longer one means that other threads compute there. */
#define WAIT_MAX (200 * NSEC_PER_USEC)

/* Turns without the policy after a trial that failed: at the least, which is doubled each time, so
 * that trials cost a machine that is always busy nothing, and at the most. */
#define REST_MIN 1024
#define REST_MAX 65536

/* "on the processor, waited, times run": Documentation/scheduler/sched-stats.rst. */
static bool read_wait(struct sched_batch *b)
{
    char text[96], *rest = text;
    ssize_t n = pread(b->fd, text, sizeof(text) - 1, 0);
    const char *waited, *n_runs;

    if (n <= 0)
        return false;
    text[n] = '\0';
    (void)strsep(&rest, " ");
    waited = strsep(&rest, " ");
    n_runs = strsep(&rest, "\n");
    return waited && n_runs && parse_u64(&b->waited, waited, 0, UINT64_MAX, "wait", NULL) == 0 &&
           parse_u64(&b->n_runs, n_runs, 0, UINT64_MAX, "runs", NULL) == 0;
}

/* Since the last look, was the thread given a processor in time? */
static bool is_served(struct sched_batch *b)
{
    uint64_t waited = b->waited, n_runs = b->n_runs;

    if (!read_wait(b))
        return false;
    return b->waited - waited <= (b->n_runs - n_runs) * (uint64_t)WAIT_MAX;
}

static void set(struct sched_batch *b, bool on)
{
    struct sched_param none = {0};

    /* For the calling thread, which needs no right to change between the two. */
    if (sched_setscheduler(0, on ? SCHED_BATCH : SCHED_OTHER, &none) == 0)
        b->is_on = on;
}

void sched_batch_begin(struct sched_batch *b)
{
    b->next_rest = REST_MIN;
    b->is_rare = true;
    b->fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
}

void sched_batch_end(struct sched_batch *b)
{
    if (b->is_on)
        set(b, false);
    if (b->fd >= 0)
        (void)close(b->fd);
    b->fd = -1;
}

/* A trial is over. */
static void judge(struct sched_batch *b, bool is_good)
{
    b->rest = is_good ? 0 : b->next_rest;
    if (is_good)
        b->next_rest = REST_MIN;
    else if (b->next_rest < REST_MAX)
        b->next_rest *= 2;
}

void sched_batch_turn(struct sched_batch *b, bool may, nsec_t now)
{
    bool is_look = ++b->turn == LOOK_EVERY;

    if (b->rest > 0)
        b->rest--;
    if (is_look) {
        b->is_rare = now - b->looked >= LOOK_EVERY * TURN_MIN;
        b->looked = now;
        b->turn = 0;
        if (b->is_on && b->is_rare)
            judge(b, is_served(b));
    }
    may = may && b->is_rare && b->rest == 0 && b->fd >= 0;
    if (may == b->is_on || (may && !read_wait(b)))
        return;
    set(b, may);
    atomic_fetch_add_explicit(&b->n_begun, b->is_on, memory_order_relaxed);
}
