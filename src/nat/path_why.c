/* path_why.c - why an edge is not direct, and the one change that would make it so. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nat/path_internal.h"
#include "nat/path_pair_internal.h"
#include "nat/paths_internal.h"

/* So many rounds must have failed before it is said that they do. */
#define ROUNDS_MIN 1

struct why {
    const struct path *e;
    const char *self; /* this node's name */
    const char *peer;
    uint16_t port; /* WireGuard's at this node, as its candidates have it; 51820 if unknown */
};

static uint16_t own_port(const struct path *e)
{
    const struct candidates *c = &e->owner->self.candidates;

    return c->n > 0 && c->items[0].kind == CANDIDATE_HOST ? c->items[0].endpoint.port : 51820;
}

/* A NAT that was not asked is taken for one of the usual kind. */
static bool is_port_filtered(const struct behavior *b)
{
    return b->is_natted &&
           (b->filtering == BEHAVIOR_PORT_DEPENDENT || b->filtering == BEHAVIOR_UNKNOWN);
}

/* Has it an address of that family? */
static bool has_family(const struct candidates *c, bool v4)
{
    for (unsigned i = 0; i < c->n; i++)
        if (ip_addr_is_v4(&c->items[i].endpoint.addr) == v4)
            return true;
    return false;
}

/* Returns false when there is a family that both have. */
static bool why_families(const struct why *w, char *buf)
{
    const struct candidates *mine = &w->e->owner->self.candidates;
    const struct candidates *theirs = &w->e->side.candidates;
    bool v4 = has_family(mine, true);

    if (mine->n == 0 || (v4 && has_family(theirs, true)) ||
        (has_family(mine, false) && has_family(theirs, false)))
        return false;
    (void)snprintf(buf, PATH_TEXT_MAX,
        "%s has IPv%c addresses only and %s IPv%c: give either an address of the other kind",
        w->self, v4 ? '4' : '6', w->peer, v4 ? '6' : '4');
    return true;
}

/* What the NATs' behaviour explains. Returns false when it explains nothing. */
static bool why_nats(const struct why *w, char *buf)
{
    const struct behavior *mine = &w->e->owner->self.nat;
    const struct behavior *theirs = &w->e->side.nat;
    bool hard_mine = behavior_is_hard(mine);
    bool hard_theirs = behavior_is_hard(theirs);

    if (hard_mine && hard_theirs) {
        (void)snprintf(buf, PATH_TEXT_MAX,
            "both NATs are symmetric: open UDP %u on either, or give %s or %s a forwarded port",
            w->port, w->self, w->peer);
        return true;
    }
    if ((hard_mine && is_port_filtered(theirs)) || (hard_theirs && is_port_filtered(mine))) {
        (void)snprintf(buf, PATH_TEXT_MAX,
            "the NAT of %s is symmetric and that of %s lets in only what it sent to%s: "
            "open UDP %u on either",
            hard_mine ? w->self : w->peer, hard_mine ? w->peer : w->self,
            w->e->n_sprays > 0 ? ", and guessing its ports was in vain so far" : "", w->port);
        return true;
    }
    return false;
}

/* This end does not choose, and in the last round its pings were answered. */
static bool why_declined(const struct why *w, char *buf)
{
    const struct path *e = w->e;

    for (unsigned i = 0; !e->nominates && i < e->n_pairs; i++)
        if (e->round_at != 0 && e->pairs[i].valid_at >= e->round_at) {
            (void)snprintf(buf, PATH_TEXT_MAX,
                "the direct path works, but %s finds that the relay is faster or loses less",
                w->peer);
            return true;
        }
    return false;
}

/*
 * In the last round a frame of the peer came in, and none of our pings there was answered: then it
 * hears nothing from here, since it answers whatever it hears.
 */
static bool why_one_way(const struct why *w, char *buf)
{
    const struct path *e = w->e;
    char text[ENDPOINT_TEXT_MAX];

    for (unsigned i = 0; i < e->n_pairs; i++) {
        const struct path_pair *pair = &e->pairs[i];

        if (e->round_at == 0 || pair->heard_at <= e->round_at || pair->tried_at < e->round_at ||
            pair->valid_at >= e->round_at)
            continue;
        (void)snprintf(buf, PATH_TEXT_MAX,
            "what %s sends from %s arrives here, but it does not hear this node: let UDP %u in "
            "there, or out here",
            w->peer, endpoint_format(&pair->remote.endpoint, text), pair->remote.endpoint.port);
        return true;
    }
    return false;
}

static void why_silent(const struct why *w, char *buf)
{
    const struct path *e = w->e;

    if (e->owner->self.nat.is_blocked || e->side.nat.is_blocked)
        (void)snprintf(buf, PATH_TEXT_MAX, "UDP is blocked at %s: allow UDP out of it",
            e->owner->self.nat.is_blocked ? w->self : w->peer);
    else if (!why_declined(w, buf) && !why_families(w, buf) && !why_nats(w, buf) &&
             !why_one_way(w, buf))
        (void)snprintf(buf, PATH_TEXT_MAX,
            "none of the %u ways to %s answers, so something drops UDP between the two: "
            "allow UDP %u in at either",
            e->n_pairs, w->peer, w->port);
}

void path__why(const struct path *e, char buf[static PATH_TEXT_MAX], nsec_t now)
{
    struct why w = {e, e->owner->name, e->peer.name, own_port(e)};

    buf[0] = '\0';
    if (e->peer.policy == PATH_POLICY_OFF)
        (void)snprintf(buf, PATH_TEXT_MAX, "the edge is off: set its path to auto");
    else if (e->peer.policy == PATH_POLICY_RELAY)
        (void)snprintf(buf, PATH_TEXT_MAX,
            "the edge's path or the network's topology says relay: set it to auto");
    else if (e->chosen != 0)
        return;
    else if (!e->has_side)
        (void)snprintf(buf, PATH_TEXT_MAX,
            "%s has told no addresses: it runs no weft agent, or has just come", w.peer);
    else if (e->side.candidates.n == 0)
        (void)snprintf(buf, PATH_TEXT_MAX, "%s knows no address of its own", w.peer);
    else if (e->is_worse)
        (void)snprintf(
            buf, PATH_TEXT_MAX, "the direct path works, but the relay is faster or loses less");
    else if (e->died_at != 0 && now - e->died_at < 60 * NSEC_PER_SEC)
        (void)snprintf(buf, PATH_TEXT_MAX,
            "the direct path stopped answering %lld s ago; it is tried again",
            (long long)((now - e->died_at) / NSEC_PER_SEC));
    else if (e->n_failed < ROUNDS_MIN || e->nomination.pair != 0)
        (void)snprintf(buf, PATH_TEXT_MAX, "the ways to %s are being tried", w.peer);
    else
        why_silent(&w, buf);
}

void path__event(struct path *e, bool is_warning, const char *fmt, ...)
{
    struct paths_item *item = paths__add(e->owner, e, PATH_ACTION_EVENT);
    va_list ap;
    int n;

    if (!item)
        return;
    item->text = malloc(PATH_TEXT_MAX);
    item->action.is_warning = is_warning;
    if (!item->text) {
        item->action.kind = PATH_ACTION_NONE;
        return;
    }
    n = snprintf(item->text, PATH_TEXT_MAX, "%s: ", e->peer.name);
    va_start(ap, fmt);
    (void)vsnprintf(item->text + n, (size_t)(PATH_TEXT_MAX - n), fmt, ap);
    va_end(ap);
}
