/*
 * handlers_member.c - what a member may ask, over its network's interface.
 *
 * The source address of the connection names the member: WireGuard has checked that who sends from
 * it is the machine that has the key. That it is the member itself, and no other program of that
 * machine, is what proof.h checks, for each request.
 */
#include <errno.h>
#include <inttypes.h>
#include <linux/netlink.h>
#include <stdio.h>
#include <string.h>

#include "api/server/server.h"
#include "base/err.h"
#include "base/parse.h"
#include "base/text.h"
#include "filter/relay.h"
#include "hub/audit/audit.h"
#include "hub/handlers/handlers.h"
#include "hub/jobs/jobs.h"
#include "hub/model/model.h"
#include "hub/overlay/overlay.h"
#include "hub/model/proof.h"
#include "hub/traffic/traffic_book.h"
#include "hub/watch/reports.h"
#include "hub/watch/view.h"
#include "hub/watch/watch.h"
#include "mesh/render/render.h"
#include "net/netlink/netlink.h"
#include "net/netlink/rtnl.h"
#include "os/clock.h"
#include "os/log.h"
#include "os/machine.h"

/* How often a node may ask for its peers, and how many times at once. */
#define WG_EACH  NSEC_PER_SEC
#define WG_BURST 10

/* Longest time between two heartbeats that a watch may accept, in s. */
#define HEARTBEAT_MAX_S 3600

/* "?since=REVISION&boot=RUN": what the node knows already; without them nothing. With "&anyRun=1"
 * it understands as well what goes on in another run. */
static bool read_known(const struct request *rq, struct watch_known *ret, struct response *rs)
{
    const char *since = request_query(rq, "since");
    const char *boot = request_query(rq, "boot");
    const char *any_run = request_query(rq, "anyRun");

    *ret = (struct watch_known){.takes_any_run = any_run && strcmp(any_run, "1") == 0};
    if (!since && !boot)
        return true;
    if (!since || !boot) {
        response_refuse(rs, 400, "\"since\" and \"boot\" belong together: \"%s\" is missing",
            since ? "boot" : "since");
        return false;
    }
    return handlers_read_number(rq, "since", 0, INT64_MAX, &ret->revision, rs) &&
           handlers_read_number(rq, "boot", 1, INT64_MAX, &ret->boot, rs);
}

void handlers_watch(void *ctx, const struct request *rq, struct response *rs)
{
    struct handlers *h = ctx;
    const struct model_node *node = handlers_find_member(h, rq, rs);
    uint64_t heartbeat_s = 0; /* the longest time between two that the node accepts */
    struct watch_known known;

    if (!node ||
        !handlers_read_number(
            rq, "heartbeat", WATCH_HEARTBEAT / NSEC_PER_SEC, HEARTBEAT_MAX_S, &heartbeat_s, rs) ||
        !read_known(rq, &known, rs))
        return;
    rs->stream = watch_open(h->watcher, node, (nsec_t)heartbeat_s * NSEC_PER_SEC, &known, rq->now);
    rs->status = rs->stream ? 200 : 500;
}

/* Is the member on this machine? What it says is looked at, since any member may know the place. */
static bool is_on_this_machine(const struct model_node *node)
{
    _cleanup_(netlink_close) struct netlink nl = NETLINK_NULL;
    char here[MACHINE_PLACE_MAX];
    unsigned ifindex;

    machine_place(here);
    return here[0] != '\0' && strcmp(node->reported->heard.report.machine.place, here) == 0 &&
           netlink_open(&nl, NETLINK_ROUTE) == 0 &&
           rtnl_find_address(&nl, &node->spec.address4, &ifindex) == 0;
}

/* The audit log tells of a node that was copied, once until it is over. */
static void on_noted(void *ctx, const struct store_answer *a)
{
    if (a->r != 0)
        log_warning("the audit log does not tell of a copied node: %s", err_text(a->e));
}

/* Has the audit log tell that @node's key is seen at several places. */
static void note_copies(struct handlers *h, const struct model_node *node, nsec_t now)
{
    const char *network = node->net->spec.meta.name;
    char object[AUDIT_OBJECT_MAX + 1];
    struct err e = ERR_NULL;

    (void)snprintf(object, sizeof(object), "node/%.*s/%.*s", NAME_MAX_LEN, network, NAME_MAX_LEN,
        node->spec.meta.name);
    if (audit_note(h->audit, "copy", network, object, now, on_noted, NULL, &e) != 0)
        log_warning("the audit log does not tell of a copied node: %s", err_text(&e));
}

/* @report is taken. One that numbers its reports hears which was the last. */
static void take_report(struct handlers *h, const struct model_node *node, struct report *report,
    const struct request *rq, struct response *rs)
{
    uint64_t number = report->run != 0 ? report->number : 0;
    uint64_t run = report->run;
    bool has_node = report->has_node;
    bool had_copies = node->reported->had_copies;
    enum reports_result result;

    if (report->has_traffic)
        traffic_book_take(h->traffic, node, &report->traffic, rq->now, clock_wall_s());
    result = reports_take(h->reports, node, report, clock_wall_s());
    if (node->reported->had_copies && !had_copies)
        note_copies(h, node, rq->now);
    switch (result) {
    case REPORTS_UPDATES:
        watch_tell_status(h->watcher, node, rq->now);
        break;
    case REPORTS_TAKEN:
        break;
    case REPORTS_AGAIN:
        response_refuse(rs, 409,
            "report %" PRIu64 " does not follow the last one that came: begin anew", number);
        return;
    }
    if (has_node && is_on_this_machine(node))
        jobs_set_own_member(&node->net->served->jobs, &node->spec.address4);
    if (number != 0)
        response_json(rs, 200,
            json_pack("{s:I, s:o*}", "number", (json_int_t)number, "copy",
                copies_answer(&node->reported->copies, run)));
    else
        response_empty(rs);
}

void handlers_report(void *ctx, const struct request *rq, struct response *rs)
{
    _cleanup_(report_deinit) struct report report = REPORT_NULL;
    struct handlers *h = ctx;
    const struct model_node *node = handlers_find_member(h, rq, rs);
    struct err e = ERR_NULL;

    if (!node)
        return;
    if (!rate_take(&node->reported->asked, rq->now, REPORTS_EACH, REPORTS_BURST))
        response_refuse(
            rs, 429, "node \"%s\" reports more than five times a second", node->spec.meta.name);
    else if (report_decode(&report, rq->body, clock_wall_s(), &e) != 0)
        response_fail(rs, &e);
    else if (!reports_owns(node, &report, &e))
        response_refuse(rs, 403, "%s", err_text(&e));
    else if (report_drop_candidates(&report, &node->net->spec.cidr4, &node->net->spec.cidr6, &e) <
             0)
        response_fail(rs, &e);
    else
        take_report(h, node, &report, rq, rs);
}

/* A member whose STUN request stays unanswered asks this over TLS: did the request come here? */
void handlers_heard(void *ctx, const struct request *rq, struct response *rs)
{
    struct handlers *h = ctx;
    struct stun_hearing hearing;
    struct stun_transaction id;
    char text[ENDPOINT_TEXT_MAX];

    if (!handlers_find_member(h, rq, rs))
        return;
    if (!hex_decode(rq->params[0], id.b, sizeof(id.b))) {
        response_refuse(rs, 400, "\"%.40s\" is no transaction: %zu hex digits are one",
            rq->params[0], 2 * sizeof(id.b));
        return;
    }
    if (h->overlay && overlay_find_heard(h->overlay, &id, &hearing))
        response_json(rs, 200,
            json_pack("{s:b, s:s, s:f}", "heard", 1, "endpoint",
                endpoint_format(&hearing.from, text), "secondsAgo",
                (double)(rq->now - hearing.at) / (double)NSEC_PER_SEC));
    else
        response_json(rs, 200, json_pack("{s:b}", "heard", 0));
}

/* The peers of @node, as text for "wg syncconf"; free(). NULL: @e says why. */
static char *peers_text(const struct model_node *node, struct err *e)
{
    _cleanup_(wg_config_deinit) struct wg_config c = WG_CONFIG_NULL;
    struct snapshot s = SNAPSHOT_NULL;
    struct render_input in = {.snapshot = &s};
    char *text = NULL;
    int r = view_lend_snapshot(node, &s) ? render_config(&c, &in, e) : -ENOMEM;

    if (r == 0)
        text = wg_quick_format_peers(&c, &s, NULL);
    if (r == -ENOMEM || (r == 0 && !text))
        (void)err_set(e, -ENOMEM, "no memory for the peers of \"%s\"", node->spec.meta.name);
    view_return_snapshot(&s);
    return text;
}

/*
 * A stock WireGuard has nobody who could make a proof. What it is told here is no secret of that
 * node: whom it may talk to, and under which public keys. So its address is enough.
 */
void handlers_wg(void *ctx, const struct request *rq, struct response *rs)
{
    struct handlers *h = ctx;
    const struct model_node *node = handlers_find_machine(rq, rs);
    struct err e = ERR_NULL;
    char *text;

    if (!node || (!node->spec.stock && !proof_take(node, rq, rs)))
        return;
    if (!rate_take(&node->served->asked_wg, rq->now, WG_EACH, WG_BURST)) {
        response_refuse(rs, 429, "node \"%s\" asks more than once a second", node->spec.meta.name);
        return;
    }
    reports_seen(h->reports, node, rq->now, clock_wall_s());
    text = peers_text(node, &e);
    if (text)
        response_text(rs, 200, text, "text/plain; charset=utf-8");
    else
        response_fail(rs, &e);
}

void handlers_leave(void *ctx, const struct request *rq, struct response *rs)
{
    struct handlers *h = ctx;
    const struct model_node *node = handlers_find_member(h, rq, rs);

    if (!node)
        return;
    log_info("node \"%s\" leaves network \"%s\"", node->spec.meta.name, node->net->spec.meta.name);
    node_removal_leave(h, rq, rs, node);
}
