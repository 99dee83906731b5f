/* reports.c - see reports.h. */
#include "reports.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "hub/overlay/overlay.h"
#include "hub/watch/watch.h"
#include "mesh/object/node_status.h"
#include "os/log.h"
#include "store/store.h"

/* How often the parts are counted. */
#define REPORTS_LOOK (10 * NSEC_PER_SEC)

/* By how much the clock has to run differently to have been set. */
#define CLOCK_STEP_S 5

/* Most records in one commit. */
#define FLUSH_AT_ONCE 256

void reports_init(struct reports *s, struct model *model)
{
    *s = (struct reports){.model = model};
    list_init(&s->unsaved);
    health_init(&s->health, model, &s->events);
}

void reports_deinit(struct reports *s)
{
    edge_events_deinit(&s->events);
    health_deinit(&s->health);
}

static void mark_unsaved(struct reports *s, const struct model_node *node)
{
    if (node->reported->is_unsaved)
        return;
    node->reported->is_unsaved = true;
    list_add_tail(&s->unsaved, &node->reported->unsaved);
}

static int64_t seen_each(const struct model_network *net)
{
    return REPORTS_SEEN_FLUSH_S + (int64_t)(net->nodes.n / REPORTS_SEEN_NODES);
}

/* Of several hubs the one that the node watches writes its record. A node without an agent watches
 * none, and any hub that hears it writes, when nobody has done so for a while. */
static bool writes_here(const struct reports *s, const struct model_node *node)
{
    return !store_is_shared(s->model->store) || watch_is_open(node) ||
           node->reported->heard.last_seen_at - node->reported->stored_at >=
               2 * seen_each(node->net);
}

static void replace(char **held, char **given)
{
    free(*held);
    *held = *given;
    *given = NULL;
}

static void take_node(
    struct reports *s, const struct model_node *node, struct report *given, int64_t wall_s)
{
    struct report *held = &node->reported->heard.report;

    memcpy(held->engine, given->engine, sizeof(held->engine));
    memcpy(held->version, given->version, sizeof(held->version));
    memcpy(held->hostname, given->hostname, sizeof(held->hostname));
    replace(&held->candidates, &given->candidates);
    replace(&held->paths, &given->paths);
    replace(&held->aead, &given->aead);
    replace(&held->fabric, &given->fabric);
    if (node->spec.relay)
        relay_lines_changed(&s->events, node, held->line, given->line, wall_s);
    free(held->line);
    held->line = given->line;
    given->line = NULL;
    held->routes = given->routes;
    held->metrics_port = given->metrics_port;
    held->nat = given->nat;
    held->uplink = given->uplink;
    held->machine = given->machine;
}

bool reports_owns(const struct model_node *node, const struct report *report, struct err *e)
{
    const char *self = node->spec.meta.name;
    const char *owner = edge_owner_names[report->edges.owner];

    if (report->owner_node[0] == '\0' || strcmp(report->owner_node, self) == 0)
        return true;
    (void)err_set(e, -EPERM,
        "\"%s/%s\" is written by node \"%s\" and by nobody else, and this is \"%s\"", owner,
        report->owner_node, report->owner_node, self);
    return false;
}

/* ---- edges ---------------------------------------------------------------------------------- */

/* Note an event of the edge between @node and @peer; NULL: of the node itself. */
__attribute__((format(printf, 6, 7))) static void tell(struct reports *s,
    const struct model_node *node, const char *peer, enum edge_event_kind kind, int64_t at,
    const char *format, ...)
{
    const char *name = node->spec.meta.name;
    char edge[OBJECT_NAME_MAX + 1];
    char text[EDGE_EVENT_TEXT_MAX];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    edge_events_add(&s->events, &(struct edge_event){.kind = kind,
                                    .at = at,
                                    .network = node->net->spec.meta.name,
                                    .object = peer ? edge_name(name, peer, edge) : name,
                                    .text = text});
}

static bool is_direct(uint8_t path)
{
    return path == PATH_KIND_LAN || path == PATH_KIND_DIRECT;
}

static void tell_path(struct reports *s, const struct model_node *node, const char *peer,
    const struct edge_said *before, const struct edge_said *now, int64_t at)
{
    const char *name = node->spec.meta.name;

    if (is_direct(before->path) && now->fell_at != 0)
        tell(s, node, peer, EDGE_EVENT_FELL, at, "%s went from %s to %s on its way to %s", name,
            path_kind_names[before->path], path_kind_names[now->path], peer);
    else if (before->fell_at != 0 && is_direct(now->path))
        tell(
            s, node, peer, EDGE_EVENT_DIRECT_AGAIN, at, "%s reaches %s directly again", name, peer);
    else if (now->path == PATH_KIND_NONE && before->path != PATH_KIND_NONE)
        tell(s, node, peer, EDGE_EVENT_NO_PATH, at, "%s has no path to %s any more", name, peer);
}

static void tell_said(struct reports *s, const struct model_node *node, const char *peer,
    const struct edge_said *before, const struct edge_said *now, int64_t at)
{
    const char *name = node->spec.meta.name;

    if (now->error && !report_is_same_text(before->error, now->error))
        tell(s, node, peer, EDGE_EVENT_FAILING, at, "%s cannot apply it: %s", name, now->error);
    else if (before->error && !now->error)
        tell(s, node, peer, EDGE_EVENT_APPLIED, at, "%s has applied it", name);
    if (before->path != PATH_KIND_N && now->path != PATH_KIND_N)
        tell_path(s, node, peer, before, now, at);
}

static void tell_probed(struct reports *s, const struct model_node *node, const char *peer,
    const struct edge_probed *before, const struct edge_probed *now, int64_t at)
{
    const char *name = node->spec.meta.name;

    if (before->tunnel == now->tunnel)
        return;
    if (now->tunnel == EDGE_REACH_SILENT)
        tell(s, node, peer, EDGE_EVENT_UNREACHED, at, "%s does not answer %s through the tunnel",
            peer, name);
    else if (before->tunnel == EDGE_REACH_SILENT && now->tunnel == EDGE_REACH_REACHED)
        tell(s, node, peer, EDGE_EVENT_REACHED_AGAIN, at, "%s answers %s again", peer, name);
}

/* Is the edge to @peer to be direct where it can? If not, nothing has fallen back. */
static bool wants_direct(const struct model_node *node, const char *peer)
{
    const struct model_edge *edge = model_find_edge(node->net, node->spec.meta.name, peer);

    return mesh_edge_wants_direct(
        edge ? &edge->spec : NULL, node->net->spec.topology == TOPOLOGY_HUB);
}

/* Takes @part, of the edge to @peer. True: something is different from before. */
static bool take_part(struct reports *s, const struct model_node *node,
    const struct model_node *peer, struct edge_parts *held, struct edge_part *part, int64_t at)
{
    static const struct edge_said nothing_said = EDGE_SAID_NULL;
    static const struct edge_probed nothing_probed = {.rtt_us = 0};
    const struct edge_part *before = edge_parts_find(held, part->peer);
    bool is_agent = held->owner == EDGE_OWNER_AGENT;
    bool is_other = !before;
    bool is_heard_otherwise = false;

    if (is_agent) {
        const struct edge_said *a = before ? &before->said : &nothing_said;
        struct edge_said *b = &part->said;

        /* The hub remembers since when an edge is not direct any more, because an agent that has
         * just started does not know it. */
        b->fell_at = is_direct(a->path) ? at : a->fell_at;
        b->path_at = before && a->path == b->path ? a->path_at : at;
        if (is_direct(b->path) || b->path == PATH_KIND_N || b->is_relay_better ||
            !wants_direct(node, part->peer))
            b->fell_at = 0;
        tell_said(s, node, part->peer, a, b, at);
        /* Its handshake may be at another time, and its loss another one of the same level. */
        is_other |=
            a->path != b->path || a->is_alarm != b->is_alarm ||
            loss_level(&a->loss, LOSS_LEVEL_NONE) != loss_level(&b->loss, LOSS_LEVEL_NONE) ||
            !report_is_same_text(a->error, b->error) ||
            !endpoint_equal(&a->endpoint, &b->endpoint) || !x25519_public_equal(&a->key, &b->key);
    } else {
        const struct edge_probed *probed = before ? &before->probed : &nothing_probed;

        tell_probed(s, node, part->peer, probed, &part->probed, at);
        is_other |=
            probed->tunnel != part->probed.tunnel || probed->underlay != part->probed.underlay;
        is_heard_otherwise = probed->is_heard != part->probed.is_heard;
    }
    part->since = is_other || is_heard_otherwise ? at : before->since;
    if (edge_parts_put(held, part) < 0)
        s->n_parts_left_out++;
    else if (is_other || is_heard_otherwise)
        health_look_part(&s->health, node, peer, part, held->owner, at);
    return is_other;
}

/* True: something is different from before. */
static bool take_edges(
    struct reports *s, const struct model_node *node, struct report *report, int64_t at)
{
    bool is_agent = report->edges.owner == EDGE_OWNER_AGENT;
    struct edge_parts *held =
        is_agent ? &node->reported->heard.report.edges : &node->reported->heard.probed;
    bool is_whole = report->run == 0;
    size_t n_before = held->n;
    bool is_other = false;

    if (report->begins || is_whole)
        edge_parts_begin(held);
    for (size_t i = 0; i < report->edges.n; i++) {
        struct edge_part *part = report->edges.items[i];
        bool is_kept = edge_parts_find(held, part->peer) != NULL;
        const struct model_node *peer = model_find_node(node->net, part->peer);
        bool is_peer = peer && peer != node;

        if (part->is_gone && is_kept) {
            edge_parts_remove(held, part->peer);
            is_other = true;
            if (is_peer)
                health_look_pair(&s->health, node, peer, at);
        } else if (!part->is_gone && is_peer &&
                   (is_kept || s->n_parts + held->n - n_before < REPORTS_PARTS_MAX)) {
            is_other |= take_part(s, node, peer, held, part, at);
            report->edges.items[i] = NULL;
        } else if (!part->is_gone && is_peer) {
            s->n_parts_left_out++;
        }
    }
    if (report->ends || is_whole) {
        size_t n = held->n;

        edge_parts_end(held);
        is_other |= held->n != n;
        if (held->n != n)
            health_look_again(&s->health, node->net);
    }
    s->n_parts = s->n_parts + held->n - n_before;
    node->reported->heard.report.has_edges |= is_agent;
    reported_count_edges(node->reported);
    return is_other;
}

/* Take in the result of the agent's last pass. */
static bool take_applied(
    struct reports *s, const struct model_node *node, struct report *report, int64_t at)
{
    struct report *held = &node->reported->heard.report;
    bool is_other = !report_is_same_text(held->error, report->error);

    if (is_other && report->error)
        tell(s, node, NULL, EDGE_EVENT_FAILING, at,
            "its agent cannot apply revision %" PRIu64 ": %s", report->applied, report->error);
    else if (is_other)
        tell(s, node, NULL, EDGE_EVENT_APPLIED, at, "its agent applies what it is told again");
    /* What is found of it is in other words now. */
    if (is_other)
        node->reported->conditions = UINT16_MAX;
    held->has_applied = true;
    held->applied = report->applied;
    replace(&held->error, &report->error);
    return is_other;
}

/* Take in what the agent finds itself. It is no one's but this run's of the hub: the next report
 * has it anew. */
static void take_findings(
    struct reports *s, const struct model_node *node, struct report *report, int64_t at)
{
    struct reported_node *r = node->reported;

    if (r->own.n == 0 && report->found.n == 0)
        return;
    if (!findings_are_alike(&r->own, &report->found)) {
        r->own_at = at;
        health_look_again(&s->health, node->net);
    }
    r->has_new_own = true;
    findings_deinit(&r->own);
    r->own = report->found;
    report->found = (struct findings){.n = 0};
}

/* Take in what its lines carried. */
static bool take_daily(const struct model_node *node, const struct daily *said)
{
    struct daily *held = &node->reported->heard.report.daily;
    bool is_other = false;

    for (size_t i = 0; i < said->n; i++) {
        const struct daily_peer *p = said->items[i];

        if (!model_find_node(node->net, p->name))
            continue;
        for (unsigned k = 0; k < p->n; k++)
            is_other |= daily_put(held, p->name, &p->days[k]);
    }
    return is_other;
}

/* ---- a node that is copied ------------------------------------------------------------------ */

/* Once until it is over, which takes COPIES_FORGET_S whatever is reported: see copies.h. So the log
 * and the events stay short. */
static void tell_copies(struct reports *s, const struct model_node *node, int64_t wall_s)
{
    bool has_copies = copies_are_there(&node->reported->copies);
    const char *name = node->spec.meta.name;
    const char *network = node->net->spec.meta.name;
    char why[COPIES_TEXT_MAX];

    if (has_copies == node->reported->had_copies)
        return;
    node->reported->had_copies = has_copies;
    copies_explain(&node->reported->copies, why);
    if (has_copies)
        log_warning("node \"%s\" of network \"%s\": %s", name, network, why);
    else
        log_info("node \"%s\" of network \"%s\" is one machine again", name, network);
    tell(s, node, NULL, has_copies ? EDGE_EVENT_COPIED : EDGE_EVENT_COPIED_NO_MORE, wall_s, "%s",
        has_copies ? why : "it is one machine again");
}

enum reports_result reports_take(
    struct reports *s, const struct model_node *node, struct report *report, int64_t wall_s)
{
    struct report *held = &node->reported->heard.report;
    bool is_new = report->has_node && report_is_seen_otherwise(held, report);
    bool is_other =
        is_new || (report->has_node &&
                      (strcmp(held->engine, report->engine) != 0 ||
                          strcmp(held->version, report->version) != 0 ||
                          held->metrics_port != report->metrics_port ||
                          !report_nat_equal(&held->nat, &report->nat) ||
                          !uplink_report_equal(&held->uplink, &report->uplink) ||
                          memcmp(&held->routes, &report->routes, sizeof(held->routes)) != 0));
    enum reports_result result = is_new ? REPORTS_UPDATES : REPORTS_TAKEN;
    struct edge_sequence *said = &node->reported->said[report->edges.owner];

    if (report->edges.owner == EDGE_OWNER_AGENT) {
        copies_hear(&node->reported->copies, report, wall_s);
        tell_copies(s, node, wall_s);
    }
    node->reported->there_at = wall_s;
    if (report->edges.owner == EDGE_OWNER_PROBE) {
        node->reported->probe_at = wall_s;
        node->reported->probe_every = report->every_seconds;
    }
    /* What is found of it is in other words then. */
    if (report->has_node && !report_nat_equal(&held->nat, &report->nat))
        node->reported->conditions = UINT8_MAX;
    if (report->has_node)
        take_node(s, node, report, wall_s);
    if (report->edges.owner == EDGE_OWNER_AGENT) {
        /* Whether the agent was ever heard is stored, even if it says nothing else. */
        is_other |= !node->reported->heard.has_reported;
        node->reported->heard.has_reported = true;
        node->reported->reported_at = node->reported->heard_here_at = wall_s;
        node->reported->has_cpu = report->has_cpu;
        node->reported->cpu_percent = report->cpu_percent;
    }
    if (report->has_applied)
        is_other |= take_applied(s, node, report, wall_s);
    if (report->has_findings)
        take_findings(s, node, report, wall_s);
    is_other |= take_daily(node, &report->daily);
    if (report->run != 0 && !edge_sequence_takes(said, report->run, report->number, report->begins))
        result = REPORTS_AGAIN;
    else if (report->has_edges)
        is_other |= take_edges(s, node, report, wall_s);
    report_deinit(report);
    if (is_other)
        mark_unsaved(s, node);
    return result;
}

/* ---- looks at what is known ------------------------------------------------------------------ */

/* Move a time along with the clock, unless it is from after the clock was set. */
static void follow(int64_t *t, int64_t step, int64_t newest_s, int64_t wall_s)
{
    bool is_newer = *t >= newest_s && *t <= wall_s;

    if (*t != 0 && !is_newer)
        *t += step;
}

/*
 * The clock was set: what this process has noted by it is moved along, or every agent would look
 * silent, or none. What the store says was noted by another clock, maybe, and stays.
 */
static void follow_clock(struct reports *s, nsec_t now, int64_t wall_s)
{
    int64_t passed = (int64_t)((now - s->clock_at) / NSEC_PER_SEC);
    int64_t step = wall_s - s->clock_wall_s - passed;
    bool is_set = s->clock_at != 0 && (step <= -CLOCK_STEP_S || step >= CLOCK_STEP_S);

    s->clock_at = now;
    s->clock_wall_s = wall_s;
    if (!is_set)
        return;
    s->started_at += step;
    for (size_t i = 0; i < s->model->networks.n; i++) {
        const struct model_network *net = model_network_at(s->model, i);

        for (size_t k = 0; k < net->nodes.n; k++) {
            const struct model_node *node = model_node_at(net, k);
            struct reported_node *r = node->reported;

            if (r->heard_here_at != 0 && r->heard_here_at == r->reported_at) {
                follow(&r->reported_at, step, wall_s - passed - 1, wall_s);
                r->heard_here_at = r->reported_at;
            }
            follow(&r->there_at, step, wall_s - passed - 1, wall_s);
            follow(&r->probe_at, step, wall_s - passed - 1, wall_s);
            follow(&r->unapplied_at, step, wall_s - passed - 1, wall_s);
        }
    }
}

void reports_look(struct reports *s, nsec_t now, int64_t wall_s)
{
    if (s->started_at == 0)
        s->started_at = wall_s;
    follow_clock(s, now, wall_s);
    health_pass(&s->health,
        &(struct health_time){.now = now, .wall_s = wall_s, .started_at = s->started_at});
    if (now - s->looked_at < REPORTS_LOOK)
        return;
    s->looked_at = now;
    s->n_parts = 0;
    for (size_t i = 0; i < s->model->networks.n; i++) {
        const struct model_network *net = model_network_at(s->model, i);

        for (size_t k = 0; k < net->nodes.n; k++) {
            const struct model_node *node = model_node_at(net, k);

            s->n_parts += node->reported->heard.report.edges.n + node->reported->heard.probed.n;
            copies_forget(&node->reported->copies, wall_s);
            tell_copies(s, node, wall_s);
        }
    }
}

/* ---- the store ------------------------------------------------------------------------------ */

static void note_seen(struct reports *s, const struct model_node *node, nsec_t now, int64_t wall_s)
{
    int64_t written = node->reported->stored_at;

    node->reported->seen_at = now;
    node->reported->heard.last_seen_at = wall_s;
    /* Also write the record when the clock was set back. */
    if (wall_s - written >= seen_each(node->net) || wall_s < written ||
        (node->reported->is_unwritten && writes_here(s, node)))
        mark_unsaved(s, node);
}

void reports_seen(struct reports *s, const struct model_node *node, nsec_t now, int64_t wall_s)
{
    node->reported->only_enrolled_at = 0;
    note_seen(s, node, now, wall_s);
}

void reports_enrolled(struct reports *s, const struct model_node *node, bool is_new,
    const char *engine, const struct subnets *routes, nsec_t now, int64_t wall_s)
{
    struct report *held = &node->reported->heard.report;

    if (is_new)
        node->reported->only_enrolled_at = now;
    (void)snprintf(held->engine, sizeof(held->engine), "%s", engine);
    held->routes = *routes;
    note_seen(s, node, now, wall_s);
}

void reports_try_store(struct reports *s)
{
    const struct model_network *net =
        s->model->networks.n > 0 ? model_network_at(s->model, 0) : NULL;

    if (list_is_empty(&s->unsaved) && s->n_flushes == 0 && net && net->own)
        mark_unsaved(s, net->own);
}

/* A commit of records that is not answered yet. It holds the nodes' names and not pointers, because
 * a node may be removed before the answer. */
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
        const struct model_node *node =
            model_find_node(model_find_network(m, f->of[i].network), f->of[i].node);

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
static bool add_record(struct flush *f, const struct model_node *node, struct store_op *op,
    char key[static RECORD_KEY_MAX])
{
    const char *network = node->net->spec.meta.name;
    const char *name = node->spec.meta.name;
    char *text;

    node->reported->heard.by = node->net->model->boot;
    text = record_report_encode(&node->reported->heard);
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
    struct reported_node *rp;
    int r = 0;

    if (!f)
        return err_set(e, -ENOMEM, "no memory for reports");
    f->reports = s;
    while (f->n < FLUSH_AT_ONCE && (rp = list_first(&s->unsaved, struct reported_node, unsaved))) {
        const struct model_node *node = rp->node;
        bool stays = !node->served->leaving && !node->is_expired && !node->net->leaving;
        bool is_ours = writes_here(s, node);

        /* A node that is being removed gets no record: it would be left in the store. */
        if (stays && is_ours && !add_record(f, node, &ops[f->n], keys[f->n]))
            break;
        rp->is_unwritten = !is_ours;
        rp->is_unsaved = false;
        list_remove(&rp->unsaved);
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
    const struct report_record *heard = &node->reported->heard;
    const struct report *said = &heard->report;

    return json_pack("{s:I, s:s, s:s, s:s*, s:o, s:o*, s:o*, s:o*, s:o*, s:o*, s:o*, s:o*}",
        "lastSeen", (json_int_t)heard->last_seen_at, "engine",
        node->spec.stock ? REQUEST_ENGINE_STOCK : said->engine, "version", said->version,
        "hostname", said->hostname[0] ? said->hostname : NULL, "candidates",
        said->candidates ? json_loads(said->candidates, 0, NULL) : json_array(), "paths",
        json_loads(said->paths, 0, NULL), "aead", json_loads(said->aead, 0, NULL), "fabric",
        json_loads(said->fabric, 0, NULL), "relayLine",
        said->line && said->line->capacity ? relay_line_encode(said->line) : NULL, "routes",
        said->routes.n ? subnets_encode(&said->routes) : NULL, "nat", report_nat_encode(&said->nat),
        "uplink", uplink_report_encode(&said->uplink));
}

/* ---- which nodes are present now --------------------------------------------------------------
 */

/* How often all nodes are checked. */
#define PRESENCE_EACH (10 * NSEC_PER_SEC)

/* A session whose handshake is younger than this is in use: WireGuard makes a new one each 120 s.
 */
#define HANDSHAKE_FRESH (180 * NSEC_PER_SEC)

bool presence_has_session(const struct overlay_facts *facts, nsec_t now)
{
    return facts->handshake_at > 0 && now - facts->handshake_at < HANDSHAKE_FRESH;
}

/* When the node was heard last, monotonic time; 0: not recently. */
static nsec_t heard_at(const struct model_node *node, nsec_t now)
{
    nsec_t at = node->reported->seen_at > 0 && now - node->reported->seen_at < 2 * PRESENCE_EACH
                    ? node->reported->seen_at
                    : 0;
    struct overlay_facts facts = {0};

    if (watch_is_open(node) && watch_lost_for(node, now) == 0)
        return now;
    if (overlay_read_facts(node, now, &facts) && facts.handshake_at > at &&
        presence_has_session(&facts, now))
        at = facts.handshake_at;
    return at;
}

/* Of several hubs any may hear a node, and writes in twice the usual time at the latest when it
 * did. So a node that was heard elsewhere in three times that is not away. The hubs' clocks may
 * differ a little. */
#define ELSEWHERE_TIMES 3

static void look_whether_present(
    struct reports *s, const struct model_node *node, nsec_t now, int64_t wall_s)
{
    const struct node *spec = &node->spec;
    nsec_t at = spec->hub ? 0 : heard_at(node, now);
    int64_t wall_at = wall_s - (now - at) / NSEC_PER_SEC;
    bool is_heard_elsewhere =
        store_is_shared(s->model->store) && !spec->hub &&
        wall_s - node->reported->stored_at < ELSEWHERE_TIMES * seen_each(node->net);
    char key[RECORD_KEY_MAX];

    if (spec->ephemeral && (at != 0 || is_heard_elsewhere))
        (void)store_keep(s->model->store,
            record_key(key, RECORD_NODE, spec->meta.network, spec->meta.name), now, NULL);
    if (at == 0)
        return;
    /* The wall-clock time of one handshake may differ by a second from call to call, by rounding.
     */
    if (at > node->reported->seen_at || wall_at > node->reported->heard.last_seen_at + 1)
        reports_seen(s, node, at, wall_at);
}

void presence_tick(struct reports *s, nsec_t now, int64_t wall_s)
{
    if (now - s->present_at < PRESENCE_EACH)
        return;
    s->present_at = now;
    for (size_t i = 0; i < s->model->networks.n; i++) {
        const struct model_network *net = model_network_at(s->model, i);

        for (size_t k = 0; k < net->nodes.n; k++)
            look_whether_present(s, model_node_at(net, k), now, wall_s);
    }
}

/* ---- the store falls silent ------------------------------------------------------------------ */

static void tell_all(struct reports *s, enum edge_event_kind kind, const char *text, int64_t at)
{
    const struct model *m = s->model;

    for (size_t i = 0; i < m->networks.n; i++)
        edge_events_add(&s->events, &(struct edge_event){.kind = kind,
                                        .at = at,
                                        .network = model_network_at(m, i)->spec.meta.name,
                                        .object = m->self[0] ? m->self : HUB_NAME_DEFAULT,
                                        .text = text});
}

static void tell_refusal(struct reports *s)
{
    struct store_refusal refusal = store_refusal(s->model->store);
    bool is_refusing = refusal.since != 0;

    if (is_refusing)
        reports_try_store(s);
    if (is_refusing == s->is_refusing)
        return;
    s->is_refusing = is_refusing;
    if (is_refusing)
        log_warning("the store does not take what is to be written, and whoever wants a change is "
                    "refused: %s",
            err_text(refusal.why));
    else
        log_info("the store takes what is to be written again");
}

static void tell_lag(struct reports *s, nsec_t now, int64_t wall_s)
{
    struct store_lag lag = store_lag(s->model->store, now);
    bool is_behind = lag.behind_for > STORE_LAG_MAX;
    char text[EDGE_EVENT_TEXT_MAX];

    if (is_behind == s->is_behind)
        return;
    s->is_behind = is_behind;
    if (is_behind) {
        (void)snprintf(text, sizeof(text),
            "the store has not said for %d s what has changed; nodes are told what was true before",
            (int)(lag.behind_for / NSEC_PER_SEC));
        tell_all(s, EDGE_EVENT_STORE_BEHIND, text, wall_s);
        log_warning("%s", text);
        return;
    }
    tell_all(s, EDGE_EVENT_STORE_AGAIN, "it is known again what has changed in the store", wall_s);
    log_info("it is known again what has changed in the store");
}

/* A store of which nothing has been heard for so long may take no writes for that reason; and a
 * write that was refused may have been asked for so much later. */
#define STORE_UNHEARD (STORE_LAG_MAX / 2)
#define STORE_SLACK   (2 * NSEC_PER_SEC)

/* Does it take no writes, for another reason than that it is not heard? */
static bool is_store_refusing(struct reports *s, nsec_t behind_for, nsec_t now)
{
    if (behind_for > STORE_UNHEARD)
        s->unheard_at = now;
    return s->is_refusing && behind_for <= STORE_UNHEARD &&
           (s->unheard_at == 0 || store_refusal(s->model->store).at > s->unheard_at + STORE_SLACK);
}

/* What is found of the store and of the relay's line, in each network. */
static void find_hub(struct reports *s, nsec_t now, int64_t wall_s)
{
    const struct model *m = s->model;
    struct store_refusal refusal = store_refusal(m->store);
    nsec_t behind_for = store_lag(m->store, now).behind_for;
    bool is_refusing = is_store_refusing(s, behind_for, now);
    bool is_busy = hub_line_is_busy(s->line);
    bool is_found = is_refusing || s->is_behind || is_busy;

    for (size_t i = 0; (is_found || s->is_hub_found) && i < m->networks.n; i++) {
        const struct model_network *net = model_network_at(m, i);
        const char *network = net->spec.meta.name;
        struct findings *found = health_begin(&s->health, network, FINDING_OF_HUB, FINDING_HUB);

        if (found && is_refusing)
            (void)findings_add(found, FINDING_HUB_STORE_REFUSES, FINDING_HUB, wall_s,
                "The store of the hub takes no writes: %s.", err_text(refusal.why));
        if (found && s->is_behind)
            (void)findings_add(found, FINDING_HUB_STORE_BEHIND, FINDING_HUB, wall_s,
                "The store has not said for %d s what has changed, and nodes are told what was "
                "true before.",
                (int)(behind_for / NSEC_PER_SEC));
        if (found && is_busy)
            hub_line_find(net, found, wall_s);
        health_end(&s->health, network, FINDING_HUB, wall_s);
    }
    s->is_hub_found = is_found;
}

void store_lag_tick(struct reports *s, nsec_t now, int64_t wall_s)
{
    tell_refusal(s);
    tell_lag(s, now, wall_s);
    find_hub(s, now, wall_s);
}
