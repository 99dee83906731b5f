/* status.c - see status.h. */
#include "agent/status.h"

#include <stdio.h>
#include <string.h>

#include "agent/hub_set.h"
#include "agent/meter.h"
#include "agent/status_cluster.h"
#include "agent/status_rates.h"
#include "agent/status_routes.h"
#include "base/str.h"
#include "base/table.h"
#include "mesh/object/fabric_report.h"
#include "mesh/object/path_report.h"
#include "net/tun/offload.h"

/* An alarm names at most so many peers. */
#define ALARM_NAMES 10

/* ---- JSON ----------------------------------------------------------------------------------- */

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
    if (!a || !b || json_object_update(a, b) < 0)
        a = (json_decref(a), NULL);
    json_decref(b);
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

/* Null while the interface is as it should be. */
static json_t *encode_retry(const struct status_input *in)
{
    nsec_t left = nsec_max(in->retry_at - in->now, 0);

    if (!in->fault || in->fault[0] == '\0')
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
        status_rates_encode(&in->seen->rates, in->rates_why), "mtu", (int)network->mtu, "revision",
        (json_int_t)in->render->snapshot->revision);

    if (in->fabric && more)
        (void)json_object_set_new(more, "fabric", fabric_report_encode(in->fabric));
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
    json_t *more = json_pack("{s:o, s:i, s:o, s:b, s:o, s:I, s:b, s:s, s:s, s:o, s:o}", "endpoint",
        encode_endpoint(ob ? &ob->endpoint : NULL), "apiPort",
        hub->hub ? (int)hub->hub->api_port : 0, "handshakeAgeSeconds", encode_age(ob, in->now),
        "reachable", (int)in->hub_heard, "silentSeconds", encode_silence(in->hub_silent_for),
        "quietSeconds", (json_int_t)(in->hub_quiet_max / NSEC_PER_SEC), "udp", (int)by_udp, "why",
        in->stream_why ? in->stream_why : "", "oneWay", udp_asymmetry_name(in->asymmetry),
        "rxBytes", encode_bytes(ob ? ob->facts.rx_bytes : 0), "txBytes",
        encode_bytes(ob ? ob->facts.tx_bytes : 0));

    return join(encode_node(hub), more);
}

/* What is wrong with that hub, a clause; "": nothing. */
static void explain_hub(const struct status_input *in, const struct agent_hub *hub,
    const struct observation *ob, char ret[static 160])
{
    char at[ENDPOINT_TEXT_MAX] = "an unknown place";

    ret[0] = '\0';
    if (ob && !endpoint_is_none(&ob->endpoint))
        (void)endpoint_format(&ob->endpoint, at);
    if (!observation_has_session(ob, in->now))
        (void)snprintf(ret, 160,
            "no handshake with it comes about at %s: it is down, or UDP to it is blocked", at);
    else if (hub == in->hubs->home && !in->hub_heard)
        (void)snprintf(ret, 160, "it does not answer, and another one is being asked");
    else if (hub->report_lost_at != 0)
        (void)snprintf(ret, 160, "it did not answer this node's last report, so it may be down");
}

static json_t *encode_one_hub(const struct status_input *in, const struct agent_hub *hub)
{
    const struct observation *ob = observe_find(in->seen, &hub->key);
    char why[160];

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

static json_t *encode_rtt(const struct reach_peer *path)
{
    return path->is_measured ? json_real((double)(path->rtt / NSEC_PER_USEC) / 1000) : json_null();
}

static json_t *encode_loss(const struct reach_peer *path)
{
    return path->is_measured ? json_real(path->loss_permille / 1000.0) : json_null();
}

/* The name of the node that relays; null where none does. */
static json_t *encode_relay(const struct reach_peer *path)
{
    return path->relay[0] != '\0' ? json_string(path->relay) : json_null();
}

static json_t *encode_peer(
    const struct status_input *in, const struct node *node, const struct reach_peer *path)
{
    const struct observation *ob = observe_find(in->seen, &node->key);
    nsec_t since = (in->wall - (in->now - path->since)) / NSEC_PER_SEC;
    json_t *more =
        json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:i, s:o, s:o, s:I, s:I, s:s, s:b, s:b, s:o}",
            "path", path_kind_name(path->kind), "relay", encode_relay(path), "endpoint",
            encode_peer_endpoint(path, ob), "handshakeAgeSeconds", encode_age(ob, in->now), "rttMs",
            encode_rtt(path), "loss", encode_loss(path), "mtu", (int)render_mtu(in->render, node),
            "rxBytes", encode_bytes(ob ? ob->facts.rx_bytes : 0), "txBytes",
            encode_bytes(ob ? ob->facts.tx_bytes : 0), "since", (json_int_t)since, "sinceSeconds",
            (json_int_t)((in->now - path->since) / NSEC_PER_SEC), "why", path->why, "alarm",
            (int)path->is_alarm, "stock", (int)node->stock, "rateBitsPerSecond",
            status_rates_encode_one(ob ? ob->rate : 0));

    return join(encode_node(node), more);
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

    return json_pack("{s:o, s:o, s:o*, s:o*, s:o*, s:o, s:o, s:o*, s:o*, s:o*}", "self",
        encode_self(in, snapshot_self(s)), "hub", hub ? encode_hub(in, hub) : json_null(), "hubs",
        encode_hubs(in), "cluster",
        in->cluster ? status_cluster_encode(in->cluster, in->now) : NULL, "keepalive",
        in->keepalive ? encode_keepalive(in) : NULL, "peers", encode_peers(in), "namesLeftOut",
        in->names_left_out ? json_incref((json_t *)in->names_left_out) : json_array(), "routes",
        in->routes ? status_routes_encode(in->routes) : NULL, "ownRoutes",
        in->routes ? status_routes_encode_own(in->routes) : NULL, "jobs",
        in->meter ? meter_jobs_encode(in->meter) : NULL);
}

json_t *status_encode_paths(const struct status_input *in, const struct path_driver *paths,
    const struct node *node, const struct reach_peer *peer)
{
    const struct observation *ob = observe_find(in->seen, &node->key);
    const struct path_side *self = path_driver_self(paths);
    json_t *pairs = path_driver_encode_pairs(paths, node->meta.name, in->now);
    struct path_view view = {.n_frames = 0};

    (void)path_driver_view(paths, node->meta.name, &view, in->now);
    return json_pack("{s:s, s:s, s:o, s:s, s:I, s:o, s:o, s:I, s:I, s:o, s:o, s:o, s:o, s:o}",
        "name", node->meta.name, "path", path_kind_name(peer->kind), "relay", encode_relay(peer),
        "why", peer->why, "sinceSeconds", (json_int_t)((in->now - peer->since) / NSEC_PER_SEC),
        "rttMs", encode_rtt(peer), "loss", encode_loss(peer), "framesSent",
        (json_int_t)view.n_frames, "guessesSent", (json_int_t)view.n_guesses, "self",
        path_report_encode_facts(self), "peer",
        node->side ? path_report_encode_facts(node->side) : json_null(), "candidates",
        pairs ? pairs : json_array(), "relays", path_driver_encode_relays(paths, node->meta.name),
        "rateBitsPerSecond", status_rates_encode_one(ob ? ob->rate : 0));
}

/* ---- table ---------------------------------------------------------------------------------- */

static const char *text_of(const json_t *obj, const char *field, const char *instead)
{
    const char *text = json_string_value(json_object_get(obj, field));

    return text && text[0] != '\0' ? text : instead;
}

static const char *format_age(const json_t *obj, char buf[static 32])
{
    const json_t *age = json_object_get(obj, "handshakeAgeSeconds");

    if (!json_is_integer(age))
        return "never";
    (void)snprintf(buf, 32, "%lld s ago", (long long)json_integer_value(age));
    return buf;
}

static const char *format_bytes(const json_t *obj, const char *field, char buf[static 32])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    double v = (double)json_integer_value(json_object_get(obj, field));
    unsigned unit = 0;

    for (; v >= 1024 && unit + 1 < sizeof(units) / sizeof(*units); unit++)
        v /= 1024;
    (void)snprintf(buf, 32, unit == 0 ? "%.0f %s" : "%.1f %s", v, units[unit]);
    return buf;
}

static const char *format_time(const json_t *obj, const char *field, char buf[static 32])
{
    long long s = (long long)json_integer_value(json_object_get(obj, field));

    if (s < 120)
        (void)snprintf(buf, 32, "%lld s", s);
    else if (s < 120 * 60)
        (void)snprintf(buf, 32, "%lld min", s / 60);
    else if (s < 48 * 3600)
        (void)snprintf(buf, 32, "%lld h", s / 3600);
    else
        (void)snprintf(buf, 32, "%lld d", s / 86400);
    return buf;
}

static const char *format_since(const json_t *peer, char buf[static 32])
{
    return format_time(peer, "sinceSeconds", buf);
}

/* "-": not known. */
static const char *format_real(
    const json_t *peer, const char *field, double factor, const char *unit, char buf[static 32])
{
    const json_t *v = json_object_get(peer, field);

    if (!json_is_number(v))
        return "-";
    (void)snprintf(buf, 32, "%.1f %s", json_number_value(v) * factor, unit);
    return buf;
}

/* "relay via r1" */
static const char *format_path(const json_t *peer, char buf[static 128])
{
    const char *relay = text_of(peer, "relay", NULL);

    (void)snprintf(buf, 128, "%.40s%s%.64s", text_of(peer, "path", "?"), relay ? " via " : "",
        relay ? relay : "");
    return buf;
}

static void add_peer(struct table *t, const json_t *peer)
{
    char path[128];
    char buf[32];

    table_add(t, "%s", text_of(peer, "name", "?"));
    table_add(t, "%s", text_of(peer, "address4", "?"));
    table_add(t, "%s", format_path(peer, path));
    table_add(t, "%s", format_real(peer, "rttMs", 1, "ms", buf));
    table_add(t, "%s", format_real(peer, "loss", 100, "%", buf));
    table_add(t, "%lld", (long long)json_integer_value(json_object_get(peer, "mtu")));
    table_add(t, "%s", format_since(peer, buf));
    table_add(t, "%s", format_age(peer, buf));
    table_add(t, "%s", format_bytes(peer, "rxBytes", buf));
    table_add(t, "%s", format_bytes(peer, "txBytes", buf));
}

static void format_peers(const json_t *peers, struct str *out)
{
    static const char *const head[] = {
        "PEER", "ADDRESS", "PATH", "RTT", "LOSS", "MTU", "SINCE", "HANDSHAKE", "RECEIVED", "SENT"};
    struct table t;
    size_t index;
    json_t *peer;

    table_init(&t, sizeof(head) / sizeof(*head));
    for (size_t i = 0; i < sizeof(head) / sizeof(*head); i++)
        table_add(&t, "%s", head[i]);
    json_array_foreach(peers, index, peer)
        add_peer(&t, peer);
    table_format(&t, out);
    table_deinit(&t);
}

/* Has one of the first @before peers the same reason as @peer? */
static bool is_said(const json_t *peers, size_t before, const json_t *peer)
{
    for (size_t i = 0; i < before; i++) {
        const json_t *other = json_array_get(peers, i);

        if (json_equal(json_object_get(other, "why"), json_object_get(peer, "why")) &&
            json_equal(json_object_get(other, "path"), json_object_get(peer, "path")))
            return true;
    }
    return false;
}

/* Prints each reason once, because many peers have the same one. */
static void format_reasons(const json_t *peers, struct str *out)
{
    size_t index;
    json_t *peer;

    json_array_foreach(peers, index, peer) {
        const char *why = text_of(peer, "why", NULL);

        if (why && !is_said(peers, index, peer))
            str_addf(out, "%s: %s\n", text_of(peer, "path", "?"), why);
    }
}

/* "keepalive 21 s: the NAT forgets a silent UDP mapping after about 28 s, seen 3 min ago" */
static void format_keepalive(const json_t *keepalive, struct str *out)
{
    bool is_fixed = strcmp(text_of(keepalive, "from", ""), "network") == 0;
    const char *found = text_of(keepalive, "found", NULL);
    char buf[32];

    if (!keepalive)
        return;
    str_addf(out, "keepalive %lld s%s",
        (long long)json_integer_value(json_object_get(keepalive, "seconds")),
        is_fixed ? ", which the network says" : "");
    if (found)
        str_addf(
            out, ": %s, seen %s ago\n", found, format_time(keepalive, "measuredSecondsAgo", buf));
    else
        str_addf(out, "; not measured: %s\n", text_of(keepalive, "why", "no reason is known"));
}

/* "ALARM: no direct path to b, c and 2 more, though only direct paths are wanted" */
static void format_alarm(const json_t *peers, struct str *out)
{
    size_t n = 0;
    size_t index;
    json_t *peer;

    json_array_foreach(peers, index, peer) {
        if (!json_is_true(json_object_get(peer, "alarm")))
            continue;
        if (n < ALARM_NAMES)
            str_addf(out, "%s%s", n == 0 ? "ALARM: no direct path to " : ", ",
                text_of(peer, "name", "?"));
        n++;
    }
    if (n > ALARM_NAMES)
        str_addf(out, " and %zu more", n - ALARM_NAMES);
    if (n > 0)
        str_add(out, ", though only direct paths are wanted\n");
}

/* A line for each offload that is off, with the reason. */
static void format_offloads(const json_t *offloads, struct str *out)
{
    const json_t *offload;
    size_t index;

    json_array_foreach(offloads, index, offload)
        if (!json_is_true(json_object_get(offload, "on")))
            str_addf(out, "the offload %s is off: %s\n", text_of(offload, "name", "?"),
                text_of(offload, "why", "?"));
}

static void format_names(const json_t *names, struct str *out)
{
    const json_t *item;
    size_t i;

    json_array_foreach(names, i, item)
        str_addf(out, "the name \"%s\" of node %s is left out of the hosts file: %s\n",
            text_of(item, "name", "?"), text_of(item, "node", "?"), text_of(item, "why", "?"));
}

/* A hub that has missed a heartbeat is shown as silent, well before it counts as away. */
static const char *format_presence(const json_t *hub, char buf[static 64])
{
    json_int_t silent = json_integer_value(json_object_get(hub, "silentSeconds"));
    const json_t *quiet = json_object_get(hub, "quietSeconds"); /* no older agent says it */
    json_int_t most = quiet ? json_integer_value(quiet) : HUB_LINK_QUIET_MAX / NSEC_PER_SEC;
    bool is_heard = json_is_true(json_object_get(hub, "reachable"));

    if (is_heard && silent < most)
        return "answers";
    if (is_heard)
        (void)snprintf(buf, 64, "silent for %lld s", (long long)silent);
    else
        (void)snprintf(buf, 64, "does not answer");
    return buf;
}

static void format_fault(const json_t *self, struct str *out)
{
    const json_t *retry = json_object_get(self, "retry");
    long long n = (long long)json_integer_value(json_object_get(retry, "failures"));

    if (text_of(self, "fault", "")[0] == '\0')
        return;
    str_addf(out, "the interface is not as it should be, and nobody is reached until it is: %s\n",
        text_of(self, "fault", ""));
    if (n > 0)
        str_addf(out, "it was tried %lld time%s, and is tried again in %.1f s\n", n,
            n == 1 ? "" : "s", json_number_value(json_object_get(retry, "inSeconds")));
}

/* Null, or not there with an older agent: none was removed. */
static void format_foreign(const json_t *foreign, struct str *out)
{
    long long n = (long long)json_integer_value(json_object_get(foreign, "removed"));
    long long age = (long long)json_integer_value(json_object_get(foreign, "ageSeconds"));

    if (n > 0)
        str_addf(out,
            "peers that somebody else had added to the interface and that were removed: %lld, the "
            "last %lld s ago with the public key %s\n",
            n, age, text_of(foreign, "last", "?"));
}

/* A line for each hub that does not serve this node. */
static void format_hubs(const json_t *hubs, struct str *out)
{
    const json_t *hub;
    char age[32];
    size_t i;

    json_array_foreach(hubs, i, hub) {
        const char *why = text_of(hub, "why", NULL);

        if (json_is_true(json_object_get(hub, "serves")))
            continue;
        str_addf(out, "hub %s at %s: %s%s, last handshake %s\n", text_of(hub, "name", "?"),
            text_of(hub, "endpoint", "an unknown place"), why ? "away: " : "stands by",
            why ? why : "", format_age(hub, age));
    }
}

void status_format(const json_t *status, struct str *out)
{
    const json_t *self = json_object_get(status, "self");
    const json_t *hub = json_object_get(status, "hub");
    const json_t *peers = json_object_get(status, "peers");
    const char *stream_why = text_of(hub, "why", NULL);
    char presence[64];
    char age[32];

    str_addf(out, "%s in the network %s: %s, %s\n", text_of(self, "name", "?"),
        text_of(self, "network", "?"), text_of(self, "address4", "?"),
        text_of(self, "address6", "?"));
    str_addf(out, "interface %s (%s), MTU %lld\n", text_of(self, "interface", "?"),
        text_of(self, "engine", "no engine"),
        (long long)json_integer_value(json_object_get(self, "mtu")));
    format_offloads(json_object_get(self, "offloads"), out);
    status_rates_format(status, out);
    format_fault(self, out);
    format_foreign(json_object_get(self, "foreignPeers"), out);
    /* The endpoint of a stream is its near end, on this machine; @stream_why names the far one. */
    str_addf(out, "hub %s %s%s: %s, last handshake %s\n", text_of(hub, "name", "?"),
        stream_why ? "in TLS" : "at ",
        stream_why ? "" : text_of(hub, "endpoint", "an unknown place"),
        format_presence(hub, presence), format_age(hub, age));
    format_hubs(json_object_get(status, "hubs"), out);
    if (stream_why)
        str_addf(out, "hub: %s\n", stream_why);
    status_cluster_format(json_object_get(status, "cluster"), out);
    format_keepalive(json_object_get(status, "keepalive"), out);
    format_names(json_object_get(status, "namesLeftOut"), out);
    status_routes_format(status, out);
    str_add(out, "\n");
    if (json_array_size(peers) == 0) {
        str_add(out, "no other node yet\n");
        return;
    }
    format_peers(peers, out);
    str_add(out, "\n");
    format_alarm(peers, out);
    format_reasons(peers, out);
}

/* ---- one peer's ways ------------------------------------------------------------------------ */

static void add_pair(struct table *t, const json_t *pair)
{
    const json_t *tried = json_object_get(pair, "triedSecondsAgo");
    char buf[32];

    table_add(t, "%s", text_of(pair, "endpoint", "?"));
    table_add(t, "%s%s", text_of(pair, "type", "?"),
        json_is_true(json_object_get(pair, "ownSocket")) ? ", own socket" : "");
    table_add(t, "%s", text_of(pair, "verdict", "?"));
    table_add(t, "%s", format_real(pair, "rttMs", 1, "ms", buf));
    table_add(t, "%lld/%lld", (long long)json_integer_value(json_object_get(pair, "pongs")),
        (long long)json_integer_value(json_object_get(pair, "pings")));
    if (json_is_integer(tried))
        table_add(t, "%lld s ago", (long long)json_integer_value(tried));
    else
        table_add(t, "never");
}

static void format_pairs(const json_t *pairs, struct str *out)
{
    static const char *const head[] = {"ENDPOINT", "FOUND", "VERDICT", "RTT", "ANSWERED", "TRIED"};
    struct table t;
    size_t index;
    json_t *pair;

    table_init(&t, sizeof(head) / sizeof(*head));
    for (size_t i = 0; i < sizeof(head) / sizeof(*head); i++)
        table_add(&t, "%s", head[i]);
    json_array_foreach(pairs, index, pair)
        add_pair(&t, pair);
    table_format(&t, out);
    table_deinit(&t);
}

static const char *describe_relay(const json_t *relay)
{
    const char *verdict = text_of(relay, "verdict", "?");

    if (strcmp(verdict, path_verdict_name(PATH_VERDICT_SILENT)) == 0)
        return "not reached there";
    return verdict;
}

/* The relays through which the peer may be reached. The best has the smallest sum of both round
 * trips. */
static void format_relays(const json_t *relays, struct str *out)
{
    struct table t;
    size_t index;
    json_t *relay;

    str_add(out, "\n");
    table_init(&t, 4);
    table_add(&t, "RELAY");
    table_add(&t, "VERDICT");
    table_add(&t, "RTT HERE");
    table_add(&t, "RTT THERE");
    json_array_foreach(relays, index, relay) {
        char buf[32];

        table_add(&t, "%s", text_of(relay, "name", "?"));
        table_add(&t, "%s", describe_relay(relay));
        table_add(&t, "%s", format_real(relay, "rttMs", 1, "ms", buf));
        table_add(&t, "%s", format_real(relay, "peerRttMs", 1, "ms", buf));
    }
    table_format(&t, out);
    table_deinit(&t);
}

/* "endpoint-independent mapping, natted" */
static void format_nat(const char *whose, const json_t *nat, struct str *out)
{
    str_addf(out, "%s: %s mapping, %s%s\n", whose, text_of(nat, "mapping", "unknown"),
        json_is_true(json_object_get(nat, "natted")) ? "behind a NAT" : "no NAT seen",
        json_is_true(json_object_get(nat, "blocked")) ? ", UDP blocked" : "");
}

void status_format_paths(const json_t *paths, struct str *out)
{
    const json_t *pairs = json_object_get(paths, "candidates");
    const json_t *relays = json_object_get(paths, "relays");
    const char *why = text_of(paths, "why", NULL);
    char path[128];
    char buf[32];

    str_addf(out, "%s is reached by %s for %s, RTT %s\n", text_of(paths, "name", "?"),
        format_path(paths, path), format_since(paths, buf),
        format_real(paths, "rttMs", 1, "ms", (char[32]){0}));
    if (why)
        str_addf(out, "%s\n", why);
    status_rates_format_path(paths, out);
    format_nat("here", json_object_get(paths, "self"), out);
    format_nat("there", json_object_get(paths, "peer"), out);
    str_addf(out, "%lld path frames were sent, %lld of them guesses at ports\n\n",
        (long long)json_integer_value(json_object_get(paths, "framesSent")),
        (long long)json_integer_value(json_object_get(paths, "guessesSent")));
    if (json_array_size(pairs) == 0)
        str_add(out, "nothing has been tried yet\n");
    else
        format_pairs(pairs, out);
    if (json_array_size(relays) > 0)
        format_relays(relays, out);
}
