/*
 * door_member.c - what a member may ask, over its network's interface.
 *
 * The source address of the connection names the member: WireGuard has checked that who sends from
 * it is the machine that has the key. That it is the member itself, and no other program of that
 * machine, is what proof.h checks, for each request.
 */
#include "api/stream.h"
#include "base/err.h"
#include "base/log.h"
#include "base/text.h"
#include "hub/doors.h"
#include "hub/hub_internal.h"
#include "dataplane/stun_heard.h"

struct model_node *door_member(struct hub *hub, const struct request *rq, struct response *rs)
{
    struct model_network *net = rq->door_ctx;
    struct model_node *node = model_find_address(net, &rq->from.addr);
    char text[IP_ADDR_TEXT_MAX];

    if (!node || node->pub.spec.hub) {
        response_refuse(rs, 403, "%s is the address of no node of network \"%s\"",
            ip_addr_format(&rq->from.addr, text), net->pub.spec.meta.name);
        return NULL;
    }
    if (!proof_take(node, rq, rs))
        return NULL;
    reports_seen(&hub->reports, node, rq->now, hub__wall());
    return node;
}

void door_watch(void *ctx, const struct request *rq, struct response *rs)
{
    struct hub *hub = ctx;
    struct model_node *node = door_member(hub, rq, rs);

    if (!node)
        return;
    rs->stream = watch_open(&hub->watcher, node);
    rs->status = rs->stream ? 200 : 500;
}

void door_report(void *ctx, const struct request *rq, struct response *rs)
{
    struct hub *hub = ctx;
    struct model_node *node = door_member(hub, rq, rs);
    struct report report;
    struct err e = ERR_NULL;

    if (!node)
        return;
    if (!reports_admit(node, rq->now)) {
        response_refuse(
            rs, 429, "node \"%s\" reports more than five times a second", node->pub.spec.meta.name);
        return;
    }
    if (report_decode(&report, rq->body, &e) != 0) {
        response_fail(rs, &e);
        return;
    }
    if (reports_take(&hub->reports, node, &report))
        watch_tell_status(&hub->watcher, node, rq->now);
    response_empty(rs);
}

/* For a member whose request by UDP stays unanswered: was it lost on its way here, or back? */
void door_heard(void *ctx, const struct request *rq, struct response *rs)
{
    struct hub *hub = ctx;
    struct stun_hearing hearing;
    struct stun_transaction id;
    char text[ENDPOINT_TEXT_MAX];

    if (!door_member(hub, rq, rs))
        return;
    if (!hex_decode(rq->params[0], id.b, sizeof(id.b))) {
        response_refuse(rs, 400, "\"%.40s\" is no transaction: %zu hex digits are one",
            rq->params[0], 2 * sizeof(id.b));
        return;
    }
    if (hub->hooks.heard && hub->hooks.heard(hub->hooks.ctx, &id, &hearing))
        response_json(rs, 200,
            json_pack("{s:b, s:s, s:f}", "heard", 1, "endpoint",
                endpoint_format(&hearing.from, text), "secondsAgo",
                (double)(rq->now - hearing.at) / (double)NSEC_PER_SEC));
    else
        response_json(rs, 200, json_pack("{s:b}", "heard", 0));
}

void door_leave(void *ctx, const struct request *rq, struct response *rs)
{
    struct hub *hub = ctx;
    struct model_node *node = door_member(hub, rq, rs);
    struct err e = ERR_NULL;

    if (!node)
        return;
    log_info("node \"%s\" leaves network \"%s\"", node->pub.spec.meta.name,
        node->net->pub.spec.meta.name);
    if (hub__remove_node(hub, node, "it has left", rq->now, &e) != 0)
        response_fail(rs, &e);
    else
        response_empty(rs);
}
