/*
 * drain.c - PUT /v1/drain: a member says how its health check is, and asks to be drained, or to be
 * given work again; see handlers.h.
 *
 * That a node is drained is a field of its record, so it outlives the hub. A node is drained while
 * no more of the network's nodes are drained, with it, than the network's drainShare says. The
 * commit that drains one holds the record of the address cursor, so that two of them are never made
 * beside each other, also by two hubs. What is asked for and not done is in the audit log once,
 * until the node passes a check.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "health/fitness.h"
#include "hub/audit/audit.h"
#include "hub/enrol/enrol.h"
#include "hub/handlers/handlers.h"
#include "hub/handlers/reply.h"
#include "hub/model/model.h"
#include "hub/record/record.h"
#include "hub/record/request.h"
#include "hub/watch/reports.h"
#include "os/clock.h"
#include "os/log.h"

#define WHY_MAX 256

/* A member's request that has to wait for the store. */
struct drain_call {
    struct reply reply;
    char network[NAME_MAX_LEN + 1];
    char member[NAME_MAX_LEN + 1];
    struct x25519_public key; /* of the member: another of its name is not it */
    struct drain_request said;
    bool is_dry_run;   /* the network drains none */
    char why[WHY_MAX]; /* why it is not drained, a sentence */
};

static const struct model_node *find(const struct drain_call *call, struct response *rs)
{
    const struct model_node *node =
        model_find_node(model_find_network(call->reply.h->model, call->network), call->member);

    if (node && x25519_public_equal(&node->spec.key, &call->key))
        return node;
    response_refuse(
        rs, 403, "network \"%s\" has no node \"%s\" any more", call->network, call->member);
    return NULL;
}

/* What the node has said is kept while it fails. */
static void keep_said(const struct model_node *node, const struct drain_request *said)
{
    struct reported_node *r = node->reported;
    bool is_noted = said->n_failed > 0 && r->fitness && r->fitness->is_noted;

    if (!r->fitness && (said->n_failed > 0 || said->hook[0] != '\0'))
        r->fitness = calloc(1, sizeof(*r->fitness));
    if (!r->fitness)
        return;
    *r->fitness = (struct reported_fitness){.said_at = clock_wall_s(),
        .every = said->every_seconds,
        .n_failed = said->n_failed,
        .is_noted = is_noted};
    memcpy(r->fitness->reason, said->reason, sizeof(r->fitness->reason));
    memcpy(r->fitness->hook, said->hook, sizeof(r->fitness->hook));
    /* What is found of it is in other words now. */
    r->conditions = UINT16_MAX;
}

static void answer(struct response *rs, bool is_drained, bool is_dry_run, const char *why)
{
    response_json(rs, 200,
        json_pack(
            "{s:b, s:b, s:s}", "drained", (int)is_drained, "dryRun", (int)is_dry_run, "why", why));
}

/* Nodes that can be drained, and those that are. */
static void count_nodes(const struct model_network *net, size_t *ret_all, size_t *ret_drained)
{
    *ret_all = *ret_drained = 0;
    for (size_t i = 0; i < net->nodes.n; i++) {
        const struct node *node = &model_node_at(net, i)->spec;

        *ret_all += node_has_agent(node);
        *ret_drained += node_has_agent(node) && node->drained;
    }
}

/* May the node be drained? If not, @call says why. */
static bool may_drain(struct drain_call *call, const struct model_network *net)
{
    unsigned share = net->spec.drain_share;
    size_t n_nodes;
    size_t n_drained;

    count_nodes(net, &n_nodes, &n_drained);
    call->is_dry_run = share == 0;
    if (call->is_dry_run)
        (void)snprintf(call->why, sizeof(call->why),
            "it would be drained, and network %s drains no node: weft network set %s "
            "--drain-share PERCENT says how many may be",
            call->network, call->network);
    else if (!fitness_share_allows(share, n_nodes, n_drained))
        (void)snprintf(call->why, sizeof(call->why),
            "%zu of the %zu nodes of network %s are drained, and with one more it would be more "
            "than its drain share, %u %%",
            n_drained, n_nodes, call->network, share);
    else
        return true;
    return false;
}

/* ---- it is not drained ----------------------------------------------------------------------- */

static void noted(struct reply *l, struct response *rs)
{
    struct drain_call *call = container_of(l, struct drain_call, reply);
    const struct model_node *node = find(call, rs);

    if (!node)
        return;
    if (node->reported->fitness)
        node->reported->fitness->is_noted = true;
    log_info("node \"%s\" of network \"%s\" has failed its health check %u times, by %s: %s",
        call->member, call->network, (unsigned)call->said.n_failed, call->said.codes, call->why);
    answer(rs, false, call->is_dry_run, call->why);
}

static void not_drained(struct drain_call *call, const struct model_node *node, struct response *rs)
{
    struct reply *l = &call->reply;
    const struct reported_fitness *fitness = node->reported->fitness;
    char operation[AUDIT_OPERATION_MAX + 1];
    char object[AUDIT_OBJECT_MAX + 1];
    struct err e = ERR_NULL;

    if (fitness && fitness->is_noted) {
        answer(rs, false, call->is_dry_run, call->why);
        return;
    }
    (void)snprintf(operation, sizeof(operation), "%s %.60s",
        call->is_dry_run ? "drain, dry run," : "drain, above the share,", call->said.codes);
    (void)snprintf(object, sizeof(object), "node/%s/%s", call->network, call->member);
    l->done = noted;
    reply_wait(l,
        audit_note(l->h->audit, operation, call->network, object, l->rq.now, reply_store, l, &e),
        &e, rs);
}

/* ---- it is, or is not any more --------------------------------------------------------------- */

static void written(struct reply *l, struct response *rs)
{
    const struct drain_call *call = container_of(l, struct drain_call, reply);
    bool is_drained = call->said.ask == DRAIN_ASK_DRAIN;

    if (is_drained)
        log_warning("node \"%s\" of network \"%s\" is drained: %s", call->member, call->network,
            call->said.reason);
    else
        log_info("node \"%s\" of network \"%s\" is well again, and not drained any more",
            call->member, call->network);
    answer(rs, is_drained, false, "");
}

/* Write the node as it is, but for being drained. @reason: NULL: it is not any more. */
static void write_node(
    struct drain_call *call, const struct model_node *node, char *reason, struct response *rs)
{
    struct reply *l = &call->reply;
    struct node spec = node->spec;
    char change[AUDIT_OPERATION_MAX + 1];
    char keys[2][RECORD_KEY_MAX];
    _cleanup_(freep) char *value = NULL;
    _cleanup_(freep) char *cursor = NULL;
    struct store_op ops[2];

    spec.drained = reason;
    value = record_node_encode(&spec, &node->token);
    if (!value) {
        response_refuse(rs, 500, "no memory to write node \"%s\"", call->member);
        return;
    }
    ops[0] = (struct store_op){.kind = STORE_OP_PUT,
        .key = record_key(keys[0], RECORD_NODE, call->network, call->member),
        .value = value,
        .expect = spec.meta.resource_version,
        .ttl_seconds = spec.ephemeral ? ENROL_EPHEMERAL_SECONDS : 0};
    (void)snprintf(change, sizeof(change), reason ? "drain %.80s" : "undrain", call->said.codes);
    l->h->audit->change = change;
    reply_commit(l, ops, 1 + handlers_hold(node->net, &ops[1], keys[1], &cursor), written, rs);
    l->h->audit->change = NULL;
}

static void begin(struct reply *l, const struct request *rq, struct response *rs)
{
    struct drain_call *call = container_of(l, struct drain_call, reply);
    const struct model_node *node = find(call, rs);
    bool is_drained;

    if (!node)
        return;
    is_drained = node->spec.drained != NULL;
    switch (call->said.ask) {
    case DRAIN_ASK_DRAIN:
        if (is_drained)
            answer(rs, true, false, "");
        else if (may_drain(call, node->net))
            write_node(call, node, call->said.reason, rs);
        else
            not_drained(call, node, rs);
        return;
    case DRAIN_ASK_UNDRAIN:
        if (is_drained)
            write_node(call, node, NULL, rs);
        else
            answer(rs, false, false, "");
        return;
    case DRAIN_ASK_NOTHING:
    case DRAIN_ASK_N:
        break;
    }
    answer(rs, is_drained, false, "");
}

void handlers_drain(void *ctx, const struct request *rq, struct response *rs)
{
    struct handlers *h = ctx;
    const struct model_node *node = handlers_find_member(h, rq, rs);
    struct drain_request said;
    struct drain_call *call;
    struct err e = ERR_NULL;

    if (!node)
        return;
    if (!rate_take(&node->reported->asked, rq->now, REPORTS_EACH, REPORTS_BURST)) {
        response_refuse(
            rs, 429, "node \"%s\" reports more than five times a second", node->spec.meta.name);
        return;
    }
    if (drain_request_decode(&said, rq->body, &e) != 0) {
        response_fail(rs, &e);
        return;
    }
    if (!node_has_agent(&node->spec)) {
        response_refuse(rs, 400, "node \"%s\" is a stock WireGuard, which has no health check",
            node->spec.meta.name);
        return;
    }
    call = reply_new(h, rq, rs, sizeof(*call), begin);
    if (!call)
        return;
    (void)snprintf(
        call->network, sizeof(call->network), "%.*s", NAME_MAX_LEN, node->net->spec.meta.name);
    (void)snprintf(call->member, sizeof(call->member), "%.*s", NAME_MAX_LEN, node->spec.meta.name);
    call->key = node->spec.key;
    call->said = said;
    keep_said(node, &said);
    reply_begin(&call->reply, rq, rs);
}
