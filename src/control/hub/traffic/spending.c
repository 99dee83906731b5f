/* spending.c - see spending.h. */
#include "hub/traffic/spending.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "hub/model/model.h"
#include "hub/traffic/traffic_book.h"
#include "hub/traffic/traffic_read.h"
#include "hub/watch/edge_events.h"
#include "hub/watch/health.h"
#include "mesh/object/traffic.h"
#include "os/log.h"

/* A look takes one part of so many of the time, at most. */
#define LOOK_PART 50

/* A network that has budgets. */
struct network_spending {
    struct keyed keyed;        /* its name */
    struct spending *s;        /* pins */
    struct spent_list spent;   /* as of the last look */
    struct spent_list reading; /* while @is_read: what is summed up */
    int64_t wall_s;            /* when the last look was begun, and the same by @began_at */
    nsec_t began_at;
    nsec_t due_at; /* for the next look; up to @began_at: the last one's end was not seen yet */
    bool is_read;  /* its records are being read */
};

static const struct spent_list no_budgets;

const struct spent_list *spending_of(const struct spending *s, const char *network)
{
    const struct network_spending *found = keys_find(&s->networks, network);

    return found ? &found->spent : &no_budgets;
}

/* ---- a look at a network --------------------------------------------------------------------- */

/* An event, if the level is another one than before. */
static void tell_level(
    const struct network_spending *of, const struct spent *line, enum spent_level before)
{
    static const enum edge_event_kind kinds[] = {[SPENT_LOW] = EDGE_EVENT_BUDGET_AGAIN,
        [SPENT_NEAR_END] = EDGE_EVENT_BUDGET_NEAR,
        [SPENT_ALL] = EDGE_EVENT_BUDGET_SPENT};
    const char *job = line->budget.job;
    const char *network = of->keyed.key;
    char text[EDGE_EVENT_TEXT_MAX];

    if (line->level == before)
        return;
    (void)snprintf(text, sizeof(text), "%.0f %% of the day's budget of %s %s %s spent",
        floor(line->share * 100), job[0] ? "job" : "network", job[0] ? job : network,
        line->level > before ? "is" : "is only");
    edge_events_add(of->s->events, &(struct edge_event){.kind = kinds[line->level],
                                       .at = of->wall_s,
                                       .network = network,
                                       .object = job[0] ? job : network,
                                       .text = text});
    log_info("network %s: %s", network, text);
}

/* What is found of a budget that is at that level; SPENT_LOW: nothing. */
static void find_level(
    const struct network_spending *of, const struct spent *line, enum spent_level level)
{
    struct health *h = of->s->health;
    const char *network = of->keyed.key;
    const char *job = line->budget.job[0] ? line->budget.job : network;
    struct findings *found = h ? health_begin(h, network, FINDING_OF_BUDGET, job) : NULL;

    if (!found)
        return;
    if (level != SPENT_LOW)
        (void)findings_add(found, level == SPENT_ALL ? FINDING_BUDGET_SPENT : FINDING_BUDGET_NEAR,
            job, of->wall_s, "%.0f %% of the day's budget of %s %s is spent.",
            floor(line->share * 100), line->budget.job[0] ? "job" : "network", job);
    health_end(h, network, job, of->wall_s);
}

/* Nothing is found of budgets that are none any more. */
static void forget_levels(const struct network_spending *of, const struct spent_list *now)
{
    for (unsigned k = 0; k < of->spent.n; k++)
        if (!spent_find(now, of->spent.items[k].budget.job))
            find_level(of, &of->spent.items[k], SPENT_LOW);
}

static void on_day(void *ctx, int32_t day, const struct traffic_edges *edges)
{
    struct network_spending *of = ctx;
    const struct model_network *net = model_find_network(of->s->book->model, of->keyed.key);
    json_auto_t *nodes = traffic_read_nodes(net);
    struct price_facts facts = {
        .prices = net && net->spec.prices ? net->spec.prices : of->s->prices, .nodes = nodes};

    for (size_t i = 0; i < edges->n; i++) {
        const struct traffic_row *row = &edges->rows[i];

        for (unsigned k = 0; row->word != TRAFFIC_WORD_WAITING && k < of->reading.n; k++) {
            struct spent *line = &of->reading.items[k];

            if (line->budget.job[0] == '\0' || strcmp(line->budget.job, row->job) == 0)
                price_add(&line->sum, &facts, row);
        }
    }
}

static void on_end(void *ctx, int r, const struct err *e)
{
    struct network_spending *of = ctx;

    of->is_read = false;
    if (r != 0) {
        log_warning("the budgets of network %s are not looked at: %s", of->keyed.key, err_text(e));
        return;
    }
    for (unsigned k = 0; k < of->reading.n; k++) {
        struct spent *line = &of->reading.items[k];
        const struct spent *before = spent_find(&of->spent, line->budget.job);

        spent_measure(line);
        tell_level(of, line, before ? before->level : SPENT_LOW);
        find_level(of, line, line->level);
    }
    forget_levels(of, &of->reading);
    of->spent = of->reading;
}

/* ---- each second ---------------------------------------------------------------------------- */

static void look_at(struct spending *s, const struct model_network *net, nsec_t now, int64_t wall_s)
{
    struct network_spending *of = keys_open(&s->networks, net->spec.meta.name, sizeof(*of));
    struct traffic_reader reader = {.since = traffic_day(wall_s),
        .until = traffic_day(wall_s),
        .on_day = on_day,
        .on_end = on_end,
        .ctx = of};
    struct err e = ERR_NULL;

    if (!of || of->is_read)
        return;
    if (of->s && of->due_at <= of->began_at) {
        nsec_t rest = LOOK_PART * (now - of->began_at - NSEC_PER_SEC);

        of->due_at = of->began_at + (rest > SPENDING_EACH ? rest : SPENDING_EACH);
    }
    if (now < of->due_at)
        return;
    of->s = s;
    of->reading = (struct spent_list){.n = net->spec.budgets.n};
    for (unsigned k = 0; k < of->reading.n; k++)
        of->reading.items[k].budget = net->spec.budgets.items[k];
    of->began_at = now;
    of->wall_s = wall_s;
    of->is_read = true;
    (void)snprintf(reader.network, sizeof(reader.network), "%s", of->keyed.key);
    if (traffic_read(s->book, &reader, now, &e) != 0)
        on_end(of, -1, &e);
}

void spending_tick(struct spending *s, nsec_t now, int64_t wall_s)
{
    /* A network that is gone, or has no budget any more, has nothing to tell. */
    for (size_t i = s->networks.n; i-- > 0;) {
        struct network_spending *of =
            container_of(s->networks.items[i], struct network_spending, keyed);
        const struct model_network *net = model_find_network(s->book->model, of->keyed.key);

        if (net && net->spec.budgets.n > 0)
            continue;
        if (net && of->spent.n > 0)
            forget_levels(of, &no_budgets);
        of->spent.n = of->reading.n = 0;
        if (!of->is_read)
            keys_free(&s->networks, &of->keyed);
    }
    for (size_t i = 0; i < s->book->model->networks.n; i++) {
        const struct model_network *net = model_network_at(s->book->model, i);

        if (net->spec.budgets.n > 0)
            look_at(s, net, now, wall_s);
    }
}
