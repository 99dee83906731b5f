/* node_report.c - see node_report.h. */
#include "agent/node_report.h"

#include <ctype.h>
#include <string.h>

#include "agent/paths/edge/reach.h"
#include "agent/reconcile/observe.h"
#include "base/parse.h"
#include "base/version.h"
#include "mesh/object/path_report.h"
#include "mesh/object/subnets.h"
#include "mesh/snapshot/snapshot.h"

#define PERIOD    (60 * NSEC_PER_SEC)
#define EDGES_MIN (5 * NSEC_PER_SEC)
#define SELF_MIN  (NSEC_PER_SEC / 5)

/* Most edges of a report, so that it stays below the 64 KiB that the hub takes. */
#define EDGES_MAX 340

void node_report_on_hub(struct node_report *nr)
{
    nr->sent_at = 0;
}

void node_report_on_self(struct node_report *nr)
{
    nr->self_changed = true;
}

void node_report_on_edges(struct node_report *nr)
{
    nr->edges_changed = true;
}

bool node_report_has_news(const struct node_report *nr)
{
    return nr->self_changed || nr->edges_changed;
}

nsec_t node_report_within(const struct node_report *nr)
{
    return nr->self_changed ? SELF_MIN : NSEC_NEVER;
}

bool node_report_is_due(const struct node_report *nr, nsec_t now)
{
    nsec_t since = now - nr->sent_at;

    return nr->sent_at == 0 || since >= PERIOD || (nr->edges_changed && since >= EDGES_MIN) ||
           (nr->self_changed && since >= SELF_MIN);
}

void node_report_on_sent(struct node_report *nr, nsec_t now)
{
    *nr = (struct node_report){.sent_at = now};
}

/* The age is null where there was no handshake. */
static json_t *encode_edge(const struct reach_peer *path, const struct observation *ob, nsec_t now)
{
    int64_t age = observation_age_seconds(ob, now);

    return json_pack("{s:s, s:o, s:o*}", "path", path_kind_name(path->kind), "handshakeAgeSeconds",
        age < 0 ? json_null() : json_integer(age), "alarm", path->is_alarm ? json_true() : NULL);
}

static json_t *encode_edges(const struct node_report_facts *facts)
{
    json_t *edges = json_object();
    unsigned n = 0;

    for (size_t i = 0; edges && i < facts->reach->n && n < EDGES_MAX; i++) {
        const struct reach_peer *path = &facts->reach->items[i];
        const struct node *node = snapshot_find_node(facts->snapshot, path->node);
        const struct observation *ob = node ? observe_find(facts->seen, &node->key) : NULL;

        /* An edge without a handshake is not worth a line, unless somebody should look at it. */
        if ((!ob || ob->handshake_at == 0) && !path->is_alarm)
            continue;
        n++;
        if (json_object_set_new(edges, path->node, encode_edge(path, ob, facts->now)) < 0)
            edges = (json_decref(edges), NULL);
    }
    return edges;
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

    return json_pack("{s:s, s:s, s:s*, s:o, s:o, s:o*, s:o*}", "engine",
        facts->engine == ENGINE_KIND_AUTO ? "" : engine_kind_name(facts->engine), "version",
        version_text, "hostname", facts->hostname, "candidates",
        path_report_encode_candidates(facts->self), "paths", path_report_encode_facts(facts->self),
        "aead", is_user ? node_speeds_encode(facts->speeds) : NULL, "routes",
        facts->routes->n ? subnets_encode(facts->routes) : NULL);
}

json_t *node_report_encode(const struct node_report_facts *facts)
{
    return json_pack("{s:o, s:o}", "node", encode_node(facts), "edges", encode_edges(facts));
}
