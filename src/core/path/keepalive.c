/* keepalive.c - see keepalive.h. */
#include "path/keepalive.h"

#define FIRST                                                                                      \
    (12 * NSEC_PER_SEC) /* the first rest: its result says whether the usual 10 s are safe */
#define SHORTEST (3 * NSEC_PER_SEC)
#define GAP      (2 * NSEC_PER_SEC) /* bounds closer to each other than this end the measurement */
#define WARM                                                                                       \
    (2500 * NSEC_PER_MSEC) /* pause before the second LEARN: Linux lengthens a flow's time-out     \
                              after 2 s */
#define ANSWER    (1 * NSEC_PER_SEC) /* time to wait for an answer */
#define TRIES     3
#define PAUSE     (60 * NSEC_PER_SEC) /* the first pause; each later one is twice as long, up to */
#define PAUSE_MAX (3840 * NSEC_PER_SEC)

static void begin_trial(struct keepalive *k, nsec_t at)
{
    k->state = KEEPALIVE_STATE_LEARN;
    k->must_open = true;
    k->hub_answers = false;
    k->n_tries = 0;
    k->due_at = at;
}

/* The next rest to try; 0: enough is known. */
static nsec_t choose_rest(const struct keepalive_bounds *b)
{
    if (b->dies == NSEC_NEVER && b->lives == 0)
        return FIRST;
    if (b->dies == NSEC_NEVER)
        return b->lives >= KEEPALIVE_LONGEST ? 0 : nsec_min(2 * b->lives, KEEPALIVE_LONGEST);
    if (b->lives == 0)
        return b->dies <= SHORTEST ? 0 : nsec_max(b->dies / 2, SHORTEST);
    return b->dies - b->lives <= nsec_max(GAP, b->lives / 8) ? 0 : (b->lives + b->dies) / 2;
}

static void finish(struct keepalive *k)
{
    k->state = KEEPALIVE_STATE_DONE;
    k->due_at = NSEC_NEVER;
}

void keepalive_start(struct keepalive *k, nsec_t spread, nsec_t now)
{
    *k = (struct keepalive){.bounds = KEEPALIVE_UNKNOWN, .spread = spread};
    begin_trial(k, now + spread);
}

void keepalive_stop(struct keepalive *k)
{
    k->state = KEEPALIVE_STATE_OFF;
}

void keepalive_on_learned(struct keepalive *k, uint16_t port, nsec_t now)
{
    if (k->state == KEEPALIVE_STATE_LEARN) {
        k->state = KEEPALIVE_STATE_WARM;
        k->due_at = now + WARM;
    } else if (k->state == KEEPALIVE_STATE_AGAIN) {
        k->state = KEEPALIVE_STATE_PROVE;
        k->due_at = now;
    } else {
        return;
    }
    k->port = port;
    k->n_tries = 0;
}

/* An answer to the spare mapping has arrived: measuring works, and the mapping is fresh. */
static void on_proven(struct keepalive *k, nsec_t now)
{
    bool dies_sooner = k->suspect_for < k->bounds.dies;

    if (k->suspect_for != 0)
        k->bounds.dies = nsec_min(k->bounds.dies, k->suspect_for);
    k->suspect_for = 0;
    k->n_pauses = 0;
    k->n_tries = 0;
    k->obstacle = KEEPALIVE_OBSTACLE_NONE;
    /* Without news this machine woke up too late for a finer trial, and the measurement ends. */
    k->rest_for = dies_sooner ? choose_rest(&k->bounds) : 0;
    k->state = KEEPALIVE_STATE_REST;
    k->due_at = now + k->rest_for;
    if (k->rest_for == 0)
        finish(k);
}

void keepalive_on_arrived(struct keepalive *k, nsec_t now)
{
    if (k->state == KEEPALIVE_STATE_PROVE) {
        on_proven(k, now);
    } else if (k->state == KEEPALIVE_STATE_ASK) {
        k->bounds.lives = nsec_max(k->bounds.lives, k->rest_for);
        if (choose_rest(&k->bounds) == 0)
            finish(k);
        else
            begin_trial(k, now);
    }
}

void keepalive_on_answered(struct keepalive *k)
{
    k->hub_answers = k->state == KEEPALIVE_STATE_ASK;
}

void keepalive_on_refused(struct keepalive *k)
{
    keepalive_stop(k);
    k->obstacle = KEEPALIVE_OBSTACLE_REFUSED;
}

static void pause_trial(struct keepalive *k, enum keepalive_obstacle obstacle, nsec_t now)
{
    nsec_t pause = k->n_pauses < 6 ? PAUSE << k->n_pauses : PAUSE_MAX;

    k->n_pauses++;
    k->obstacle = obstacle;
    k->suspect_for = 0;
    k->state = KEEPALIVE_STATE_PAUSE;
    k->due_at = now + pause + k->spread;
}

/* The action by which the present state asks its question; after TRIES without an answer, that of
 * the state which follows. */
static enum keepalive_action ask(struct keepalive *k, nsec_t now)
{
    if (k->n_tries < TRIES) {
        k->n_tries++;
        k->due_at = now + ANSWER;
        return k->state == KEEPALIVE_STATE_ASK     ? KEEPALIVE_ACTION_ASK
               : k->state == KEEPALIVE_STATE_PROVE ? KEEPALIVE_ACTION_PROVE
                                                   : KEEPALIVE_ACTION_LEARN;
    }
    if (k->state == KEEPALIVE_STATE_ASK && k->hub_answers) {
        k->suspect_for = k->rest_for;
        begin_trial(k, now);
    } else if (k->state == KEEPALIVE_STATE_PROVE) {
        pause_trial(k, KEEPALIVE_OBSTACLE_ELSEWHERE, now);
    } else {
        pause_trial(k, KEEPALIVE_OBSTACLE_SILENCE, now);
    }
    return keepalive_next(k, now);
}

enum keepalive_action keepalive_next(struct keepalive *k, nsec_t now)
{
    if (now < k->due_at)
        return KEEPALIVE_ACTION_NONE;
    switch (k->state) {
    case KEEPALIVE_STATE_OFF:
    case KEEPALIVE_STATE_DONE:
        return KEEPALIVE_ACTION_NONE;
    case KEEPALIVE_STATE_PAUSE:
        begin_trial(k, now);
        break;
    case KEEPALIVE_STATE_WARM:
        k->state = KEEPALIVE_STATE_AGAIN;
        break;
    case KEEPALIVE_STATE_REST:
        /* When we are woken late, the rest was longer, and the answer is about that longer rest. */
        k->rest_for = nsec_min(k->rest_for + (now - k->due_at), KEEPALIVE_LONGEST);
        k->rest_for -= k->rest_for % NSEC_PER_MSEC;
        k->state = KEEPALIVE_STATE_ASK;
        break;
    case KEEPALIVE_STATE_LEARN:
    case KEEPALIVE_STATE_AGAIN:
    case KEEPALIVE_STATE_PROVE:
    case KEEPALIVE_STATE_ASK:
        break;
    }
    if (k->must_open) {
        k->must_open = false;
        return KEEPALIVE_ACTION_OPEN;
    }
    return ask(k, now);
}

nsec_t keepalive_due(const struct keepalive *k)
{
    return k->state == KEEPALIVE_STATE_OFF ? NSEC_NEVER : k->due_at;
}

bool keepalive_is_running(const struct keepalive *k)
{
    return k->state != KEEPALIVE_STATE_OFF && k->state != KEEPALIVE_STATE_DONE;
}

nsec_t keepalive_interval(const struct keepalive_bounds *bounds)
{
    nsec_t safe = bounds->lives / 4 * 3;

    if (bounds->lives == 0 && bounds->dies == NSEC_NEVER)
        return 0;
    if (bounds->lives == 0)
        safe = bounds->dies / 3;
    safe -= safe % NSEC_PER_SEC;
    return nsec_min(nsec_max(safe, KEEPALIVE_MIN), KEEPALIVE_MAX);
}

nsec_t keepalive_cautious(const struct keepalive *k, nsec_t before)
{
    const struct keepalive_bounds *b = &k->bounds;
    nsec_t feared = nsec_max(b->lives / 4 * 3, b->dies / 3);

    /* An interval is safe if a rest of that length or longer was survived. */
    if (!keepalive_is_running(k) || b->dies == NSEC_NEVER || b->lives >= before)
        return before;
    feared -= feared % NSEC_PER_SEC;
    return nsec_max(nsec_min(before, feared), KEEPALIVE_MIN);
}
