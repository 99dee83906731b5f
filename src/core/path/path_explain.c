/* path_explain.c - why an edge is not direct, and the one change that would make it so. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "path/path.h"
#include "path/path_internal.h"
#include "path/path_pair_internal.h"
#include "path/paths_internal.h"

/* ---- names ----------------------------------------------------------------------------------- */

const char *const path_kind_names[] = {"none", "lan", "direct", "relay", "stream"};
_Static_assert(sizeof(path_kind_names) / sizeof(*path_kind_names) == PATH_KIND_N, "a name each");
const char *const path_verdict_names[] = {"untried", "trying", "chosen", "works", "silent", "died"};
_Static_assert(
    sizeof(path_verdict_names) / sizeof(*path_verdict_names) == PATH_VERDICT_N, "a name each");

bool path_side_equal(const struct path_side *a, const struct path_side *b)
{
    bool same = candidates_equal(&a->candidates, &b->candidates) &&
                a->nat.mapping == b->nat.mapping && a->nat.filtering == b->nat.filtering &&
                a->nat.is_natted == b->nat.is_natted && a->nat.is_blocked == b->nat.is_blocked &&
                a->nat.port_step == b->nat.port_step && a->nat.last_port == b->nat.last_port &&
                a->keepalive == b->keepalive && a->can_guess == b->can_guess &&
                a->relay_run == b->relay_run && a->n_relays == b->n_relays;

    for (unsigned i = 0; same && i < a->n_relays; i++)
        same = x25519_public_equal(&a->relays[i].key, &b->relays[i].key) &&
               a->relays[i].rtt == b->relays[i].rtt &&
               a->relays[i].is_stream == b->relays[i].is_stream &&
               a->relays[i].mtu == b->relays[i].mtu;
    return same;
}

bool path_relay_notice_equal(const struct path_relay_notice *a, const struct path_relay_notice *b)
{
    return a->is_closed == b->is_closed && a->n_away == b->n_away &&
           memcmp(a->away, b->away, a->n_away * sizeof(*a->away)) == 0;
}

bool path_relay_notice_is_away(const struct path_relay_notice *notice, uint64_t tag)
{
    for (unsigned i = 0; i < notice->n_away; i++)
        if (notice->away[i] == tag)
            return true;
    return false;
}

/* ---- why an edge is not direct --------------------------------------------------------------- */

/* Rounds that must have failed before the text says so. */
#define ROUNDS_MIN 1
/* The answer of a pair is evidence for so long, whatever came of the rounds since. */
#define WORSE_KNOWN (25 * NSEC_PER_SEC)

#define PORTS_TEXT_MAX (2 * (NAME_MAX_LEN + 20))

struct why {
    const struct path *pp;
    const char *self; /* this node's name */
    const char *peer;
    char ports[PORTS_TEXT_MAX]; /* of the two nodes: "UDP 51820 at a or b" */
};

/* WireGuard's port at a node, as its candidates have it; 51820 if unknown. */
static uint16_t listen_port(const struct candidates *c)
{
    return c->n > 0 && c->items[0].kind == CANDIDATE_HOST ? c->items[0].endpoint.port : 51820;
}

/* Either node's port helps, and each listens on its own. */
static void format_ports(struct why *w)
{
    uint16_t mine = listen_port(&w->pp->owner->self.candidates);
    uint16_t theirs = listen_port(&w->pp->side.candidates);

    if (mine == theirs)
        (void)snprintf(w->ports, sizeof(w->ports), "UDP %u at %s or %s", mine, w->self, w->peer);
    else
        (void)snprintf(w->ports, sizeof(w->ports), "UDP %u at %s, or UDP %u at %s", mine, w->self,
            theirs, w->peer);
}

/* A NAT whose filtering is unknown is assumed to filter by port, as most do. */
static bool is_port_filtered(const struct behavior *b)
{
    return b->is_natted &&
           (b->filtering == BEHAVIOR_PORT_DEPENDENT || b->filtering == BEHAVIOR_UNKNOWN);
}

/* Is one of the candidates of that family? */
static bool has_family(const struct candidates *c, bool v4)
{
    for (unsigned i = 0; i < c->n; i++)
        if (ip_addr_is_v4(&c->items[i].endpoint.addr) == v4)
            return true;
    return false;
}

/* Explains that the two have no address family in common. False when they have one. */
static bool why_families(const struct why *w, char *buf)
{
    const struct candidates *mine = &w->pp->owner->self.candidates;
    const struct candidates *theirs = &w->pp->side.candidates;
    bool v4 = has_family(mine, true);

    if (mine->n == 0 || (v4 && has_family(theirs, true)) ||
        (has_family(mine, false) && has_family(theirs, false)))
        return false;
    (void)snprintf(buf, PATH_TEXT_MAX,
        "%s has IPv%c addresses only and %s IPv%c: give either an address of the other kind",
        w->self, v4 ? '4' : '6', w->peer, v4 ? '6' : '4');
    return true;
}

/* Explains by the behaviour of the NATs. False when it explains nothing. */
static bool why_nats(const struct why *w, char *buf)
{
    const struct behavior *mine = &w->pp->owner->self.nat;
    const struct behavior *theirs = &w->pp->side.nat;
    bool hard_mine = behavior_is_hard(mine);
    bool hard_theirs = behavior_is_hard(theirs);

    if (hard_mine && hard_theirs) {
        (void)snprintf(buf, PATH_TEXT_MAX,
            "both NATs are symmetric: open %s, or give one of them a forwarded port", w->ports);
        return true;
    }
    if ((hard_mine && is_port_filtered(theirs)) || (hard_theirs && is_port_filtered(mine))) {
        (void)snprintf(buf, PATH_TEXT_MAX,
            "the NAT of %s is symmetric and that of %s lets in only what it sent to%s: "
            "open %s",
            hard_mine ? w->self : w->peer, hard_mine ? w->peer : w->self,
            w->pp->guess.n_tried > 0 ? ", and guessing its ports was in vain so far" : "",
            w->ports);
        return true;
    }
    return false;
}

/* The other end, which chooses, has not taken a pair on which our last pings were answered. */
static bool is_declined(const struct path *pp)
{
    for (unsigned i = 0; !pp->nominates && i < pp->pairs.n; i++)
        if (pp->checks.begun_at != 0 && pp->pairs.items[i].valid_at >= pp->checks.begun_at)
            return true;
    return false;
}

static bool why_declined(const struct why *w, char *buf)
{
    bool is_so = is_declined(w->pp);

    if (is_so)
        (void)snprintf(buf, PATH_TEXT_MAX,
            "the direct path works, but %s finds that the relay is faster or loses less", w->peer);
    return is_so;
}

/* Explains that packets pass in one direction only: in the last round a frame of the peer came
 * in on a pair, and none of our pings there was answered. The peer answers every ping that it
 * gets, so it got none. */
static bool why_one_way(const struct why *w, char *buf)
{
    const struct path *pp = w->pp;
    char text[ENDPOINT_TEXT_MAX];

    for (unsigned i = 0; i < pp->pairs.n; i++) {
        const struct path_pair *pair = &pp->pairs.items[i];

        if (pp->checks.begun_at == 0 || pair->contact.heard_at <= pp->checks.begun_at ||
            pair->tried_at < pp->checks.begun_at || pair->valid_at >= pp->checks.begun_at)
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
    const struct path *pp = w->pp;

    if (pp->owner->self.nat.is_blocked || pp->side.nat.is_blocked)
        (void)snprintf(buf, PATH_TEXT_MAX, "UDP is blocked at %s: allow UDP out of it",
            pp->owner->self.nat.is_blocked ? w->self : w->peer);
    else if (!why_declined(w, buf) && !why_families(w, buf) && !why_nats(w, buf) &&
             !why_one_way(w, buf))
        (void)snprintf(buf, PATH_TEXT_MAX,
            "no path to %s answers (%u tried), so something drops UDP between the two: let in %s",
            w->peer, pp->pairs.n, w->ports);
}

/* The direct path was found to be worse than the relay. That holds as long as a pair answers: one
 * did in the last round, or a little before it. */
static bool is_worse_still(const struct path *pp, nsec_t now)
{
    if (!pp->choice.is_worse)
        return false;
    for (unsigned i = 0; i < pp->pairs.n; i++)
        if (pp->pairs.items[i].valid_at != 0 &&
            (pp->pairs.items[i].valid_at >= pp->checks.begun_at ||
                now - pp->pairs.items[i].valid_at < WORSE_KNOWN))
            return true;
    return false;
}

bool path__relay_is_better(const struct path *pp, nsec_t now)
{
    return pp->choice.pair == 0 && (is_worse_still(pp, now) || is_declined(pp));
}

/* Why it is not direct; "" when it is. */
static void explain_relayed(const struct path *pp, char buf[static PATH_TEXT_MAX], nsec_t now)
{
    struct why w = {pp, pp->owner->name, pp->peer.name, ""};

    buf[0] = '\0';
    format_ports(&w);
    if (pp->peer.policy == PATH_POLICY_OFF)
        (void)snprintf(buf, PATH_TEXT_MAX, "the edge is off: set its path to auto");
    else if (pp->peer.policy == PATH_POLICY_RELAY)
        (void)snprintf(buf, PATH_TEXT_MAX,
            "the edge's path or the network's topology says relay: set it to auto");
    else if (pp->choice.pair != 0)
        return;
    else if (!pp->has_side)
        (void)snprintf(buf, PATH_TEXT_MAX,
            "%s has told no addresses: it runs no weft agent, or has just come", w.peer);
    else if (pp->side.candidates.n == 0)
        (void)snprintf(buf, PATH_TEXT_MAX, "%s knows no address of its own", w.peer);
    else if (is_worse_still(pp, now))
        (void)snprintf(
            buf, PATH_TEXT_MAX, "the direct path works, but the relay is faster or loses less");
    else if (pp->choice.died_at != 0 && now - pp->choice.died_at < 60 * NSEC_PER_SEC)
        (void)snprintf(buf, PATH_TEXT_MAX,
            "the direct path stopped answering %lld s ago; it is tried again",
            (long long)((now - pp->choice.died_at) / NSEC_PER_SEC));
    else if (pp->checks.n_failed < ROUNDS_MIN || pp->choice.sent.pair != 0)
        (void)snprintf(buf, PATH_TEXT_MAX, "the ways to %s are being tried", w.peer);
    else
        why_silent(&w, buf);
}

void path__explain(const struct path *pp, char buf[static PATH_TEXT_MAX], nsec_t now)
{
    const char *full = pp->relay.is_asked ? "its relay is full, and there is no other one yet"
                       : pp->relay.avoids ? "a nearer relay is full"
                                          : NULL;
    char why[PATH_TEXT_MAX];

    explain_relayed(pp, why, now);
    if (full && pp->choice.pair == 0 && pp->peer.policy != PATH_POLICY_OFF)
        (void)snprintf(buf, PATH_TEXT_MAX, "%s; %.*s", full,
            (int)(PATH_TEXT_MAX - strlen(full) - sizeof("; ")), why);
    else
        (void)snprintf(buf, PATH_TEXT_MAX, "%s", why);
}

void path__event(struct path *pp, bool is_warning, const char *fmt, ...)
{
    struct paths_item *item = paths__add(pp->owner, pp, PATH_ACTION_EVENT);
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
    n = snprintf(item->text, PATH_TEXT_MAX, "%s: ", pp->peer.name);
    va_start(ap, fmt);
    (void)vsnprintf(item->text + n, (size_t)(PATH_TEXT_MAX - n), fmt, ap);
    va_end(ap);
}
