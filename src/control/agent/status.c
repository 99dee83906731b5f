/* status.c - see status.h. */
#include "agent/status.h"

#include <stdio.h>

#include "agent/hub_set.h"
#include "agent/meter.h"
#include "agent/node_clock.h"
#include "agent/resolver.h"
#include "agent/status_cluster.h"
#include "agent/status_rates.h"
#include "agent/status_reach.h"
#include "agent/status_routes.h"
#include "mesh/object/fabric_report.h"
#include "net/tun/offload.h"

/* Age of the last handshake, s; null: there was none. */
static json_t *encode_age(const struct observation *ob, nsec_t now)
{
    int64_t age = observation_age_seconds(ob, now);

    return age < 0 ? json_null() : json_integer(age);
}

static json_t *encode_endpoint(const struct endpoint *ep)
{
    char text[ENDPOINT_TEXT_MAX];

    return ep && !endpoint_is_none(ep) ? json_string(endpoint_format(ep, text)) : json_null();
}

static json_t *encode_peer_endpoint(const struct reach_peer *path, const struct observation *ob)
{
    if (!endpoint_is_none(&path->remote))
        return encode_endpoint(&path->remote);
    return encode_endpoint(ob ? &ob->endpoint : NULL);
}

static json_t *encode_bytes(uint64_t bytes)
{
    return json_integer(bytes > INT64_MAX ? INT64_MAX : (json_int_t)bytes);
}

/* The fields that this node, the hub and the peers have in common. */
static json_t *encode_node(const struct node *n)
{
    char key[X25519_BASE64_MAX];
    char a4[IP_ADDR_TEXT_MAX];
    char a6[IP_ADDR_TEXT_MAX];

    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:o*}", "name", n->meta.name, "address4",
        ip_addr_format(&n->address4, a4), "address6", ip_addr_format(&n->address6, a6), "publicKey",
        x25519_public_format(&n->key, key), "island", n->island, "fabric",
        n->fabric ? fabric_report_encode(n->fabric) : NULL);
}

/* Puts the fields of @b into @a. Takes both. Return: NULL if either is NULL, or without memory. */
static json_t *join(json_t *a, json_t *b)
{
    if (json_object_update_new(a, b) < 0)
        a = (json_decref(a), NULL);
    return a;
}

/* Null without a userspace engine. */
static json_t *encode_offloads(const struct offloads *o)
{
    json_t *list = o ? json_array() : json_null();

    for (int i = 0; o && list && i < OFFLOAD_N; i++)
        if (json_array_append_new(
                list, json_pack("{s:s, s:b, s:s}", "name", offload_name((enum offload)i), "on",
                          (int)o->on[i], "why", o->why[i])) < 0)
            list = (json_decref(list), NULL);
    return list;
}

static bool is_faulty(const struct status_input *in)
{
    return in->fault && in->fault[0] != '\0';
}

/* Null while the interface is as it should be. */
static json_t *encode_retry(const struct status_input *in)
{
    nsec_t left = nsec_max(in->retry_at - in->now, 0);

    if (!is_faulty(in))
        return json_null();
    return json_pack("{s:I, s:f}", "failures", (json_int_t)in->n_failed, "inSeconds",
        (double)(left / NSEC_PER_MSEC) / 1000);
}

/* Null when none was removed since the agent's start. */
static json_t *encode_foreign(const struct status_input *in)
{
    char key[X25519_BASE64_MAX];

    if (in->n_foreign == 0)
        return json_null();
    return json_pack("{s:I, s:s, s:I}", "removed", (json_int_t)in->n_foreign, "last",
        x25519_public_format(&in->foreign, key), "ageSeconds",
        (json_int_t)((in->now - in->foreign_at) / NSEC_PER_SEC));
}

static json_t *encode_self(const struct status_input *in, const struct node *self)
{
    const struct network *network = &in->render->snapshot->network;
    json_t *more = json_pack("{s:s, s:s, s:s?, s:s, s:s, s:o, s:o, s:o, s:o, s:i, s:I}", "network",
        network->meta.name, "interface", in->interface, "engine", in->engine, "engineWhy",
        in->engine_why, "fault", in->fault ? in->fault : "", "retry", encode_retry(in),
        "foreignPeers", encode_foreign(in), "offloads", encode_offloads(in->offloads), "rates",
        status_rates_encode(&in->seen->rates, in->seen->shows_dscp, in->rates_why), "mtu",
        (int)network->mtu, "revision", (json_int_t)in->render->snapshot->revision);

    if (in->fabric && more)
        (void)json_object_set_new(more, "fabric", fabric_report_encode(in->fabric));
    if (in->resolver && more)
        (void)json_object_set_new(more, "dns", resolver_encode(in->resolver));
    return join(encode_node(self), more);
}

/* In s; null: the hub has not been heard since the agent's start. */
static json_t *encode_silence(nsec_t silent_for)
{
    return silent_for == NSEC_NEVER ? json_null()
                                    : json_integer((json_int_t)(silent_for / NSEC_PER_SEC));
}

static json_t *encode_hub(const struct status_input *in, const struct node *hub)
{
    const struct observation *ob = observe_find(in->seen, &hub->key);
    bool by_udp = observation_has_session(ob, in->now) && !in->stream_why;
    const struct err *refused = in->hubs ? &in->hubs->home->refused : NULL;
    json_t *more =
        json_pack("{s:o, s:i, s:o, s:b, s:o, s:I, s:b, s:s, s:s, s:o, s:o, s:o*, s:s*, s:s*}",
            "endpoint", encode_endpoint(ob ? &ob->endpoint : NULL), "apiPort",
            hub->hub ? (int)hub->hub->api_port : 0, "handshakeAgeSeconds", encode_age(ob, in->now),
            "reachable", (int)in->hub_heard, "silentSeconds", encode_silence(in->hub_silent_for),
            "quietSeconds", (json_int_t)(in->hub_quiet_max / NSEC_PER_SEC), "udp", (int)by_udp,
            "why", in->stream_why ? in->stream_why : "", "oneWay",
            udp_asymmetry_name(in->asymmetry), "rxBytes", encode_bytes(ob ? ob->facts.rx_bytes : 0),
            "txBytes", encode_bytes(ob ? ob->facts.tx_bytes : 0), "storeBehindSeconds",
            in->hub_store_behind_s ? json_integer((json_int_t)in->hub_store_behind_s) : NULL,
            "tlsFailure", in->hub_heard ? NULL : in->tls_failure, "refused",
            refused && refused->code != 0 ? refused->text : NULL);

    return join(encode_node(hub), more);
}

#define WHY_MAX (ENDPOINT_TEXT_MAX + NODE_CLOCK_TEXT_MAX + 80)

/* What is wrong with that hub, a clause; "": nothing. */
static void explain_hub(const struct status_input *in, const struct agent_hub *hub,
    const struct observation *ob, char ret[static WHY_MAX])
{
    char at[ENDPOINT_TEXT_MAX] = "an unknown place";

    ret[0] = '\0';
    if (ob && !endpoint_is_none(&ob->endpoint))
        (void)endpoint_format(&ob->endpoint, at);
    if (!observation_has_session(ob, in->now) && is_faulty(in))
        (void)snprintf(ret, WHY_MAX, "the interface of this node is not as it should be");
    else if (!observation_has_session(ob, in->now))
        (void)snprintf(ret, WHY_MAX, "no handshake with it comes about at %s: %s", at,
            in->lockout && in->lockout[0] != '\0' ? in->lockout
                                                  : "it is down, or UDP to it is blocked");
    else if (hub == in->hubs->home && !in->hub_heard)
        (void)snprintf(ret, WHY_MAX, "it does not answer, and another one is being asked");
    else if (hub->report_lost_at != 0)
        (void)snprintf(
            ret, WHY_MAX, "it did not answer this node's last report, so it may be down");
}

static json_t *encode_one_hub(const struct status_input *in, const struct agent_hub *hub)
{
    const struct observation *ob = observe_find(in->seen, &hub->key);
    char why[WHY_MAX];

    explain_hub(in, hub, ob, why);
    return json_pack("{s:s, s:b, s:b, s:o, s:o, s:s}", "name", hub->name, "serves",
        (int)(hub == in->hubs->home), "reachable", (int)(why[0] == '\0'), "endpoint",
        encode_endpoint(ob ? &ob->endpoint : NULL), "handshakeAgeSeconds", encode_age(ob, in->now),
        "why", why);
}

/* NULL, and so no field, where there is no choice. */
static json_t *encode_hubs(const struct status_input *in)
{
    json_t *hubs = in->hubs && in->hubs->n > 1 ? json_array() : NULL;

    for (unsigned i = 0; hubs && i < in->hubs->n; i++)
        if (json_array_append_new(hubs, encode_one_hub(in, in->hubs->items[i])) < 0)
            hubs = (json_decref(hubs), NULL);
    return hubs;
}

static json_t *encode_peer(
    const struct status_input *in, const struct node *node, const struct reach_peer *path)
{
    const struct observation *ob = observe_find(in->seen, &node->key);
    nsec_t since = (in->wall - (in->now - path->since)) / NSEC_PER_SEC;
    json_t *more = json_pack("{s:o, s:o, s:i, s:o, s:o, s:I, s:b, s:b}", "endpoint",
        encode_peer_endpoint(path, ob), "handshakeAgeSeconds", encode_age(ob, in->now), "mtu",
        (int)render_mtu(in->render, node), "rxBytes", encode_bytes(ob ? ob->facts.rx_bytes : 0),
        "txBytes", encode_bytes(ob ? ob->facts.tx_bytes : 0), "since", (json_int_t)since, "alarm",
        (int)path->is_alarm, "stock", (int)node->stock);

    return join(
        join(encode_node(node), status_reach_encode(path, ob ? ob->rate : 0, in->now)), more);
}

static json_t *encode_peers(const struct status_input *in)
{
    json_t *peers = json_array();

    for (size_t i = 0; peers && i < in->reach->n; i++) {
        const struct reach_peer *path = &in->reach->items[i];
        const struct node *node = snapshot_find_node(in->render->snapshot, path->node);

        if (node && json_array_append_new(peers, encode_peer(in, node, path)) < 0)
            peers = (json_decref(peers), NULL);
    }
    return peers;
}

static const char *source_of_keepalive(const struct status_input *in)
{
    if (in->render->snapshot->network.keepalive != NETWORK_KEEPALIVE_AUTO)
        return "network";
    return keepalive_plan_is_known(in->keepalive) ? "measured" : "default";
}

/* A rest that a mapping has survived, or has not, in s; null: none was measured. */
static json_t *encode_seconds(nsec_t t)
{
    return t == 0 || t == NSEC_NEVER ? json_null() : json_real((double)t / (double)NSEC_PER_SEC);
}

static json_t *encode_keepalive(const struct status_input *in)
{
    const struct keepalive_plan *plan = in->keepalive;
    bool is_known = keepalive_plan_is_known(plan);
    const struct keepalive_known *known = &plan->known;
    nsec_t age = nsec_max(in->wall - known->measured_at, 0) / NSEC_PER_SEC;
    char text[KEEPALIVE_TEXT_MAX] = "";

    if (is_known)
        keepalive_plan_describe(plan, text);
    return json_pack("{s:i, s:s, s:o, s:o, s:o, s:o, s:s, s:s}", "seconds",
        (int)render_keepalive(in->render), "from", source_of_keepalive(in), "survivedSeconds",
        encode_seconds(known->bounds.lives), "forgottenSeconds", encode_seconds(known->bounds.dies),
        "measured", is_known ? json_integer(known->measured_at / NSEC_PER_SEC) : json_null(),
        "measuredSecondsAgo", is_known ? json_integer(age) : json_null(), "found", text, "why",
        is_known ? "" : keepalive_plan_why(plan));
}

json_t *status_encode(const struct status_input *in)
{
    const struct snapshot *s = in->render->snapshot;
    const struct node *hub = render_relay(in->render);

    return json_pack(
        "{s:o, s:o, s:o*, s:o*, s:o*, s:o, s:o, s:b, s:s*, s:o*, s:o*, s:o*, s:s*, s:s*}", "self",
        encode_self(in, snapshot_self(s)), "hub", hub ? encode_hub(in, hub) : json_null(), "hubs",
        encode_hubs(in), "cluster",
        in->cluster ? status_cluster_encode(in->cluster, in->now) : NULL, "keepalive",
        in->keepalive ? encode_keepalive(in) : NULL, "peers", encode_peers(in), "namesLeftOut",
        in->names_left_out ? json_incref((json_t *)in->names_left_out) : json_array(),
        "namesPending", (int)in->names_pending, "namesFailure",
        in->names_failure && in->names_failure->code != 0 ? err_text(in->names_failure) : NULL,
        "routes", in->routes ? status_routes_encode(in->routes) : NULL, "ownRoutes",
        in->routes ? status_routes_encode_own(in->routes) : NULL, "jobs",
        in->meter ? meter_jobs_encode(in->meter) : NULL, "copied",
        in->copy_why && in->copy_why[0] != '\0' ? in->copy_why : NULL, "clock",
        in->clock_why && in->clock_why[0] != '\0' ? in->clock_why : NULL);
}
