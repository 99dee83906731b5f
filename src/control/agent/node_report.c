/* node_report.c - see node_report.h. */
#include "agent/node_report.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/meter.h"
#include "agent/paths/edge/reach.h"
#include "agent/reconcile/observe.h"
#include "base/parse.h"
#include "base/text.h"
#include "base/version.h"
#include "mesh/object/edge_status.h"
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

/* A report with more edges than this has no room for what was moved. */
#define EDGES_BESIDE_TRAFFIC 75

/* Does the hub have what was reported last of an edge? */
enum reported_state { REPORTED_NO, REPORTED_ON_ITS_WAY, REPORTED_YES };

struct reported_edge {
    char node[NAME_MAX_LEN + 1];
    enum reported_state state;
    bool is_gone;    /* what was reported is that the part is gone */
    bool is_refused; /* another key is pinned than the peer has */
    bool lacks_rate; /* the edge has a rate, and the engine does not keep it */
    bool is_alarm;
    enum path_kind kind;
    nsec_t handshake; /* monotonic; 0: none */
    struct endpoint endpoint;
    struct x25519_public key;
};

void node_report_init(struct node_report *nr, uint64_t run)
{
    *nr = (struct node_report){.run = run, .begins = true};
}

void node_report_deinit(struct node_report *nr)
{
    free(nr->reported);
    nr->reported = NULL;
    nr->n_reported = 0;
    json_decref(nr->node_reported);
    nr->node_reported = NULL;
}

static void begin_anew(struct node_report *nr)
{
    nr->begins = true;
    nr->is_anew = false;
    nr->has_more = true;
}

void node_report_on_hub(struct node_report *nr)
{
    begin_anew(nr);
    nr->is_old_hub = false;
    nr->sent_at = 0;
}

bool node_report_has_changes(const struct node_report *nr)
{
    return nr->self_changed || nr->edges_changed || nr->has_more;
}

nsec_t node_report_within(const struct node_report *nr)
{
    return nr->self_changed || nr->has_more ? SELF_MIN : NSEC_NEVER;
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

/* Fill in what is to be reported of the edge to a peer. False: nothing. */
static bool see_edge(
    struct reported_edge *ret, const struct node_report_facts *facts, const struct reach_peer *path)
{
    const struct node *node = snapshot_find_node(facts->snapshot, path->node);
    const struct observation *ob = node ? observe_find(facts->seen, &node->key) : NULL;
    struct reported_edge t = {.kind = path->kind, .is_alarm = path->is_alarm};

    t.is_refused = strcmp(path->why, render_why_key) == 0;
    t.lacks_rate = !t.is_refused && lacks_rate(facts, path->node);
    /* An edge without a handshake is not reported, unless a person should look at it. */
    if ((!ob || ob->handshake_at == 0) && !t.is_alarm && !t.is_refused && !t.lacks_rate)
        return false;
    (void)snprintf(t.node, sizeof(t.node), "%.*s", NAME_MAX_LEN, path->node);
    t.endpoint = path->remote;
    if (ob && endpoint_is_none(&t.endpoint))
        t.endpoint = ob->endpoint;
    t.endpoint.scope = 0;
    t.handshake = ob ? ob->handshake_at : 0;
    if (ob)
        t.key = ob->key;
    *ret = t;
    return true;
}

static bool is_same(const struct reported_edge *a, const struct reported_edge *b)
{
    return a->kind == b->kind && a->is_alarm == b->is_alarm && a->is_refused == b->is_refused &&
           a->lacks_rate == b->lacks_rate && a->handshake == b->handshake &&
           endpoint_equal(&a->endpoint, &b->endpoint) && x25519_public_equal(&a->key, &b->key) &&
           !a->is_gone;
}

/* The age is null where there was no handshake. */
static json_t *encode_edge(
    const struct reported_edge *t, const struct node_report_facts *facts, bool is_old_hub)
{
    char lacks[EDGE_ERROR_MAX + 1];
    const char *error = t->is_refused ? render_why_key : t->lacks_rate ? lacks : NULL;
    bool has_endpoint = !is_old_hub && !endpoint_is_none(&t->endpoint);
    bool has_key = !is_old_hub && !x25519_public_is_none(&t->key);
    char endpoint[ENDPOINT_TEXT_MAX];
    char key[X25519_BASE64_MAX];
    nsec_t age = facts->now > t->handshake ? (facts->now - t->handshake) / NSEC_PER_SEC : 0;

    if (t->lacks_rate)
        (void)snprintf(lacks, sizeof(lacks), "its rate is not kept: %s", facts->rates_why);
    return json_pack("{s:s, s:o, s:o*, s:s*, s:s*, s:s*}", "path", path_kind_names[t->kind],
        "handshakeAgeSeconds", t->handshake == 0 ? json_null() : json_integer((json_int_t)age),
        "alarm", t->is_alarm ? json_true() : NULL, "endpoint",
        has_endpoint ? endpoint_format(&t->endpoint, endpoint) : NULL, "publicKey",
        has_key ? x25519_public_format(&t->key, key) : NULL, "error", is_old_hub ? NULL : error);
}

/* A report that is being made. */
struct making {
    struct node_report *nr;
    const struct node_report_facts *facts;
    json_t *edges;
    size_t n_edges;
    struct reported_edge *next; /* replaces nr->reported afterwards; it has room for all edges */
    size_t n_next;
    bool has_more;
};

static bool has_space(struct making *m)
{
    bool is_full = m->n_edges >= (m->nr->is_old_hub ? EDGES_MAX_OLD : EDGES_MAX);

    /* An older hub forgets what a report leaves out, so a second report would not add to the
     * first. */
    m->has_more |= is_full && !m->nr->is_old_hub;
    return !is_full;
}

static void say(struct making *m, struct reported_edge *t)
{
    json_t *line = t->is_gone ? json_null() : encode_edge(t, m->facts, m->nr->is_old_hub);

    m->n_edges++;
    t->state = REPORTED_ON_ITS_WAY;
    (void)json_object_set_new(m->edges, t->node, line);
}

/* Add an edge of which there is something to report. @reported: what was reported last; NULL:
 * nothing.
 */
static void add_seen(
    struct making *m, const struct reported_edge *seen, const struct reported_edge *reported)
{
    struct reported_edge *t = &m->next[m->n_next];

    if (reported && reported->state == REPORTED_YES && is_same(reported, seen)) {
        m->next[m->n_next++] = *reported;
    } else if (has_space(m)) {
        *t = *seen;
        m->n_next++;
        say(m, t);
    } else if (reported) {
        m->next[m->n_next++] = *reported;
    }
}

/* Report that the part of an edge is gone. */
static void add_gone(struct making *m, const struct reported_edge *reported)
{
    struct reported_edge *t = &m->next[m->n_next++];

    *t = *reported;
    if (!has_space(m))
        return;
    t->is_gone = true;
    say(m, t);
}

/* Both lists are in order of the nodes' names. */
static void say_edges(struct making *m)
{
    const struct reach *reach = m->facts->reach;
    const struct node_report *nr = m->nr;
    size_t k = 0;

    for (size_t i = 0; i < reach->n; i++) {
        const struct reported_edge *reported = NULL;
        struct reported_edge seen;

        for (; k < nr->n_reported && strcmp(nr->reported[k].node, reach->items[i].node) < 0; k++)
            add_gone(m, &nr->reported[k]);
        if (k < nr->n_reported && strcmp(nr->reported[k].node, reach->items[i].node) == 0)
            reported = &nr->reported[k++];
        if (see_edge(&seen, m->facts, &reach->items[i]))
            add_seen(m, &seen, reported);
        else if (reported)
            add_gone(m, reported);
    }
    for (; k < nr->n_reported; k++)
        add_gone(m, &nr->reported[k]);
}

void node_report_on_result(struct node_report *nr, enum hub_link_report_result result)
{
    size_t n = 0;

    for (size_t i = 0; i < nr->n_reported; i++) {
        struct reported_edge *t = &nr->reported[i];
        bool is_settled = t->state == REPORTED_ON_ITS_WAY && result == HUB_LINK_REPORT_TAKEN;

        if (t->state == REPORTED_ON_ITS_WAY)
            t->state = is_settled ? REPORTED_YES : REPORTED_NO;
        if (!(is_settled && t->is_gone))
            nr->reported[n++] = *t;
    }
    nr->n_reported = n;
    switch (result) {
    case HUB_LINK_REPORT_TAKEN:
        if (nr->traffic_sent != 0)
            nr->traffic_reported = nr->traffic_sent;
        nr->number++;
        nr->begins = false;
        nr->is_anew = !nr->ends;
        break;
    case HUB_LINK_REPORT_WHOLE:
        /* The first report to an older hub held fewer edges than it can take. */
        nr->edges_changed |= !nr->is_old_hub;
        nr->is_old_hub = true;
        nr->has_more = false;
        break;
    case HUB_LINK_REPORT_AGAIN:
        begin_anew(nr);
        break;
    case HUB_LINK_REPORT_LOST:
        nr->edges_changed = true;
        json_decref(nr->node_reported);
        nr->node_reported = NULL;
        break;
    }
}

bool node_report_hostname(char *host, const char *self)
{
    for (char *p = host; *p; p++)
        *p = (char)tolower((unsigned char)*p);
    return parse_name(host, "host name", NULL) >= 0 && strcmp(host, self) != 0;
}

/* The kernel's engine has one cipher, so the speeds of others are of no use to peers. */
static json_t *encode_node(const struct node_report_facts *facts)
{
    bool is_user = facts->engine == ENGINE_KIND_USERSPACE;

    return json_pack("{s:s, s:s, s:s*, s:o, s:o, s:o*, s:o*, s:o*, s:O*}", "engine",
        facts->engine == ENGINE_KIND_AUTO ? "" : engine_kind_name(facts->engine), "version",
        version_text, "hostname", facts->hostname, "candidates",
        path_report_encode_candidates(facts->self), "paths", path_report_encode_facts(facts->self),
        "aead", is_user ? node_speeds_encode(facts->speeds) : NULL, "fabric",
        facts->fabric ? fabric_report_encode(facts->fabric) : NULL, "routes",
        facts->routes->n ? subnets_encode(facts->routes) : NULL, "machine", facts->machine);
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

/* What was moved; NULL: nothing that the hub lacks, or there is no room for it in this report. */
static json_t *encode_traffic(struct making *m)
{
    const struct meter *meter = m->facts->meter;
    struct node_report *nr = m->nr;
    json_t *json = NULL;
    bool has_more = false;

    nr->traffic_sent = 0;
    if (nr->begins)
        nr->traffic_reported = 0;
    if (!meter || nr->is_old_hub || meter->seq <= nr->traffic_reported)
        return NULL;
    if (m->n_edges <= EDGES_BESIDE_TRAFFIC)
        json = meter_report(meter, nr->traffic_reported, &nr->traffic_sent, &has_more);
    m->has_more |= has_more || m->n_edges > EDGES_BESIDE_TRAFFIC;
    return json;
}

json_t *node_report_encode(struct node_report *nr, const struct node_report_facts *facts)
{
    struct making m = {.nr = nr, .facts = facts, .edges = json_object()};
    json_t *body;

    if (nr->begins || nr->is_old_hub)
        node_report_deinit(nr);
    m.next = calloc(nr->n_reported + facts->reach->n + 1, sizeof(*m.next));
    if (m.next)
        say_edges(&m);
    else
        m.edges = (json_decref(m.edges), NULL);
    body = json_pack("{s:o*, s:o*, s:o, s:o}", "traffic", encode_traffic(&m), "node",
        encode_changes(nr, facts), "applied", encode_applied(facts), "edges", m.edges);
    if (!body || !m.next) {
        free(m.next);
        json_decref(body);
        return NULL;
    }
    free(nr->reported);
    nr->reported = m.next;
    nr->n_reported = m.n_next;
    nr->has_more = m.has_more;
    nr->ends = (nr->begins || nr->is_anew) && !m.has_more;
    if (nr->is_old_hub)
        return body;
    (void)json_object_set_new(body, "run", json_integer((json_int_t)nr->run));
    (void)json_object_set_new(body, "number", json_integer((json_int_t)nr->number + 1));
    if (nr->begins)
        (void)json_object_set_new(body, "begins", json_true());
    if (nr->ends)
        (void)json_object_set_new(body, "ends", json_true());
    return body;
}
