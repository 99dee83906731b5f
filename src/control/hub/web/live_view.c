/* live_view.c - see live_view.h. */
#include "hub/web/live_view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "health/finding.h"
#include "health/pair.h"
#include "hub/jobs/jobs.h"
#include "hub/model/model.h"
#include "hub/watch/edge_events.h"
#include "hub/watch/edge_view.h"
#include "hub/web/live_rows.h"
#include "mesh/object/fields.h"

/* Longest key of a row: a finding's. */
#define KEY_MAX (FINDING_SUBJECT_MAX + 32)

/* @json, taken, as a row; NULL: none. */
static void put(struct live_rows *rows, const char *prefix, const char *name, json_t *json)
{
    char key[KEY_MAX];

    (void)snprintf(key, sizeof(key), "%s%s", prefix, name);
    live_rows_put(rows, key, json ? json_dumps(json, JSON_COMPACT | JSON_ENCODE_ANY) : NULL);
    json_decref(json);
}

/* ---- nodes ---------------------------------------------------------------------------------- */

static const char *kind_of(const json_t *spec)
{
    if (json_object_get(spec, "hub"))
        return "hub";
    if (json_is_true(json_object_get(spec, "stock")))
        return "stock";
    return json_is_true(json_object_get(spec, "relay")) ? "relay" : "node";
}

/* A field of the node, a new reference; NULL: it has none. */
static json_t *field(const json_t *object, const char *name)
{
    return json_incref(json_object_get(object, name));
}

/* Of what the API says of a node what the page shows, without what grows each second. */
static json_t *node_row(const json_t *node)
{
    const json_t *spec = json_object_get(node, "spec");
    const json_t *status = json_object_get(node, "status");
    bool is_reached = json_is_true(json_object_get(node, "reachable"));
    const char *island = fields_text_of(spec, "island");
    json_int_t alarms = json_integer_value(json_object_get(node, "alarms"));

    return json_pack("{s:b, s:s, s:o*, s:o*, s:s*, s:o*, s:o*, s:o*, s:o*, s:o*, s:o*, s:o*, s:o*}",
        "reachable", (int)is_reached, "kind", kind_of(spec), "address4", field(spec, "address4"),
        "address6", field(spec, "address6"), "island", island[0] ? island : NULL, "engine",
        field(status, "engine"), "version", field(status, "version"), "endpoint",
        field(node, "endpoint"), "inTls",
        json_is_true(json_object_get(node, "inTls")) ? json_true() : NULL, "alarms",
        alarms > 0 ? json_integer(alarms) : NULL, "lastSeen",
        is_reached ? NULL : field(status, "lastSeen"), "routes", field(spec, "routes"),
        "servesJobs", field(node, "servesJobs"));
}

/* How many have no row. */
static size_t put_nodes(struct live_rows *rows, const struct live_sources *sources,
    const struct model_network *net, nsec_t now)
{
    json_t *answer = sources->nodes(sources->ctx, net, now);
    const json_t *list = json_object_get(answer, "nodes");
    size_t n = json_array_size(list);

    for (size_t i = 0; i < n && i < LIVE_NODES_MAX; i++) {
        const json_t *node = json_array_get(list, i);

        put(rows, "n/", fields_text_of(json_object_get(node, "metadata"), "name"), node_row(node));
    }
    json_decref(answer);
    return n > LIVE_NODES_MAX ? n - LIVE_NODES_MAX : 0;
}

/* ---- the matrix ----------------------------------------------------------------------------- */

struct matrix {
    const struct model_network *net;
    size_t n;
    uint64_t *rates; /* owns; n * n, from row to column, bytes/s; NULL: no memory, so none */
};

static void add_rate(void *arg, const char *from, const char *to, uint64_t rate)
{
    const struct matrix *m = arg;
    size_t i = keys_lower(&m->net->nodes, from);
    size_t j = keys_lower(&m->net->nodes, to);

    if (i < m->n && j < m->n && keys_find(&m->net->nodes, from) && keys_find(&m->net->nodes, to))
        m->rates[i * m->n + j] += rate;
}

static void add_number(struct str *out, char letter, uint64_t value)
{
    static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyz";
    char buf[16];
    size_t at = sizeof(buf) - 1;

    buf[at] = '\0';
    do
        buf[--at] = digits[value % 36];
    while ((value /= 36) > 0);
    buf[--at] = letter;
    str_add(out, buf + at);
}

/* A number of which 0 says that there is none. */
static void add_known(struct str *out, char letter, uint64_t value)
{
    if (value > 0)
        add_number(out, letter, value);
}

static enum path_kind path_of(const struct pair_facts *f)
{
    enum path_kind worst = PATH_KIND_N;

    for (unsigned i = 0; i < 2; i++)
        if (f->ends[i].said && f->ends[i].said->path < PATH_KIND_N &&
            (worst == PATH_KIND_N || f->ends[i].said->path == PATH_KIND_NONE ||
                (worst != PATH_KIND_NONE && f->ends[i].said->path > worst)))
            worst = f->ends[i].said->path;
    return worst;
}

static bool is_known(const struct pair_facts *f)
{
    return f->spec || f->ends[0].said || f->ends[1].said || f->ends[0].probed || f->ends[1].probed;
}

static void add_pair(struct str *out, const struct matrix *m, size_t i, size_t j, int64_t wall_s)
{
    const struct edge_pair pair = {{model_node_at(m->net, i), model_node_at(m->net, j)}};
    struct pair_facts f;
    struct edge_figures figures;
    char state[2] = "";

    edge_view_facts(&pair, wall_s, &f);
    if (!is_known(&f))
        return;
    edge_view_figures_of(&f, &figures);
    state[0] = (char)('a' + figures.state);
    str_add(out, state);
    if (figures.state == EDGE_STATE_FELL && path_of(&f) != PATH_KIND_N)
        add_number(out, 'P', path_of(&f));
    if (!figures.is_alive)
        return;
    add_known(out, 'R', figures.rtt_us);
    if (figures.has_loss[0])
        add_number(out, 'X', figures.loss_ppm[0]);
    if (figures.has_loss[1])
        add_number(out, 'Y', figures.loss_ppm[1]);
    if (m->rates) {
        add_known(out, 'G', m->rates[i * m->n + j]);
        add_known(out, 'H', m->rates[j * m->n + i]);
    }
}

static void put_matrix(struct live_rows *rows, const struct model_network *net, int64_t wall_s)
{
    struct matrix m = {
        .net = net, .n = net->nodes.n < LIVE_MATRIX_MAX ? net->nodes.n : LIVE_MATRIX_MAX};
    json_t *names = json_array();

    m.rates = m.n > 0 ? calloc(m.n * m.n, sizeof(*m.rates)) : NULL;
    if (m.rates)
        jobs_each_rate(&net->served->jobs, add_rate, &m);
    for (size_t i = 0; i < m.n; i++) {
        const char *name = model_node_at(net, i)->spec.meta.name;
        struct str pairs = STR_NULL;
        char key[KEY_MAX];

        (void)json_array_append_new(names, json_string(name));
        /* The digits and letters of a pair need no escapes. */
        str_add(&pairs, "\"");
        for (size_t j = i + 1; j < m.n; j++) {
            str_add(&pairs, j > i + 1 ? "," : "");
            add_pair(&pairs, &m, i, j, wall_s);
        }
        str_add(&pairs, "\"");
        (void)snprintf(key, sizeof(key), "m/%.*s", NAME_MAX_LEN, name);
        live_rows_put(rows, key, str_take(&pairs, NULL));
    }
    free(m.rates);
    put(rows, "names", "", names);
}

/* ---- findings and jobs ---------------------------------------------------------------------- */

static void put_findings(struct live_rows *rows, const struct findings *all, int64_t wall_s)
{
    _cleanup_(freep) const struct finding **sorted = findings_sorted(all);

    for (size_t i = 0; sorted && i < all->n && i < LIVE_FINDINGS_MAX; i++) {
        const struct finding *f = sorted[i];
        json_t *json = finding_encode(f, wall_s);
        char name[KEY_MAX];

        (void)json_object_del(json, "forSeconds");
        (void)snprintf(name, sizeof(name), "%s/%s", finding_kinds[f->code].code, f->subject);
        put(rows, "f/", name, json);
    }
}

/* What the page shows of a job; @job: as the API says. */
static json_t *job_row(const json_t *job)
{
    json_t *held = json_deep_copy(json_object_get(job, "heldUpBy"));
    json_t *one;
    size_t i;

    json_array_foreach(held, i, one)
        (void)json_object_del(one, "forSeconds");
    return json_pack("{s:o*, s:o*, s:o*, s:o*, s:o*, s:o*, s:o*, s:o*}", "run", field(job, "run"),
        "present", field(job, "present"), "heldUpBy", held, "step", field(job, "step"),
        "stepsPerSecond", field(job, "stepsPerSecond"), "limitHits", field(job, "limitHits"),
        "lastLimit", field(job, "lastLimit"), "nccl", field(job, "nccl"));
}

/* Does another hub serve them? */
static bool put_jobs(
    struct live_rows *rows, const struct live_sources *sources, const struct model_network *net)
{
    json_t *answer = sources->jobs(sources->ctx, net);
    const json_t *job;
    size_t i;
    bool is_elsewhere = answer == NULL;

    json_array_foreach(json_object_get(answer, "jobs"), i, job)
        put(rows, "j/", fields_text_of(job, "job"), job_row(job));
    json_decref(answer);
    return is_elsewhere;
}

void live_view_make(struct live_rows *rows, const struct live_sources *sources,
    const struct model_network *net, nsec_t now, int64_t wall_s)
{
    size_t n_left_out = put_nodes(rows, sources, net, now);
    bool is_elsewhere = put_jobs(rows, sources, net);
    char cidr[IP_PREFIX_TEXT_MAX];

    put_matrix(rows, net, wall_s);
    put_findings(rows, sources->findings(sources->ctx, net), wall_s);
    put(rows, "net", "",
        json_pack("{s:s, s:s, s:I, s:I, s:b, s:I}", "name", net->spec.meta.name, "cidr4",
            ip_prefix_format(&net->spec.cidr4, cidr), "nodes", (json_int_t)net->nodes.n, "events",
            (json_int_t)edge_events_last(sources->events, net->spec.meta.name), "jobsElsewhere",
            (int)is_elsewhere, "leftOut", (json_int_t)n_left_out));
}
