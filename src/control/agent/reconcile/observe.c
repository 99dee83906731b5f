/* observe.c - see observe.h. */
#include "agent/reconcile/observe.h"

#include <errno.h>
#include <stdlib.h>

#include "base/metrics.h"
#include "mesh/object/fields.h"
#include "mesh/snapshot/snapshot.h"
#include "net/socket/udp_batch.h"
#include "packet/merging.h"

/* A session is dead so long after its handshake (WireGuard whitepaper 6.1, REJECT_AFTER_TIME). */
#define SESSION_MAX (180 * NSEC_PER_SEC)
/* Bytes of a keepalive, which is a data message without data (whitepaper 5.4.6). */
#define KEEPALIVE_BYTES 32

/* ---- peers over time ------------------------------------------------------------------------- */

static void free_items(struct observe *o)
{
    for (size_t i = 0; i < o->n; i++)
        free(o->items[i].loss);
    free(o->items);
}

void observe_deinit(struct observe *o)
{
    free_items(o);
    *o = (struct observe){0};
}

static int observe_compare(const void *a, const void *b)
{
    const struct observation *x = a;
    const struct observation *y = b;

    return x25519_public_compare(&x->key, &y->key);
}

static struct observation *find(const struct observe *o, const struct x25519_public *key)
{
    struct observation wanted = {.key = *key};

    struct observation *found =
        o->n > 0 ? bsearch(&wanted, o->items, o->n, sizeof(*o->items), observe_compare) : NULL;

    for (size_t i = 0; !found && o->has_others && i < o->n; i++)
        if (x25519_public_equal(&o->items[i].other, key))
            found = &o->items[i];
    return found;
}

/* What was seen of that peer before, which may have had its keys the other way round. */
static struct observation *find_before(const struct observe *o, const struct wg_peer *p)
{
    struct observation *before = find(o, &p->key);

    return before || x25519_public_is_none(&p->next_key) ? before : find(o, &p->next_key);
}

const struct observation *observe_find(const struct observe *o, const struct x25519_public *key)
{
    return find(o, key);
}

/* Has more been sent since @since, when @from bytes had been, than keepalives: those of the
 * engine's interval, and the one that follows what was received? */
static bool has_sent_more(const struct observation *ob, nsec_t since, uint64_t from, nsec_t now)
{
    uint64_t n = ob->keepalive ? (uint64_t)((now - since) / NSEC_PER_SEC / ob->keepalive) + 1 : 0;

    return ob->facts.tx_bytes > from && ob->facts.tx_bytes - from > (n + 1) * KEEPALIVE_BYTES;
}

/* What was sent late in a session, and so should have renewed it. */
static void look_at_renewal(struct observation *ob, const struct observation *before, nsec_t now)
{
    bool is_same = ob->handshake_at == before->handshake_at && ob->handshake_at != 0;

    if (!is_same || now - ob->handshake_at < OBSERVE_RENEW_AFTER)
        return;
    if (before->renew_since != 0 &&
        has_sent_more(before, before->renew_since, before->renew_from, now)) {
        ob->renew_since = before->renew_since;
        ob->renew_from = before->renew_from;
    } else if (ob->facts.tx_bytes > before->facts.tx_bytes) {
        ob->renew_since = now;
        ob->renew_from = before->facts.tx_bytes;
    }
}

static struct observation observe_look(
    const struct observation *before, const struct wg_peer *p, nsec_t now, nsec_t wall)
{
    struct observation ob = {
        .key = p->key,
        .other = p->next_key,
        .facts = p->facts,
        .endpoint = p->endpoint,
        .heard = p->facts.heard,
        .rate = p->rate,
        .keepalive = p->keepalive,
    };

    /* An engine that does not say it has it where the endpoint follows the packets. One that is
     * pinned stays where it is: of an engine of an older version it says nothing. */
    if (endpoint_is_none(&ob.heard) && p->pin == PIN_NONE)
        ob.heard = p->endpoint;
    if (before) {
        ob.handshake_at = before->handshake_at;
        ob.heard_at = p->facts.rx_bytes > before->facts.rx_bytes ? now : before->heard_at;
        ob.unanswered_since = before->unanswered_since;
        ob.unanswered_from = before->unanswered_from;
        if (ob.unanswered_since == 0 && p->facts.tx_bytes > before->facts.tx_bytes) {
            ob.unanswered_since = now;
            ob.unanswered_from = before->facts.tx_bytes;
        }
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
    if (before)
        look_at_renewal(&ob, before, now);
    return ob;
}

/* What a count has grown by. One that fell is that of a new engine, or of a peer made anew. */
static uint64_t growth(uint64_t before, uint64_t now)
{
    return now > before ? now - before : 0;
}

/* Datagrams that have come from all peers since the last look. */
static uint64_t count_received(const struct observe *o, const struct wg_config *c)
{
    uint64_t n = 0;

    for (size_t i = 0; i < c->n_peers; i++) {
        const struct observation *before = find_before(o, &c->peers[i]);

        if (before)
            n += growth(before->facts.arrivals.received, c->peers[i].facts.arrivals.received);
    }
    return n;
}

/*
 * Adds to the track of @ob, which is @before's, if it has one, what has come since then, of
 * @all_received from all peers; of what this machine dropped itself, @dropped at most, it has its
 * part. True: its loss began or ended, is much worse than usual or no more, or is known now, or
 * unknown now.
 */
static bool track_loss(struct observation *ob, struct observation *before, uint64_t all_received,
    uint64_t dropped, nsec_t now)
{
    const struct arrivals *a = &ob->facts.arrivals;
    bool was_known = before && before->loss && before->loss->is_known;
    enum loss_level level;
    uint64_t received;
    bool was_worse;
    double share;

    if (!before || a->received < LOSS_PACKETS_MIN)
        return was_known;
    ob->loss = before->loss ? before->loss : calloc(1, sizeof(*ob->loss));
    before->loss = NULL;
    if (!ob->loss)
        return was_known;
    received = growth(before->facts.arrivals.received, a->received);
    share = all_received > 0 ? (double)received / (double)all_received : 1;
    level = ob->loss->level;
    was_worse = ob->loss->is_worse;
    loss_track_add(ob->loss, received, growth(before->facts.arrivals.lost, a->lost),
        (uint64_t)(share * (double)dropped + 0.5), now);
    return ob->loss->level != level || ob->loss->is_worse != was_worse ||
           ob->loss->is_known != was_known;
}

static void take_line(struct observe *o, const struct relay_line_report *line)
{
    static const struct relay_line_report none = {.rate = 0};
    const struct relay_line_report *now = line ? line : &none;

    o->has_new_line = o->has_line != (line != NULL) || o->line.level != now->level ||
                      !path_relay_notice_equal(&o->line.notice, &now->notice);
    o->has_line = line != NULL;
    o->line = *now;
}

static void take_merging(struct observe *o, const struct wg_config *c)
{
    bool was_apart = observe_arrives_apart(o);

    o->merging_ifindex = c->merging_ifindex;
    o->merging_percent = c->merging_percent;
    o->merging_age_s = c->merging_age_s;
    o->has_new_merging = was_apart != observe_arrives_apart(o);
}

int observe_take(struct observe *o, const struct wg_config *c, nsec_t now, nsec_t wall)
{
    uint64_t dropped = growth(o->socket_drops, c->socket_drops) * UDP_RUN_SEGMENTS_MAX;
    uint64_t all_received = count_received(o, c);
    struct observation *items = calloc(c->n_peers + 1, sizeof(*items));
    bool has_others = false;

    if (!items)
        return -ENOMEM;
    o->has_new_loss = false;
    for (size_t i = 0; i < c->n_peers; i++) {
        struct observation *before = find_before(o, &c->peers[i]);

        items[i] = observe_look(before, &c->peers[i], now, wall);
        has_others |= !x25519_public_is_none(&items[i].other);
        o->has_new_loss |= track_loss(&items[i], before, all_received, dropped, now);
    }
    free_items(o);
    o->items = items;
    o->has_others = has_others;
    o->socket_drops = c->socket_drops;
    take_merging(o, c);
    take_line(o, c->line);
    o->n = c->n_peers;
    o->rates = c->rates;
    o->shows_dscp = c->shows_dscp;
    return 0;
}

bool observe_arrives_apart(const struct observe *o)
{
    return merging_is_low(
        &(struct merging_seen){.ifindex = o->merging_ifindex, .percent = o->merging_percent});
}

struct loss_rate observation_loss(const struct observation *ob, nsec_t now)
{
    if (!ob || !ob->loss || !ob->loss->is_known)
        return (struct loss_rate){.packets = 0};
    return loss_track_rate(ob->loss, now);
}

void observe_add_metrics(const struct observe *o, const struct snapshot *s, struct metrics *m)
{
    bool is_counted = false;

    for (size_t i = 0; i < s->nodes.n; i++) {
        const struct node *node = &s->nodes.items[i]->node;
        const struct observation *ob = observe_find(o, &node->key);
        const char *const *labels = METRIC_LABELS(node->meta.name);

        if (!ob || ob->facts.arrivals.received == 0)
            continue;
        is_counted = true;
        metrics_add_labelled(m, METRIC_PEER_RECEIVED, labels, (double)ob->facts.arrivals.received);
        metrics_add_labelled(m, METRIC_PEER_LOST, labels, (double)ob->facts.arrivals.lost);
        metrics_add_labelled(
            m, METRIC_PEER_REORDERED, labels, (double)ob->facts.arrivals.reordered);
    }
    if (is_counted)
        metrics_add(m, METRIC_SOCKET_DROPS, (double)o->socket_drops);
    if (o->has_line) {
        metrics_add(m, METRIC_RELAY_LINE_RATE, (double)o->line.rate);
        metrics_add(m, METRIC_RELAY_LINE_CAPACITY, (double)o->line.capacity);
    }
}

bool observation_has_session(const struct observation *ob, nsec_t now)
{
    return ob && ob->handshake_at != 0 && now - ob->handshake_at < SESSION_MAX;
}

bool observation_is_silent(const struct observation *ob, nsec_t now)
{
    return ob->unanswered_since != 0 && now - ob->unanswered_since >= OBSERVE_SILENCE_MAX;
}

nsec_t observation_deaf_since(const struct observation *ob, nsec_t least, nsec_t now)
{
    if (!ob || ob->unanswered_since == 0 || now - ob->unanswered_since < least ||
        !has_sent_more(ob, ob->unanswered_since, ob->unanswered_from, now))
        return 0;
    return ob->unanswered_since;
}

nsec_t observation_renewal_due(const struct observation *ob, nsec_t now)
{
    if (!ob || ob->renew_since == 0 || !has_sent_more(ob, ob->renew_since, ob->renew_from, now))
        return 0;
    return now - ob->renew_since;
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
