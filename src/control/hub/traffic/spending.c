/* spending.c - see spending.h. */
#include "hub/traffic/spending.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "cost/spent.h"
#include "hub/audit/audit.h"
#include "hub/model/model.h"
#include "hub/traffic/traffic_book.h"
#include "hub/traffic/traffic_read.h"
#include "hub/watch/edge_events.h"
#include "hub/watch/watch.h"
#include "mesh/object/traffic.h"
#include "os/log.h"

void spending_init(struct spending *s, struct model *model, struct traffic_book *book,
    struct edge_events *events, struct watcher *watcher, const struct prices *prices)
{
    *s = (struct spending){
        .model = model, .book = book, .events = events, .watcher = watcher, .prices = prices};
}

/* A network that is being read. */
struct reading {
    struct spending *s; /* pins */
    char network[NAME_MAX_LEN + 1];
    int32_t day;
    int64_t wall_s;
    json_t *islands; /* owns */
    json_t *hubs;    /* owns; the names of those of the network */
    struct budgets budgets;
    struct price_sum sums[BUDGETS_MAX]; /* of each budget */
    json_t *senders[BUDGETS_MAX];       /* owns; {NODE: true}: who has sent for it; NULL: any */
    nsec_t now;
};

static void take_row(
    struct reading *rd, unsigned k, const struct price_facts *facts, const struct traffic_row *row)
{
    price_add(&rd->sums[k], facts, row->from, row->to, row->path, row->bytes);
    if (rd->senders[k])
        (void)json_object_set_new(rd->senders[k], row->from, json_true());
}

static void on_day(void *ctx, int32_t day, const struct traffic_row *rows, size_t n)
{
    struct reading *rd = ctx;
    struct price_facts facts = {.prices = rd->s->prices,
        .islands = rd->islands,
        .hub = json_string_value(json_array_get(rd->hubs, 0)),
        .hubs = rd->hubs};

    for (size_t i = 0; i < n; i++)
        for (unsigned k = 0; k < rd->budgets.n; k++)
            if (rd->budgets.items[k].job[0] == '\0' ||
                strcmp(rd->budgets.items[k].job, rows[i].job) == 0)
                take_row(rd, k, &facts, &rows[i]);
}

/* An event, if the level is another one than before. */
static void tell(const struct reading *rd, const struct spent *line, enum spent_level before)
{
    static const enum edge_event_kind kinds[] = {[SPENT_LOW] = EDGE_EVENT_BUDGET_AGAIN,
        [SPENT_NEAR_END] = EDGE_EVENT_BUDGET_NEAR,
        [SPENT_ALL] = EDGE_EVENT_BUDGET_SPENT};
    const char *whose = line->job[0] ? line->job : rd->network;
    char text[EDGE_EVENT_TEXT_MAX];

    if (line->level == before)
        return;
    (void)snprintf(text, sizeof(text), "%.0f %% of the day's budget of %s %s %s spent",
        floor(line->share * 100), line->job[0] ? "job" : "network", whose,
        line->level > before ? "is" : "is only");
    edge_events_add(rd->s->events, &(struct edge_event){.kind = kinds[line->level],
                                       .at = rd->wall_s,
                                       .network = rd->network,
                                       .object = whose,
                                       .text = text});
    log_info("network %s: %s", rd->network, text);
}

/* What a node may send by the budgets that are spent; 0: any. */
static uint64_t cap_of(
    const struct reading *rd, const struct spent_list *list, const struct node *node)
{
    uint64_t cap = 0;

    for (unsigned k = 0; k < list->n; k++) {
        uint64_t own = list->items[k].cap;
        bool is_for =
            own > 0 && (!rd->senders[k] || json_object_get(rd->senders[k], node->meta.name));

        if (is_for && (cap == 0 || own < cap))
            cap = own;
    }
    return node->hub || node->stock ? 0 : cap;
}

/* Tell the nodes what they may send, where that is another rate than before. */
static void apply_caps(const struct reading *rd, struct model_network *net)
{
    for (size_t i = 0; i < net->nodes.n; i++) {
        struct model_node *node = model_node_at(net, i);
        uint64_t cap = cap_of(rd, &net->spent, &node->pub.spec);

        if (cap == node->cap)
            continue;
        node->cap = cap;
        model_forget_text(node);
        watch_tell_node(rd->s->watcher, node, rd->now);
    }
}

/* The audit log has when a cap came and went: the nodes' objects do not change by it. */
static void note_cap(const struct reading *rd, const char *job, uint64_t before, uint64_t cap)
{
    struct audit *audit = rd->s->model->audit;
    char object[OBJECT_NAME_MAX + 1];
    struct err e = ERR_NULL;

    if ((before > 0) == (cap > 0))
        return;
    (void)snprintf(object, sizeof(object), "network/%s%s%s", rd->network, job[0] ? "/" : "", job);
    if (audit && audit_note(audit, cap > 0 ? "cap" : "uncap", object, rd->now, NULL, NULL, &e) != 0)
        log_warning("the audit log lacks a cap: %s", err_text(&e));
}

/* Judge each budget, and say what is another level or cap than before. */
static struct spent_list judge(const struct reading *rd, const struct spent_list *before)
{
    struct spent_list lines = {.n = rd->budgets.n};

    for (unsigned k = 0; k < lines.n; k++) {
        const struct spent *was = spent_find(before, rd->budgets.items[k].job);

        lines.items[k] = spent_judge(&rd->budgets.items[k], &rd->sums[k]);
        tell(rd, &lines.items[k], was ? was->level : SPENT_LOW);
        note_cap(rd, lines.items[k].job, was ? was->cap : 0, lines.items[k].cap);
    }
    /* A budget that is gone takes its cap with it. */
    for (unsigned k = 0; k < before->n; k++)
        if (!spent_find(&lines, before->items[k].job))
            note_cap(rd, before->items[k].job, before->items[k].cap, 0);
    return lines;
}

static void on_end(void *ctx, int r, const struct err *e)
{
    struct reading *rd = ctx;
    struct model_network *net = model_find_network(rd->s->model, rd->network);

    rd->s->n_reading--;
    if (r != 0)
        log_warning("the budgets of network %s are not looked at: %s", rd->network, err_text(e));
    if (r == 0 && net) {
        struct spent_list lines = judge(rd, &net->spent);

        net->spent = lines;
        apply_caps(rd, net);
    }
    for (unsigned k = 0; k < BUDGETS_MAX; k++)
        json_decref(rd->senders[k]);
    json_decref(rd->islands);
    json_decref(rd->hubs);
    free(rd);
}

static struct reading *make_reading(
    struct spending *s, const struct model_network *net, nsec_t now, int64_t wall_s)
{
    struct reading *rd = calloc(1, sizeof(*rd));

    if (!rd)
        return NULL;
    *rd = (struct reading){.s = s,
        .day = traffic_day(wall_s),
        .wall_s = wall_s,
        .islands = json_object(),
        .hubs = json_array(),
        .now = now,
        .budgets = net->pub.spec.budgets};
    for (unsigned k = 0; k < rd->budgets.n; k++)
        if (rd->budgets.items[k].job[0])
            rd->senders[k] = json_object();
    (void)snprintf(rd->network, sizeof(rd->network), "%.63s", net->pub.spec.meta.name);
    for (size_t i = 0; i < net->nodes.n; i++) {
        const struct node *node = &model_node_at(net, i)->pub.spec;

        if (node->island[0])
            (void)json_object_set_new(rd->islands, node->meta.name, json_string(node->island));
        if (node->hub)
            (void)json_array_append_new(rd->hubs, json_string(node->meta.name));
    }
    return rd;
}

static void look_at(struct spending *s, struct model_network *net, nsec_t now, int64_t wall_s)
{
    struct reading *rd = make_reading(s, net, now, wall_s);
    struct traffic_reader reader = {.on_day = on_day, .on_end = on_end, .ctx = rd};
    struct traffic_query query;
    struct err e = ERR_NULL;

    if (!rd)
        return;
    query = (struct traffic_query){.since = rd->day, .until = rd->day};
    memcpy(query.network, rd->network, sizeof(query.network));
    s->n_reading++;
    if (traffic_read(s->book, &query, &reader, now, &e) != 0)
        on_end(rd, -1, &e);
}

void spending_tick(struct spending *s, nsec_t now, int64_t wall_s)
{
    if (s->n_reading > 0 || now - s->looked_at < SPENDING_EACH)
        return;
    s->looked_at = now;
    for (size_t i = 0; i < s->model->networks.n; i++) {
        struct model_network *net = model_network_at(s->model, i);

        if (net->pub.spec.budgets.n > 0 || net->spent.n > 0)
            look_at(s, net, now, wall_s);
    }
}
