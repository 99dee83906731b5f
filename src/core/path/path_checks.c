/*
 * path_checks.c - pinging all pairs, at the same time as the other side does; and guessing the
 * ports of a peer behind a symmetric NAT.
 *
 * A NAT that filters lets the peer's ping in only after ours has gone out, so a
 * round repeats its pings for some seconds: by so much may the two sides' beginnings
 * differ. Later rounds begin at slots, moments that both sides compute from a clock
 * which they roughly share and from the keys of the edge, so that not all edges
 * have theirs at once. An edge without traffic skips more and more slots, but never
 * in a way that its two ends can miss each other for ever: who skips all but each
 * eighth slot meets who skips all but each fourth at each eighth.
 */
#include <stdlib.h>

#include "path/path_internal.h"
#include "path/path_pair_internal.h"
#include "path/paths_internal.h"

/* Between two slots of an edge. */
#define PATH_SLOT_PERIOD (60 * NSEC_PER_SEC)

/* ---- when both ends try again ---------------------------------------------------------------- */

/* Without a relay a pair that has no direct path does not talk at all; and one that has left a
 * direct path for a better relay may have done so in a bad moment. */
#define SLOT_PERIOD_URGENT (5 * NSEC_PER_SEC)
#define BACKOFF_URGENT     2
/* An edge without traffic uses at least each eighth slot. */
#define BACKOFF_MAX 3
/* For this time after traffic an edge is taken to be in use. */
#define INTEREST (60 * NSEC_PER_SEC)

/* It had traffic of late. */
static bool has_interest(const struct path *pp, nsec_t now)
{
    return pp->traffic.moved_at != 0 && now - pp->traffic.moved_at < INTEREST;
}

/* The first slot after @now of those that come each @stride: the same at both ends. */
static nsec_t slot_after(const struct path *pp, nsec_t period, nsec_t stride, nsec_t now)
{
    nsec_t shared = now + pp->owner->clock_offset;
    nsec_t into = (shared - pp->slot.phase % period) % stride;

    if (into < 0)
        into += stride;
    return now + stride - into;
}

void path__slot_plan(struct path *pp, nsec_t now)
{
    bool urgent = pp->choice.pair == 0 &&
                  (!pp->owner->relay_is_usable || (pp->choice.is_worse && has_interest(pp, now)));
    nsec_t period = urgent ? SLOT_PERIOD_URGENT : PATH_SLOT_PERIOD;
    unsigned skip = urgent && pp->slot.backoff > BACKOFF_URGENT ? BACKOFF_URGENT : pp->slot.backoff;

    if (!path__wants_direct(pp) || !pp->has_side)
        pp->slot.next_at = NSEC_NEVER;
    else
        pp->slot.next_at = slot_after(pp, period, period << skip, now);
}

/* ---- guessing ports -------------------------------------------------------------------------- */

/*
 * Guessing the ports of a symmetric NAT.
 *
 * Behind a NAT whose mappings depend on the destination, the port that a peer
 * will see is not the one that a server saw. If the NAT counts, the next few ports
 * are guessed in every round. If it draws them at random, and the peer's own NAT
 * lets in only what it sent to, chance must help (the birthday paradox): the hard
 * side opens many sockets, each with a mapping of its own towards the peer, and
 * the other pings random ports. With 256 sockets and 1024 pings they meet with
 * 1 - exp(-256 * 1024 / 64512) = 98 %.
 *
 * That costs a thousand packets, and as many mappings in the NAT of who guesses.
 * So it is tried when the first round of plain pings has failed, if both ends
 * take part, and then at slots less and less often; by one edge of a node at a
 * time, and within what a node may put into its NAT (PATHS_MAPPINGS_MAX). An edge
 * whose turn it is not waits for its next slot, where the other end does, too.
 */

/* Ports that NATs give out (RFC 4787 section 4.2.2). */
#define PORT_FIRST 1024
#define N_PORTS    (65536 - PORT_FIRST)
/* Odd, and without a common factor with N_PORTS (2^10 * 3^2 * 7): visits each port once. */
#define PORT_STRIDE 24709
/* The side that pings ports: how many, so many at a time, so often. */
#define GUESSES     1024
#define GUESS_BURST 8
#define GUESS_EVERY (60 * NSEC_PER_MSEC)
/* The side that opens sockets does it in parts, and pings from each so many times. */
#define OPEN_BURST 16
#define OPEN_EVERY (60 * NSEC_PER_MSEC)
#define N_PASSES   2
/* Mappings are kept until the other side must be through. */
#define HARD_TIME (10 * NSEC_PER_SEC)
/*
 * After a failure each eighth slot counts, then each 16th, up to each 256th, which is
 * four hours: both ends know it, also when only one of them could take part before.
 */
#define SKIP_MIN 3
#define SKIP_MAX 8
/* But not one that comes sooner than this; and one that comes so little late is not missed. */
#define AGAIN_MIN   (120 * NSEC_PER_SEC)
#define SLOT_MARGIN (1 * NSEC_PER_SEC)
/* After a success, and doubling until a path lasts: whoever restarts is found again soon. */
#define USED_MIN       (10 * NSEC_PER_SEC)
#define USED_DOUBLINGS 8

struct path_port_guess {
    bool is_hard;           /* we open sockets; else we guess ports */
    struct endpoint target; /* hard: the peer; else its NAT's address, any port */
    nsec_t next_at;         /* of the next part */
    nsec_t end_at;          /* of the guess */
    unsigned n_mappings;    /* that were reserved */
    unsigned n_guessed;     /* of GUESSES */
    uint32_t port;          /* offset from PORT_FIRST of the next guess */
    uint32_t first_socket;  /* hard: numbers from here */
    unsigned n_asked;       /* sockets asked for */
    unsigned n_opened;      /* of @opened */
    unsigned n_pinged;      /* of the opened ones, over all passes */
    uint32_t opened[];      /* numbers of those that are open */
};

/* ---- the next few ports --------------------------------------------------------------------- */

/* Where the peer's NAT was seen: any port of that address may be its next mapping. */
static const struct endpoint *public_endpoint(const struct path_side *s)
{
    static const enum candidate_kind order[] = {
        CANDIDATE_REFLEXIVE, CANDIDATE_MAPPED, CANDIDATE_GIVEN, CANDIDATE_HOST};

    for (unsigned k = 0; k < sizeof(order) / sizeof(order[0]); k++)
        for (unsigned i = 0; i < s->candidates.n; i++) {
            const struct candidate *c = &s->candidates.items[i];

            if (c->kind == order[k] && ip_addr_is_v4(&c->endpoint.addr) &&
                !candidate_is_private(&c->endpoint.addr))
                return &c->endpoint;
        }
    return NULL;
}

/* Pings the likeliest ports of a peer whose NAT gives them out in sequence. */
static void guess_next_ports(struct path *pp, nsec_t now)
{
    const struct endpoint *seen = public_endpoint(&pp->side);
    const struct behavior *nat = &pp->side.nat;

    if (!seen || !behavior_is_hard(nat) ||
        !paths__may_send(pp->owner, seen, BEHAVIOR_GUESSES, true, now))
        return;
    for (unsigned i = 0; behavior_predict(nat, i) != 0; i++) {
        struct endpoint guess = *seen;

        guess.port = behavior_predict(nat, i);
        (void)paths__reserve(pp->owner, 1, now);
        path__ping_loose(pp, PATH_SOCKET_MAIN, &guess, now);
    }
}

/* ---- sockets -------------------------------------------------------------------------------- */

void path__close_socket(struct path *pp, uint32_t socket)
{
    struct paths_item *item = paths__add(pp->owner, pp, PATH_ACTION_CLOSE);

    if (item)
        item->action.socket = socket;
    pp->owner->guessing.n_sockets--;
    path__pairs_drop_socket(pp, socket);
}

bool path__owns_socket(const struct path *pp, uint32_t socket)
{
    const struct path_port_guess *s = pp->guess.present;
    const struct path_pair *chosen = path__pair_of(pp, pp->choice.pair);

    if (socket == PATH_SOCKET_MAIN || (chosen && chosen->socket == socket))
        return true;
    return s && s->is_hard && socket >= s->first_socket && socket - s->first_socket < s->n_asked;
}

void path__port_guess_on_socket(struct path *pp, uint32_t socket, bool opened)
{
    struct path_port_guess *s = pp->guess.present;
    bool is_ours = s && path__owns_socket(pp, socket) && s->n_opened < s->n_asked;

    if (!opened)
        return;
    pp->owner->guessing.n_sockets++;
    pp->owner->counters.sockets_opened++;
    if (!is_ours) {
        path__close_socket(pp, socket);
        return;
    }
    s->opened[s->n_opened++] = socket;
}

/* ---- the two sides -------------------------------------------------------------------------- */

static void hard_step(struct path *pp, struct path_port_guess *s, nsec_t now)
{
    struct paths *p = pp->owner;

    for (unsigned i = 0; i < OPEN_BURST && s->n_asked < p->guessing.sockets_max; i++) {
        struct paths_item *item = paths__add(p, pp, PATH_ACTION_OPEN);

        if (!item)
            break;
        item->action.socket = ++p->guessing.last_socket;
        if (s->n_asked++ == 0)
            s->first_socket = p->guessing.last_socket;
    }
    for (unsigned i = 0; i < OPEN_BURST && s->n_pinged < N_PASSES * s->n_opened; i++) {
        (void)paths__reserve(p, 1, now);
        path__ping_loose(pp, s->opened[s->n_pinged++ % s->n_opened], &s->target, now);
    }
}

static void easy_step(struct path *pp, struct path_port_guess *s, nsec_t now)
{
    for (unsigned i = 0; i < GUESS_BURST && s->n_guessed < GUESSES; i++) {
        struct endpoint guess = s->target;

        guess.port = (uint16_t)(PORT_FIRST + s->port);
        s->port = (s->port + PORT_STRIDE) % N_PORTS;
        s->n_guessed++;
        (void)paths__reserve(pp->owner, 1, now);
        path__ping_loose(pp, PATH_SOCKET_MAIN, &guess, now);
    }
}

nsec_t path__port_guess_due(const struct path *pp)
{
    return pp->guess.present ? nsec_min(pp->guess.present->next_at, pp->guess.present->end_at)
                             : NSEC_NEVER;
}

void path__port_guess_tick(struct path *pp, nsec_t now)
{
    struct path_port_guess *s = pp->guess.present;

    if (!s || now < path__port_guess_due(pp))
        return;
    if (now >= s->end_at) {
        path__port_guess_end(pp);
        return;
    }
    if (s->is_hard)
        hard_step(pp, s, now);
    else
        easy_step(pp, s, now);
    s->next_at = now + (s->is_hard ? OPEN_EVERY : GUESS_EVERY);
}

void path__port_guess_end(struct path *pp)
{
    struct path_port_guess *s = pp->guess.present;
    const struct path_pair *chosen = path__pair_of(pp, pp->choice.pair);
    uint32_t keep = chosen ? chosen->socket : PATH_SOCKET_MAIN;

    if (!s)
        return;
    for (unsigned i = 0; i < s->n_opened; i++)
        if (s->opened[i] != keep)
            path__close_socket(pp, s->opened[i]);
    paths__unmap(pp->owner, s->n_mappings - (s->is_hard ? s->n_asked : s->n_guessed));
    free(s);
    pp->guess.present = NULL;
    pp->owner->guessing.edge = NULL;
}

/* ---- is it worth it? ------------------------------------------------------------------------ */

/* One side's mapping depends on the destination; and in vain unless both do their share. */
static bool can_guess_help(const struct path *pp, bool is_hard)
{
    const struct paths *p = pp->owner;
    const struct behavior *theirs = &pp->side.nat;

    return is_hard != behavior_is_hard(theirs) && !p->self.nat.is_blocked && !theirs->is_blocked &&
           pp->side.can_guess && public_endpoint(&pp->side) != NULL;
}

/* Our NAT's mappings, our sockets and what may be sent to the peer's NAT are enough; and it is
 * nobody else's turn. */
static bool take_guess_turn(struct path *pp, bool is_hard, unsigned n_mappings, nsec_t now)
{
    struct paths *p = pp->owner;
    unsigned n_frames = is_hard ? N_PASSES * n_mappings : n_mappings;

    if (p->guessing.edge || (is_hard && p->guessing.n_sockets >= p->guessing.sockets_max) ||
        !paths__may_map(p, n_mappings, now))
        return false;
    if (paths__may_send(p, public_endpoint(&pp->side), n_frames, true, now))
        return true;
    paths__unmap(p, n_mappings);
    return false;
}

void path__port_guess_on_used(struct path *pp, nsec_t now)
{
    unsigned doublings = pp->guess.n_tried < USED_DOUBLINGS ? pp->guess.n_tried : USED_DOUBLINGS;

    pp->guess.again_at = nsec_min(pp->guess.again_at, now + (USED_MIN << doublings));
}

/* A round has found nothing: is guessing worth it? */
static void consider_guessing(struct path *pp, nsec_t now)
{
    struct paths *p = pp->owner;
    bool hard = behavior_is_hard(&p->self.nat);
    unsigned n_mappings = hard ? p->guessing.sockets_max : GUESSES;
    unsigned skip = SKIP_MIN + pp->guess.n_tried;
    struct path_port_guess *s;

    if (now < pp->guess.again_at || !can_guess_help(pp, hard))
        return;
    pp->guess.again_at = slot_after(pp, PATH_SLOT_PERIOD,
        PATH_SLOT_PERIOD << (skip < SKIP_MAX ? skip : SKIP_MAX), now + AGAIN_MIN);
    pp->guess.again_at -= SLOT_MARGIN;
    if (!take_guess_turn(pp, hard, n_mappings, now))
        return;
    s = calloc(1, sizeof(*s) + (hard ? p->guessing.sockets_max : 0) * sizeof(s->opened[0]));
    if (!s) {
        paths__unmap(p, n_mappings);
        return;
    }
    s->is_hard = hard;
    s->n_mappings = n_mappings;
    s->target = *public_endpoint(&pp->side);
    s->port = rng_u32(&p->rng) % N_PORTS;
    s->next_at = now;
    s->end_at = now + HARD_TIME;
    pp->guess.present = s;
    p->guessing.edge = pp;
    pp->guess.n_tried++;
}

/* ---- rounds ---------------------------------------------------------------------------------- */

/* A direct path with a round trip up to this needs no search for a better one. */
#define GOOD_ENOUGH (2 * NSEC_PER_MSEC)

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

/* Counts pongs anew; @anew: measures all round trips anew, too. */
static void count_anew(struct path *pp, bool anew)
{
    for (unsigned i = 0; i < pp->pairs.n; i++) {
        pp->pairs.items[i].n_round_pongs = 0;
        pp->pairs.items[i].admission = PATH_ADMISSION_OPEN;
        if (anew)
            pp->pairs.items[i].n_samples = 0;
    }
}

void path__checks_start(struct path *pp, bool is_full, nsec_t now)
{
    struct paths *p = pp->owner;

    if (!path__wants_direct(pp) || pp->pairs.n == 0)
        return;
    /* The peer is about to guess our newest port, if our NAT gives out ports in sequence. */
    if (pp->choice.pair == 0 && behavior_is_hard(&p->self.nat) && p->self.nat.port_step != 0 &&
        (p->asking.guess_at == 0 || now - p->asking.guess_at >= PATH_SLOT_PERIOD) &&
        paths__add(p, NULL, PATH_ACTION_FRESH))
        p->asking.guess_at = now;
    if (pp->checks.round.next_at != NSEC_NEVER) {
        pp->checks.round.is_full |= is_full;
        return;
    }
    p->counters.rounds++;
    pp->checks.round = (struct path_round){.next_at = now, .is_full = is_full};
    pp->checks.begun_at = now;
    /* A pair that was worse than the relay is measured anew. */
    count_anew(pp, pp->choice.is_worse);
}

void path__checks_stop(struct path *pp)
{
    pp->checks.round = (struct path_round){.next_at = NSEC_NEVER};
}

/* Does the round want to ask that pair? */
static bool is_ping_wanted(const struct path *pp, const struct path_pair *pair)
{
    if (pair->n_round_pongs >= PATH_SAMPLES_SURE)
        return false;
    return pp->checks.round.is_full || pair->is_answered || pair->tried_at == 0 ||
           pair->id == pp->choice.pair;
}

static bool is_pinged(const struct path *pp, const struct path_pair *pair)
{
    return pair->admission == PATH_ADMISSION_YES && is_ping_wanted(pp, pair);
}

/* The peer is behind a NAT there, which we must not surprise. IPv6 is not translated, and a
 * firewall forgets the packets that it drops. */
static bool needs_opener(const struct path_pair *pair, nsec_t now)
{
    return pair->remote.kind == CANDIDATE_REFLEXIVE && ip_addr_is_v4(&pair->remote.endpoint.addr) &&
           (pair->contact.heard_at == 0 || now - pair->contact.heard_at > OPEN_FOR);
}

/* What a step does with a pair. */
enum round_action {
    ROUND_ACTION_NONE,
    ROUND_ACTION_PING,
    ROUND_ACTION_OPEN,
};

static enum round_action action_of_step(
    const struct path *pp, const struct path_pair *pair, const struct round_step *step, nsec_t now)
{
    if (!is_pinged(pp, pair))
        return ROUND_ACTION_NONE;
    if (!needs_opener(pair, now))
        return step->pings_open ? ROUND_ACTION_PING : ROUND_ACTION_NONE;
    /* No peer has been told of an address of ours, so none has opened its NAT for us. */
    if (pp->owner->self_changed_at == 0 && step - steps >= STEP_NEAR)
        return ROUND_ACTION_NONE;
    if (step->pings_all)
        return ROUND_ACTION_PING;
    return step->first != 0 ? ROUND_ACTION_OPEN : ROUND_ACTION_NONE;
}

/*
 * Reserves the frames of a step; returns when they may be sent. A round has all of its frames on a
 * pair or none, because a part of them may open one NAT and close the other.
 */
static nsec_t reserve_step(struct path *pp, const struct round_step *step, nsec_t now)
{
    unsigned n_frames = 0;

    for (unsigned i = 0; i < pp->pairs.n; i++) {
        struct path_pair *pair = &pp->pairs.items[i];

        if (pair->admission == PATH_ADMISSION_OPEN && is_ping_wanted(pp, pair))
            pair->admission = path__may_ping(pp, pair, ROUND_FRAMES, now) ? PATH_ADMISSION_YES
                                                                          : PATH_ADMISSION_NO;
        switch (action_of_step(pp, pair, step, now)) {
        case ROUND_ACTION_PING:
            n_frames++;
            break;
        case ROUND_ACTION_OPEN:
            n_frames += 1u + step->last - step->first;
            break;
        case ROUND_ACTION_NONE:
            break;
        }
    }
    return paths__reserve(pp->owner, n_frames, now);
}

static bool has_openers(const struct path *pp, nsec_t now)
{
    for (unsigned i = 0; i < pp->pairs.n; i++)
        if (is_pinged(pp, &pp->pairs.items[i]) && needs_opener(&pp->pairs.items[i], now))
            return true;
    return false;
}

void path__checks_restart(struct path *pp, nsec_t now)
{
    if (has_openers(pp, now))
        path__checks_stop(pp);
    path__checks_start(pp, true, now);
}

static void run_step(
    struct path *pp, struct path_pair *pair, const struct round_step *step, nsec_t now)
{
    switch (action_of_step(pp, pair, step, now)) {
    case ROUND_ACTION_PING:
        path__ping(pp, pair, now);
        break;
    case ROUND_ACTION_OPEN:
        for (uint8_t hops = step->first; hops <= step->last; hops++)
            path__open(pp, pair, hops, now);
        break;
    case ROUND_ACTION_NONE:
        break;
    }
}

void path__checks_tick(struct path *pp, nsec_t now)
{
    struct path_round *r = &pp->checks.round;
    const struct round_step *step = r->step < N_STEPS ? &steps[r->step] : NULL;

    if (now < r->next_at)
        return;
    if (!step) {
        path__checks_stop(pp);
        path__pairs_drop_silent(pp);
        if (pp->choice.pair == 0 && pp->choice.sent.pair == 0) {
            pp->checks.n_failed++;
            consider_guessing(pp, now);
        }
        return;
    }
    if (!r->is_reserved) {
        r->is_reserved = true;
        r->next_at = reserve_step(pp, step, now);
        if (r->next_at > now)
            return;
    }
    for (unsigned i = 0; i < pp->pairs.n; i++)
        run_step(pp, &pp->pairs.items[i], step, now);
    if (step->guesses && pp->choice.pair == 0)
        guess_next_ports(pp, now);
    r->is_reserved = false;
    r->step++;
    r->next_at = now + (r->step < N_STEPS ? steps[r->step].after : LAST_WAIT);
    /* Far openers wait until the peers may be expected to know our addresses. */
    if (r->step == STEP_FAR && pp->owner->self_changed_at != 0 && has_openers(pp, now))
        r->next_at = nsec_max(r->next_at, pp->owner->self_changed_at + FAR_WAIT);
}

/* Without a direct path all pairs are tried. With one, only those that have answered: on an idle
 * edge at few slots, and at none if the path is good. */
void path__slot_tick(struct path *pp, nsec_t now)
{
    const struct path_pair *chosen = path__pair_of(pp, pp->choice.pair);
    bool is_idle = !has_interest(pp, now);

    if (now < pp->slot.next_at)
        return;
    if (!is_idle)
        pp->slot.backoff = 0;
    else if (pp->slot.backoff < BACKOFF_MAX)
        pp->slot.backoff++;
    if (!chosen)
        path__checks_start(pp, true, now);
    else if (chosen->rtt > GOOD_ENOUGH && (!is_idle || pp->slot.backoff == BACKOFF_MAX))
        path__checks_start(pp, false, now);
    path__slot_plan(pp, now);
}
