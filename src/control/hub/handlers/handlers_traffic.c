/* handlers_traffic.c - what the edges of a network have moved, day by day (docs/COST.md); and all
 * of a network on a page. */
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "base/version.h"
#include "cost/ledger.h"
#include "hub/handlers/handlers.h"
#include "hub/handlers/reply.h"
#include "hub/model/model.h"
#include "hub/traffic/spending.h"
#include "hub/traffic/traffic_book.h"
#include "hub/traffic/traffic_read.h"
#include "hub/watch/edge_view.h"
#include "hub/watch/reports.h"
#include "mesh/object/prices.h"
#include "os/clock.h"
#include "page/page.h"

/* Most rows of an answer: about 3 MB. What has no room is summed up. */
#define ROWS_MAX 20000

/* Days of a page, unless asked for others. */
#define PAGE_DAYS 7

/* Most disputes of an answer. */
#define DISPUTES_MAX 1024

/* A request that reads. */
struct traffic_call {
    struct reply reply;
    struct traffic_reader reader;
    char job[NAME_MAX_LEN + 1]; /* "": all */
    bool is_page;               /* it is asked for as a page for people */
    json_t *rows;               /* owns */
    json_t *disputes;           /* owns */
    uint64_t n_left_out;        /* rows */
    uint64_t left_out;          /* bytes */
};

static void forget_rows(struct reply *l)
{
    struct traffic_call *call = container_of(l, struct traffic_call, reply);

    json_decref(call->rows);
    json_decref(call->disputes);
}

/* The day of that name in the query, or @ret as it is. */
static bool read_day(const struct request *rq, const char *name, int32_t *ret, struct response *rs)
{
    const char *text = request_query(rq, name);
    struct err e = ERR_NULL;

    if (!text || traffic_day_parse(ret, text, &e) == 0)
        return true;
    response_refuse(rs, 400, "%s: %s", name, err_text(&e));
    return false;
}

static bool is_asked_for(const struct traffic_call *call, const char *job)
{
    return call->job[0] == '\0' || strcmp(call->job, job) == 0;
}

static void on_day(void *ctx, int32_t day, const struct traffic_edges *edges)
{
    struct traffic_call *call = ctx;
    char text[TRAFFIC_DAY_TEXT_MAX];

    (void)traffic_day_format(day, text);
    for (size_t i = 0; i < edges->n; i++) {
        const struct traffic_row *row = &edges->rows[i];

        if (!is_asked_for(call, row->job))
            continue;
        if (json_array_size(call->rows) < ROWS_MAX) {
            (void)json_array_append_new(call->rows,
                json_pack("{s:s, s:s, s:s*, s:s*, s:s, s:s, s:I}", "day", text, "from", row->from,
                    "to", row->to[0] ? row->to : NULL, "job", row->job[0] ? row->job : NULL, "path",
                    path_kind_names[row->path], "word", traffic_word_names[row->word], "bytes",
                    (json_int_t)row->bytes));
        } else {
            call->n_left_out++;
            call->left_out = traffic_total(call->left_out, row->bytes);
        }
    }
    /* Where the ends differ about all of an edge, it is not known how much of it is a job's. */
    for (size_t i = 0; i < edges->n_disputes; i++) {
        const struct traffic_dispute *d = &edges->disputes[i];

        if (json_array_size(call->disputes) < DISPUTES_MAX &&
            (d->job[0] == '\0' || is_asked_for(call, d->job)))
            (void)json_array_append_new(call->disputes,
                json_pack("{s:s, s:s, s:s, s:s*, s:I, s:I, s:I}", "day", text, "from", d->from,
                    "to", d->to, "job", d->job[0] ? d->job : NULL, "sent", (json_int_t)d->sent,
                    "received", (json_int_t)d->received, "counted", (json_int_t)d->counted));
    }
}

/* All that is known of a network, on a page for people (page/page.h). @traffic: borrowed. */
static void answer_page(struct handlers *h, const struct model_network *net, const json_t *traffic,
    nsec_t now, struct response *rs)
{
    int64_t wall = clock_wall_s();
    struct err e = ERR_NULL;
    json_t *cost = ledger_make(NULL, traffic, &e);
    struct str out = STR_NULL;
    json_t *facts;

    if (!cost) {
        response_fail(rs, &e);
        return;
    }
    facts = json_pack("{s:s, s:I, s:s, s:o?, s:o?, s:o?, s:o?, s:{s:o?}, s:o?}", "network",
        net->spec.meta.name, "at", (json_int_t)wall, "version", version_text, "nodes",
        handlers_nodes(h, net, now), "edges", edge_view_list(net, wall), "jobs",
        handlers_jobs(h, net), "findings",
        findings_encode(health_of(&h->reports->health, net->spec.meta.name), wall), "events",
        "events", edge_events_encode(&h->reports->events, net->spec.meta.name), "cost", cost);
    if (facts)
        page_format(&out, facts);
    response_text(rs, 200, facts ? str_take(&out, NULL) : NULL, "text/html; charset=utf-8");
    if (rs->text)
        rs->policy = PAGE_POLICY;
    json_decref(facts);
}

static void on_end(void *ctx, int r, const struct err *e)
{
    struct traffic_call *call = ctx;
    const struct handlers *h = call->reply.h;
    const struct spent_list *spent;
    char since[TRAFFIC_DAY_TEXT_MAX];
    char until[TRAFFIC_DAY_TEXT_MAX];
    struct response rs = {0};
    const struct model_network *net;
    json_t *json;

    if (r != 0) {
        response_fail(&rs, e);
        reply_end(&call->reply, &rs);
        return;
    }
    net = model_find_network(h->model, call->reader.network);
    json = json_pack("{s:s, s:s, s:s, s:i, s:O, s:O, s:{s:I, s:I}}", "network",
        call->reader.network, "since", traffic_day_format(call->reader.since, since), "until",
        traffic_day_format(call->reader.until, until), "keptDays", (int)h->traffic->n_days, "rows",
        call->rows, "disputes", call->disputes, "leftOut", "rows", (json_int_t)call->n_left_out,
        "bytes", (json_int_t)call->left_out);
    (void)json_object_update_new(json, traffic_read_nodes(net));
    if (net && net->spec.prices)
        (void)json_object_set_new(json, "prices", prices_encode(net->spec.prices));
    else if (h->price_table)
        (void)json_object_set_new(json, "prices", json_deep_copy(h->price_table));
    spent = spending_of(h->spending, net ? net->spec.meta.name : "");
    if (spent->n > 0)
        (void)json_object_set_new(json, "budgets", spent_encode(spent));
    if (json && call->is_page && net)
        answer_page(call->reply.h, net, json, call->reply.rq.now, &rs);
    else
        response_json(&rs, 200, json_incref(json));
    json_decref(json);
    reply_end(&call->reply, &rs);
}

/* @days: with today, if nothing else is asked for. */
static void begin(
    struct traffic_call *call, const struct request *rq, struct response *rs, int32_t days)
{
    struct handlers *h = call->reply.h;
    const struct model_network *net = handlers_find_network(h, rq, rs);
    const char *job = request_query(rq, "job");
    struct traffic_reader *q = &call->reader;
    struct err e = ERR_NULL;

    *q = (struct traffic_reader){.on_day = on_day, .on_end = on_end, .ctx = call};
    q->until = traffic_day(clock_wall_s());
    q->since = q->until - days + 1;
    if (!net || !read_day(rq, "since", &q->since, rs) || !read_day(rq, "until", &q->until, rs))
        return;
    if (q->since > q->until) {
        char since[TRAFFIC_DAY_TEXT_MAX];
        char until[TRAFFIC_DAY_TEXT_MAX];

        response_refuse(rs, 400, "since, %s, is a later day than until, %s",
            traffic_day_format(q->since, since), traffic_day_format(q->until, until));
        return;
    }
    if (job && parse_name(job, "job", &e) != 0) {
        response_fail(rs, &e);
        return;
    }
    (void)snprintf(q->network, sizeof(q->network), "%.63s", net->spec.meta.name);
    (void)snprintf(call->job, sizeof(call->job), "%s", job ? job : "");
    call->rows = json_array();
    call->disputes = json_array();
    reply_wait(&call->reply, traffic_read(h->traffic, q, rq->now, &e), &e, rs);
}

static void begin_traffic(struct reply *l, const struct request *rq, struct response *rs)
{
    begin(container_of(l, struct traffic_call, reply), rq, rs, 1);
}

static void begin_page(struct reply *l, const struct request *rq, struct response *rs)
{
    struct traffic_call *call = container_of(l, struct traffic_call, reply);

    call->is_page = true;
    begin(call, rq, rs, PAGE_DAYS);
}

void handlers_traffic(void *ctx, const struct request *rq, struct response *rs)
{
    reply_start(ctx, rq, rs, sizeof(struct traffic_call), begin_traffic, forget_rows);
}

void handlers_page(void *ctx, const struct request *rq, struct response *rs)
{
    reply_start(ctx, rq, rs, sizeof(struct traffic_call), begin_page, forget_rows);
}
