/*
 * path_port_guess.c - guessing the ports of a symmetric NAT.
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
#include <stdlib.h>

#include "path/path_internal.h"
#include "path/path_pair_internal.h"
#include "path/paths_internal.h"

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
 * After a failure each eighth slot counts (path_checks.c), then each 16th, up to each 256th, which
 * is four hours: both ends know it, also when only one of them could take part before.
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

void path__guess_ports(struct path *pp, nsec_t now)
{
    const struct endpoint *seen = public_endpoint(&pp->side);
    const struct behavior *nat = &pp->side.nat;

    if (!seen || !behavior_is_hard(nat) ||
        !paths__may_send(pp->owner, seen, BEHAVIOR_GUESSES, true, now))
        return;
    for (unsigned i = 0; i < BEHAVIOR_GUESSES; i++) {
        struct endpoint guess = *seen;

        guess.port = behavior_predict(nat, i);
        if (guess.port == 0)
            return;
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

static void open_some(struct path *pp, struct path_port_guess *s)
{
    struct paths *p = pp->owner;

    for (unsigned i = 0; i < OPEN_BURST && s->n_asked < p->guessing.sockets_max; i++) {
        struct paths_item *item = paths__add(p, pp, PATH_ACTION_OPEN);

        if (!item)
            return;
        item->action.socket = ++p->guessing.last_socket;
        if (s->n_asked++ == 0)
            s->first_socket = p->guessing.last_socket;
    }
}

void path__port_guess_on_socket(struct path *pp, uint32_t socket, bool opened, nsec_t now)
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
    s->next_at = nsec_min(s->next_at, now + OPEN_EVERY);
}

/* ---- the two sides -------------------------------------------------------------------------- */

static void hard_step(struct path *pp, struct path_port_guess *s, nsec_t now)
{
    open_some(pp, s);
    for (unsigned i = 0; i < OPEN_BURST && s->n_pinged < N_PASSES * s->n_opened; i++) {
        (void)paths__reserve(pp->owner, 1, now);
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
static bool can_help(const struct path *pp, bool is_hard)
{
    const struct paths *p = pp->owner;
    const struct behavior *theirs = &pp->side.nat;

    return is_hard != behavior_is_hard(theirs) && !p->self.nat.is_blocked && !theirs->is_blocked &&
           p->guessing.sockets_max > 0 && pp->side.can_guess && public_endpoint(&pp->side) != NULL;
}

static void plan_again(struct path *pp, nsec_t now)
{
    unsigned skip = SKIP_MIN + pp->guess.n_tried;

    pp->guess.again_at = path__slot_after(pp, skip < SKIP_MAX ? skip : SKIP_MAX, now + AGAIN_MIN);
    pp->guess.again_at -= SLOT_MARGIN;
}

/* Our NAT's mappings, our sockets and what may be sent to the peer's NAT are enough; and it is
 * nobody else's turn. */
static bool take_turn(struct path *pp, bool is_hard, unsigned n_mappings, nsec_t now)
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

void path__port_guess_on_stable(struct path *pp)
{
    pp->guess.n_tried = 0;
}

void path__port_guess_consider(struct path *pp, nsec_t now)
{
    struct paths *p = pp->owner;
    bool hard = behavior_is_hard(&p->self.nat);
    unsigned n_mappings = hard ? p->guessing.sockets_max : GUESSES;
    struct path_port_guess *s;

    if (now < pp->guess.again_at || !can_help(pp, hard))
        return;
    plan_again(pp, now);
    if (!take_turn(pp, hard, n_mappings, now))
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
