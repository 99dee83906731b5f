/* reports.c - see reports.h. */
#include "reports.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"

/* Most records in one commit. */
#define FLUSH_AT_ONCE 256

void reports_init(struct reports *s, struct model *model)
{
    *s = (struct reports){.model = model};
    list_init(&s->unsaved);
}

bool reports_admit(struct model_node *node, nsec_t now)
{
    return rate_take(&node->asked, now, REPORTS_EACH, REPORTS_BURST);
}

static bool is_same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static void mark_unsaved(struct reports *s, struct model_node *node)
{
    if (node->is_unsaved)
        return;
    node->is_unsaved = true;
    list_add_tail(&s->unsaved, &node->unsaved);
}

static void replace(char **held, char **given)
{
    free(*held);
    *held = *given;
    *given = NULL;
}

static void take_node(struct report *held, struct report *given)
{
    memcpy(held->engine, given->engine, sizeof(held->engine));
    memcpy(held->version, given->version, sizeof(held->version));
    memcpy(held->hostname, given->hostname, sizeof(held->hostname));
    replace(&held->candidates, &given->candidates);
    replace(&held->paths, &given->paths);
    replace(&held->aead, &given->aead);
    held->routes = given->routes;
    held->has_node = true;
}

bool reports_take(struct reports *s, struct model_node *node, struct report *report)
{
    struct report *held = &node->heard.report;
    bool is_new = report->has_node && (!is_same_text(report->candidates, held->candidates) ||
                                          !is_same_text(report->paths, held->paths) ||
                                          strcmp(report->hostname, held->hostname) != 0 ||
                                          !is_same_text(report->aead, held->aead));

    if (report->has_node)
        take_node(held, report);
    if (report->edges) {
        replace(&held->edges, &report->edges);
        held->n_alarms = report->n_alarms;
    }
    report_deinit(report);
    mark_unsaved(s, node);
    return is_new;
}

void reports_seen(struct reports *s, struct model_node *node, nsec_t now, int64_t wall_s)
{
    int64_t before = node->heard.last_seen_at;

    node->seen_at = now;
    node->heard.last_seen_at = wall_s;
    /* Also when the clock was set back. */
    if (wall_s - before >= REPORTS_SEEN_FLUSH_S || wall_s < before)
        mark_unsaved(s, node);
}

/* The nodes whose records are on their way, by name, because a node may be removed meanwhile. */
struct flush {
    struct reports *reports; /* pins */
    size_t n;
    struct {
        char network[NAME_MAX_LEN + 1];
        char node[NAME_MAX_LEN + 1];
    } of[FLUSH_AT_ONCE];
};

/* The commit failed: its nodes are unsaved again. */
static void put_back(const struct flush *f)
{
    struct model *m = f->reports->model;

    for (size_t i = 0; i < f->n; i++) {
        struct model_network *net = model_find_network(m, f->of[i].network);
        struct model_node *node = net ? model_find_node(net, f->of[i].node) : NULL;

        if (node)
            mark_unsaved(f->reports, node);
    }
}

static void on_flushed(void *ctx, const struct store_answer *a)
{
    struct flush *f = ctx;
    struct reports *s = f->reports;

    s->n_flushes--;
    if (a->r != 0) {
        put_back(f);
        s->failure = *a->e;
    }
    free(f);
}

/* Add the write of a node's record. False: no memory. */
static bool add_record(
    struct flush *f, struct model_node *node, struct store_op *op, char key[static RECORD_KEY_MAX])
{
    const char *network = node->net->pub.spec.meta.name;
    const char *name = node->pub.spec.meta.name;
    char *text = record_report_encode(&node->heard);

    if (!text)
        return false;
    *op = (struct store_op){.kind = STORE_OP_PUT,
        .key = record_key(key, RECORD_REPORT, network, name),
        .value = text,
        .expect = STORE_EXPECT_ANY};
    (void)snprintf(f->of[f->n].network, sizeof(f->of[0].network), "%.*s", NAME_MAX_LEN, network);
    (void)snprintf(f->of[f->n].node, sizeof(f->of[0].node), "%.*s", NAME_MAX_LEN, name);
    f->n++;
    return true;
}

/* Have up to FLUSH_AT_ONCE records written. */
static int flush_some(struct reports *s, nsec_t now, struct err *e)
{
    char keys[FLUSH_AT_ONCE][RECORD_KEY_MAX];
    struct store_op ops[FLUSH_AT_ONCE];
    struct flush *f = calloc(1, sizeof(*f));
    struct model_node *node;
    int r = 0;

    if (!f)
        return err_set(e, -ENOMEM, "no memory for reports");
    f->reports = s;
    while (f->n < FLUSH_AT_ONCE && (node = list_first(&s->unsaved, struct model_node, unsaved))) {
        bool stays = !node->leaving && !node->is_expired && !node->net->leaving;

        /* A node that is being removed gets no record: it would be left in the store. */
        if (stays && !add_record(f, node, &ops[f->n], keys[f->n]))
            break;
        node->is_unsaved = false;
        list_remove(&node->unsaved);
    }
    if (f->n > 0)
        r = model_store(s->model, ops, f->n, now, on_flushed, f, e);
    for (size_t i = 0; i < f->n; i++)
        free((char *)ops[i].value);
    if (f->n > 0 && r == 0) {
        s->n_flushes++;
        return 0;
    }
    if (r == 0 && !list_is_empty(&s->unsaved))
        r = err_set(e, -ENOMEM, "no memory for reports");
    put_back(f);
    free(f);
    return r;
}

static int flush_all(struct reports *s, nsec_t now, struct err *e)
{
    int r = 0;

    while (r == 0 && !list_is_empty(&s->unsaved))
        r = flush_some(s, now, e);
    return r;
}

int reports_tick(struct reports *s, nsec_t now, struct err *e)
{
    struct err failure = s->failure;

    if (failure.code != 0) {
        s->failure = (struct err)ERR_NULL;
        return err_set(e, -EIO, "%s", err_text(&failure));
    }
    if (s->n_flushes > 0 || now - s->flushed_at < REPORTS_FLUSH)
        return 0;
    s->flushed_at = now;
    return flush_all(s, now, e);
}

int reports_flush(struct reports *s, nsec_t now, struct err *e)
{
    int r = flush_all(s, now, e);

    store_wait(s->model->store);
    return r == 0 && s->failure.code != 0 ? err_set(e, -EIO, "%s", err_text(&s->failure)) : r;
}

json_t *reports_of_node(const struct model_node *node)
{
    const struct report_record *heard = &node->heard;
    const char *candidates = heard->report.candidates;
    const char *paths = heard->report.paths;
    const char *aead = heard->report.aead;

    return json_pack("{s:I, s:s, s:s, s:s*, s:o, s:o*, s:o*, s:o*}", "lastSeen",
        (json_int_t)heard->last_seen_at, "engine",
        node->pub.spec.stock ? REQUEST_ENGINE_STOCK : heard->report.engine, "version",
        heard->report.version, "hostname",
        heard->report.hostname[0] ? heard->report.hostname : NULL, "candidates",
        candidates ? json_loads(candidates, 0, NULL) : json_array(), "paths",
        paths ? json_loads(paths, 0, NULL) : NULL, "aead", aead ? json_loads(aead, 0, NULL) : NULL,
        "routes", heard->report.routes.n ? subnets_encode(&heard->report.routes) : NULL);
}

/* Add what @of reports of its edge to @peer, under its field owner. */
static void add_half(json_t *status, const struct model_node *of, const struct model_node *peer)
{
    char owner[OBJECT_NAME_MAX + sizeof("agent/")];
    json_t *edges;
    json_t *said;

    if (!of->heard.report.edges)
        return;
    edges = json_loads(of->heard.report.edges, 0, NULL);
    said = json_object_get(edges, peer->pub.spec.meta.name);
    if (said) {
        (void)snprintf(owner, sizeof(owner), "agent/%s", of->pub.spec.meta.name);
        json_object_set(status, owner, said);
    }
    json_decref(edges);
}

json_t *reports_of_edge(const struct model_node *a, const struct model_node *b)
{
    json_t *status = json_object();

    add_half(status, a, b);
    add_half(status, b, a);
    if (json_object_size(status) > 0)
        return status;
    json_decref(status);
    return NULL;
}
