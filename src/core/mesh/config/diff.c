/* diff.c - see diff.h. */
#include "diff.h"

#include <errno.h>
#include <stdlib.h>

#include "base/secret.h"

void diff_deinit(struct diff *d)
{
    for (size_t i = 0; i < d->n_peers; i++)
        wg_peer_deinit(&d->peers[i].peer);
    free(d->peers);
    *d = (struct diff)DIFF_NULL;
}

unsigned diff_count_rates(const struct diff *d)
{
    unsigned n = d->set_rate;

    for (unsigned i = 0; i < TRAFFIC_CLASS_N; i++)
        n += d->set_class_rates[i];
    return n;
}

bool diff_is_empty(const struct diff *d)
{
    return !d->set_key && !d->set_next_key && !d->set_initiate_with_next && !d->set_listen_port &&
           !d->set_fwmark && !d->set_relay && !d->set_shows_dscp && diff_count_rates(d) == 0 &&
           d->n_peers == 0;
}

/* @change: all but its peer, which is a copy of @peer. 0 or -ENOMEM. */
static int add_change(struct diff *d, struct diff_peer change, const struct wg_peer *peer)
{
    struct diff_peer *peers = secret_grow(d->peers, d->n_peers, sizeof(*peers), &d->cap_peers);
    int r;

    if (!peers)
        return -ENOMEM;
    d->peers = peers;
    r = wg_peer_copy(&change.peer, peer);
    if (r == 0)
        d->peers[d->n_peers++] = change;
    return r;
}

static int add_peer(struct diff *d, const struct wg_peer *want)
{
    struct diff_peer change = {
        .op = DIFF_OP_ADD,
        .set_next_key = !x25519_public_is_none(&want->next_key),
        .set_initiate_with_current = want->initiate_with_current,
        .set_psk = !secret_is_zero(want->psk.b, sizeof(want->psk.b)),
        .set_endpoint = !endpoint_is_none(&want->endpoint),
        .set_keepalive = want->keepalive != 0,
        .set_cipher = !noise_choice_is_null(want->cipher),
        .set_pin = want->pin != PIN_NONE,
        .set_relayed = want->is_relayed,
        .set_mtu = want->mtu != 0,
        .set_rate = want->rate != 0,
        .set_allowed = true,
    };

    return add_change(d, change, want);
}

static int update_peer(struct diff *d, const struct wg_peer *have, const struct wg_peer *want,
    const struct wg_peer *applied)
{
    bool is_replaced = !x25519_public_equal(&have->key, &want->key);
    struct diff_peer change = {
        .op = DIFF_OP_UPDATE,
        .is_replaced = is_replaced,
        .set_next_key = is_replaced ? !x25519_public_is_none(&want->next_key)
                                    : !x25519_public_equal(&have->next_key, &want->next_key),
        .set_initiate_with_current = have->initiate_with_current != want->initiate_with_current,
        .set_psk = !secret_equal(have->psk.b, want->psk.b, sizeof(want->psk.b)),
        .set_endpoint = !endpoint_is_none(&want->endpoint) &&
                        !endpoint_equal(&have->endpoint, &want->endpoint) &&
                        (endpoint_is_none(&have->endpoint) || !applied ||
                            !endpoint_equal(&applied->endpoint, &want->endpoint)),
        .set_keepalive = have->keepalive != want->keepalive,
        .set_cipher = !noise_choice_equal(have->cipher, want->cipher),
        .set_pin = have->pin != want->pin,
        .set_relayed = have->is_relayed != want->is_relayed,
        .set_mtu = have->mtu != want->mtu,
        .set_rate = have->rate != want->rate,
        .set_allowed = !wg_peer_allows_equal(have, want),
    };

    if (is_replaced)
        change.replaces = have->key;
    if (!is_replaced && !change.set_next_key && !change.set_initiate_with_current &&
        !change.set_psk && !change.set_endpoint && !change.set_keepalive && !change.set_cipher &&
        !change.set_pin && !change.set_relayed && !change.set_mtu && !change.set_rate &&
        !change.set_allowed)
        return 0;
    return add_change(d, change, want);
}

/** A walk through the peers of a sorted configuration, beside those of another one. */
struct walk {
    const struct wg_config *config; /* NULL: it has no peers */
    size_t next;
};

/* Lends the peer of that key; NULL: there is none. The keys of one walk come in ascending order. */
static const struct wg_peer *walk_to(struct walk *w, const struct x25519_public *key)
{
    while (w->config && w->next < w->config->n_peers) {
        const struct wg_peer *p = &w->config->peers[w->next];
        int order = x25519_public_compare(&p->key, key);

        if (order == 0)
            return p;
        if (order > 0)
            break;
        w->next++;
    }
    return NULL;
}

/* Does @peer, which is wanted no more under its key, go on under its next one? */
static bool goes_on(
    const struct wg_peer *peer, const struct wg_config *have, const struct wg_config *want)
{
    return !x25519_public_is_none(&peer->next_key) && !wg_config_find(have, &peer->next_key) &&
           !wg_config_find(want, &peer->key) && wg_config_find(want, &peer->next_key);
}

/* The peer of @have that goes on under @key; NULL: none does. */
static const struct wg_peer *find_before(
    const struct wg_config *have, const struct wg_config *want, const struct x25519_public *key)
{
    for (size_t i = 0; i < have->n_peers; i++) {
        const struct wg_peer *peer = &have->peers[i];

        if (x25519_public_equal(&peer->next_key, key))
            return goes_on(peer, have, want) ? peer : NULL;
    }
    return NULL;
}

static int remove_unwanted(
    struct diff *d, const struct wg_config *have, const struct wg_config *want)
{
    struct walk wanted = {.config = want};
    int r = 0;

    for (size_t i = 0; r == 0 && i < have->n_peers; i++) {
        struct wg_peer gone = {.key = have->peers[i].key};

        if (!walk_to(&wanted, &gone.key) && !goes_on(&have->peers[i], have, want))
            r = add_change(d, (struct diff_peer){.op = DIFF_OP_REMOVE}, &gone);
    }
    return r;
}

static int add_and_update(struct diff *d, const struct wg_config *have,
    const struct wg_config *want, const struct wg_config *applied)
{
    bool has_next_keys = wg_config_has_next_keys(have);
    struct walk had = {.config = have};
    struct walk was = {.config = applied};
    int r = 0;

    for (size_t i = 0; r == 0 && i < want->n_peers; i++) {
        const struct wg_peer *w = &want->peers[i];
        const struct wg_peer *h = walk_to(&had, &w->key);
        const struct wg_peer *before =
            !h && has_next_keys ? find_before(have, want, &w->key) : NULL;

        if (h)
            r = update_peer(d, h, w, walk_to(&was, &w->key));
        else if (before)
            r = update_peer(d, before, w, applied ? wg_config_find(applied, &before->key) : NULL);
        else
            r = add_peer(d, w);
    }
    return r;
}

int diff_make(struct diff *ret, const struct wg_config *have, const struct wg_config *want,
    const struct wg_config *applied)
{
    struct diff d = DIFF_NULL;
    int r = remove_unwanted(&d, have, want);

    if (r == 0)
        r = add_and_update(&d, have, want, applied);
    if (r < 0) {
        diff_deinit(&d);
        return r;
    }
    d.set_key = !x25519_public_equal(&want->public, &have->public);
    d.set_next_key = !x25519_public_equal(&want->next_public, &have->next_public);
    d.set_initiate_with_next = want->initiate_with_next != have->initiate_with_next;
    d.initiate_with_next = want->initiate_with_next;
    /* Where any will do, one that cannot be had is given up for another. */
    d.set_listen_port =
        want->listen_port != 0 ? want->listen_port != have->listen_port : have->listen_errno != 0;
    d.listen_port = want->listen_port;
    d.set_fwmark = want->fwmark != have->fwmark;
    d.fwmark = want->fwmark;
    d.set_relay = want->is_relay != have->is_relay;
    d.is_relay = want->is_relay;
    d.set_shows_dscp = want->shows_dscp != have->shows_dscp;
    d.shows_dscp = want->shows_dscp;
    /* Only the rates that differ: each one that is set begins anew. */
    d.rates = want->rates;
    d.set_rate = have->rates.all != want->rates.all;
    for (unsigned i = 0; i < TRAFFIC_CLASS_N; i++)
        d.set_class_rates[i] = have->rates.classes[i] != want->rates.classes[i];
    *ret = d;
    return 0;
}
