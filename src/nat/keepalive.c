/* keepalive.c - see keepalive.h. */
#include "nat/keepalive.h"

#define FIRST    (12 * NSEC_PER_SEC) /* says at once whether the usual 10 s are safe */
#define LONGEST  (75 * NSEC_PER_SEC) /* more is of no use: see KEEPALIVE_MAX */
#define SHORTEST (3 * NSEC_PER_SEC)
#define GAP      (2 * NSEC_PER_SEC)     /* closer than this is not measured */
#define WARM     (2500 * NSEC_PER_MSEC) /* Linux counts a flow as such after 2 s */
#define ANSWER   (1 * NSEC_PER_SEC)     /* so long an answer is waited for */
#define TRIES    3
#define PAUSE    (60 * NSEC_PER_SEC)

static void begin_trial(struct keepalive *k, nsec_t now)
{
    k->state = KEEPALIVE_STATE_LEARN;
    k->must_open = true;
    k->n_tries = 0;
    k->due = now;
}

/* The next rest worth a trial; 0: enough is known. */
static nsec_t choose_rest(const struct keepalive *k)
{
    if (k->dies == NSEC_NEVER)
        return k->lives == 0 ? FIRST : k->lives >= LONGEST ? 0 : nsec_min(2 * k->lives, LONGEST);
    if (k->lives == 0)
        return k->dies <= SHORTEST ? 0 : nsec_max(k->dies / 2, SHORTEST);
    return k->dies - k->lives <= nsec_max(GAP, k->lives / 8) ? 0 : (k->lives + k->dies) / 2;
}

static void end_trial(struct keepalive *k, nsec_t now)
{
    k->rest = choose_rest(k);
    if (k->rest != 0) {
        begin_trial(k, now);
        return;
    }
    k->state = KEEPALIVE_STATE_DONE;
    k->due = NSEC_NEVER;
}

void keepalive_start(struct keepalive *k, nsec_t now)
{
    *k = (struct keepalive){.dies = NSEC_NEVER};
    end_trial(k, now);
}

void keepalive_stop(struct keepalive *k)
{
    k->state = KEEPALIVE_STATE_OFF;
    k->due = NSEC_NEVER;
}

void keepalive_on_learned(struct keepalive *k, uint16_t port, nsec_t now)
{
    if (k->state == KEEPALIVE_STATE_LEARN) {
        k->state = KEEPALIVE_STATE_WARM;
        k->due = now + WARM;
    } else if (k->state == KEEPALIVE_STATE_AGAIN) {
        k->state = KEEPALIVE_STATE_REST;
        k->due = now + k->rest;
    } else {
        return;
    }
    k->port = port;
    k->n_tries = 0;
}

void keepalive_on_arrived(struct keepalive *k, nsec_t now)
{
    /* Also when it comes late: the mapping let it in. */
    if (k->state != KEEPALIVE_STATE_ASK && k->state != KEEPALIVE_STATE_CHECK)
        return;
    k->lives = nsec_max(k->lives, k->rest);
    end_trial(k, now);
}

void keepalive_on_checked(struct keepalive *k, nsec_t now)
{
    if (k->state != KEEPALIVE_STATE_CHECK)
        return;
    k->dies = nsec_min(k->dies, k->rest);
    end_trial(k, now);
}

void keepalive_on_refused(struct keepalive *k)
{
    keepalive_stop(k);
}

static void pause_trial(struct keepalive *k, nsec_t now)
{
    k->state = KEEPALIVE_STATE_PAUSE;
    k->due = now + PAUSE;
}

/* A question is asked, unless it was asked often enough: then @done is what that means. */
static enum keepalive_action ask(
    struct keepalive *k, enum keepalive_action action, enum keepalive_state done, nsec_t now)
{
    if (k->n_tries < TRIES) {
        k->n_tries++;
        k->due = now + ANSWER;
        return action;
    }
    if (done == KEEPALIVE_STATE_PAUSE) {
        pause_trial(k, now);
        return KEEPALIVE_ACTION_NONE;
    }
    k->state = done;
    k->n_tries = 1;
    k->due = now + ANSWER;
    return KEEPALIVE_ACTION_CHECK;
}

enum keepalive_action keepalive_next(struct keepalive *k, nsec_t now)
{
    if (now < k->due)
        return KEEPALIVE_ACTION_NONE;
    switch (k->state) {
    case KEEPALIVE_STATE_OFF:
    case KEEPALIVE_STATE_DONE:
        break;
    case KEEPALIVE_STATE_PAUSE:
        begin_trial(k, now);
        return keepalive_next(k, now);
    case KEEPALIVE_STATE_WARM:
        k->state = KEEPALIVE_STATE_AGAIN;
        return ask(k, KEEPALIVE_ACTION_LEARN, KEEPALIVE_STATE_PAUSE, now);
    case KEEPALIVE_STATE_LEARN:
        if (k->must_open) {
            k->must_open = false;
            return KEEPALIVE_ACTION_OPEN;
        }
        return ask(k, KEEPALIVE_ACTION_LEARN, KEEPALIVE_STATE_PAUSE, now);
    case KEEPALIVE_STATE_AGAIN:
        return ask(k, KEEPALIVE_ACTION_LEARN, KEEPALIVE_STATE_PAUSE, now);
    case KEEPALIVE_STATE_REST:
        k->state = KEEPALIVE_STATE_ASK;
        return ask(k, KEEPALIVE_ACTION_ASK, KEEPALIVE_STATE_CHECK, now);
    case KEEPALIVE_STATE_ASK:
        return ask(k, KEEPALIVE_ACTION_ASK, KEEPALIVE_STATE_CHECK, now);
    case KEEPALIVE_STATE_CHECK:
        return ask(k, KEEPALIVE_ACTION_CHECK, KEEPALIVE_STATE_PAUSE, now);
    }
    return KEEPALIVE_ACTION_NONE;
}

nsec_t keepalive_due(const struct keepalive *k)
{
    return k->state == KEEPALIVE_STATE_OFF ? NSEC_NEVER : k->due;
}

nsec_t keepalive_interval(const struct keepalive *k, nsec_t until_known)
{
    nsec_t safe = k->lives * 4 / 5;

    if (k->lives == 0 && k->dies == NSEC_NEVER)
        return until_known;
    /* So far all have died: less than the shortest of them, but not yet the least. */
    if (k->lives == 0)
        safe = k->dies / 3;
    safe -= safe % NSEC_PER_SEC;
    return nsec_min(nsec_max(safe, KEEPALIVE_MIN), KEEPALIVE_MAX);
}
