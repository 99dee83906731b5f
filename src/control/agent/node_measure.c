/* node_measure.c - see node_measure.h. */
#include "agent/node_measure.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/measure_host.h"
#include "agent/paths/edge/reach.h"
#include "base/err.h"
#include "base/secret.h"
#include "base/text.h"
#include "measure/order.h"
#include "measure/service.h"
#include "measure/service_process.h"
#include "mesh/snapshot/snapshot.h"
#include "os/log.h"
#include "wire/measure_proof.h"

/** The key that checks the orders of one member. Wiped after use. */
struct node_measure_key {
    char name[NAME_MAX_LEN + 1]; /* of the member */
    struct x25519_public public;
    struct measure_proof_key key;
};

void node_measure_start(struct node_measure *nm, uv_loop_t *loop,
    const struct x25519_secret *secret, const char *interface, const char *socket_path,
    const struct rlimit *memlock)
{
    struct service_config config = {
        .interface = interface, .socket_path = nm->path, .port = PROBE_PORT};
    struct err e = ERR_NULL;

    nm->secret = secret;
    (void)snprintf(nm->path, sizeof(nm->path), "%s%s", socket_path, AGENT_MEASURE_SUFFIX);
    if (measure_host_new(&nm->host, loop, &config, memlock, &e) < 0)
        log_warning("weft preflight and weft bench will not find this node: %s", err_text(&e));
}

static void set_member(
    struct service_member *m, const struct node *node, const struct reach_peer *path)
{
    *m = (struct service_member){.address = node->address4, .is_hub = node->hub != NULL};
    (void)snprintf(m->name, sizeof(m->name), "%.*s", NAME_MAX_LEN, node->meta.name);
    (void)snprintf(m->hostname, sizeof(m->hostname), "%s", node->hostname ? node->hostname : "");
    if (!path)
        return;
    m->underlay = path->underlay;
    (void)snprintf(m->path, sizeof(m->path), "%s", path_kind_name(path->kind));
}

/* ---- keys ----------------------------------------------------------------------------------- */

static void forget_keys(struct node_measure *nm)
{
    if (nm->keys)
        secret_wipe(nm->keys, nm->n_keys * sizeof(*nm->keys));
    free(nm->keys);
    nm->keys = NULL;
    nm->n_keys = 0;
}

/* Keys of the members that there are now: those that are known, and a few new ones. What is not
 * derived yet is so by a later call; until then that member's orders are refused. Both lists are in
 * the order of the names. */
static void renew_keys(struct node_measure *nm, const struct snapshot *s)
{
    struct node_measure_key *keys = nm->secret ? calloc(s->nodes.n + 1, sizeof(*keys)) : NULL;
    const struct x25519_public *own = &snapshot_self(s)->key;
    unsigned budget = NODE_MEASURE_KEYS_AT_ONCE;
    size_t n = 0;
    size_t old = 0;

    for (size_t i = 0; keys && i < s->nodes.n; i++) {
        const struct node *node = &s->nodes.items[i]->node;
        struct node_measure_key *k = &keys[n];

        while (old < nm->n_keys && strcmp(nm->keys[old].name, node->meta.name) < 0)
            old++;
        if (old < nm->n_keys && strcmp(nm->keys[old].name, node->meta.name) == 0 &&
            x25519_public_equal(&nm->keys[old].public, &node->key)) {
            keys[n++] = nm->keys[old];
            continue;
        }
        if (budget == 0 || !node_has_agent(node) || x25519_public_equal(&node->key, own))
            continue;
        budget--;
        if (!measure_proof_key_make(&k->key, nm->secret, &node->key, &node->key, own))
            continue;
        (void)snprintf(k->name, sizeof(k->name), "%.*s", NAME_MAX_LEN, node->meta.name);
        k->public = node->key;
        n++;
    }
    if (!keys)
        return;
    forget_keys(nm);
    nm->keys = keys;
    nm->n_keys = n;
}

/* @at: where in the keys the last one was found; members come in the order of the keys. */
static void add_key(const struct node_measure *nm, struct service_member *m, size_t *at)
{
    while (*at < nm->n_keys && strcmp(nm->keys[*at].name, m->name) < 0)
        (*at)++;
    m->has_key = *at < nm->n_keys && strcmp(nm->keys[*at].name, m->name) == 0;
    if (m->has_key)
        m->key = nm->keys[*at].key;
}

/* ---- members -------------------------------------------------------------------------------- */

size_t node_measure_list(struct node_measure *nm, const struct snapshot *s,
    const struct reach *reach, struct service_member *ret, size_t cap)
{
    size_t n = s->nodes.n < cap ? s->nodes.n : cap;
    size_t key = 0;

    renew_keys(nm, s);

    for (size_t i = 0; i < n; i++) {
        const struct node *node = &s->nodes.items[i]->node;

        set_member(&ret[i], node, reach_find(reach, node->meta.name));
        add_key(nm, &ret[i], &key);
    }
    return n;
}

void node_measure_tell(struct node_measure *nm, const struct snapshot *s, const struct reach *reach)
{
    struct service_member *members;

    if (!nm->host)
        return;
    members = calloc(s->nodes.n + 1, sizeof(*members));
    if (members)
        measure_host_tell(nm->host, &snapshot_self(s)->address4, members,
            node_measure_list(nm, s, reach, members, SERVICE_WIRE_MEMBERS_MAX));
    if (members)
        secret_wipe(members, s->nodes.n * sizeof(*members));
    free(members);
}

void node_measure_stop(struct node_measure *nm)
{
    nm->host = measure_host_free(nm->host);
    forget_keys(nm);
}

/* ---- orders of this node --------------------------------------------------------------------- */

static bool prove_to(const struct x25519_secret *secret, const struct snapshot *s,
    const struct order *o, const char *address, const json_t *challenge, json_t *proofs)
{
    const struct x25519_public *own = &snapshot_self(s)->key;
    const char *text = json_string_value(challenge);
    char mac_text[2 * MEASURE_PROOF_MAC + 1];
    uint8_t mac[MEASURE_PROOF_MAC];
    struct measure_proof_key key;
    struct order_challenge c;
    struct measure_proof p;
    struct ip_addr a;

    if (!text || !hex_decode(text, c.b, sizeof(c.b)) || ip_addr_parse(&a, address, NULL) < 0)
        return false;
    for (size_t i = 0; i < s->nodes.n; i++) {
        const struct node *node = &s->nodes.items[i]->node;

        if (!ip_addr_equal(&node->address4, &a) ||
            !measure_proof_key_make(&key, secret, &node->key, own, &node->key))
            continue;
        p = order_proof_input(o, &c);
        measure_proof_make(mac, &key, &p);
        secret_wipe(&key, sizeof(key));
        hex_encode(mac, sizeof(mac), mac_text);
        return json_object_set_new(proofs, address, json_string(mac_text)) == 0;
    }
    return true;
}

int node_measure_prove(const struct x25519_secret *secret, const struct snapshot *s,
    const json_t *asked, json_t **ret, struct err *e)
{
    const json_t *challenges = json_object_get(asked, "challenges");
    json_auto_t *order = json_copy((json_t *)asked);
    json_auto_t *proofs = json_object();
    struct order o = ORDER_NULL;
    const char *address;
    json_t *challenge;
    int r;

    if (!order || !proofs || json_object_set_new(order, "op", json_string("session")) < 0)
        return err_set(e, -EINVAL, "the body is no object with \"id\", \"purpose\", \"seconds\"");
    r = order_decode(&o, order, e);
    if (r < 0)
        return r;
    if (!json_is_object(challenges) || json_object_size(challenges) > ORDER_NODES_MAX)
        r = err_set(
            e, -EINVAL, "\"challenges\" is no object of at most %d addresses", ORDER_NODES_MAX);
    if (r == 0)
        json_object_foreach((json_t *)challenges, address, challenge)
            if (r == 0 && !prove_to(secret, s, &o, address, challenge, proofs))
                r = err_set(e, -EINVAL, "\"challenges\" has what is no address with 32 hex digits");
    order_deinit(&o);
    if (r == 0)
        *ret = json_pack("{s:O}", "proofs", proofs);
    return r == 0 && !*ret ? -ENOMEM : r;
}
