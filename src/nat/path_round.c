/*
 * path_round.c - pinging all pairs, at the same time as the other side does.
 *
 * A NAT that filters lets the peer's ping in only after ours has gone out, so a
 * round repeats its pings for some seconds: by so much may the two sides' beginnings
 * differ. Later rounds begin at slots, moments that both sides compute from a clock
 * which they roughly share and from the keys of the edge, so that not all edges
 * have theirs at once. An edge without traffic skips more and more slots, but never
 * in a way that its two ends can miss each other for ever: who skips all but each
 * eighth slot meets who skips all but each fourth at each eighth.
 */
#include "nat/path_internal.h"
#include "nat/path_pair_internal.h"
#include "nat/paths_internal.h"

#define SLOT_PERIOD (60 * NSEC_PER_SEC)
/* Without a relay a pair that has no direct path does not talk at all; and one that has left a
 * direct path for a better relay may have done so in a bad moment. */
#define SLOT_PERIOD_URGENT (10 * NSEC_PER_SEC)
#define BACKOFF_MAX        3
#define BACKOFF_URGENT     2
/* An edge had traffic of late. */
#define INTEREST (60 * NSEC_PER_SEC)
/* A direct path that is as good as this needs no search for a better one. */
#define GOOD_ENOUGH (2 * NSEC_PER_MSEC)

/* Our own address is not asked for more often, however many paths die. */
#define ASK_ADDRESS_MIN NSEC_PER_SEC

/* When each step comes, since the step before. */
static const nsec_t step_after[] = {
    0,
    150 * NSEC_PER_MSEC,
    250 * NSEC_PER_MSEC,
    500 * NSEC_PER_MSEC,
    1000 * NSEC_PER_MSEC,
    1500 * NSEC_PER_MSEC,
};

/* The steps in which ports are guessed: the last one after the peer has told its newest. */
#define GUESS_STEPS 4

#define N_STEPS (sizeof(step_after) / sizeof(step_after[0]))
/* After the last step, how long its pongs may take. */
#define LAST_WAIT (1000 * NSEC_PER_MSEC)

static bool has_interest(const struct path *e, nsec_t now)
{
    return e->traffic_at != 0 && now - e->traffic_at < INTEREST;
}

static nsec_t slot_after(const struct path *e, nsec_t period, nsec_t stride, nsec_t now)
{
    nsec_t shared = now + e->owner->clock_offset;
    nsec_t into = (shared - e->slot_phase % period) % stride;

    if (into < 0)
        into += stride;
    return now + stride - into;
}

nsec_t path__slot_after(const struct path *e, unsigned skip, nsec_t now)
{
    return slot_after(e, SLOT_PERIOD, SLOT_PERIOD << skip, now);
}

static bool is_urgent(const struct path *e, nsec_t now)
{
    return e->chosen == 0 && (!e->owner->relay_is_usable || (e->is_worse && has_interest(e, now)));
}

void path__round_plan(struct path *e, nsec_t now)
{
    bool urgent = is_urgent(e, now);
    nsec_t period = urgent ? SLOT_PERIOD_URGENT : SLOT_PERIOD;
    unsigned skip = urgent && e->backoff > BACKOFF_URGENT ? BACKOFF_URGENT : e->backoff;

    if (!path__wants_direct(e) || !e->has_side)
        e->slot = NSEC_NEVER;
    else
        e->slot = slot_after(e, period, period << skip, now);
}

/* Our NAT counts, and the peer is about to guess. */
static void want_fresh(const struct path *e, nsec_t now)
{
    struct paths *p = e->owner;

    if (e->chosen == 0 && behavior_is_hard(&p->self.nat) && p->self.nat.port_step != 0 &&
        (p->fresh_at == 0 || now - p->fresh_at >= SLOT_PERIOD) &&
        paths__add(p, NULL, PATH_ACTION_FRESH))
        p->fresh_at = now;
}

void path__ask_address(const struct path *e, nsec_t now)
{
    struct paths *p = e->owner;

    /* When many die at once it is asked once for all. */
    if ((p->asked_at == 0 || now - p->asked_at >= ASK_ADDRESS_MIN) &&
        paths__add(p, NULL, PATH_ACTION_FRESH))
        p->asked_at = now;
}

void path__round_start(struct path *e, bool is_full, nsec_t now)
{
    if (!path__wants_direct(e) || e->n_pairs == 0)
        return;
    want_fresh(e, now);
    if (e->round.next != NSEC_NEVER) {
        e->round.is_full |= is_full;
        return;
    }
    e->owner->counters.rounds++;
    e->round = (struct path_round){.next = now, .is_full = is_full};
    e->round_at = now;
    for (unsigned i = 0; i < e->n_pairs; i++) {
        e->pairs[i].n_round_pongs = 0;
        /* What the relay was better than is judged by how it is now. */
        if (e->is_worse)
            e->pairs[i].n_samples = 0;
    }
}

void path__round_stop(struct path *e)
{
    e->round = (struct path_round){.next = NSEC_NEVER};
}

static bool is_asked(const struct path *e, const struct path_pair *pair)
{
    if (pair->n_round_pongs >= PATH_SAMPLES_SURE)
        return false;
    return e->round.is_full || pair->is_answered || pair->tried_at == 0 || pair->id == e->chosen;
}

static unsigned count_asked(const struct path *e)
{
    unsigned n = 0;

    for (unsigned i = 0; i < e->n_pairs; i++)
        n += is_asked(e, &e->pairs[i]) ? 1 : 0;
    return n;
}

static void end_round(struct path *e, nsec_t now)
{
    path__round_stop(e);
    path__pairs_drop_silent(e);
    if (e->chosen != 0 || e->nomination.pair != 0)
        return;
    e->n_failed++;
    path__spray_consider(e, now);
}

void path__round_tick(struct path *e, nsec_t now)
{
    struct path_round *r = &e->round;

    if (now < r->next)
        return;
    if (r->step == N_STEPS) {
        end_round(e, now);
        return;
    }
    if (!r->is_reserved) {
        r->is_reserved = true;
        r->next = paths__reserve(e->owner, count_asked(e), now);
        if (r->next > now)
            return;
    }
    for (unsigned i = 0; i < e->n_pairs; i++)
        if (is_asked(e, &e->pairs[i]))
            path__ping(e, &e->pairs[i], now);
    if (r->step < GUESS_STEPS && e->chosen == 0)
        path__guess_ports(e, now);
    r->is_reserved = false;
    r->step++;
    r->next = now + (r->step < N_STEPS ? step_after[r->step] : LAST_WAIT);
}

/* Not on each slot are all ways of an idle edge tried, and on a good path none. */
static void begin_slot(struct path *e, nsec_t now)
{
    const struct path_pair *chosen = path__pair_of(e, e->chosen);
    bool interest = has_interest(e, now);

    if (interest)
        e->backoff = 0;
    else if (e->backoff < BACKOFF_MAX)
        e->backoff++;
    if (!chosen)
        path__round_start(e, true, now);
    else if (chosen->rtt > GOOD_ENOUGH && (interest || e->backoff == BACKOFF_MAX))
        path__round_start(e, false, now);
}

void path__slot_tick(struct path *e, nsec_t now)
{
    if (now < e->slot)
        return;
    begin_slot(e, now);
    path__round_plan(e, now);
}
