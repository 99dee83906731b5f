/* handlers_admin.c - what an administrator may ask: networks, tokens, nodes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/content/token.h"
#include "api/server/tls_front.h"
#include "base/err.h"
#include "base/secret.h"
#include "health/node.h"
#include "hub/enrol/enrol.h"
#include "hub/handlers/handlers.h"
#include "hub/handlers/reply.h"
#include "hub/model/model.h"
#include "hub/overlay/overlay.h"
#include "hub/networks/networks.h"
#include "hub/networks/public_addresses.h"
#include "hub/owner/owners.h"
#include "hub/streams/streams.h"
#include "hub/watch/reports.h"
#include "hub/watch/view.h"
#include "hub/watch/watch.h"
#include "os/clock.h"
#include "os/log.h"

/* ---- networks ------------------------------------------------------------------------------- */

static json_t *network_json(const struct model_network *net)
{
    json_t *json = network_encode(&net->spec);

    json_object_set_new(json, "nodes", json_integer((json_int_t)net->nodes.n));
    return json;
}

void handlers_networks_list(void *ctx, const struct request *rq, struct response *rs)
{
    struct handlers *h = ctx;
    json_t *list = json_array();

    for (size_t i = 0; i < h->model->networks.n; i++) {
        const struct model_network *net = model_network_at(h->model, i);
        const char *only = rq->caller.network;

        if (only[0] == '\0' || strcmp(net->spec.meta.name, only) == 0)
            json_array_append_new(list, network_json(net));
    }
    response_json(rs, 200, json_pack("{s:o}", "networks", list));
}

static void on_network_added(void *ctx, int r, const struct model_network *net, const struct err *e)
{
    struct reply *l = ctx;
    struct response rs = {0};

    if (r != 0) {
        handlers_refuse(&rs, r, e, NULL);
    } else {
        log_info("network \"%s\" is made", net->spec.meta.name);
        response_json(&rs, 201, network_json(net));
    }
    reply_end(l, &rs);
}

static void add_network(struct reply *l, const struct request *rq, struct response *rs)
{
    struct network nr;
    struct err e = ERR_NULL;
    int r = network_request_decode(&nr, rq->body, &e);

    if (r == 0)
        r = networks_add(l->h->networks, &nr, on_network_added, l, &e);
    reply_wait(l, r, &e, rs);
}

void handlers_networks_add(void *ctx, const struct request *rq, struct response *rs)
{
    reply_start(ctx, rq, rs, sizeof(struct reply), add_network, NULL);
}

static void on_network_removed(void *ctx, int r, const struct err *e)
{
    struct reply *l = ctx;
    struct response rs = {0};

    if (r != 0) {
        response_fail(&rs, e);
    } else {
        log_info("network \"%s\" is removed", l->rq.params[0]);
        response_empty(&rs);
    }
    reply_end(l, &rs);
}

static void remove_network(struct reply *l, const struct request *rq, struct response *rs)
{
    const struct model_network *net = handlers_find_network(l->h, rq, rs);
    struct err e = ERR_NULL;

    if (!net)
        return;
    l->is_waiting = true;
    if (networks_remove(l->h->networks, net, on_network_removed, l, &e) == 0)
        return;
    l->is_waiting = false;
    response_fail(rs, &e);
}

void handlers_networks_remove(void *ctx, const struct request *rq, struct response *rs)
{
    reply_start(ctx, rq, rs, sizeof(struct reply), remove_network, NULL);
}

/* ---- tokens --------------------------------------------------------------------------------- */

/* Where a machine finds the network's other hubs, and what it trusts them by: for when this one
 * does not answer. */
static void fill_others(struct token *t, const struct model_network *net)
{
    t->n_others = 0;
    for (size_t i = 0; i < net->nodes.n && t->n_others < TOKEN_OTHERS_MAX; i++) {
        const struct model_node *node = model_node_at(net, i);
        const struct node_hub *hub = node->spec.hub;
        struct token_other *o = &t->others[t->n_others];
        struct endpoint api;

        if (!hub || model_is_self(node) || !hub->has_tls_pin)
            continue;
        *o = (struct token_other){.pin = hub->tls_pin, .key = node->spec.key};
        /* A name first: it is true for longest. */
        if (hub->n_names > 0)
            (void)snprintf(o->api[o->n_api++], sizeof(o->api[0]), "%.*s:%u",
                (int)(strrchr(hub->names[0], ':') - hub->names[0]), hub->names[0], hub->api_port);
        api = (struct endpoint){.addr = hub->endpoints[0].addr, .port = hub->api_port};
        (void)endpoint_format(&api, o->api[o->n_api++]);
        t->n_others++;
    }
}

/* What a machine needs to know to find this hub and to trust it. */
static void fill_token(struct token *t, const struct handlers *h, const struct model_network *net)
{
    struct node_hub here;

    (void)snprintf(t->network, sizeof(t->network), "%.*s", NAME_MAX_LEN, net->spec.meta.name);
    hub_places_tell(&here, &h->public_addresses->here, &h->public_addresses->next);
    t->n_api = 0;
    t->n_udp = 0;
    /* Names first: they are true for longest. */
    for (unsigned i = 0; i < here.n_names && t->n_api < TOKEN_ENDPOINTS_MAX; i++, t->n_api++)
        (void)snprintf(t->api[t->n_api], sizeof(t->api[0]), "%.*s:%u",
            (int)(strrchr(here.names[i], ':') - here.names[i]), here.names[i], h->api_port);
    for (unsigned i = 0; i < here.n_endpoints; i++) {
        struct endpoint api = {.addr = here.endpoints[i].addr, .port = h->api_port};

        if (t->n_udp < TOKEN_ENDPOINTS_MAX)
            t->udp[t->n_udp++] = here.endpoints[i];
        if (t->n_api < TOKEN_ENDPOINTS_MAX)
            (void)endpoint_format(&api, t->api[t->n_api++]);
    }
    t->pin = h->identity->pin;
    t->hub_key = net->public;
    fill_others(t, net);
}

/* A join token that is being made. */
struct token_call {
    struct reply reply;
    struct token token;
};

static void forget_token(struct reply *l)
{
    token_wipe(&container_of(l, struct token_call, reply)->token);
}

static void token_made(struct reply *l, struct response *rs)
{
    struct token_call *call = container_of(l, struct token_call, reply);
    struct err e = ERR_NULL;
    char *text = NULL;

    if (token_encode(&call->token, &text, &e) == 0)
        response_json(rs, 201,
            json_pack("{s:s, s:I}", "token", text, "expires", (json_int_t)call->token.expires_at));
    else
        response_fail(rs, &e);
    if (text)
        secret_wipe(text, strlen(text));
    free(text);
}

static void add_token(struct reply *l, const struct request *rq, struct response *rs)
{
    struct token_call *call = container_of(l, struct token_call, reply);
    const struct model_network *net = handlers_find_network(l->h, rq, rs);
    _cleanup_(token_write_deinit) struct token_write made = {.value = NULL};
    int64_t wall = clock_wall_s();
    struct token_request tr;
    struct err e = ERR_NULL;
    int r;

    if (!net)
        return;
    if (token_request_decode(&tr, rq->body, &e) != 0) {
        response_fail(rs, &e);
        return;
    }
    if (!net->has_key) {
        response_refuse(rs, 503,
            "this hub does not serve network \"%s\" yet: try again, or ask another hub",
            rq->params[0]);
        return;
    }
    call->token = (struct token)TOKEN_NULL;
    fill_token(&call->token, l->h, net);
    call->token.expires_at = wall + tr.ttl_seconds;
    r = enrol_new_secret(
        l->h->enrol, net, &tr, rq->caller.name, wall, &made, &call->token.secret, &e);
    if (r == 0)
        reply_commit(l, &made.op, 1, token_made, rs);
    else
        handlers_refuse_newcomer(rs, r, &e);
}

void handlers_tokens_add(void *ctx, const struct request *rq, struct response *rs)
{
    reply_start(ctx, rq, rs, sizeof(struct token_call), add_token, forget_token);
}

/* ---- nodes ---------------------------------------------------------------------------------- */

/* Where the node is seen. Of one whose packets come in TLS the data half knows an end on this
 * machine only. */
static void add_endpoint(const struct model_node *node, const struct endpoint *seen, json_t *json)
{
    struct endpoint far = *seen;
    bool is_by_stream = streams_far_end(node, seen, &far);
    char text[ENDPOINT_TEXT_MAX];

    /* The end of a stream that has ended says nothing. */
    if (endpoint_is_none(seen) || (!is_by_stream && streams_is_near(seen)))
        return;
    json_object_set_new(json, "endpoint", json_string(endpoint_format(&far, text)));
    json_object_set_new(json, "inTls", json_boolean(is_by_stream));
}

/* Did its agent say lately how much its cores do? */
static bool has_cpu(const struct reported_node *r)
{
    return r->has_cpu && !r->is_down && clock_wall_s() - r->reported_at < EDGE_SILENT_AFTER;
}

static void add_facts(struct handlers *h, const struct model_node *node, json_t *json, nsec_t now)
{
    struct overlay_facts facts = {0};
    bool known = overlay_read_facts(node, now, &facts);
    bool heard = known && facts.handshake_at > 0;
    bool is_there = (heard && presence_has_session(&facts, now)) || watch_is_open(node);
    /* Another hub is heard by what it writes into the store. */
    bool is_hub = node->spec.hub && owners_is_alive(h->owners, node->spec.meta.name, now);
    /* Of several hubs one serves the network's jobs. */
    const struct owners_network *owner = owners_find(h->owners, node->net->spec.meta.name);

    if (owner && node->spec.hub)
        json_object_set_new(json, "servesJobs",
            json_boolean(is_hub && strcmp(owner->record.hub, node->spec.meta.name) == 0));
    (void)json_object_update_new(json,
        json_pack("{s:I, s:b, s:o*, s:o*}", "alarms", (json_int_t)node->reported->counts.alarms,
            "reachable", is_hub || (is_there && !node->reported->is_down), "copies",
            copies_are_there(&node->reported->copies)
                ? copies_encode(&node->reported->copies, clock_wall_s())
                : NULL,
            "handshakeAgeSeconds",
            heard ? json_integer((json_int_t)((now - facts.handshake_at) / NSEC_PER_SEC)) : NULL));
    if (has_cpu(node->reported))
        json_object_set_new(json, "cpuPercent", json_integer(node->reported->cpu_percent));
    if (known) {
        add_endpoint(node, &facts.endpoint, json);
        (void)json_object_update_new(
            json, json_pack("{s:I, s:I}", "rxBytes", (json_int_t)facts.rx_bytes, "txBytes",
                      (json_int_t)facts.tx_bytes));
    }
}

json_t *handlers_nodes(struct handlers *h, const struct model_network *net, nsec_t now)
{
    json_t *list = json_array();

    for (size_t i = 0; i < net->nodes.n; i++) {
        const struct model_node *node = model_node_at(net, i);
        json_t *json = handlers_node(node);

        if (json)
            add_facts(h, node, json, now);
        json_array_append_new(list, json);
    }
    return json_pack("{s:o}", "nodes", list);
}

void handlers_nodes_list(void *ctx, const struct request *rq, struct response *rs)
{
    struct handlers *h = ctx;
    const struct model_network *net = handlers_find_network(h, rq, rs);

    if (net)
        response_json(rs, 200, handlers_nodes(h, net, rq->now));
}

/*
 * As Prometheus' discovery by HTTP takes it (http_sd_config): the nodes whose agents answer it at
 * their overlay addresses. One whose agent is silent stays, so that Prometheus tells of it.
 */
void handlers_targets(void *ctx, const struct request *rq, struct response *rs)
{
    const struct handlers *h = ctx;
    const struct model_network *net = handlers_find_network(h, rq, rs);
    json_t *list = net ? json_array() : NULL;

    for (size_t i = 0; list && i < net->nodes.n; i++) {
        const struct model_node *node = model_node_at(net, i);
        const struct node *spec = &node->spec;
        const struct endpoint at = {
            .addr = spec->address4, .port = node->reported->heard.report.metrics_port};
        char text[ENDPOINT_TEXT_MAX];

        if (at.port != 0)
            (void)json_array_append_new(
                list, json_pack("{s:[s], s:{s:s, s:s, s:s*}}", "targets",
                          endpoint_format(&at, text), "labels", "node", spec->meta.name, "network",
                          net->spec.meta.name, "island", spec->island[0] ? spec->island : NULL));
    }
    if (net)
        response_json(rs, 200, list);
}

static void on_node_added(void *ctx, int r, const struct model_node *node, const struct err *e)
{
    struct reply *l = ctx;
    struct response rs = {0};

    if (r != 0) {
        handlers_refuse_newcomer(&rs, r, e);
    } else {
        log_info("node \"%s\" of network \"%s\" is added", node->spec.meta.name, l->rq.params[0]);
        response_text(&rs, 201, view_snapshot_text(node), "application/json");
    }
    reply_end(l, &rs);
}

static void add_node(struct reply *l, const struct request *rq, struct response *rs)
{
    const struct model_network *net = handlers_find_network(l->h, rq, rs);
    struct enrol_request nr;
    struct err e = ERR_NULL;
    int r;

    if (!net)
        return;
    r = node_request_decode(&nr, rq->body, &e);
    if (r == 0)
        r = enrol_add(l->h->enrol, net, &nr, &l->by, rq->now, on_node_added, l, &e);
    if (r != 0)
        handlers_refuse_newcomer(rs, r, &e);
    else if (!l->deferred.is_ready)
        l->is_waiting = true;
}

void handlers_nodes_add(void *ctx, const struct request *rq, struct response *rs)
{
    reply_start(ctx, rq, rs, sizeof(struct reply), add_node, NULL);
}

/* Lends the node of the path's two parts; NULL: 404. */
static const struct model_node *find_node(
    const struct handlers *h, const struct request *rq, struct response *rs)
{
    const struct model_network *net = handlers_find_network(h, rq, rs);
    const struct model_node *node = model_find_node(net, rq->params[1]);

    if (net && !node)
        response_refuse(
            rs, 404, "network \"%s\" has no node \"%s\"", net->spec.meta.name, rq->params[1]);
    return node;
}

void handlers_nodes_remove(void *ctx, const struct request *rq, struct response *rs)
{
    const struct model_node *node = find_node(ctx, rq, rs);

    if (node)
        node_removal_by_admin(ctx, rq, rs, node);
}

void handlers_snapshot(void *ctx, const struct request *rq, struct response *rs)
{
    const struct model_node *node = find_node(ctx, rq, rs);

    if (node)
        response_text(rs, 200, view_snapshot_text(node), "application/json");
}
