/* handlers_page.c - a network on a page for people (page/page.h). */
#include "base/err.h"
#include "base/text.h"
#include "base/version.h"
#include "cost/ledger.h"
#include "hub/handlers/handlers.h"
#include "hub/model/model.h"
#include "hub/watch/edge_view.h"
#include "hub/watch/reports.h"
#include "mesh/object/prices.h"
#include "os/clock.h"
#include "page/page.h"

/* What was moved, with the hub's prices; NULL with words. */
static json_t *cost_of(const json_t *traffic, struct err *e)
{
    const json_t *table = json_object_get(traffic, "prices");
    struct ledger l = LEDGER_NULL;
    struct prices prices;
    const struct prices *used = table ? &prices : NULL;
    json_t *json = NULL;
    int r = table ? prices_decode(&prices, table, e) : 0;

    if (r == 0 && ledger_read(&l, used, traffic, e) == 0)
        json = ledger_encode(&l, used, traffic);
    ledger_deinit(&l);
    return json;
}

void handlers_page_answer(struct handlers *h, struct model_network *net, const json_t *traffic,
    nsec_t now, struct response *rs)
{
    int64_t wall = clock_wall_s();
    struct err e = ERR_NULL;
    json_t *cost = cost_of(traffic, &e);
    struct str out = STR_NULL;
    json_t *facts;

    if (!cost && e.code != 0) {
        response_fail(rs, &e);
        return;
    }
    facts = json_pack("{s:s, s:I, s:s, s:o?, s:o?, s:o?, s:{s:o?}, s:o?}", "network",
        net->pub.spec.meta.name, "at", (json_int_t)wall, "version", version_text, "nodes",
        handlers_nodes(h, net, now), "edges", edge_view_list(net, wall), "jobs",
        handlers_jobs(h, net), "events", "events",
        edge_events_encode(&h->reports->events, net->pub.spec.meta.name), "cost", cost);
    if (facts)
        page_format(&out, facts);
    response_text(rs, 200, facts ? str_take(&out, NULL) : NULL, "text/html; charset=utf-8");
    if (rs->text)
        rs->policy = PAGE_POLICY;
    str_deinit(&out);
    json_decref(facts);
}
