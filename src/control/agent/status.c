/* status.c - see status.h. */
#include "agent/status.h"

#include <errno.h>
#include <net/if.h>
#include <stdio.h>

#include "agent/agent_core.h"
#include "agent/paths/edge/path_driver.h"
#include "agent/resolver.h"
#include "base/traffic.h"
#include "health/machine.h"
#include "mesh/object/edge_status.h"
#include "mesh/object/fields.h"
#include "mesh/object/node_status.h"
#include "mesh/object/subnets.h"
#include "net/tun/offload.h"

_Static_assert(STATUS_HUB_WHY_MAX >= ENDPOINT_TEXT_MAX + NODE_CLOCK_TEXT_MAX + 80, "it fits");

/* ---- fields --------------------------------------------------------------------------------- */

/* Appends @item, which is taken. Takes @list, too: NULL if either is NULL, or without memory. */
static json_t *append(json_t *list, json_t *item)
{
    if (json_array_append_new(list, item) == 0)
        return list;
    json_decref(list);
    return NULL;
}

/* Puts the fields of @b into @a. Takes both. Return: NULL if either is NULL, or without memory. */
static json_t *join(json_t *a, json_t *b)
{
    if (json_object_update_new(a, b) < 0)
        a = (json_decref(a), NULL);
    return a;
}

/* A text that is there; else NULL, for a field that is not told. */
static const char *text_or_none(const char *text)
{
    return text && text[0] != '\0' ? text : NULL;
}

static json_t *encode_rate(uint64_t bits_per_s)
{
    return bits_per_s ? json_integer((json_int_t)bits_per_s) : json_null();
}

static json_t *encode_rates(const struct status_input *in)
{
    const struct observe *seen = &in->agent->seen;
    const struct traffic_rates *rates = &seen->rates;
    json_t *classes = json_object();

    for (unsigned i = 0; i < TRAFFIC_CLASS_N; i++)
        if (rates->classes[i])
            fields_set(&classes, traffic_class_names[i], encode_rate(rates->classes[i]));
    return json_pack("{s:o, s:o, s:b, s:s}", "bitsPerSecond", encode_rate(rates->all), "classes",
        classes, "showsDscp", (int)seen->shows_dscp, "why", in->agent->reconcile.rates_why);
}

static json_t *encode_rtt(const struct reach_peer *peer, nsec_t rtt)
{
    return peer->is_measured ? json_real((double)(rtt / NSEC_PER_USEC) / 1000) : json_null();
}

/* One figure of the spread of round trips, us. */
static json_t *encode_spread(const struct reach_peer *peer, uint32_t us)
{
    return rtt_spread_is_known(&peer->spread) ? json_real(us / 1000.0) : json_null();
}

/* How one peer is reached: the fields that the status and `weft paths` share. The relay is the name
 * of the node that relays; null where none does. */
static json_t *encode_reach(const struct reach_peer *peer, uint64_t rate, nsec_t now)
{
    json_t *silent = peer->silent_since == 0
                         ? json_null()
                         : json_integer((json_int_t)((now - peer->silent_since) / NSEC_PER_SEC));

    return json_pack("{s:s, s:o, s:s, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "path",
        path_kind_names[peer->kind], "relay",
        peer->relay[0] != '\0' ? json_string(peer->relay) : json_null(), "why", peer->why,
        "sinceSeconds", (json_int_t)((now - peer->since) / NSEC_PER_SEC), "silentSeconds", silent,
        "rttMs", encode_rtt(peer, peer->rtt), "leastRttMs", encode_rtt(peer, peer->least_rtt),
        "rttP50Ms", encode_spread(peer, peer->spread.p50_us), "rttP99Ms",
        encode_spread(peer, peer->spread.p99_us), "jitterMs",
        encode_spread(peer, peer->spread.jitter_us), "rttUsualMs",
        peer->spread.usual_us != 0 ? encode_spread(peer, peer->spread.usual_us) : json_null(),
        "loss", peer->has_loss ? json_real(peer->loss_permille / 1000.0) : json_null(),
        "rateBitsPerSecond", encode_rate(rate));
}

/* By WireGuard's counters; null: nothing is known. */
static json_t *encode_loss_in(const struct observation *ob, nsec_t now)
{
    struct loss_rate r = observation_loss(ob, now);
    json_t *json = edge_loss_encode(&r);

    if (!json)
        return json_null();
    return join(
        json_pack("{s:f, s:s}", "share", loss_rate_ppm(&r) / 1e6, "from", "counters"), json);
}

/* ---- subnets -------------------------------------------------------------------------------- */

/* Those behind others: [{"route", "node", "used", "why"}]. */
static json_t *encode_routes(const struct subnet_routes *others)
{
    json_t *list = json_array();
    char text[IP_PREFIX_TEXT_MAX];

    for (size_t i = 0; list && i < others->n; i++) {
        const struct subnet_route *sub = &others->items[i];

        list = append(
            list, json_pack("{s:s, s:s, s:b, s:s}", "route", ip_prefix_format(&sub->to, text),
                      "node", sub->node, "used", (int)(sub->why[0] == '\0'), "why", sub->why));
    }
    return list;
}

static struct status_subnet explain_subnet(
    const struct status_input *in, const struct ip_prefix *route, bool is_admitted)
{
    const struct agent *a = in->agent;
    bool v4 = ip_addr_is_v4(&route->addr);
    struct status_subnet ret = {.is_admitted = is_admitted};

    (void)ip_prefix_format(route, ret.route);
    if (!is_admitted)
        (void)snprintf(ret.why, sizeof(ret.why),
            "the hub has not admitted it; on the hub: weft node set %s --route %s",
            a->snapshot.self, ret.route);
    else if ((v4 ? in->forwards4 : in->forwards6) == 0)
        (void)snprintf(ret.why, sizeof(ret.why),
            "this machine forwards no IPv%c: sysctl -w net.%s=1, and a line in /etc/sysctl.d keeps "
            "it so",
            v4 ? '4' : '6', v4 ? "ipv4.ip_forward" : "ipv6.conf.all.forwarding");
    else if (a->rules.guard_fault.text[0] != '\0')
        (void)snprintf(ret.why, sizeof(ret.why),
            "the packet filter does not take its rules: %.180s", a->rules.guard_fault.text);
    return ret;
}

size_t status_own_subnets(
    const struct status_input *in, struct status_subnet ret[static STATUS_SUBNETS_MAX])
{
    const struct subnets *has = snapshot_self(&in->agent->snapshot)->routes;
    const struct subnets *asked = &in->agent->state.routes;
    size_t n = 0;

    for (unsigned i = 0; has && i < has->n; i++)
        ret[n++] = explain_subnet(in, &has->items[i], true);
    for (unsigned i = 0; i < asked->n; i++)
        if (!has || !subnets_has(has, &asked->items[i]))
            ret[n++] = explain_subnet(in, &asked->items[i], false);
    return n;
}

/* Those behind this node: [{"route", "admitted", "masquerade", "why"}]. */
static json_t *encode_own_routes(const struct status_input *in)
{
    struct status_subnet subnets[STATUS_SUBNETS_MAX];
    size_t n = status_own_subnets(in, subnets);
    json_t *list = json_array();

    for (size_t i = 0; list && i < n; i++)
        list = append(list, json_pack("{s:s, s:b, s:b, s:s}", "route", subnets[i].route, "admitted",
                                (int)subnets[i].is_admitted, "masquerade",
                                (int)!in->agent->state.keeps_sources, "why", subnets[i].why));
    return list;
}

/* ---- the cluster ---------------------------------------------------------------------------- */

void status_cluster_set(struct status_cluster *c, bool heard, const char *why, nsec_t now)
{
    *c = (struct status_cluster){.is_heard = heard, .since = now};
    if (!heard)
        (void)err_set(&c->why, -EIO, "%s", why);
}

static json_t *encode_cluster(const struct status_cluster *c, nsec_t now)
{
    return json_pack("{s:b, s:I, s:s}", "reachable", (int)c->is_heard, "sinceSeconds",
        (json_int_t)((now - c->since) / NSEC_PER_SEC), "why", c->why.text);
}

/* ---- the status ----------------------------------------------------------------------------- */

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

/* Null without a userspace engine. */
static json_t *encode_offloads(const struct offloads *o)
{
    json_t *list = o ? json_array() : json_null();

    for (int i = 0; o && list && i < OFFLOAD_N; i++)
        list = append(list, json_pack("{s:s, s:b, s:s}", "name", offload_names[i], "on",
                                (int)o->on[i], "why", o->why[i]));
    return list;
}

/* How datagrams arrive. */
static json_t *encode_merging(const struct observe *seen)
{
    char device[IFNAMSIZ] = "";

    /* One that is gone meanwhile has no name. */
    (void)if_indextoname(seen->merging_ifindex, device);
    return json_pack("{s:s, s:i, s:I}", "device", device, "percent", (int)seen->merging_percent,
        "ageSeconds", (json_int_t)seen->merging_age_s);
}

/* Null while the interface is as it should be. */
static json_t *encode_retry(const struct pass_plan *pass, nsec_t now)
{
    nsec_t left = nsec_max(pass->due_at - now, 0);

    if (!text_or_none(pass->fault.text))
        return json_null();
    return json_pack("{s:I, s:f}", "failures", (json_int_t)pass->n_failed, "inSeconds",
        (double)(left / NSEC_PER_MSEC) / 1000);
}

/* Null when none was removed since the agent's start. */
static json_t *encode_foreign(const struct agent *a, nsec_t now)
{
    char key[X25519_BASE64_MAX];

    if (a->reconcile.n_foreign == 0)
        return json_null();
    return json_pack("{s:I, s:s, s:I}", "removed", (json_int_t)a->reconcile.n_foreign, "last",
        x25519_public_format(&a->reconcile.foreign, key), "ageSeconds",
        (json_int_t)((now - a->foreign_at) / NSEC_PER_SEC));
}

static json_t *encode_self(const struct status_input *in, const struct node *self)
{
    const struct agent *a = in->agent;
    const struct network *network = &in->render->snapshot->network;
    json_t *uplink =
        node_uplink_encode(&a->uplink, self, a->seen.rates.all, in->wall / NSEC_PER_SEC);
    const struct fabric_report *fabric = node_fabric_report(a->fabric);
    int cpu = machine_cpu_percent(node_watch_look(a->watch, in->now));
    json_t *more = json_pack("{s:s, s:s, s:s?, s:s, s:s, s:o, s:o, s:o, s:o, s:i, s:I, s:o}",
        "network", network->meta.name, "interface", a->reconcile.interface, "engine", in->engine,
        "engineWhy", a->reconcile.why, "fault", a->pass.fault.text, "retry",
        encode_retry(&a->pass, in->now), "foreignPeers", encode_foreign(a, in->now), "offloads",
        encode_offloads(in->offloads), "rates", encode_rates(in), "mtu", (int)network->mtu,
        "revision", (json_int_t)in->render->snapshot->revision, "uplink", uplink);

    if (fabric && more)
        (void)json_object_set_new(more, "fabric", fabric_report_encode(fabric));
    if (a->seen.merging_ifindex != 0 && more)
        (void)json_object_set_new(more, "merging", encode_merging(&a->seen));
    if (cpu >= 0 && more)
        (void)json_object_set_new(more, "cpuPercent", json_integer(cpu));
    if (a->resolver && more)
        (void)json_object_set_new(more, "dns", resolver_encode(a->resolver));
    return join(encode_node(self), more);
}

static json_t *encode_hub(const struct status_input *in, const struct node *hub)
{
    const struct agent_hub *serving = in->agent->hubs.serving;
    const struct hub_transport *transport = &serving->transport.transport;
    const char *stream_why = hub_transport_why(transport);
    const struct observation *ob = observe_find(&in->agent->seen, &hub->key);
    bool by_udp = observation_has_session(ob, in->now) && !stream_why;
    /* Null: it has not been heard since the agent's start. */
    json_t *silent = in->hub.silent_for == NSEC_NEVER
                         ? json_null()
                         : json_integer((json_int_t)(in->hub.silent_for / NSEC_PER_SEC));
    json_t *more =
        json_pack("{s:o, s:i, s:o, s:b, s:o, s:I, s:b, s:s, s:s, s:o, s:o, s:o, s:o*, s:s*, s:s*}",
            "endpoint", encode_endpoint(ob ? &ob->endpoint : NULL), "apiPort",
            hub->hub ? (int)hub->hub->api_port : 0, "handshakeAgeSeconds", encode_age(ob, in->now),
            "reachable", (int)in->hub.is_heard, "silentSeconds", silent, "quietSeconds",
            (json_int_t)(in->hub.quiet_max / NSEC_PER_SEC), "udp", (int)by_udp, "why",
            stream_why ? stream_why : "", "oneWay",
            udp_asymmetry_names[udp_asymmetry_of(&transport->asymmetry)], "rxBytes",
            encode_bytes(ob ? ob->facts.rx_bytes : 0), "txBytes",
            encode_bytes(ob ? ob->facts.tx_bytes : 0), "lossIn", encode_loss_in(ob, in->now),
            "storeBehindSeconds",
            in->hub.store_behind_s ? json_integer((json_int_t)in->hub.store_behind_s) : NULL,
            "tlsFailure", in->hub.is_heard ? NULL : in->tls_failure, "refused",
            serving->refused.code != 0 ? serving->refused.text : NULL);

    return join(encode_node(hub), more);
}

void status_explain_hub(
    const struct status_input *in, const struct agent_hub *hub, char ret[static STATUS_HUB_WHY_MAX])
{
    const struct observation *ob = observe_find(&in->agent->seen, &hub->key);
    char at[ENDPOINT_TEXT_MAX] = "an unknown place";

    ret[0] = '\0';
    if (ob && !endpoint_is_none(&ob->endpoint))
        (void)endpoint_format(&ob->endpoint, at);
    if (!observation_has_session(ob, in->now) && text_or_none(in->agent->pass.fault.text))
        (void)snprintf(
            ret, STATUS_HUB_WHY_MAX, "the interface of this node is not as it should be");
    else if (!observation_has_session(ob, in->now))
        (void)snprintf(ret, STATUS_HUB_WHY_MAX, "no handshake with it comes about at %s: %s", at,
            text_or_none(in->agent->time.lockout) ? in->agent->time.lockout
                                                  : "it is down, or UDP to it is blocked");
    else if (hub == in->agent->hubs.serving && !in->hub.is_heard)
        (void)snprintf(
            ret, STATUS_HUB_WHY_MAX, "it does not answer, and another one is being asked");
    else if (hub->report_lost_at != 0)
        (void)snprintf(ret, STATUS_HUB_WHY_MAX,
            "it did not answer this node's last report, so it may be down");
}

/* NULL, and so no field, where there is no choice. */
static json_t *encode_hubs(const struct status_input *in)
{
    const struct hub_set *set = &in->agent->hubs;
    json_t *hubs = set->n > 1 ? json_array() : NULL;

    for (unsigned i = 0; hubs && i < set->n; i++) {
        const struct agent_hub *hub = set->items[i];
        const struct observation *ob = observe_find(&in->agent->seen, &hub->key);
        char why[STATUS_HUB_WHY_MAX];

        status_explain_hub(in, hub, why);
        hubs = append(hubs, json_pack("{s:s, s:b, s:b, s:o, s:o, s:s}", "name", hub->name, "serves",
                                (int)(hub == set->serving), "reachable", (int)(why[0] == '\0'),
                                "endpoint", encode_endpoint(ob ? &ob->endpoint : NULL),
                                "handshakeAgeSeconds", encode_age(ob, in->now), "why", why));
    }
    return hubs;
}

static json_t *encode_peer(
    const struct status_input *in, const struct node *node, const struct reach_peer *path)
{
    const struct observation *ob = observe_find(&in->agent->seen, &node->key);
    const struct endpoint *seen = ob ? &ob->endpoint : NULL;
    const struct endpoint *at = endpoint_is_none(&path->remote) ? seen : &path->remote;
    nsec_t since = (in->wall - (in->now - path->since)) / NSEC_PER_SEC;
    json_t *more = json_pack("{s:o, s:o, s:o, s:i, s:o, s:o, s:I, s:b, s:b}", "lossIn",
        encode_loss_in(ob, in->now), "endpoint", encode_endpoint(at), "handshakeAgeSeconds",
        encode_age(ob, in->now), "mtu", (int)render_mtu(in->render, node), "rxBytes",
        encode_bytes(ob ? ob->facts.rx_bytes : 0), "txBytes",
        encode_bytes(ob ? ob->facts.tx_bytes : 0), "since", (json_int_t)since, "alarm",
        (int)path->is_alarm, "stock", (int)node->stock);

    return join(join(encode_node(node), encode_reach(path, ob ? ob->rate : 0, in->now)), more);
}

static json_t *encode_peers(const struct status_input *in)
{
    const struct reach *reach = &in->agent->reach;
    json_t *peers = json_array();

    for (size_t i = 0; peers && i < reach->n; i++) {
        const struct reach_peer *path = &reach->items[i];
        const struct node *node = snapshot_find_node(in->render->snapshot, path->node);

        if (node)
            peers = append(peers, encode_peer(in, node, path));
    }
    return peers;
}

/* A rest that a mapping has survived, or has not, in s; null: none was measured. */
static json_t *encode_seconds(nsec_t t)
{
    return t == 0 || t == NSEC_NEVER ? json_null() : json_real((double)t / (double)NSEC_PER_SEC);
}

static json_t *encode_keepalive(const struct status_input *in)
{
    const struct keepalive_plan *plan = &in->agent->keepalive.probe.plan;
    bool is_known = keepalive_plan_is_known(plan);
    bool is_fixed = in->render->snapshot->network.keepalive != NETWORK_KEEPALIVE_AUTO;
    const char *from = is_fixed ? "network" : is_known ? "measured" : "default";
    const struct keepalive_known *known = &plan->known;
    nsec_t age = nsec_max(in->wall - known->measured_at, 0) / NSEC_PER_SEC;
    char text[KEEPALIVE_TEXT_MAX] = "";

    if (is_known)
        keepalive_plan_describe(plan, text);
    return json_pack("{s:i, s:s, s:o, s:o, s:o, s:o, s:s, s:s}", "seconds",
        (int)render_keepalive(in->render), "from", from, "survivedSeconds",
        encode_seconds(known->bounds.lives), "forgottenSeconds", encode_seconds(known->bounds.dies),
        "measured", is_known ? json_integer(known->measured_at / NSEC_PER_SEC) : json_null(),
        "measuredSecondsAgo", is_known ? json_integer(age) : json_null(), "found", text, "why",
        is_known ? "" : keepalive_plan_why(plan));
}

/* What is found now, the gravest first. */
static json_t *encode_findings(const struct status_input *in)
{
    json_t *all = findings_encode(&in->agent->findings, in->wall / NSEC_PER_SEC);
    json_t *list = json_incref(json_object_get(all, "findings"));

    json_decref(all);
    return list;
}

json_t *status_encode(const struct status_input *in)
{
    const struct agent *a = in->agent;
    const struct node_names *names = &a->names;
    const struct node *hub = render_relay(in->render);

    return json_pack(
        "{s:o, s:o, s:o*, s:o*, s:o, s:o, s:o, s:b, s:s*, s:o, s:o, s:o, s:s*, s:s*, s:o}", "self",
        encode_self(in, snapshot_self(in->render->snapshot)), "hub",
        hub ? encode_hub(in, hub) : json_null(), "hubs", encode_hubs(in), "cluster",
        a->cluster ? encode_cluster(&a->cluster_seen, in->now) : NULL, "keepalive",
        encode_keepalive(in), "peers", encode_peers(in), "namesLeftOut",
        names->left_out ? json_incref(names->left_out) : json_array(), "namesPending",
        (int)node_names_is_pending(names), "namesFailure",
        names->failure.code != 0 ? err_text(&names->failure) : NULL, "routes",
        encode_routes(&a->reconcile.subnets), "ownRoutes", encode_own_routes(in), "jobs",
        meter_jobs_encode(&a->meter.meter), "copied", text_or_none(a->copy.why), "clock",
        text_or_none(node_clock_why(&a->time)), "findings", encode_findings(in));
}

/* ---- the paths to one node ------------------------------------------------------------------ */

json_t *status_paths_encode(
    const struct agent *a, const struct node *node, const struct reach_peer *peer, nsec_t now)
{
    const char *name = node->meta.name;
    const struct observation *ob = observe_find(&a->seen, &node->key);
    json_t *pairs = path_driver_encode_pairs(a->paths, name, now);
    struct path_view view = {.n_frames = 0};

    (void)path_driver_view(a->paths, name, &view, now);
    return join(
        json_pack("{s:s, s:I, s:I, s:o, s:o, s:o, s:o}", "name", name, "framesSent",
            (json_int_t)view.n_frames, "guessesSent", (json_int_t)view.n_guesses, "self",
            path_report_encode_facts(path_driver_self(a->paths)), "peer",
            node->side ? path_report_encode_facts(node->side) : json_null(), "candidates",
            pairs ? pairs : json_array(), "relays", path_driver_encode_relays(a->paths, name)),
        encode_reach(peer, ob ? ob->rate : 0, now));
}
