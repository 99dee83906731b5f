/* spending.c - see spending.h. */
#include "hub/traffic/spending.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "hub/model/model.h"
#include "hub/traffic/traffic_book.h"
#include "hub/traffic/traffic_read.h"
#include "hub/watch/edge_events.h"
#include "mesh/object/traffic.h"
#include "os/log.h"

/* A look takes one part of so many of the time, at most. */
#define LOOK_PART 50

/* A network that has budgets. */
struct network_spending {
    struct keyed keyed;                 /* its name */
    struct spending *s;                 /* pins */
    struct spent_list spent;            /* as judged last */
    struct price_sum sums[BUDGETS_MAX]; /* while @is_read: of each budget */
    struct budgets budgets;             /* of @sums */
    int64_t wall_s; /* when the last look was begun, and the same by @began_at */
    nsec_t began_at;
    nsec_t due_at;  /* for the next look */
    bool is_read;   /* its records are being read */
    bool has_ended; /* a look has, and @due_at is not set for it yet */
    bool is_gone;   /* it has no budgets any more; freed when the read is answered */
};

static const struct spent_list no_budgets;

void spending_init(struct spending *s, struct model *model, struct traffic_book *book,
    struct edge_events *events, const struct prices *prices)
{
    *s = (struct spending){.model = model, .book = book, .events = events, .prices = prices};
}

static struct network_spending *at(const struct spending *s, size_t i)
{
    return container_of(s->networks.items[i], struct network_spending, keyed);
}

static void drop_network(struct network_spending *of)
{
    free(of->keyed.key);
    free(of);
}

void spending_deinit(struct spending *s)
{
    for (size_t i = 0; i < s->networks.n; i++)
        drop_network(at(s, i));
    keys_deinit(&s->networks);
}

const struct spent_list *spending_of(const struct spending *s, const char *network)
{
    const struct keyed *found = keys_find(&s->networks, network);

    return found ? &container_of(found, const struct network_spending, keyed)->spent : &no_budgets;
}

/* Lends it, made if it is not there; NULL: no memory. */
static struct network_spending *open_network(struct spending *s, const char *network)
{
    struct keyed *found = keys_find(&s->networks, network);
    struct network_spending *of;

    if (found)
        return container_of(found, struct network_spending, keyed);
    of = calloc(1, sizeof(*of));
    if (!of)
        return NULL;
    *of = (struct network_spending){.keyed.key = strdup(network), .s = s};
    if (!of->keyed.key || keys_add(&s->networks, &of->keyed) != 0) {
        drop_network(of);
        return NULL;
    }
    return of;
}

/* ---- judging -------------------------------------------------------------------------------- */

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

static void judge_network(struct network_spending *of)
{
    struct spent_list lines = {.n = of->budgets.n};

    for (unsigned k = 0; k < lines.n; k++) {
        const struct spent *was = spent_find(&of->spent, of->budgets.items[k].job);

        lines.items[k] = spent_judge(&of->budgets.items[k], &of->sums[k]);
        tell_level(of, &lines.items[k], was ? was->level : SPENT_LOW);
    }
    of->spent = lines;
}

/* ---- reading -------------------------------------------------------------------------------- */

static void price_row(
    struct network_spending *of, const struct price_facts *facts, const struct traffic_row *row)
{
    for (unsigned k = 0; row->word != TRAFFIC_WORD_WAITING && k < of->budgets.n; k++) {
        const char *job = of->budgets.items[k].job;

        if (job[0] && strcmp(job, row->job) != 0)
            continue;
        if (row->word == TRAFFIC_WORD_ONE)
            of->sums[k].alone = traffic_total(of->sums[k].alone, row->bytes);
        price_add(&of->sums[k], facts, row->from, row->to, row->path, row->bytes);
    }
}

static void on_day(void *ctx, int32_t day, const struct traffic_edges *edges)
{
    struct network_spending *of = ctx;
    const struct model_network *net = model_find_network(of->s->model, of->keyed.key);
    struct price_facts facts = {.prices = of->s->prices};
    json_t *islands = traffic_read_islands(net);
    json_t *hubs = traffic_read_hubs(net);

    if (net && net->pub.spec.prices)
        facts.prices = net->pub.spec.prices;
    facts.islands = islands;
    facts.hubs = hubs;
    facts.hub = json_string_value(json_array_get(hubs, 0));
    for (size_t i = 0; i < edges->n; i++)
        price_row(of, &facts, &edges->rows[i]);
    json_decref(islands);
    json_decref(hubs);
}

static void on_end(void *ctx, int r, const struct err *e)
{
    struct network_spending *of = ctx;

    of->is_read = false;
    of->has_ended = true;
    if (of->is_gone)
        drop_network(of);
    else if (r == 0)
        judge_network(of);
    else
        log_warning("the budgets of network %s are not looked at: %s", of->keyed.key, err_text(e));
}

static void begin_look(
    struct network_spending *of, const struct budgets *budgets, nsec_t now, int64_t wall_s)
{
    struct traffic_reader reader = {.on_day = on_day, .on_end = on_end, .ctx = of};
    struct traffic_query query = {.since = traffic_day(wall_s), .until = traffic_day(wall_s)};
    struct err e = ERR_NULL;

    memset(of->sums, 0, sizeof(of->sums));
    of->budgets = *budgets;
    of->began_at = now;
    of->wall_s = wall_s;
    of->is_read = true;
    (void)snprintf(query.network, sizeof(query.network), "%s", of->keyed.key);
    if (traffic_read(of->s->book, &query, &reader, now, &e) != 0)
        on_end(of, -1, &e);
}

/* ---- each second ---------------------------------------------------------------------------- */

/* Let go of those of networks that are gone, or have no budget any more. */
static void forget_networks(struct spending *s)
{
    for (size_t i = s->networks.n; i-- > 0;) {
        struct network_spending *of = at(s, i);
        const struct model_network *net = model_find_network(s->model, of->keyed.key);

        if (net && net->pub.spec.budgets.n > 0)
            continue;
        keys_remove(&s->networks, &of->keyed);
        of->is_gone = true;
        if (!of->is_read)
            drop_network(of);
    }
}

static void look_at(struct spending *s, const struct model_network *net, nsec_t now, int64_t wall_s)
{
    struct network_spending *of = open_network(s, net->pub.spec.meta.name);

    if (!of || of->is_read)
        return;
    if (of->has_ended) {
        nsec_t rest = LOOK_PART * (now - of->began_at - NSEC_PER_SEC);

        of->due_at = of->began_at + (rest > SPENDING_EACH ? rest : SPENDING_EACH);
        of->has_ended = false;
    }
    if (now >= of->due_at)
        begin_look(of, &net->pub.spec.budgets, now, wall_s);
}

void spending_tick(struct spending *s, nsec_t now, int64_t wall_s)
{
    forget_networks(s);
    for (size_t i = 0; i < s->model->networks.n; i++) {
        const struct model_network *net = model_network_at(s->model, i);

        if (net->pub.spec.budgets.n > 0)
            look_at(s, net, now, wall_s);
    }
}
