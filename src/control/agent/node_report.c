/* node_report.c - see node_report.h. */
#include "agent/node_report.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/meter.h"
#include "agent/node_daily.h"
#include "agent/paths/edge/reach.h"
#include "agent/reconcile/observe.h"
#include "base/parse.h"
#include "base/text.h"
#include "base/version.h"
#include "health/machine.h"
#include "health/self.h"
#include "mesh/object/edge_status.h"
#include "mesh/object/fields.h"
#include "mesh/object/node_status.h"
#include "mesh/object/subnets.h"
#include "mesh/render/render.h"
#include "mesh/snapshot/snapshot.h"

#define PERIOD    (60 * NSEC_PER_SEC)
#define EDGES_MIN (5 * NSEC_PER_SEC)
#define SELF_MIN  (NSEC_PER_SEC / 5)

/* Most edges in one report, so that it stays below the 64 KiB that the hub accepts. An edge takes
 * fewer bytes in a report to an older hub. */
#define EDGES_MAX     150
#define EDGES_MAX_OLD 340

/* And beside findings. */
#define EDGES_BESIDE_FINDINGS 110

/* A report with more edges than this has no room for what was moved. */
#define EDGES_BESIDE_TRAFFIC 75

/* What is reported of an edge. */
struct reported_edge {
    struct edge_report_head head;
    bool is_refused; /* another key is pinned than the peer has */
    bool lacks_rate; /* the edge has a rate, and the engine does not keep it */
    bool is_alarm;
    bool is_relay_better; /* than the direct path that there was */
    bool has_why;         /* there is something that explains why the path is no better one */
    enum path_kind kind;
    nsec_t handshake; /* monotonic; 0: none */
    struct loss_rate loss;
    enum loss_level level;
    struct rtt_spread spread;
    struct endpoint endpoint;
    struct x25519_public key;
};

void node_report_on_hub(struct node_report *nr)
{
    edge_report_begin(&nr->edges);
    nr->is_old_hub = false;
    nr->sent_at = 0;
}

bool node_report_has_changes(const struct node_report *nr)
{
    return nr->self_changed || nr->edges_changed || nr->edges.has_more;
}

nsec_t node_report_within(const struct node_report *nr)
{
    return nr->self_changed || nr->edges.has_more ? SELF_MIN : NSEC_NEVER;
}

bool node_report_is_due(const struct node_report *nr, nsec_t now)
{
    nsec_t since = now - nr->sent_at;

    return nr->sent_at == 0 || since >= PERIOD || (nr->edges_changed && since >= EDGES_MIN) ||
           since >= node_report_within(nr);
}

void node_report_on_sent(struct node_report *nr, nsec_t now)
{
    nr->sent_at = now;
    nr->edges_changed = false;
    nr->self_changed = false;
}

/* ---- findings ------------------------------------------------------------------------------- */

static json_t *encode_findings(const struct node_report_facts *facts)
{
    return facts->findings ? self_encode(facts->findings, facts->snapshot->self, facts->wall_s)
                           : json_array();
}

static bool is_same_field(const json_t *a, const json_t *b, const char *name)
{
    return strcmp(fields_text_of(a, name), fields_text_of(b, name)) == 0;
}

/* The figures in their sentences go along with the next report. */
static bool are_alike(const json_t *a, const json_t *b)
{
    size_t n = json_array_size(a);

    for (size_t i = 0; i < n && i < json_array_size(b); i++) {
        const json_t *x = json_array_get(a, i);
        const json_t *y = json_array_get(b, i);

        if (!is_same_field(x, y, "code") || !is_same_field(x, y, "peer"))
            return false;
    }
    return n == json_array_size(b);
}

void node_report_on_findings(struct node_report *nr, const struct node_report_facts *facts)
{
    json_t *found;

    if ((!facts->findings || facts->findings->n == 0) && json_array_size(nr->found_reported) == 0)
        return;
    found = encode_findings(facts);
    nr->edges_changed |= !are_alike(found, nr->found_reported);
    json_decref(found);
}

/* ---- edges ---------------------------------------------------------------------------------- */

/* Is there a rate of the edge that is not kept? */
static bool lacks_rate(const struct node_report_facts *facts, const char *peer)
{
    const struct mesh_edge *edge;

    if (!facts->rates_why || facts->rates_why[0] == '\0')
        return false;
    edge = snapshot_find_edge(facts->snapshot, facts->snapshot->self, peer);
    return edge && edge->rate != 0;
}

/* Fill in what is to be reported of the edge to a peer. False: nothing. An older hub knows neither
 * endpoints nor keys nor errors. */
static bool see_edge(struct reported_edge *ret, const struct node_report_facts *facts,
    const struct reach_peer *path, bool is_old_hub)
{
    const struct node *node = snapshot_find_node(facts->snapshot, path->node);
    const struct observation *ob = node ? observe_find(facts->seen, &node->key) : NULL;
    struct reported_edge t = {
        .kind = path->kind, .is_alarm = path->is_alarm, .is_relay_better = path->is_relay_better};
    /* It must not be relayed, so the engine has no such peer any more. */
    bool has_lost_path =
        t.kind == PATH_KIND_NONE && path->fell_back_at != 0 && !path->awaits_hub && !is_old_hub;

    t.is_refused = strcmp(path->why, render_why_key) == 0;
    t.lacks_rate = !t.is_refused && lacks_rate(facts, path->node);
    /* An edge without a handshake is not reported, unless a person should look at it. */
    if ((!ob || ob->handshake_at == 0) && !t.is_alarm && !t.is_refused && !t.lacks_rate &&
        !has_lost_path)
        return false;
    (void)snprintf(t.head.peer, sizeof(t.head.peer), "%.*s", NAME_MAX_LEN, path->node);
    t.handshake = ob ? ob->handshake_at : 0;
    if (is_old_hub) {
        t.is_refused = t.lacks_rate = t.is_relay_better = false;
        *ret = t;
        return true;
    }
    t.endpoint = path->remote;
    if (ob && endpoint_is_none(&t.endpoint))
        t.endpoint = ob->endpoint;
    t.endpoint.scope = 0;
    if (ob)
        t.key = ob->key;
    t.has_why = path->why[0] != '\0';
    t.loss = observation_loss(ob, facts->now);
    t.level = ob && ob->loss ? ob->loss->level : LOSS_LEVEL_NONE;
    t.spread = path->spread;
    *ret = t;
    return true;
}

/* Of loss it matters how bad it is, and whether it is known at all: its figure is never the same,
 * and goes along when a session is renewed. */
static bool is_same(const void *x, const void *y)
{
    const struct reported_edge *a = x;
    const struct reported_edge *b = y;

    return a->kind == b->kind && a->is_alarm == b->is_alarm &&
           a->is_relay_better == b->is_relay_better && a->is_refused == b->is_refused &&
           a->lacks_rate == b->lacks_rate && a->has_why == b->has_why &&
           a->handshake == b->handshake && a->level == b->level &&
           loss_rate_is_known(&a->loss) == loss_rate_is_known(&b->loss) &&
           !rtt_spread_differs(&a->spread, &b->spread) &&
           endpoint_equal(&a->endpoint, &b->endpoint) && x25519_public_equal(&a->key, &b->key);
}

/* Why packets to the peer take no better path. It is said when something else is, since it may name
 * figures that change all the time. */
static void find_why(
    const struct node_report_facts *facts, const char *peer, char ret[static EDGE_SAID_WHY_MAX + 1])
{
    const struct reach_peer *path = reach_find(facts->reach, peer);

    (void)snprintf(ret, EDGE_SAID_WHY_MAX + 1, "%.*s", EDGE_SAID_WHY_MAX, path ? path->why : "");
    text_make_plain(ret, ' ');
}

/* The age is null where there was no handshake. */
static json_t *encode_edge(const void *edge, const void *ctx)
{
    const struct reported_edge *t = edge;
    const struct node_report_facts *facts = ctx;
    char lacks[EDGE_ERROR_MAX + 1];
    char why[EDGE_SAID_WHY_MAX + 1] = "";
    const char *error = t->is_refused ? render_why_key : t->lacks_rate ? lacks : NULL;
    char endpoint[ENDPOINT_TEXT_MAX];
    char key[X25519_BASE64_MAX];
    nsec_t age = facts->now > t->handshake ? (facts->now - t->handshake) / NSEC_PER_SEC : 0;

    if (t->lacks_rate)
        (void)snprintf(lacks, sizeof(lacks), "its rate is not kept: %s", facts->rates_why);
    /* A report of EDGES_MAX edges has room for one of both. */
    if (!error && t->has_why)
        find_why(facts, t->head.peer, why);
    return json_pack("{s:s, s:o, s:o*, s:o*, s:o*, s:o*, s:s*, s:s*, s:s*, s:s*}", "path",
        path_kind_names[t->kind], "handshakeAgeSeconds",
        t->handshake == 0 ? json_null() : json_integer((json_int_t)age), "alarm",
        t->is_alarm ? json_true() : NULL, "relayIsBetter", t->is_relay_better ? json_true() : NULL,
        "lossIn", edge_loss_encode(&t->loss), "rtt", edge_spread_encode(&t->spread), "endpoint",
        endpoint_is_none(&t->endpoint) ? NULL : endpoint_format(&t->endpoint, endpoint),
        "publicKey", x25519_public_is_none(&t->key) ? NULL : x25519_public_format(&t->key, key),
        "error", error, "why", why[0] != '\0' ? why : NULL);
}

void node_report_init(struct node_report *nr, uint64_t run)
{
    static const struct edge_report_kind kind = {
        .size = sizeof(struct reported_edge), .is_same = is_same, .encode = encode_edge};

    *nr = (struct node_report){.edges = {.kind = &kind, .run = run, .begins = true}};
}

void node_report_deinit(struct node_report *nr)
{
    edge_report_forget(&nr->edges);
    json_decref(nr->node_reported);
    nr->node_reported = NULL;
    json_decref(nr->found_reported);
    nr->found_reported = NULL;
}

static size_t edges_max(const struct node_report *nr)
{
    if (nr->is_old_hub)
        return EDGES_MAX_OLD;
    return json_array_size(nr->found_reported) > 0 ? EDGES_BESIDE_FINDINGS : EDGES_MAX;
}

static json_t *encode_edges(struct node_report *nr, const struct node_report_facts *facts)
{
    const struct reach *reach = facts->reach;
    struct reported_edge *seen = calloc(reach->n + 1, sizeof(*seen));
    json_t *edges = NULL;
    size_t n = 0;

    for (size_t i = 0; seen && i < reach->n; i++)
        n += see_edge(&seen[n], facts, &reach->items[i], nr->is_old_hub);
    if (seen)
        edges = edge_report_make(&nr->edges, seen, n, edges_max(nr), facts);
    free(seen);
    /* An older hub forgets what a report leaves out, so a second one would not add to it. */
    nr->edges.has_more &= !nr->is_old_hub;
    return edges;
}

void node_report_on_result(struct node_report *nr, enum edge_report_result result)
{
    edge_report_on_result(&nr->edges, result);
    if (result == EDGE_REPORT_TAKEN && nr->traffic_sent != 0)
        nr->traffic_reported = nr->traffic_sent;
    if (result == EDGE_REPORT_TAKEN && nr->daily_sent != 0)
        nr->daily_reported = nr->daily_sent;
    if (result == EDGE_REPORT_OLD) {
        /* The first report to an older hub held fewer edges than it can take. */
        nr->edges_changed |= !nr->is_old_hub;
        nr->is_old_hub = true;
        nr->edges.has_more = false;
    }
    if (result == EDGE_REPORT_LOST) {
        nr->edges_changed = true;
        json_decref(nr->node_reported);
        nr->node_reported = NULL;
    }
}

bool node_report_hostname(char *host, const char *self)
{
    for (char *p = host; *p; p++)
        *p = (char)tolower((unsigned char)*p);
    return parse_name(host, "host name", NULL) >= 0 && strcmp(host, self) != 0;
}

/* How long it keeps a silent UDP mapping; NULL: not measured. */
static json_t *encode_nat(const struct node_report_facts *facts)
{
    const struct keepalive_bounds *b = facts->nat;

    if (!b)
        return NULL;
    return json_pack("{s:b, s:o*, s:o*}", "natted", (int)facts->is_natted, "survivedMs",
        b->lives > 0 ? json_integer(b->lives / NSEC_PER_MSEC) : NULL, "forgottenMs",
        b->dies != NSEC_NEVER ? json_integer(b->dies / NSEC_PER_MSEC) : NULL);
}

/* The kernel's engine has one cipher, so the speeds of others are of no use to peers. */
static json_t *encode_node(const struct node_report_facts *facts)
{
    bool is_user = facts->engine == ENGINE_KIND_USERSPACE;

    return json_pack("{s:s, s:s, s:s*, s:o, s:o, s:o*, s:o*, s:o*, s:o*, s:O*, s:o*, s:o*, s:o*}",
        "engine", facts->engine == ENGINE_KIND_AUTO ? "" : engine_kind_names[facts->engine],
        "version", version_text, "hostname", facts->hostname, "candidates",
        path_report_encode_candidates(facts->self), "paths", path_report_encode_facts(facts->self),
        "aead", is_user ? node_speeds_encode(facts->speeds) : NULL, "fabric",
        facts->fabric ? fabric_report_encode(facts->fabric) : NULL, "relayLine",
        facts->line ? relay_line_encode(facts->line) : NULL, "routes",
        facts->routes->n ? subnets_encode(facts->routes) : NULL, "machine", facts->machine,
        "metricsPort", facts->metrics_port ? json_integer(facts->metrics_port) : NULL, "nat",
        encode_nat(facts), "uplink", facts->uplink ? uplink_report_encode(facts->uplink) : NULL);
}

static json_t *encode_applied(const struct node_report_facts *facts)
{
    const char *fault = facts->fault && facts->fault[0] != '\0' ? facts->fault : NULL;
    char text[EDGE_ERROR_MAX + 1];

    /* The text may hold any bytes, but the hub accepts no control characters. */
    (void)snprintf(text, sizeof(text), "%s", fault ? fault : "");
    text_make_plain(text, ' ');
    return json_pack(
        "{s:I, s:s*}", "revision", (json_int_t)facts->applied, "error", fault ? text : NULL);
}

/* The node's own status, if the hub does not have it yet. */
static json_t *encode_changes(struct node_report *nr, const struct node_report_facts *facts)
{
    json_t *node = encode_node(facts);

    if (node && nr->node_reported && !nr->is_old_hub && json_equal(node, nr->node_reported)) {
        json_decref(node);
        return NULL;
    }
    json_decref(nr->node_reported);
    nr->node_reported = json_incref(node);
    return node;
}

/* What was moved; NULL: nothing that the hub lacks, or there is no room for it beside @n_edges. */
static json_t *encode_traffic(
    struct node_report *nr, const struct node_report_facts *facts, size_t n_edges)
{
    const struct meter *meter = facts->meter;
    json_t *json = NULL;
    bool has_more = n_edges > EDGES_BESIDE_TRAFFIC;

    nr->traffic_sent = 0;
    if (nr->edges.begins)
        nr->traffic_reported = 0;
    if (!meter || nr->is_old_hub || meter->seq <= nr->traffic_reported)
        return NULL;
    if (!has_more)
        json = meter_report(meter, nr->traffic_reported, &nr->traffic_sent, &has_more);
    nr->edges.has_more |= has_more;
    return json;
}

/* What lines carry; NULL: nothing that the hub lacks. */
static json_t *encode_daily(struct node_report *nr, const struct node_report_facts *facts)
{
    json_t *json;

    nr->daily_sent = 0;
    if (nr->edges.begins)
        nr->daily_reported = 0;
    if (!facts->daily || nr->is_old_hub)
        return NULL;
    json = node_daily_encode(facts->daily, nr->daily_reported, &nr->daily_sent);
    nr->daily_sent = json ? nr->daily_sent : 0;
    return json;
}

json_t *node_report_encode(struct node_report *nr, const struct node_report_facts *facts)
{
    int cpu = machine_cpu_percent(facts->counts);
    json_t *edges;
    json_t *body;

    if (nr->edges.begins || nr->is_old_hub)
        node_report_deinit(nr);
    json_decref(nr->found_reported);
    nr->found_reported = encode_findings(facts);
    edges = encode_edges(nr, facts);
    body = json_pack("{s:o*, s:o*, s:o*, s:o, s:O*, s:o, s:o*}", "daily", encode_daily(nr, facts),
        "traffic", encode_traffic(nr, facts, json_object_size(edges)), "node",
        encode_changes(nr, facts), "applied", encode_applied(facts), "findings", nr->found_reported,
        "edges", edges, "cpuPercent", cpu >= 0 && !nr->is_old_hub ? json_integer(cpu) : NULL);
    if (!nr->is_old_hub)
        edge_report_sign(&nr->edges, body);
    return body;
}

/* ---- its parts of edges ---------------------------------------------------------------------- */

/* What was applied holds for all edges, and each shows it. */
static json_t *encode_part(const struct reported_edge *edge, const struct node_report_facts *facts)
{
    json_t *part = encode_edge(edge, facts);
    json_t *applied = encode_applied(facts);

    (void)json_object_set_new(applied, "engine",
        json_string(facts->engine == ENGINE_KIND_AUTO ? "" : engine_kind_names[facts->engine]));
    (void)json_object_set_new(part, "applied", applied);
    return part;
}

json_t *node_report_parts(const struct node_report_facts *facts, json_t **asked_for)
{
    const struct snapshot *s = facts->snapshot;
    json_t *parts = json_object();
    json_t *asked = json_object();

    for (size_t i = 0; parts && asked && i < facts->reach->n; i++) {
        struct reported_edge edge;

        if (!see_edge(&edge, facts, &facts->reach->items[i], false))
            continue;
        (void)json_object_set_new(parts, edge.head.peer, encode_part(&edge, facts));
        if (snapshot_find_edge(s, s->self, edge.head.peer))
            (void)json_object_set_new(asked, edge.head.peer, json_true());
    }
    if (!parts || !asked) {
        json_decref(asked);
        json_decref(parts);
        parts = asked = NULL;
    }
    *asked_for = asked;
    return parts;
}
