/* observe.c - see observe.h. */
#include "agent/reconcile/observe.h"

#include <errno.h>
#include <stdlib.h>

#include "mesh/object/fields.h"
#include "mesh/snapshot/snapshot.h"

/* A session is dead so long after its handshake (WireGuard whitepaper 6.1, REJECT_AFTER_TIME). */
#define SESSION_MAX (180 * NSEC_PER_SEC)

/* ---- peers over time ------------------------------------------------------------------------- */

void observe_deinit(struct observe *o)
{
    free(o->items);
    *o = (struct observe){0};
}

static int observe_compare(const void *a, const void *b)
{
    const struct observation *x = a;
    const struct observation *y = b;

    return x25519_public_compare(&x->key, &y->key);
}

const struct observation *observe_find(const struct observe *o, const struct x25519_public *key)
{
    struct observation wanted = {.key = *key};

    return o->n > 0 ? bsearch(&wanted, o->items, o->n, sizeof(*o->items), observe_compare) : NULL;
}

static struct observation observe_look(
    const struct observation *before, const struct wg_peer *p, nsec_t now, nsec_t wall)
{
    struct observation ob = {
        .key = p->key,
        .facts = p->facts,
        .endpoint = p->endpoint,
        .heard = p->facts.heard,
        .rate = p->rate,
    };

    /* An engine that does not say it has it where the endpoint follows the packets. One that is
     * pinned stays where it is: of an engine of an older version it says nothing. */
    if (endpoint_is_none(&ob.heard) && p->pin == PIN_NONE)
        ob.heard = p->endpoint;
    if (before) {
        ob.handshake_at = before->handshake_at;
        ob.unanswered_since = before->unanswered_since;
        if (ob.unanswered_since == 0 && p->facts.tx_bytes > before->facts.tx_bytes)
            ob.unanswered_since = now;
        /* A count that fell is that of a new engine, which knows the wanted endpoint. */
        if (p->facts.rx_bytes != before->facts.rx_bytes ||
            !endpoint_equal(&p->endpoint, &before->endpoint))
            ob.unanswered_since = 0;
    }
    if (p->facts.handshake_sec == 0) {
        ob.handshake_at = 0;
    } else if (!before) {
        /* Nobody saw it happen, and the clock may have been set back since. */
        nsec_t age = nsec_max(wall - p->facts.handshake_sec * NSEC_PER_SEC, 0);

        ob.handshake_at = nsec_max(now - age, 1);
    } else if (before->facts.handshake_sec != p->facts.handshake_sec ||
               before->facts.handshake_nsec != p->facts.handshake_nsec) {
        ob.handshake_at = now;
    }
    return ob;
}

int observe_take(struct observe *o, const struct wg_config *c, nsec_t now, nsec_t wall)
{
    struct observation *items = calloc(c->n_peers + 1, sizeof(*items));

    if (!items)
        return -ENOMEM;
    for (size_t i = 0; i < c->n_peers; i++)
        items[i] = observe_look(observe_find(o, &c->peers[i].key), &c->peers[i], now, wall);
    free(o->items);
    o->items = items;
    o->n = c->n_peers;
    o->rates = c->rates;
    o->shows_dscp = c->shows_dscp;
    return 0;
}

bool observation_has_session(const struct observation *ob, nsec_t now)
{
    return ob && ob->handshake_at != 0 && now - ob->handshake_at < SESSION_MAX;
}

bool observation_is_silent(const struct observation *ob, nsec_t now)
{
    return ob->unanswered_since != 0 && now - ob->unanswered_since >= OBSERVE_SILENCE_MAX;
}

int64_t observation_age_seconds(const struct observation *ob, nsec_t now)
{
    return ob && ob->handshake_at != 0 ? (now - ob->handshake_at) / NSEC_PER_SEC : -1;
}

/* ---- peers at a wrong endpoint --------------------------------------------------------------- */

/* Has the engine it anywhere but on the path that this node finds to it? A hub may be anywhere, but
 * not on this machine. */
static bool is_astray(
    const struct peer_suspects_facts *facts, const struct node *node, const struct observation *ob)
{
    if (endpoint_is_none(&ob->endpoint))
        return false;
    if (node->hub)
        return block_find_reserved(&ob->endpoint.addr) != NULL;
    return !facts->may_be_at(facts->ctx, node->meta.name, &ob->endpoint);
}

bool peer_suspects_next(
    struct peer_suspects *ps, const struct peer_suspects_facts *facts, struct peer_suspect *ret)
{
    const struct snapshot *s = facts->snapshot;

    while (ps->next < s->nodes.n) {
        const struct node *node = &s->nodes.items[ps->next++]->node;
        const struct observation *ob =
            node->side || node->hub ? observe_find(facts->seen, &node->key) : NULL;

        if (!ob || !is_astray(facts, node, ob))
            continue;
        *ret = (struct peer_suspect){.peer = ob, .node = node->meta.name};
        return true;
    }
    while (ps->next < s->nodes.n + facts->seen->n) {
        const struct observation *ob = &facts->seen->items[ps->next++ - s->nodes.n];

        if (!observation_is_silent(ob, facts->now))
            continue;
        *ret = (struct peer_suspect){.peer = ob};
        return true;
    }
    ps->next = 0;
    return false;
}

void peer_suspects_log(struct peer_suspects *ps, const struct peer_suspect *suspect, nsec_t now)
{
    const struct endpoint *at = &suspect->peer->endpoint;
    char text[ENDPOINT_TEXT_MAX];
    char key[X25519_BASE64_MAX];

    if (suspect->node)
        log_limited(&ps->limit, now, LOG_LEVEL_INFO,
            "the engine sends to %s at %s, which is not its path: back to that", suspect->node,
            endpoint_format(at, text));
    else
        log_limited(&ps->limit, now, LOG_LEVEL_INFO,
            "no answer from %s at %s, where it seemed to have moved: back to where it was",
            x25519_public_format(&suspect->peer->key, key), endpoint_format(at, text));
}
