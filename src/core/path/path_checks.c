/*
 * path_checks.c - pinging all pairs, at the same time as the other side does.
 *
 * A NAT that filters lets the peer's ping in only after ours has gone out, so a
 * round repeats its pings for some seconds: by so much may the two sides' beginnings
 * differ. Later rounds begin at slots, moments that both sides compute from a clock
 * which they roughly share and from the keys of the edge, so that not all edges
 * have theirs at once. An edge without traffic skips more and more slots, but never
 * in a way that its two ends can miss each other for ever: who skips all but each
 * eighth slot meets who skips all but each fourth at each eighth.
 */
#include "path/path_internal.h"
#include "path/path_pair_internal.h"
#include "path/paths_internal.h"

/* A direct path with a round trip up to this needs no search for a better one. */
#define GOOD_ENOUGH (2 * NSEC_PER_MSEC)

/* Least time between two requests to STUN servers, however many paths die. */
#define ASK_ADDRESS_MIN NSEC_PER_SEC

/*
 * A Linux gateway that masquerades and drops nothing on its INPUT chain takes a packet from
 * outside, which no mapping expects, as one for itself. Its connection tracking then remembers
 * the packet's addresses and ports, and the inside host that sends the same way afterwards is
 * given another port, which its peer does not expect. So our first packet must not reach the
 * peer's NAT before the peer's own has gone out there. Each round therefore begins with openers:
 * pings whose IP time to live grows by one from step to step. One of them is long enough to pass
 * our own NAT; by the time that one is long enough for the peer's NAT, the peer has sent its
 * shorter ones. Neither distance has to be known. Whose own addresses are new waits with the
 * longer ones until the hub may be expected to have told the peer, who then begins; the short ones
 * have opened our NAT for the peer's pings.
 */
struct round_step {
    nsec_t after;    /* since the previous step */
    bool pings_open; /* ping the pairs that need no opener */
    bool pings_all;  /* ping the others as well, whose openers went out in earlier steps */
    uint8_t first;   /* openers are sent with a time to live from this one; 0: no openers */
    uint8_t last;    /* to this one, each one once */
    bool guesses;    /* guess ports; the last such step comes after the peer has reported its newest
                        port */
};

static const struct round_step steps[] = {
    {.after = 0, .pings_open = true, .first = 2, .last = 2, .guesses = true},
    {.after = 150 * NSEC_PER_MSEC, .pings_open = true, .first = 2, .last = 2, .guesses = true},
    {.after = 300 * NSEC_PER_MSEC, .pings_open = true, .first = 3, .last = 3},
    {.after = 150 * NSEC_PER_MSEC, .first = 4, .last = 8},
    {.after = 150 * NSEC_PER_MSEC, .pings_open = true, .pings_all = true, .guesses = true},
    {.after = 450 * NSEC_PER_MSEC, .pings_open = true, .pings_all = true, .guesses = true},
    {.after = 1000 * NSEC_PER_MSEC, .pings_open = true, .pings_all = true},
    {.after = 1500 * NSEC_PER_MSEC, .pings_open = true, .pings_all = true},
};

#define N_STEPS (sizeof(steps) / sizeof(steps[0]))
/* Most frames of a round on one pair: eight openers and four pings. */
#define ROUND_FRAMES 12
/* The first step with an opener that could reach a peer's NAT where one router is between the two.
 */
#define STEP_NEAR 2
/* The first one that could reach it across several, and how long that waits after our own addresses
 * have changed: a report's way through the hub, and the agents' pauses. */
#define STEP_FAR 3
#define FAR_WAIT (1000 * NSEC_PER_MSEC)

/* A peer that was heard on a pair within this time has a mapping for us: no opener is needed. */
#define OPEN_FOR (10 * NSEC_PER_SEC)
/* How long the pongs of the last step are waited for. */
#define LAST_WAIT (1000 * NSEC_PER_MSEC)

/* Asks for our newest port, if our NAT gives out ports in sequence and the peer is about to
 * guess. */
static void want_fresh(const struct path *pp, nsec_t now)
{
    struct paths *p = pp->owner;

    if (pp->choice.pair == 0 && behavior_is_hard(&p->self.nat) && p->self.nat.port_step != 0 &&
        (p->asking.guess_at == 0 || now - p->asking.guess_at >= PATH_SLOT_PERIOD) &&
        paths__add(p, NULL, PATH_ACTION_FRESH))
        p->asking.guess_at = now;
}

void path__ask_address(const struct path *pp, nsec_t now)
{
    struct paths *p = pp->owner;

    /* When many paths die at once, one request serves all. */
    if ((p->asking.death_at == 0 || now - p->asking.death_at >= ASK_ADDRESS_MIN) &&
        paths__add(p, NULL, PATH_ACTION_FRESH))
        p->asking.death_at = now;
}

void path__checks_start(struct path *pp, bool is_full, nsec_t now)
{
    if (!path__wants_direct(pp) || pp->pairs.n == 0)
        return;
    want_fresh(pp, now);
    if (pp->checks.round.next_at != NSEC_NEVER) {
        pp->checks.round.is_full |= is_full;
        return;
    }
    pp->owner->counters.rounds++;
    pp->checks.round = (struct path_round){.next_at = now, .is_full = is_full};
    pp->checks.begun_at = now;
    /* A pair that was worse than the relay is measured anew. */
    path__pairs_begin_round(pp, pp->choice.is_worse);
}

void path__checks_stop(struct path *pp)
{
    pp->checks.round = (struct path_round){.next_at = NSEC_NEVER};
}

void path__checks_on_found(struct path *pp)
{
    pp->checks.n_failed = 0;
}

/* Does the round want to ask that pair? */
static bool is_wanted(const struct path *pp, const struct path_pair *pair)
{
    if (pair->n_round_pongs >= PATH_SAMPLES_SURE)
        return false;
    return pp->checks.round.is_full || pair->is_answered || pair->tried_at == 0 ||
           pair->id == pp->choice.pair;
}

/* A round has all of its frames on a pair or none, because a part of them may open one NAT and
 * close the other. */
static void admit_pairs(struct path *pp, nsec_t now)
{
    for (unsigned i = 0; i < pp->pairs.n; i++) {
        struct path_pair *pair = &pp->pairs.items[i];

        if (pair->admission == PATH_ADMISSION_OPEN && is_wanted(pp, pair))
            pair->admission = path__may_ping(pp, pair, ROUND_FRAMES, now) ? PATH_ADMISSION_YES
                                                                          : PATH_ADMISSION_NO;
    }
}

static bool is_asked(const struct path *pp, const struct path_pair *pair)
{
    return pair->admission == PATH_ADMISSION_YES && is_wanted(pp, pair);
}

/* The peer is behind a NAT there, which we must not surprise. IPv6 is not translated, and a
 * firewall forgets the packets that it drops. */
static bool needs_opener(const struct path_pair *pair, nsec_t now)
{
    return pair->remote.kind == CANDIDATE_REFLEXIVE && ip_addr_is_v4(&pair->remote.endpoint.addr) &&
           (pair->contact.heard_at == 0 || now - pair->contact.heard_at > OPEN_FOR);
}

/* The peers have been told of an address of ours, so they may send to it. */
static bool is_announced(const struct path *pp)
{
    return pp->owner->self_changed_at != 0;
}

/* What a step does with a pair. */
enum round_deed {
    ROUND_DEED_NONE,
    ROUND_DEED_PING,
    ROUND_DEED_OPEN,
};

static enum round_deed deed_of(
    const struct path *pp, const struct path_pair *pair, const struct round_step *step, nsec_t now)
{
    if (!is_asked(pp, pair))
        return ROUND_DEED_NONE;
    if (!needs_opener(pair, now))
        return step->pings_open ? ROUND_DEED_PING : ROUND_DEED_NONE;
    if (!is_announced(pp) && step - steps >= STEP_NEAR)
        return ROUND_DEED_NONE;
    if (step->pings_all)
        return ROUND_DEED_PING;
    return step->first != 0 ? ROUND_DEED_OPEN : ROUND_DEED_NONE;
}

/* How many frames a step sends on a pair. */
static unsigned count_frames(
    const struct path *pp, const struct path_pair *pair, const struct round_step *step, nsec_t now)
{
    switch (deed_of(pp, pair, step, now)) {
    case ROUND_DEED_PING:
        return 1;
    case ROUND_DEED_OPEN:
        return 1u + step->last - step->first;
    case ROUND_DEED_NONE:
        break;
    }
    return 0;
}

static unsigned count_all(const struct path *pp, const struct round_step *step, nsec_t now)
{
    unsigned n = 0;

    for (unsigned i = 0; i < pp->pairs.n; i++)
        n += count_frames(pp, &pp->pairs.items[i], step, now);
    return n;
}

static bool has_openers(const struct path *pp, nsec_t now)
{
    for (unsigned i = 0; i < pp->pairs.n; i++)
        if (is_asked(pp, &pp->pairs.items[i]) && needs_opener(&pp->pairs.items[i], now))
            return true;
    return false;
}

void path__checks_meet(struct path *pp, nsec_t now)
{
    if (pp->checks.round.next_at != NSEC_NEVER && has_openers(pp, now))
        path__checks_stop(pp);
    path__checks_start(pp, true, now);
}

/* When the step with far openers may come: once the peers may be expected to know our addresses. */
static nsec_t may_go_far_at(const struct path *pp, nsec_t now)
{
    if (pp->checks.round.step != STEP_FAR || !is_announced(pp) || !has_openers(pp, now))
        return now;
    return pp->owner->self_changed_at + FAR_WAIT;
}

static void ask(struct path *pp, struct path_pair *pair, const struct round_step *step, nsec_t now)
{
    switch (deed_of(pp, pair, step, now)) {
    case ROUND_DEED_PING:
        path__ping(pp, pair, now);
        break;
    case ROUND_DEED_OPEN:
        for (uint8_t hops = step->first; hops <= step->last; hops++)
            path__open(pp, pair, hops, now);
        break;
    case ROUND_DEED_NONE:
        break;
    }
}

static void end_round(struct path *pp, nsec_t now)
{
    path__checks_stop(pp);
    path__pairs_drop_silent(pp);
    if (pp->choice.pair != 0 || pp->choice.sent.pair != 0)
        return;
    pp->checks.n_failed++;
    path__port_guess_consider(pp, now);
}

void path__checks_tick(struct path *pp, nsec_t now)
{
    struct path_round *r = &pp->checks.round;
    const struct round_step *step = r->step < N_STEPS ? &steps[r->step] : NULL;

    if (now < r->next_at)
        return;
    if (!step) {
        end_round(pp, now);
        return;
    }
    if (!r->is_reserved) {
        r->is_reserved = true;
        admit_pairs(pp, now);
        r->next_at = paths__reserve(pp->owner, count_all(pp, step, now), now);
        if (r->next_at > now)
            return;
    }
    for (unsigned i = 0; i < pp->pairs.n; i++)
        ask(pp, &pp->pairs.items[i], step, now);
    if (step->guesses && pp->choice.pair == 0)
        path__guess_ports(pp, now);
    r->is_reserved = false;
    r->step++;
    r->next_at = now + (r->step < N_STEPS ? steps[r->step].after : LAST_WAIT);
    r->next_at = nsec_max(r->next_at, may_go_far_at(pp, now));
}

/* Without a direct path all pairs are tried. With one, only those that have answered: on an idle
 * edge at few slots, and at none if the path is good. */
static void begin_slot(struct path *pp, nsec_t now)
{
    const struct path_pair *chosen = path__pair_of(pp, pp->choice.pair);
    bool is_seldom = path__slot_pass(pp, now);

    if (!chosen)
        path__checks_start(pp, true, now);
    else if (chosen->rtt > GOOD_ENOUGH && (path__has_interest(pp, now) || is_seldom))
        path__checks_start(pp, false, now);
}

void path__slot_tick(struct path *pp, nsec_t now)
{
    if (now < pp->slot.next_at)
        return;
    begin_slot(pp, now);
    path__slot_plan(pp, now);
}
