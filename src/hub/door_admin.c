/* door_admin.c - what an administrator may ask: networks, tokens, nodes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/token.h"
#include "base/err.h"
#include "base/log.h"
#include "base/secret.h"
#include "hub/doors.h"
#include "hub/hub_internal.h"
#include "hub/networks.h"
#include "hub/view.h"

/* A node whose last handshake is younger is there: WireGuard makes a new one every 120 s. */
#define HANDSHAKE_FRESH (180 * NSEC_PER_SEC)

struct model_network *door_find_network(
    struct hub *hub, const struct request *rq, struct response *rs)
{
    struct model_network *net = model_find_network(&hub->model, rq->params[0]);

    if (!net)
        response_refuse(rs, 404, "there is no network \"%s\" on this hub", rq->params[0]);
    return net;
}

struct model_node *door_find_node(
    struct model_network *net, const struct request *rq, struct response *rs)
{
    struct model_node *node = model_find_node(net, rq->params[1]);

    if (!node)
        response_refuse(
            rs, 404, "network \"%s\" has no node \"%s\"", net->pub.spec.meta.name, rq->params[1]);
    return node;
}

/* ---- networks ------------------------------------------------------------------------------- */

static json_t *network_json(const struct model_network *net)
{
    json_t *json = network_encode(&net->pub.spec);

    if (json)
        json_object_set_new(json, "nodes", json_integer((json_int_t)net->nodes.n));
    return json;
}

void door_networks_list(void *ctx, const struct request *rq, struct response *rs)
{
    struct hub *hub = ctx;
    json_t *list = json_array();

    for (size_t i = 0; i < hub->model.networks.n; i++) {
        const struct model_network *net = model_network_at(&hub->model, i);
        const char *only = rq->caller.network;

        if (only[0] == '\0' || strcmp(net->pub.spec.meta.name, only) == 0)
            json_array_append_new(list, network_json(net));
    }
    response_json(rs, 200, json_pack("{s:o}", "networks", list));
}

void door_networks_add(void *ctx, const struct request *rq, struct response *rs)
{
    struct hub *hub = ctx;
    struct network_request nr;
    struct model_network *net;
    struct err e = ERR_NULL;
    int r = network_request_decode(&nr, rq->body, &e);

    if (r == 0)
        r = networks_add(hub, &nr, rq->now, &net, &e);
    if (r == NETWORKS_E_EXISTS) {
        response_refuse(rs, 409, "%s", err_text(&e));
    } else if (r != 0) {
        response_fail(rs, &e);
    } else {
        log_info("network \"%s\" is made", net->pub.spec.meta.name);
        response_json(rs, 201, network_json(net));
    }
}

void door_networks_remove(void *ctx, const struct request *rq, struct response *rs)
{
    struct hub *hub = ctx;
    struct model_network *net = door_find_network(hub, rq, rs);
    struct err e = ERR_NULL;

    if (!net)
        return;
    if (networks_remove(hub, net, rq->now, &e) != 0) {
        response_fail(rs, &e);
        return;
    }
    log_info("network \"%s\" is removed", rq->params[0]);
    response_empty(rs);
}

/* ---- tokens --------------------------------------------------------------------------------- */

/* What a machine needs to know to find this hub and to trust it. */
static void fill_token(struct token *t, const struct hub *hub, const struct model_network *net)
{
    struct node_hub here;

    (void)snprintf(t->network, sizeof(t->network), "%.*s", NAME_MAX_LEN, net->pub.spec.meta.name);
    hub_places_tell(&here, &hub->publics.here, &hub->publics.next);
    /* Names first: they are true for longest. */
    for (unsigned i = 0; i < here.n_names; i++, t->n_api++)
        (void)snprintf(t->api[t->n_api], sizeof(t->api[0]), "%.*s:%u",
            (int)(strrchr(here.names[i], ':') - here.names[i]), here.names[i], hub->api_port);
    for (unsigned i = 0; i < here.n_endpoints; i++) {
        struct endpoint api = {.addr = here.endpoints[i].addr, .port = hub->api_port};

        t->udp[t->n_udp++] = here.endpoints[i];
        if (t->n_api < TOKEN_WAYS_MAX)
            (void)endpoint_format(&api, t->api[t->n_api++]);
    }
    t->pin = hub->identity.pin;
    t->hub_key = net->pub.public;
}

void door_tokens_add(void *ctx, const struct request *rq, struct response *rs)
{
    struct hub *hub = ctx;
    struct model_network *net = door_find_network(hub, rq, rs);
    int64_t wall = hub__wall();
    struct token t = TOKEN_NULL;
    struct token_request tr;
    struct err e = ERR_NULL;
    char *text = NULL;
    int r;

    if (!net)
        return;
    r = token_request_decode(&tr, rq->body, &e);
    if (r == 0)
        r = enrol_new_secret(&hub->enrol, net, &tr, rq->caller.name, rq->now, wall, &t.secret, &e);
    if (r == 0) {
        fill_token(&t, hub, net);
        t.expires = wall + tr.ttl_seconds;
        r = token_encode(&t, &text, &e);
    }
    if (r == 0)
        response_json(
            rs, 201, json_pack("{s:s, s:I}", "token", text, "expires", (json_int_t)t.expires));
    else
        response_fail(rs, &e);
    if (text)
        secret_wipe(text, strlen(text));
    free(text);
    token_wipe(&t);
}

/* ---- nodes ---------------------------------------------------------------------------------- */

static void add_facts(struct hub *hub, const struct model_node *node, json_t *json, nsec_t now)
{
    struct hub_facts facts = {0};
    bool known = hub->hooks.facts && hub->hooks.facts(hub->hooks.ctx, &node->pub, &facts);
    bool heard = known && facts.handshake > 0;
    bool fresh = heard && now - facts.handshake < HANDSHAKE_FRESH;
    char text[ENDPOINT_TEXT_MAX];

    json_object_set_new(json, "alarms", json_integer(node->heard.report.n_alarms));
    json_object_set_new(
        json, "reachable", json_boolean(node->pub.spec.hub || fresh || watch_is_open(node)));
    if (heard)
        json_object_set_new(json, "handshakeAgeSeconds",
            json_integer((json_int_t)((now - facts.handshake) / NSEC_PER_SEC)));
    if (known && !endpoint_is_none(&facts.endpoint))
        json_object_set_new(json, "endpoint", json_string(endpoint_format(&facts.endpoint, text)));
    if (known) {
        json_object_set_new(json, "rxBytes", json_integer((json_int_t)facts.rx_bytes));
        json_object_set_new(json, "txBytes", json_integer((json_int_t)facts.tx_bytes));
    }
}

void door_nodes_list(void *ctx, const struct request *rq, struct response *rs)
{
    struct hub *hub = ctx;
    struct model_network *net = door_find_network(hub, rq, rs);
    json_t *list;

    if (!net)
        return;
    list = json_array();
    for (size_t i = 0; i < net->nodes.n; i++) {
        const struct model_node *node = model_node_at(net, i);
        struct node spec = node->pub.spec;
        json_t *json;

        spec.status = reports_of_node(node);
        json = node_encode(&spec);
        json_decref(spec.status);
        if (json)
            add_facts(hub, node, json, rq->now);
        json_array_append_new(list, json);
    }
    response_json(rs, 200, json_pack("{s:o}", "nodes", list));
}

void door_nodes_add(void *ctx, const struct request *rq, struct response *rs)
{
    struct hub *hub = ctx;
    struct model_network *net = door_find_network(hub, rq, rs);
    struct node_request nr;
    struct model_node *node;
    struct err e = ERR_NULL;
    int r;

    if (!net)
        return;
    r = node_request_decode(&nr, rq->body, &e);
    if (r == 0)
        r = enrol_add(&hub->enrol, net, &nr, rq->now, &node, &e);
    if (r != 0) {
        door_refuse_newcomer(rs, r, &e);
        return;
    }
    log_info("node \"%s\" of network \"%s\" is added", nr.name, rq->params[0]);
    response_text(rs, 201, view_snapshot_text(node), "application/json");
}

void door_nodes_remove(void *ctx, const struct request *rq, struct response *rs)
{
    struct hub *hub = ctx;
    struct model_network *net = door_find_network(hub, rq, rs);
    struct model_node *node = net ? door_find_node(net, rq, rs) : NULL;
    struct err e = ERR_NULL;

    if (!node)
        return;
    if (node->pub.spec.hub) {
        response_refuse(rs, 400,
            "node \"%s\" is the hub itself: it goes with its network (\"weft network rm %s\")",
            rq->params[1], rq->params[0]);
        return;
    }
    if (hub__remove_node(hub, node, "an administrator has removed it", rq->now, &e) != 0) {
        response_fail(rs, &e);
        return;
    }
    log_info("node \"%s\" of network \"%s\" is removed", rq->params[1], rq->params[0]);
    response_empty(rs);
}

void door_snapshot(void *ctx, const struct request *rq, struct response *rs)
{
    struct model_network *net = door_find_network(ctx, rq, rs);
    struct model_node *node = net ? door_find_node(net, rq, rs) : NULL;

    if (node)
        response_text(rs, 200, view_snapshot_text(node), "application/json");
}

void door_metrics(void *ctx, const struct request *rq, struct response *rs)
{
    response_text(rs, 200, hub__metrics(ctx), "text/plain; version=0.0.4; charset=utf-8");
}
