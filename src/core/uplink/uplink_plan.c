/* uplink_plan.c - see uplink_plan.h. */
#include "uplink/uplink_plan.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* The first train comes so long after the start, and up to twice as much later. */
#define FIRST_AFTER (300 * NSEC_PER_SEC)
/* And so long after the machine is elsewhere. */
#define MOVED_AFTER (60 * NSEC_PER_SEC)
/* From one to the next until something is known, and how many there are then. */
#define TRY_EACH  (40 * NSEC_PER_SEC)
#define TRIES_MAX 8
/* When they begin anew: where nothing came of them, where it is fast, where it is known. */
#define UNKNOWN_EACH (2 * 3600 * NSEC_PER_SEC)
#define FAST_EACH    (12 * 3600 * NSEC_PER_SEC)
#define FOUND_EACH   (4 * 3600 * NSEC_PER_SEC)
/* Where there is nobody to be asked. */
#define LOOK_EACH (60 * NSEC_PER_SEC)
/* One that could not be measured is not asked again for so long. */
#define RETRY_EACH (1800 * NSEC_PER_SEC)

/* Not all machines at the same time. */
static nsec_t scatter(struct uplink_plan *p, nsec_t wait)
{
    p->scatter = p->scatter * 1664525u + 1013904223u;
    return nsec_scatter(wait, p->scatter);
}

void uplink_plan_init(struct uplink_plan *p, uint32_t random, nsec_t now)
{
    nsec_t late = (nsec_t)(random % (uint32_t)(FIRST_AFTER / NSEC_PER_MSEC)) * NSEC_PER_MSEC;

    *p = (struct uplink_plan){.scatter = random, .due_at = now + FIRST_AFTER + late};
}

void uplink_plan_restart(struct uplink_plan *p, nsec_t now)
{
    p->n_tries = p->n_tried = 0;
    p->due_at = now + scatter(p, MOVED_AFTER);
}

bool uplink_plan_is_due(const struct uplink_plan *p, nsec_t now)
{
    return p->due_at != 0 && now >= p->due_at;
}

/* ---- to whom -------------------------------------------------------------------------------- */

/* When it was its turn last; 0: not known. */
static nsec_t tried_at(const struct uplink_plan *p, const char *peer)
{
    for (unsigned i = 0; i < p->n_tried; i++)
        if (strcmp(p->tried[i].peer, peer) == 0)
            return p->tried[i].at;
    return 0;
}

/* Returns the name, as it is kept. */
static const char *remember_tried(struct uplink_plan *p, const char *peer, nsec_t now)
{
    unsigned at = 0;

    while (at < p->n_tried && strcmp(p->tried[at].peer, peer) != 0)
        at++;
    if (at == UPLINK_PLAN_TRIED_MAX) {
        at = 0;
        for (unsigned i = 1; i < p->n_tried; i++)
            if (p->tried[i].at < p->tried[at].at)
                at = i;
    }
    if (at == p->n_tried)
        p->n_tried++;
    (void)snprintf(p->tried[at].peer, sizeof(p->tried[at].peer), "%s", peer);
    p->tried[at].at = now;
    return p->tried[at].peer;
}

void uplink_plan_offer(struct uplink_plan *p, const struct uplink *u, const char *peer,
    bool is_near, nsec_t now, int64_t wall_s)
{
    unsigned n = uplink_trains_to(u, peer, wall_s);
    nsec_t at = tried_at(p, peer);
    bool is_better = p->best[0] == '\0' || n < p->best_trains ||
                     (n == p->best_trains && is_near && !p->best_is_near) ||
                     (n == p->best_trains && is_near == p->best_is_near && at < p->best_at);

    /* One with whom something was measured may be asked again at once. */
    if (!is_better || (at != 0 && n == 0 && now - at < RETRY_EACH))
        return;
    (void)snprintf(p->best, sizeof(p->best), "%s", peer);
    p->best_is_near = is_near;
    p->best_trains = n;
    p->best_at = at;
}

static void plan_next(struct uplink_plan *p, enum uplink_state state, nsec_t now)
{
    static const nsec_t each[] = {
        [UPLINK_UNKNOWN] = UNKNOWN_EACH, [UPLINK_FAST] = FAST_EACH, [UPLINK_FOUND] = FOUND_EACH};

    if (state == UPLINK_UNKNOWN && p->n_tries < TRIES_MAX) {
        p->due_at = now + scatter(p, TRY_EACH);
        return;
    }
    p->n_tries = 0;
    p->due_at = now + scatter(p, each[state]);
}

const char *uplink_plan_choose(struct uplink_plan *p, enum uplink_state state, nsec_t now)
{
    const char *name;

    if (p->best[0] == '\0') {
        p->due_at = now + scatter(p, LOOK_EACH);
        return NULL;
    }
    name = remember_tried(p, p->best, now);
    p->best[0] = '\0';
    p->n_tries++;
    plan_next(p, state, now);
    return name;
}

void uplink_plan_on_train(struct uplink_plan *p, enum uplink_state state, nsec_t now)
{
    if (p->due_at != 0 && state != UPLINK_UNKNOWN)
        plan_next(p, state, now);
}
