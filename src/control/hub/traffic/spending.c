/* spending.c - see spending.h. */
#include "hub/traffic/spending.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/traffic.h"
#include "cost/spent.h"
#include "hub/audit/audit.h"
#include "hub/model/model.h"
#include "hub/watch/edge_events.h"
#include "hub/watch/watch.h"
#include "mesh/object/mesh_edge.h"
#include "mesh/object/traffic.h"
#include "os/log.h"

void spending_init(struct spending *s, struct model *model, struct traffic_book *book,
    struct edge_events *events, struct watcher *watcher, const struct prices *prices, uint64_t seed)
{
    *s = (struct spending){.model = model, .events = events, .watcher = watcher};
    spending_accounts_init(&s->accounts, model, book, prices, seed);
}

void spending_deinit(struct spending *s)
{
    spending_accounts_deinit(&s->accounts);
}

/* A network that is being judged. */
struct judged {
    struct spending *s; /* borrowed, like all that follows */
    struct model_network *net;
    struct spending_account *a; /* NULL: it has no budgets any more */
    const char *network;
    int64_t wall_s;
    nsec_t now;
};

/* An event, if the level is another one than before. */
static void tell(const struct judged *it, const struct spent *line, enum spent_level before)
{
    static const enum edge_event_kind kinds[] = {[SPENT_LOW] = EDGE_EVENT_BUDGET_AGAIN,
        [SPENT_NEAR_END] = EDGE_EVENT_BUDGET_NEAR,
        [SPENT_ALL] = EDGE_EVENT_BUDGET_SPENT};
    const char *whose = line->budget.job[0] ? line->budget.job : it->network;
    char text[EDGE_EVENT_TEXT_MAX];

    if (line->level == before)
        return;
    (void)snprintf(text, sizeof(text), "%.0f %% of the day's budget of %s %s %s spent",
        floor(line->share * 100), line->budget.job[0] ? "job" : "network", whose,
        line->level > before ? "is" : "is only");
    edge_events_add(it->s->events, &(struct edge_event){.kind = kinds[line->level],
                                       .at = it->wall_s,
                                       .network = it->network,
                                       .object = whose,
                                       .text = text});
    log_info("network %s: %s", it->network, text);
}

/* What a node may send by the network's budget, if that is spent; 0: any. What a job's is, its
 * nodes are told with who is in its run. */
static uint64_t cap_of(
    const struct judged *it, const struct spent_list *list, const struct node *node)
{
    const struct budgets *budgets = &it->net->pub.spec.budgets;

    for (unsigned k = 0; it->a && k < list->n && node_has_agent(node); k++) {
        struct price_sum sent = spending_account_own(it->a, node->meta.name, k);

        if (list->items[k].budget.job[0] == '\0')
            return spent_cap_of(&list->items[k], &budgets->items[k], &sent);
    }
    return 0;
}

/* Tell the nodes what they may send, where that is another rate than before. */
static void apply_caps(const struct judged *it)
{
    for (size_t i = 0; i < it->net->nodes.n; i++) {
        struct model_node *node = model_node_at(it->net, i);
        uint64_t cap = cap_of(it, &it->net->spent, &node->pub.spec);

        if (cap == node->cap)
            continue;
        node->cap = cap;
        model_forget_text(node);
        watch_tell_node(it->s->watcher, node, it->now);
    }
}

/* The audit log has when a cap came and went: the nodes' objects do not change by it. */
static void note_cap(const struct judged *it, const char *job, uint64_t before, uint64_t cap)
{
    struct audit *audit = it->s->model->audit;
    char object[OBJECT_NAME_MAX + 1];
    struct err e = ERR_NULL;

    if ((before > 0) == (cap > 0))
        return;
    (void)snprintf(object, sizeof(object), "network/%s%s%s", it->network, job[0] ? "/" : "", job);
    if (audit && audit_note(audit, cap > 0 ? "cap" : "uncap", object, it->now, NULL, NULL, &e) != 0)
        log_warning("the audit log lacks a cap: %s", err_text(&e));
}

/* Judge each budget, and say what is another level or cap than before. */
static struct spent_list judge(const struct judged *it, const struct traffic_spent *sums)
{
    const struct budgets *budgets = &it->net->pub.spec.budgets;
    const struct spent_list *before = &it->net->spent;
    struct spent_list lines = {.n = budgets->n};

    for (unsigned k = 0; k < lines.n; k++) {
        const struct spent *was = spent_find(before, budgets->items[k].job);

        lines.items[k] = spent_judge(&budgets->items[k], &sums[k].all, &sums[k].agreed);
        tell(it, &lines.items[k], was ? was->level : SPENT_LOW);
        note_cap(it, lines.items[k].budget.job, was ? was->cap : 0, lines.items[k].cap);
    }
    /* A budget that is gone takes its cap with it. */
    for (unsigned k = 0; k < before->n; k++)
        if (!spent_find(&lines, before->items[k].budget.job))
            note_cap(it, before->items[k].budget.job, before->items[k].cap, 0);
    return lines;
}

/* The ends of an edge contradict each other, and go on to. */
static void tell_disputes(const struct judged *it)
{
    const struct traffic_dispute *d;

    while ((d = spending_account_dispute(it->a, it->now))) {
        char edge[OBJECT_NAME_MAX + 1];
        char text[EDGE_EVENT_TEXT_MAX];
        char sent[TRAFFIC_BYTES_TEXT_MAX];
        char received[TRAFFIC_BYTES_TEXT_MAX];

        (void)edge_name(d->from, d->to, edge);
        (void)snprintf(text, sizeof(text),
            "%s says it has sent %s%s%s to %s, which says it has received %s", d->from,
            traffic_bytes_format(d->sent, sent), d->job[0] ? " for job " : "", d->job, d->to,
            traffic_bytes_format(d->received, received));
        edge_events_add(it->s->events, &(struct edge_event){.kind = EDGE_EVENT_TRAFFIC_DISPUTED,
                                           .at = it->wall_s,
                                           .network = it->network,
                                           .object = edge,
                                           .text = text});
        log_info("network %s: %s", it->network, text);
    }
}

/* @a: NULL: it has no budgets any more. */
static void judge_network(struct spending *s, struct model_network *net, struct spending_account *a,
    nsec_t now, int64_t wall_s)
{
    struct judged it = {.s = s,
        .net = net,
        .a = a,
        .network = net->pub.spec.meta.name,
        .wall_s = wall_s,
        .now = now};
    struct traffic_spent sums[BUDGETS_MAX];

    if (a && spending_account_price(a, net, now, sums) != 0) {
        log_warning("the budgets of network %s are not looked at: no memory", it.network);
        return;
    }
    net->spent = judge(&it, sums);
    apply_caps(&it);
    if (a)
        tell_disputes(&it);
}

/* @is_time: the budgets are to be judged. Else they are only if their account has just been read.
 */
static void look_at(
    struct spending *s, struct model_network *net, bool is_time, nsec_t now, int64_t wall_s)
{
    bool has_budgets = net->pub.spec.budgets.n > 0;
    struct spending_account *a =
        has_budgets ? spending_account_of(&s->accounts, net, traffic_day(wall_s)) : NULL;

    if (a && is_time)
        spending_account_read(a, now);
    if (a ? spending_account_is_whole(a) && (spending_account_take_read(a) || is_time)
          : is_time && !has_budgets)
        judge_network(s, net, a, now, wall_s);
}

void spending_tick(struct spending *s, nsec_t now, int64_t wall_s)
{
    bool is_time = now - s->looked_at >= SPENDING_EACH;

    if (is_time)
        s->looked_at = now;
    spending_accounts_follow(&s->accounts);
    for (size_t i = 0; i < s->model->networks.n; i++) {
        struct model_network *net = model_network_at(s->model, i);

        if (net->pub.spec.budgets.n > 0 || net->spent.n > 0)
            look_at(s, net, is_time, now, wall_s);
    }
}
