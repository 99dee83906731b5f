/* handlers_page.c - a network on a page for people (page/page.h). */
#include "base/err.h"
#include "base/text.h"
#include "base/version.h"
#include "cost/ledger.h"
#include "hub/handlers/handlers.h"
#include "hub/model/model.h"
#include "hub/watch/edge_view.h"
#include "hub/watch/reports.h"
#include "os/clock.h"
#include "page/page.h"

void handlers_page_answer(struct handlers *h, const struct model_network *net,
    const json_t *traffic, nsec_t now, struct response *rs)
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
    facts = json_pack("{s:s, s:I, s:s, s:o?, s:o?, s:o?, s:{s:o?}, s:o?}", "network",
        net->spec.meta.name, "at", (json_int_t)wall, "version", version_text, "nodes",
        handlers_nodes(h, net, now), "edges", edge_view_list(net, wall), "jobs",
        handlers_jobs(h, net), "events", "events",
        edge_events_encode(&h->reports->events, net->spec.meta.name), "cost", cost);
    if (facts)
        page_format(&out, facts);
    response_text(rs, 200, facts ? str_take(&out, NULL) : NULL, "text/html; charset=utf-8");
    if (rs->text)
        rs->policy = PAGE_POLICY;
    str_deinit(&out);
    json_decref(facts);
}
