/*
 * handlers_keys.c - keys that change: a member makes its next key known, and asks what others have
 * acknowledged of it; an administrator has a node change its key; see handlers.h.
 *
 * The hub is a carrier. It takes a statement only from the node that it is about, and only one that
 * its key has signed, so that what it shows others can believe; but they check that themselves.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "hub/audit/audit.h"
#include "hub/enrol/enrol.h"
#include "hub/handlers/handlers.h"
#include "hub/handlers/reply.h"
#include "hub/model/key_course.h"
#include "hub/model/model.h"
#include "hub/record/keys_request.h"
#include "hub/record/record.h"
#include "hub/watch/reports.h"
#include "mesh/keys/key_node.h"
#include "mesh/object/fields.h"
#include "mesh/object/mesh_edge.h"
#include "os/clock.h"
#include "os/log.h"

/* Who was heard in that time is there. A hub that was started later does not know who is. */
#define HEARD_FOR     (30 * NSEC_PER_SEC)
#define KNOWS_AFTER_S 60

/* ---- what a member says, and is told --------------------------------------------------------- */

struct keys_call {
    struct reply reply;
    char network[NAME_MAX_LEN + 1];
    char member[NAME_MAX_LEN + 1];
    struct x25519_public key; /* of the member: another of its name is not it */
};

/* The member that asks, under the key that it had then or the one that it has gone on with. */
static const struct model_node *find(const struct keys_call *call, struct response *rs)
{
    const struct model_node *node =
        model_find_node(model_find_network(call->reply.h->model, call->network), call->member);
    struct x25519_public other;

    if (node &&
        (x25519_public_equal(&node->spec.key, &call->key) ||
            (key_node_other(&node->spec, &other) && x25519_public_equal(&other, &call->key))))
        return node;
    response_refuse(
        rs, 403, "network \"%s\" has no node \"%s\" any more", call->network, call->member);
    return NULL;
}

/* Those that are there now, of whom the node may know. */
static json_t *heard_of(const struct handlers *h, const struct model_node *node, nsec_t now)
{
    const struct model_network *net = node->net;
    json_t *names;

    if (clock_wall_s() - h->reports->started_at < KNOWS_AFTER_S)
        return NULL;
    names = json_array();
    for (size_t i = 0; i < net->nodes.n; i++) {
        const struct model_node *other = model_node_at(net, i);
        nsec_t at = other->reported->seen_at;

        if (other != node && !other->spec.hub && at != 0 && now - at < HEARD_FOR &&
            model_may_talk(node, other))
            fields_append(&names, json_string(other->spec.meta.name));
    }
    return names;
}

static void answer(
    const struct handlers *h, const struct model_node *node, nsec_t now, struct response *rs)
{
    const struct x25519_public *next = key_node_next(&node->spec);
    char key[X25519_BASE64_MAX];
    char text[X25519_BASE64_MAX];

    response_json(rs, 200,
        json_pack("{s:I, s:s, s:s*, s:I, s:O*, s:o*}", "run", (json_int_t)h->model->boot,
            "publicKey", x25519_public_format(&node->spec.key, key), "next",
            next ? x25519_public_format(next, text) : NULL, "serial",
            (json_int_t)key_node_serial(&node->spec), "acks", key_course_acks(node), "heard",
            next ? heard_of(h, node, now) : NULL));
}

static void take_acks(const struct model_node *node, const json_t *acks)
{
    const char *name;
    json_t *ack;

    /* The iterator wants a mutable object; nothing is changed. */
    json_object_foreach((json_t *)acks, name, ack) {
        const struct model_node *other = model_find_node(node->net, name);

        if (other && other != node && model_may_talk(node, other))
            key_course_ack(other, node->spec.meta.name, json_string_value(ack));
    }
}

/* ---- the next key ---------------------------------------------------------------------------- */

/* May the node go on by that statement? If not, @rs says why. */
static bool may_follow(
    const struct model_node *node, const struct key_statement *s, struct response *rs)
{
    const char *name = node->spec.meta.name;
    const struct model_node *owner = model_find_key(node->net, &s->new_key);
    uint64_t serial = key_node_serial(&node->spec) + 1;
    struct err e = ERR_NULL;

    if (s->kind != KEY_KIND_NODE || strcmp(s->subject, name) != 0 ||
        strcmp(s->network, node->net->spec.meta.name) != 0)
        response_refuse(rs, 403,
            "the statement is about \"%s\" of network \"%s\", and \"%s\" may make one about itself",
            s->subject, s->network, name);
    else if (!x25519_public_equal(&s->old_key, &node->spec.key))
        response_refuse(rs, 409, "the statement is not of the key that node \"%s\" has", name);
    else if (s->serial != serial)
        response_refuse(rs, 409,
            "the statement has the serial %llu, and the next one of node \"%s\" is %llu",
            (unsigned long long)s->serial, name, (unsigned long long)serial);
    else if (owner && owner != node)
        response_refuse(
            rs, 409, "the next key of node \"%s\" is that of another node already", name);
    else if (key_statement_verify(s, &e) != 0)
        response_refuse(rs, 400, "%s", err_text(&e));
    else
        return true;
    return false;
}

/* What @spec, which is @node's, becomes: its keys are made anew in @keys, which is a copy. Return:
 * 1: it is to be written; 0: it is so already; negative: @rs says why not. */
static int follow(struct node *spec, struct node_keys *keys, const struct model_node *node,
    const struct keys_request *said, struct response *rs)
{
    const struct key_statement *s = &said->statement;
    const struct x25519_public *next = key_node_next(&node->spec);
    struct key_statement last;
    bool is_kept = key_node_last(&node->spec, &last) && key_statement_equal(&last, s);

    if (said->stage == KEYS_STAGE_ENDED) {
        if (!is_kept || !x25519_public_equal(&s->new_key, &node->spec.key)) {
            response_refuse(
                rs, 409, "node \"%s\" has not made that key its own here", spec->meta.name);
            return -1;
        }
        keys->next = (struct x25519_public){{0}};
        keys->is_forced = false;
        return next ? 1 : 0;
    }
    if (!is_kept) {
        /* Where its key is its next one already, only the end of that change was not heard. */
        if (next && !x25519_public_equal(next, &node->spec.key)) {
            response_refuse(
                rs, 409, "node \"%s\" has made another next key known", spec->meta.name);
            return -1;
        }
        if (!may_follow(node, s, rs))
            return -1;
        if (node_keys_add(keys, said->text) != 0) {
            response_refuse(rs, 500, "no memory for a statement");
            return -1;
        }
    }
    keys->next = s->new_key;
    if (said->stage == KEYS_STAGE_MOVED)
        spec->key = s->new_key;
    return !is_kept || !next || !x25519_public_equal(&spec->key, &node->spec.key) ? 1 : 0;
}

static void written(struct reply *l, struct response *rs)
{
    const struct keys_call *call = container_of(l, struct keys_call, reply);
    const struct model_node *node = find(call, rs);

    if (node)
        answer(l->h, node, l->rq.now, rs);
}

static void write_node(struct reply *l, const struct model_node *node, const struct node *spec,
    const char *change, reply_done_fn done, struct response *rs)
{
    _cleanup_(freep) char *value = record_node_encode(spec, &node->token);
    char key[RECORD_KEY_MAX];
    struct store_op op = {.kind = STORE_OP_PUT,
        .key = record_key(key, RECORD_NODE, node->net->spec.meta.name, spec->meta.name),
        .value = value,
        .expect = spec->meta.resource_version,
        .ttl_seconds = spec->ephemeral ? ENROL_EPHEMERAL_SECONDS : 0};

    if (!value) {
        response_refuse(rs, 500, "no memory to write node \"%s\"", spec->meta.name);
        return;
    }
    l->h->audit->change = change;
    reply_commit(l, &op, 1, done, rs);
    l->h->audit->change = NULL;
}

static void take_stage(struct reply *l, const struct model_node *node,
    const struct keys_request *said, struct response *rs)
{
    static const char *const changes[] = {
        "none", "make its next key known", "change its key", "erase its old key"};
    _Static_assert(sizeof(changes) / sizeof(*changes) == KEYS_STAGE_N, "words each");
    struct node spec = node->spec;
    struct node_keys *keys = spec.keys ? node_keys_copy(spec.keys) : calloc(1, sizeof(*spec.keys));
    int r;

    if (!keys) {
        response_refuse(rs, 500, "no memory to write node \"%s\"", spec.meta.name);
        return;
    }
    spec.keys = keys;
    r = follow(&spec, keys, node, said, rs);
    if (r > 0)
        write_node(l, node, &spec, changes[said->stage], written, rs);
    else if (r == 0)
        answer(l->h, node, l->rq.now, rs);
    (void)node_keys_free(keys);
}

static void begin(struct reply *l, const struct request *rq, struct response *rs)
{
    const struct keys_call *call = container_of(l, struct keys_call, reply);
    const struct model_node *node = find(call, rs);
    struct keys_request said;
    struct err e = ERR_NULL;

    if (!node)
        return;
    if (keys_request_decode(&said, rq->body, &e) != 0) {
        response_fail(rs, &e);
        return;
    }
    take_acks(node, said.acks);
    if (said.stage == KEYS_STAGE_NONE) {
        answer(l->h, node, rq->now, rs);
        return;
    }
    if (said.stage != KEYS_STAGE_ENDED)
        key_course_say(node, &said);
    take_stage(l, node, &said, rs);
}

void handlers_keys(void *ctx, const struct request *rq, struct response *rs)
{
    struct handlers *h = ctx;
    const struct model_node *node = handlers_find_member(h, rq, rs);
    struct keys_call *call;

    if (!node)
        return;
    if (!rate_take(&node->reported->asked, rq->now, REPORTS_EACH, REPORTS_BURST)) {
        response_refuse(
            rs, 429, "node \"%s\" reports more than five times a second", node->spec.meta.name);
        return;
    }
    call = reply_new(h, rq, rs, sizeof(*call), begin);
    if (!call)
        return;
    (void)snprintf(
        call->network, sizeof(call->network), "%.*s", NAME_MAX_LEN, node->net->spec.meta.name);
    (void)snprintf(call->member, sizeof(call->member), "%.*s", NAME_MAX_LEN, node->spec.meta.name);
    call->key = node->spec.key;
    reply_begin(&call->reply, rq, rs);
}

/* ---- an administrator has a node change its key ---------------------------------------------- */

/* The edge that fixes the key of @node; NULL: none does. */
static const struct mesh_edge *pinned_by(const struct model_node *node)
{
    const struct model_edge_end *end;

    list_foreach(end, &node->edges, link) {
        const struct mesh_edge *edge = &end->edge->spec;
        unsigned own = strcmp(edge->nodes[0], node->spec.meta.name) == 0 ? 0 : 1;

        if (!x25519_public_is_none(&edge->pins[own].key))
            return edge;
    }
    return NULL;
}

/* Can it change its key? If not, @rs says why. */
static bool can_rotate(const struct model_node *node, struct response *rs)
{
    const struct mesh_edge *edge = pinned_by(node);
    const char *name = node->spec.meta.name;

    if (node->spec.hub)
        response_refuse(
            rs, 400, "node \"%s\" is a hub, and only the keys of nodes change yet", name);
    else if (node->spec.stock)
        response_refuse(rs, 400,
            "node \"%s\" is a stock WireGuard, whose key is changed where it runs, and which is "
            "then "
            "added anew",
            name);
    else if (edge)
        response_refuse(rs, 409,
            "edge \"%s\" fixes the key of node \"%s\": it would not be its peer's any more",
            edge->meta.name, name);
    else
        return true;
    return false;
}

static void answer_rotate(const struct model_node *node, struct response *rs)
{
    response_json(rs, 200,
        json_pack("{s:s, s:I, s:I, s:b}", "node", node->spec.meta.name, "serial",
            (json_int_t)key_node_serial(&node->spec), "wantedSerial",
            (json_int_t)(node->spec.keys ? node->spec.keys->wanted_serial : 0), "changing",
            key_node_next(&node->spec) != NULL));
}

static void asked(struct reply *l, struct response *rs)
{
    const struct model_network *net = handlers_find_network(l->h, &l->rq, rs);
    const struct model_node *node = model_find_node(net, l->rq.params[1]);

    if (!node) {
        if (net)
            response_refuse(
                rs, 404, "network \"%s\" has no node \"%s\"", l->rq.params[0], l->rq.params[1]);
        return;
    }
    log_info("node \"%s\" of network \"%s\" is asked to change its key", l->rq.params[1],
        l->rq.params[0]);
    answer_rotate(node, rs);
}

static void rotate(struct reply *l, const struct request *rq, struct response *rs)
{
    const struct model_network *net = handlers_find_network(l->h, rq, rs);
    const struct model_node *node = model_find_node(net, rq->params[1]);
    bool is_forced = json_is_true(json_object_get(rq->body, "force"));
    struct node_keys *keys;
    struct node spec;

    if (!net)
        return;
    if (!node) {
        response_refuse(rs, 404, "network \"%s\" has no node \"%s\"", rq->params[0], rq->params[1]);
        return;
    }
    if (!can_rotate(node, rs))
        return;
    spec = node->spec;
    keys = spec.keys ? node_keys_copy(spec.keys) : calloc(1, sizeof(*keys));
    if (!keys) {
        response_refuse(rs, 500, "no memory to write node \"%s\"", spec.meta.name);
        return;
    }
    spec.keys = keys;
    /* While it changes its key it is not asked for one more; it may be told to wait for nobody. */
    if (!key_node_next(&node->spec))
        keys->wanted_serial = key_node_serial(&node->spec) + 1;
    keys->is_forced = is_forced;
    if (node->spec.keys && keys->wanted_serial == node->spec.keys->wanted_serial &&
        is_forced == node->spec.keys->is_forced)
        answer_rotate(node, rs);
    else
        write_node(
            l, node, &spec, is_forced ? "change its key, by force" : "change its key", asked, rs);
    (void)node_keys_free(keys);
}

void handlers_key_rotate(void *ctx, const struct request *rq, struct response *rs)
{
    const json_t *force = json_object_get(rq->body, "force");

    if (rq->body && (!json_is_object(rq->body) || json_object_size(rq->body) > (force ? 1 : 0) ||
                        (force && !json_is_boolean(force))))
        response_refuse(rs, 400, "the body is {\"force\": true} or {}");
    else
        reply_start(ctx, rq, rs, sizeof(struct reply), rotate, NULL);
}
