/* node_trust.c - see node_trust.h. */
#include "agent/node_trust.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/reconcile/observe.h"
#include "agent/state/state.h"
#include "base/err.h"
#include "mesh/object/fields.h"
#include "mesh/object/object.h"
#include "mesh/snapshot/snapshot.h"
#include "mesh/snapshot/watch_event.h"

/* All peers are looked at so often; when each was heard is worth a write so often. */
#define LOOK_EACH (60 * NSEC_PER_SEC)
#define SAVE_EACH (300 * NSEC_PER_SEC)
/* What has changed is written at most so often. */
#define CHANGE_EACH (5 * NSEC_PER_SEC)

/* ---- facts ----------------------------------------------------------------------------------- */

static int64_t answered(void *ctx, const struct x25519_public *key)
{
    const struct node_trust_facts *facts = ctx;
    const struct observation *ob = facts->seen ? observe_find(facts->seen, key) : NULL;
    nsec_t at = ob ? nsec_max(ob->heard_at, ob->handshake_at) : 0;

    return at == 0 ? 0 : (facts->wall - (facts->now - at)) / NSEC_PER_SEC;
}

/* @facts is borrowed as long as what is returned is used. */
static struct first_sight_facts facts_of(const struct node_trust_facts *facts)
{
    return (struct first_sight_facts){.at = facts->wall / NSEC_PER_SEC,
        .answered = answered,
        .ctx = (void *)(uintptr_t)facts,
        .has_one_key = facts->has_one_key};
}

/* ---- the file -------------------------------------------------------------------------------- */

static int read_file(struct node_trust *t, const char *self, struct err *e)
{
    json_t *json = NULL;
    int r = state_read_peers(&json, t->dir, e);

    if (r == 0)
        r = first_sight_decode(&t->memory, json, "peers.json", e);
    json_decref(json);
    if (r == 0 && strcmp(t->memory.self, self) != 0) {
        r = err_set(e, -EINVAL, "peers.json is of the node \"%s\"", t->memory.self);
        first_sight_deinit(&t->memory);
    }
    return r;
}

/* The nodes of a snapshot that was kept have the keys that they had then, or the next ones. */
static void set_keys(const struct node_trust *t, struct node *node)
{
    const struct first_sight_peer *peer = first_sight_find(&t->memory, node->meta.name);

    if (peer && peer->seen_at != 0 && peer->removed_at == 0 &&
        (x25519_public_equal(&node->key, &peer->held.key) ||
            x25519_public_equal(&node->key, &peer->next)))
        first_sight_set_keys(peer, node);
}

void node_trust_open(struct node_trust *t, const char *dir, struct snapshot *s, nsec_t held_for,
    const struct node_trust_facts *facts)
{
    struct first_sight_facts known = facts_of(facts);
    struct err e = ERR_NULL;
    int r;

    *t = (struct node_trust){.memory = FIRST_SIGHT_NULL, .dir = dir, .saved_at = facts->now};
    r = read_file(t, s->self, &e);
    if (r < 0) {
        t->is_damaged = true;
        log_error("%s; it is left as it is, and who the peers are is not kept until it is removed",
            err_text(&e));
    }
    if (r != 0) {
        t->memory = (struct first_sight)FIRST_SIGHT_NULL;
        (void)snprintf(t->memory.self, sizeof(t->memory.self), "%s", s->self);
        t->memory.asks = s->network.trust_policy == TRUST_POLICY_ASK;
    }
    if (held_for > 0)
        t->memory.held_for = held_for / NSEC_PER_SEC;
    for (size_t i = 0; i < s->nodes.n; i++) {
        struct node *node = &s->nodes.items[i]->node;

        if (r != 0)
            (void)first_sight_node(&t->memory, node, &known);
        set_keys(t, node);
    }
}

static void save(struct node_trust *t, nsec_t now)
{
    struct err e = ERR_NULL;

    t->saved_at = now;
    t->memory.has_changed = false;
    if (t->is_damaged)
        return;
    if (!t->dir || state_write_peers(first_sight_encode(&t->memory), t->dir, &e) == 0) {
        t->has_new_keys = false;
    } else {
        t->memory.has_changed = true;
        log_limited(
            &t->limit, now, LOG_LEVEL_WARNING, "who the peers are is not kept: %s", err_text(&e));
    }
}

/* ---- who is left out ------------------------------------------------------------------------- */

static void drop(struct node_trust *t, const char *name)
{
    for (unsigned i = 0; i < t->n_left_out; i++) {
        if (strcmp(t->left_out[i]->meta.name, name) != 0)
            continue;
        object_deinit(t->left_out[i]);
        free(t->left_out[i]);
        t->left_out[i] = t->left_out[--t->n_left_out];
        return;
    }
}

/* Takes @o. One that has no room is in the hub's next snapshot again. */
static void set_aside(struct node_trust *t, struct object *o)
{
    struct object *kept;

    drop(t, o->meta.name);
    kept = t->n_left_out < NODE_TRUST_LEFT_OUT_MAX ? malloc(sizeof(*kept)) : NULL;
    if (!kept) {
        object_deinit(o);
        return;
    }
    *kept = *o;
    *o = (struct object)OBJECT_NULL;
    t->left_out[t->n_left_out++] = kept;
}

void node_trust_close(struct node_trust *t, bool keeps, const struct node_trust_facts *facts)
{
    if (keeps)
        save(t, facts->now);
    while (t->n_left_out > 0)
        drop(t, t->left_out[0]->meta.name);
    first_sight_deinit(&t->memory);
}

/* ---- events ---------------------------------------------------------------------------------- */

static void log_change(
    struct node_trust *t, const struct node *node, enum first_sight_verdict verdict, nsec_t now)
{
    const struct first_sight_peer *peer = first_sight_find(&t->memory, node->meta.name);
    char text[FIRST_SIGHT_TEXT_MAX];
    char key[X25519_BASE64_MAX];

    if (peer && verdict != FIRST_SIGHT_BELIEVED)
        log_limited(&t->limit, now, LOG_LEVEL_INFO,
            "the hub says that %s has another %s, which is not believed now: its key would be %s",
            peer->name,
            first_sight_text(peer->seen_at != 0 ? first_sight_changes(&peer->held, &peer->offered)
                                                : FIRST_SIGHT_ADDRESS,
                text),
            x25519_public_format(&peer->offered.key, key));
}

/* A policy that asks is not taken back by a hub: only node_trust_take() of the node itself does. */
static void take_policy(struct node_trust *t, const struct network *network)
{
    if (network->trust_policy != TRUST_POLICY_ASK || t->memory.asks)
        return;
    t->memory.asks = t->memory.has_changed = true;
}

/* What its keys have signed is believed before the key is looked at that the hub says it has. */
static void follow_keys(
    struct node_trust *t, struct node *node, const struct node_trust_facts *facts)
{
    struct first_sight_facts known = facts_of(facts);
    struct err e = ERR_NULL;
    int r = first_sight_chain(&t->memory, node, node->meta.network, &known, &e);

    t->has_new_keys |= r == 1;
    if (r == 1)
        log_info("%s goes on with a key that the one before has signed", node->meta.name);
    if (r < 0)
        log_limited(&t->limit, facts->now, LOG_LEVEL_INFO,
            "what the hub shows of the keys of %s is not believed: %s", node->meta.name,
            err_text(&e));
}

static void filter_node(
    struct node_trust *t, struct object *o, const struct node_trust_facts *facts)
{
    struct first_sight_facts known = facts_of(facts);
    bool is_known = first_sight_find(&t->memory, o->meta.name) != NULL;
    bool was_offered = first_sight_find(&t->memory, o->meta.name) &&
                       first_sight_find(&t->memory, o->meta.name)->offered_at != 0;
    struct object said = OBJECT_NULL;
    enum first_sight_verdict verdict;

    follow_keys(t, &o->node, facts);
    verdict = first_sight_node(&t->memory, &o->node, &known);
    if (!is_known && verdict == FIRST_SIGHT_BELIEVED) {
        follow_keys(t, &o->node, facts);
        set_keys(t, &o->node);
    }
    if (!was_offered)
        log_change(t, &o->node, verdict, facts->now);
    if (verdict != FIRST_SIGHT_LEFT_OUT) {
        drop(t, o->meta.name);
        return;
    }
    said = *o;
    *o = (struct object)OBJECT_NULL;
    set_aside(t, &said);
}

static void filter_snapshot(
    struct node_trust *t, struct snapshot *s, const struct node_trust_facts *facts)
{
    struct first_sight_facts known = facts_of(facts);
    size_t n = 0;

    first_sight_members(&t->memory, s, &known);
    while (t->n_left_out > 0)
        drop(t, t->left_out[0]->meta.name);
    for (size_t i = 0; i < s->nodes.n; i++) {
        struct object *o = s->nodes.items[i];

        filter_node(t, o, facts);
        if (o->kind)
            s->nodes.items[n++] = o;
        else
            free(o);
    }
    s->nodes.n = n;
    t->memory.has_changed |= !t->memory.has_members;
    t->memory.has_members = true;
}

void node_trust_filter(
    struct node_trust *t, struct watch_event *ev, const struct node_trust_facts *facts)
{
    struct first_sight_facts known = facts_of(facts);

    if (ev->kind == WATCH_EVENT_SNAPSHOT) {
        take_policy(t, &ev->snapshot.network);
        filter_snapshot(t, &ev->snapshot, facts);
    } else if (ev->kind == WATCH_EVENT_PUT && ev->object.kind == &network_kind) {
        take_policy(t, &ev->object.network);
    } else if (ev->kind == WATCH_EVENT_PUT && ev->object.kind == &node_kind) {
        filter_node(t, &ev->object, facts);
    } else if (ev->kind == WATCH_EVENT_DELETE && ev->deleted.kind == &node_kind) {
        first_sight_gone(&t->memory, ev->deleted.name, &known);
        drop(t, ev->deleted.name);
    }
}

/* ---- time, and the operator ------------------------------------------------------------------ */

/* Where what is believed goes. */
struct taking {
    struct node_trust *t;
    struct snapshot *s;
    bool has_changed;
};

static struct object *find_left_out(struct node_trust *t, const char *name)
{
    for (unsigned i = 0; i < t->n_left_out; i++)
        if (strcmp(t->left_out[i]->meta.name, name) == 0)
            return t->left_out[i];
    return NULL;
}

/* What a hub says of a hub beside what is held comes with its next word: the snapshot has only what
 * was believed. */
static void on_taken(void *ctx, const struct first_sight_peer *peer)
{
    struct taking *taking = ctx;
    struct object *kept = find_left_out(taking->t, peer->name);
    const struct node *node = snapshot_find_node(taking->s, peer->name);
    struct err e = ERR_NULL;

    taking->has_changed = true;
    if (peer->calls_next) {
        taking->t->has_new_keys = true;
        log_info("%s has not been heard under its key for long, and is called under its next one",
            peer->name);
    } else {
        log_warning("%s is known under another %s from now on", peer->name,
            peer->changed & FIRST_SIGHT_KEY ? "key" : "address");
    }
    if (kept) {
        struct object o = *kept;

        *kept = (struct object)OBJECT_NULL;
        (void)snprintf(kept->meta.name, sizeof(kept->meta.name), "%.*s", NAME_MAX_LEN, peer->name);
        drop(taking->t, peer->name);
        if (snapshot_put(taking->s, &o, &e) != 0)
            log_warning("%s is not taken: %s", peer->name, err_text(&e));
    } else if (node) {
        /* The snapshot is the agent's own; what it lends is const for others. */
        first_sight_apply(peer, (struct node *)(uintptr_t)node);
    }
}

bool node_trust_look(struct node_trust *t, struct snapshot *s, const struct node_trust_facts *facts)
{
    struct first_sight_facts known = facts_of(facts);
    struct taking taking = {.t = t, .s = s};

    if (t->memory.n_offered > 0 || facts->now - t->looked_at >= LOOK_EACH) {
        t->looked_at = facts->now;
        first_sight_look(&t->memory, &known, on_taken, &taking);
    }
    /* Nobody is told of a key that would be forgotten. */
    if (t->has_new_keys ||
        facts->now - t->saved_at >= (t->memory.has_changed ? CHANGE_EACH : SAVE_EACH))
        save(t, facts->now);
    return taking.has_changed;
}

/* The second key of that node under which it has called; NULL: none. With an engine that has one
 * key it is called under the second one when the hub says that it uses that; a session shows it. */
static const struct x25519_public *called_under(
    const struct node *node, const struct node_trust_facts *facts)
{
    const struct observation *ob;

    if (!node->keys || x25519_public_is_none(&node->keys->other))
        return NULL;
    ob = observe_find(facts->seen, &node->key);
    if (!ob)
        return NULL;
    if (facts->has_one_key)
        return ob->handshake_at != 0 && x25519_public_equal(&ob->key, &node->key) ? &node->key
                                                                                  : NULL;
    return ob->facts.heard_next ? &ob->other : NULL;
}

bool node_trust_on_calls(
    struct node_trust *t, struct snapshot *s, const struct node_trust_facts *facts)
{
    struct first_sight_facts known = facts_of(facts);
    bool has_changed = false;

    for (size_t i = 0; i < s->nodes.n; i++) {
        struct node *node = &s->nodes.items[i]->node;
        const struct x25519_public *called = called_under(node, facts);

        if (!called || !first_sight_on_call(&t->memory, node->meta.name, called, &known))
            continue;
        first_sight_set_keys(first_sight_find(&t->memory, node->meta.name), node);
        t->has_new_keys = has_changed = true;
        log_info("%s has called under its next key, and the one before is not its any more",
            node->meta.name);
    }
    return has_changed;
}

enum key_ack_level node_trust_level(
    const struct node_trust *t, const char *node, const struct x25519_public *next)
{
    return t->has_new_keys || t->is_damaged ? KEY_ACK_NONE
                                            : first_sight_level(&t->memory, node, next);
}

const struct first_sight_peer *node_trust_next(const struct node_trust *t, size_t *i)
{
    while (t->memory.n_offered > 0 && *i < t->memory.n) {
        const struct first_sight_peer *peer = &t->memory.peers[(*i)++];

        if (peer->offered_at != 0 && peer->seen_at != 0 && peer->removed_at == 0)
            return peer;
    }
    return NULL;
}

int node_trust_take(struct node_trust *t, const char *name, struct snapshot *s,
    const struct node_trust_facts *facts, struct err *e)
{
    struct first_sight_facts known = facts_of(facts);
    struct taking taking = {.t = t, .s = s};
    int r;

    /* The node's own name stands for what its network says of trust. */
    if (strcmp(name, t->memory.self) == 0) {
        t->memory.asks = s->network.trust_policy == TRUST_POLICY_ASK;
        r = 0;
    } else {
        r = first_sight_trust(&t->memory, name, &known, on_taken, &taking, e);
    }
    if (r == 0)
        save(t, facts->now);
    return r;
}

/* ---- what is shown --------------------------------------------------------------------------- */

static json_t *encode_peer(
    const struct node_trust *t, const struct first_sight_peer *peer, int64_t at)
{
    enum first_sight_state state = first_sight_state(&t->memory, peer, at);
    bool is_offered = peer->offered_at != 0;
    char text[FIRST_SIGHT_TEXT_MAX];
    char held[X25519_BASE64_MAX];
    char offered[X25519_BASE64_MAX];
    json_t *json = json_pack("{s:s, s:s, s:s*, s:s*, s:b, s:b}", "name", peer->name, "state",
        first_sight_state_names[state], "publicKey",
        peer->seen_at != 0 ? x25519_public_format(&peer->held.key, held) : NULL, "offeredKey",
        is_offered ? x25519_public_format(&peer->offered.key, offered) : NULL, "hub",
        (int)(peer->seen_at != 0 && peer->held.is_hub), "removed", (int)(peer->removed_at != 0));

    if (is_offered && peer->seen_at != 0)
        fields_set(&json, "change",
            json_string(first_sight_text(first_sight_changes(&peer->held, &peer->offered), text)));
    else if (state == FIRST_SIGHT_TAKEN)
        fields_set(&json, "change", json_string(first_sight_text(peer->changed, text)));
    if (peer->seen_at != 0)
        fields_set(&json, "seenAt", json_integer(peer->seen_at));
    if (peer->answered_at != 0)
        fields_set(&json, "answeredAt", json_integer(peer->answered_at));
    if (state == FIRST_SIGHT_SILENCE)
        fields_set(&json, "believedAt", json_integer(first_sight_silent_at(&t->memory, peer)));
    return json;
}

json_t *node_trust_encode(const struct node_trust *t, const struct node_trust_facts *facts)
{
    json_t *peers = json_array();

    for (size_t i = 0; i < t->memory.n; i++)
        fields_append(&peers, encode_peer(t, &t->memory.peers[i], facts->wall / NSEC_PER_SEC));
    return json_pack("{s:s, s:o}", "policy", trust_policy_names[t->memory.asks], "peers", peers);
}
