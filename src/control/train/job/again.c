/* again.c - see again.h. */
#include "train/job/again.h"

#include <stdio.h>

#include "base/err.h"
#include "base/parse.h"
#include "os/clock.h"
#include "os/interrupt.h"
#include "train/job/lost.h"
#include "train/job/rendezvous.h"
#include "train/job/run.h"

/*
 * A command that was killed is begun again this often. One that has run for longer than LIVED
 * before is begun again anew.
 */
#define KILLED_MAX 3
#define LIVED      (60 * NSEC_PER_SEC)

/* The next run is asked for again and again, for at least this time. */
#define TRY_MIN (60 * NSEC_PER_SEC)

#define PAUSE_FIRST_MS 1000u
#define PAUSE_MAX_MS   30000u

enum again_verdict again_judge(struct again *a, int r, nsec_t lasted)
{
    if (lasted > LIVED)
        a->n_killed = 0;
    a->n_killed += r == RUN_E_KILLED;
    if (a->n_killed > KILLED_MAX)
        return AGAIN_VERDICT_KILLED;
    if (a->n >= a->max)
        return AGAIN_VERDICT_USED_UP;
    a->n++;
    return AGAIN_VERDICT_GO;
}

unsigned again_pause_ms(unsigned n)
{
    unsigned ms = n > 0 && n < 6 ? PAUSE_FIRST_MS << (n - 1) : PAUSE_MAX_MS;

    return ms < PAUSE_MAX_MS ? ms : PAUSE_MAX_MS;
}

static int prepare_once(struct run *run, struct run_wish *wish, struct err *e)
{
    char broken[sizeof(run->meeting.id)];
    bool has_met = run->has_met;
    int r;

    (void)snprintf(broken, sizeof(broken), "%s", run_broken(run) ? run_broken(run) : "");
    wish->broken_run = broken[0] ? broken : NULL;
    r = run_prepare(run, wish, e);
    wish->broken_run = NULL;
    run->has_met = has_met;
    return r;
}

/* The time is over: adds to the words how long it was. */
static int give_up_after(nsec_t waited, struct err *e)
{
    const struct err why = *e;
    char time[32];

    return err_set(e, AGAIN_E_ALONE, "%s after %s", err_text(&why),
        format_duration(waited / NSEC_PER_SEC * NSEC_PER_SEC, time));
}

/* Prepares the next run until that works, or it is @until. */
static int prepare_until(
    struct run *run, struct run_wish *wish, nsec_t until, struct interrupt *i, struct err *e)
{
    nsec_t begun_at = clock_now();
    unsigned n = 0;
    char time[32];

    while (prepare_once(run, wish, e) != 0) {
        if (clock_now() >= until)
            return give_up_after(clock_now() - begun_at, e);
        if (n++ == 0)
            (void)fprintf(stderr, "weft run: %s: trying again for up to %s\n", err_text(e),
                format_duration(
                    (until - begun_at + NSEC_PER_SEC / 2) / NSEC_PER_SEC * NSEC_PER_SEC, time));
        if (interrupt_wait(i, again_pause_ms(n)))
            return AGAIN_E_INTERRUPTED;
    }
    return 0;
}

/* For how long a run that cannot be prepared is tried again. */
static nsec_t patience_of(const struct run_wish *wish)
{
    return nsec_max(wish->wait_lost, TRY_MIN);
}

int again_await_hub(
    struct run *ret, const struct run_wish *wish, struct interrupt *i, struct err *e)
{
    nsec_t patience = patience_of(wish);
    nsec_t begun_at = clock_now();
    unsigned n = 0;
    char time[32];
    int r;

    (void)fprintf(stderr, "weft run: %s: waiting for the hub, for up to %s\n", err_text(e),
        format_duration(patience, time));
    do {
        if (interrupt_wait(i, again_pause_ms(++n)))
            return AGAIN_E_INTERRUPTED;
        r = run_prepare(ret, wish, e);
    } while (r == RENDEZVOUS_E_AWAY && clock_now() - begun_at < patience);
    return r == RENDEZVOUS_E_AWAY ? give_up_after(clock_now() - begun_at, e) : r;
}

int again_prepare(struct run *run, struct run_wish *wish, struct interrupt *i, struct err *e)
{
    nsec_t begun_at = clock_now();
    int r;

    for (;;) {
        r = prepare_until(run, wish, begun_at + patience_of(wish), i, e);
        if (r != 0 || wish->wait_lost == 0)
            return r;
        r = lost_await(run, begun_at + wish->wait_lost, i, e);
        if (r == LOST_E_ALONE)
            return give_up_after(wish->wait_lost, e);
        if (r == LOST_E_ENDED)
            return AGAIN_E_ALONE;
        if (r != LOST_E_AGAIN)
            return r == LOST_E_INTERRUPTED ? AGAIN_E_INTERRUPTED : r;
        run_dir_remove(run->dir);
    }
}

void again_give_up(struct run *run, struct run_wish *wish)
{
    if (!lost_is_watched(run)) {
        run_give_up(run);
        return;
    }
    if (prepare_once(run, wish, NULL) == 0)
        lost_give_up(run);
    run_dir_remove(run->dir);
}
