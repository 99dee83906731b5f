/*
 * path_spray.c - guessing the ports of a symmetric NAT.
 *
 * Behind a NAT whose mappings depend on the destination, the port that a peer
 * will see is not the one that a server saw. If the NAT counts, the next few ports
 * are guessed in every round. If it draws them at random, and the peer's own NAT
 * lets in only what it sent to, chance must help (the birthday paradox): the hard
 * side opens many sockets, each with a mapping of its own towards the peer, and
 * the other pings random ports. With 256 sockets and 1024 pings they meet with
 * 1 - exp(-256 * 1024 / 64512) = 98 %.
 *
 * That costs a thousand packets, so it is tried when a round of plain pings has
 * failed, by one edge of a node at a time, and less and less often.
 */
#include <stdlib.h>

#include "nat/path_internal.h"

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
/* After a failure, and doubling with each. */
#define AGAIN_MIN (300 * NSEC_PER_SEC)
#define AGAIN_MAX (4 * 3600 * NSEC_PER_SEC)

struct path_spray {
    bool is_hard;           /* we open sockets; else we guess ports */
    struct endpoint target; /* hard: the peer; else its NAT's address, any port */
    nsec_t next;
    nsec_t end;
    unsigned n_guessed;    /* of GUESSES */
    uint32_t port;         /* offset from PORT_FIRST of the next guess */
    uint32_t first_socket; /* hard: numbers from here */
    unsigned n_asked;      /* sockets asked for */
    unsigned n_opened;     /* of @opened */
    unsigned n_pinged;     /* of the opened ones, over all passes */
    uint32_t opened[];     /* numbers of those that are open */
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

void path__guess_ports(struct path *e, nsec_t now)
{
    const struct endpoint *seen = public_endpoint(&e->side);
    const struct behavior *nat = &e->side.nat;

    if (!seen || !behavior_is_hard(nat))
        return;
    for (unsigned i = 0; i < BEHAVIOR_GUESSES; i++) {
        struct endpoint guess = *seen;

        guess.port = behavior_predict(nat, i);
        if (guess.port == 0)
            return;
        (void)paths__reserve(e->owner, 1, now);
        path__ping_loose(e, PATH_SOCKET_MAIN, &guess, now);
    }
}

/* ---- sockets -------------------------------------------------------------------------------- */

void path__close_socket(struct path *e, uint32_t socket)
{
    struct paths_item *item = paths__add(e->owner, e, PATH_ACTION_CLOSE);

    if (item)
        item->action.socket = socket;
    e->owner->n_sockets--;
    path__pairs_drop_socket(e, socket);
}

bool path__owns_socket(const struct path *e, uint32_t socket)
{
    const struct path_spray *s = e->spray;
    const struct path_pair *chosen = path__pair_of(e, e->chosen);

    if (socket == PATH_SOCKET_MAIN || (chosen && chosen->socket == socket))
        return true;
    return s && s->is_hard && socket >= s->first_socket && socket - s->first_socket < s->n_asked;
}

static void open_some(struct path *e, struct path_spray *s)
{
    struct paths *p = e->owner;

    for (unsigned i = 0; i < OPEN_BURST && s->n_asked < p->spray_sockets; i++) {
        struct paths_item *item = paths__add(p, e, PATH_ACTION_OPEN);

        if (!item)
            return;
        item->action.socket = ++p->last_socket;
        if (s->n_asked++ == 0)
            s->first_socket = p->last_socket;
    }
}

void path__spray_on_socket(struct path *e, uint32_t socket, bool opened, nsec_t now)
{
    struct path_spray *s = e->spray;
    bool is_ours = s && path__owns_socket(e, socket) && s->n_opened < s->n_asked;

    if (!opened)
        return;
    e->owner->n_sockets++;
    e->owner->counters.sockets_opened++;
    if (!is_ours) {
        path__close_socket(e, socket);
        return;
    }
    s->opened[s->n_opened++] = socket;
    s->next = nsec_min(s->next, now + OPEN_EVERY);
}

/* ---- the two sides -------------------------------------------------------------------------- */

static void hard_step(struct path *e, struct path_spray *s, nsec_t now)
{
    open_some(e, s);
    for (unsigned i = 0; i < OPEN_BURST && s->n_pinged < N_PASSES * s->n_opened; i++) {
        (void)paths__reserve(e->owner, 1, now);
        path__ping_loose(e, s->opened[s->n_pinged++ % s->n_opened], &s->target, now);
    }
}

static void easy_step(struct path *e, struct path_spray *s, nsec_t now)
{
    for (unsigned i = 0; i < GUESS_BURST && s->n_guessed < GUESSES; i++) {
        struct endpoint guess = s->target;

        guess.port = (uint16_t)(PORT_FIRST + s->port);
        s->port = (s->port + PORT_STRIDE) % N_PORTS;
        s->n_guessed++;
        (void)paths__reserve(e->owner, 1, now);
        path__ping_loose(e, PATH_SOCKET_MAIN, &guess, now);
    }
}

nsec_t path__spray_due(const struct path *e)
{
    return e->spray ? nsec_min(e->spray->next, e->spray->end) : NSEC_NEVER;
}

void path__spray_tick(struct path *e, nsec_t now)
{
    struct path_spray *s = e->spray;

    if (!s || now < path__spray_due(e))
        return;
    if (now >= s->end) {
        path__spray_end(e);
        return;
    }
    if (s->is_hard)
        hard_step(e, s, now);
    else
        easy_step(e, s, now);
    s->next = now + (s->is_hard ? OPEN_EVERY : GUESS_EVERY);
}

void path__spray_end(struct path *e)
{
    struct path_spray *s = e->spray;
    const struct path_pair *chosen = path__pair_of(e, e->chosen);
    uint32_t keep = chosen ? chosen->socket : PATH_SOCKET_MAIN;

    if (!s)
        return;
    for (unsigned i = 0; i < s->n_opened; i++)
        if (s->opened[i] != keep)
            path__close_socket(e, s->opened[i]);
    free(s);
    e->spray = NULL;
    e->owner->sprayer = NULL;
}

/* ---- is it worth it? ------------------------------------------------------------------------ */

static bool may_spray(const struct path *e, bool is_hard, nsec_t now)
{
    const struct paths *p = e->owner;

    /* Guessing is in vain where the other side does not open its share of sockets. */
    return p->sprayer == NULL && now >= e->spray_after && (is_hard || e->side.can_spray) &&
           (!is_hard || (p->spray_sockets > 0 && p->n_sockets < 2 * p->spray_sockets));
}

void path__spray_consider(struct path *e, nsec_t now)
{
    bool hard = behavior_is_hard(&e->owner->self.nat);
    const struct endpoint *target = public_endpoint(&e->side);
    struct path_spray *s;
    nsec_t again = AGAIN_MIN;

    if (hard == behavior_is_hard(&e->side.nat) || !target || e->owner->self.nat.is_blocked ||
        e->side.nat.is_blocked || !may_spray(e, hard, now))
        return;
    s = calloc(1, sizeof(*s) + (hard ? e->owner->spray_sockets : 0) * sizeof(s->opened[0]));
    if (!s)
        return;
    s->is_hard = hard;
    s->target = *target;
    s->port = rng_u32(&e->owner->rng) % N_PORTS;
    s->next = now;
    s->end = now + HARD_TIME;
    e->spray = s;
    e->owner->sprayer = e;
    for (unsigned i = 0; i < e->n_sprays && again < AGAIN_MAX; i++)
        again *= 2;
    e->spray_after = now + nsec_min(again, AGAIN_MAX);
    e->n_sprays++;
}
