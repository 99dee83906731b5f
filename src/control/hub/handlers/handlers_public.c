/* handlers_public.c - what a machine may ask that is no member yet. */
#include <string.h>

#include "api/server/server.h"
#include "base/err.h"
#include "base/secret.h"
#include "base/text.h"
#include "base/version.h"
#include "hub/enrol/enrol.h"
#include "hub/handlers/handlers.h"
#include "hub/handlers/reply.h"
#include "hub/model/model.h"
#include "hub/model/proof.h"
#include "hub/streams/streams.h"
#include "hub/watch/reports.h"
#include "hub/watch/view.h"
#include "os/clock.h"
#include "os/log.h"
#include "os/machine.h"
#include "store/store.h"
#include "wire/stream.h"

/* 503 while its store does not take what is to be written; with "?live=1" 200 all the same. */
void handlers_health(void *ctx, const struct request *rq, struct response *rs)
{
    const struct handlers *h = ctx;
    struct store_refusal refusal = store_refusal(h->model->store);
    /* Strangers are not told where the hub's files are. */
    bool is_admin = rq->access == API_ACCESS_ADMIN;

    if (refusal.since == 0 || request_query(rq, "live")) {
        response_json(
            rs, 200, json_pack("{s:b, s:s}", "ok", refusal.since == 0, "version", version_text));
        return;
    }
    response_refuse(rs, 503, "the hub refuses changes, for its store does not take them%s%s",
        is_admin ? ": " : "", is_admin ? err_text(refusal.why) : "");
    if (rs->body)
        (void)json_object_update_new(
            rs->body, json_pack("{s:b, s:s}", "ok", 0, "version", version_text));
}

/* The request's proof; NULL: none was sent. What is no proof verifies as none, so it is zeroes. */
static const struct enrol_proof *proof_of(const struct request *rq, struct enrol_proof *buf)
{
    if (!rq->authorization)
        return NULL;
    *buf = (struct enrol_proof){
        .request = {
            .method = rq->method, .path = rq->path, .body = rq->bytes, .body_len = rq->n_bytes}};
    (void)member_proof_parse(&buf->proof, rq->authorization);
    return buf;
}

/* A machine that wants to be taken in. */
struct enrol_call {
    struct reply reply;
    struct enrol_request er;         /* its secret and labels in begin_enrol() only */
    const struct enrol_proof *proof; /* likewise */
};

static void refuse_enrolment(struct reply *l, struct response *rs, int r, const struct err *e)
{
    static struct log_limit refusals;
    char from[ENDPOINT_TEXT_MAX];

    log_limited(&refusals, l->rq.now, LOG_LEVEL_INFO, "enrolment from %s is refused: %s",
        endpoint_format(&l->rq.from, from), err_text(e));
    handlers_refuse_newcomer(rs, r, e);
}

static void welcome(
    struct reply *l, struct response *rs, const struct model_node *node, bool is_new)
{
    struct enrol_call *call = container_of(l, struct enrol_call, reply);
    char from[ENDPOINT_TEXT_MAX];

    log_info("node \"%s\" of network \"%s\" has enrolled from %s", node->spec.meta.name,
        node->net->spec.meta.name, endpoint_format(&l->rq.from, from));
    reports_enrolled(
        l->h->reports, node, is_new, call->er.engine, &call->er.routes, l->rq.now, clock_wall_s());
    response_text(rs, 200,
        call->er.wants_no_peers ? view_introduction_text(node) : view_snapshot_text(node),
        "application/json");
}

static void on_enrolled(void *ctx, int r, const struct model_node *node, const struct err *e)
{
    struct reply *l = ctx;
    struct response rs = {0};

    if (r == 0) {
        welcome(l, &rs, node, true);
    } else {
        refuse_enrolment(l, &rs, r, e);
        reply_act(l, true);
        access_refused(l->h, &l->rq, "POST /v1/enrol", &rs);
        reply_act(l, false);
    }
    reply_end(l, &rs);
}

/* For a machine that asks first: the blocks, which it compares with what it uses itself; and where
 * this hub runs, so that its own machine does not take the hub's interface for a stranger's. */
static void answer_dry_run(struct reply *l, const struct request *rq, struct response *rs)
{
    struct enrol_call *call = container_of(l, struct enrol_call, reply);
    const struct model_network *net;
    struct err e = ERR_NULL;
    char cidr4[IP_PREFIX_TEXT_MAX];
    char cidr6[IP_PREFIX_TEXT_MAX];
    char place[MACHINE_PLACE_MAX];
    int r =
        enrol_try(l->h->enrol, &call->er, call->proof, &l->by, rq->now, clock_wall_s(), &net, &e);

    if (r != 0) {
        refuse_enrolment(l, rs, r, &e);
        return;
    }
    machine_place(place);
    response_json(rs, 200,
        json_pack("{s:b, s:s, s:s, s:s, s:s, s:s}", "dryRun", 1, "network", net->spec.meta.name,
            "cidr4", ip_prefix_format(&net->spec.cidr4, cidr4), "cidr6",
            ip_prefix_format(&net->spec.cidr6, cidr6), "place", place, "interface",
            net->served->interface));
}

static void begin_enrol(struct reply *l, const struct request *rq, struct response *rs)
{
    struct enrol_call *call = container_of(l, struct enrol_call, reply);
    const struct model_node *node = NULL;
    struct err e = ERR_NULL;
    int r;

    if (call->er.is_dry_run) {
        answer_dry_run(l, rq, rs);
        secret_wipe(&call->er.secret, sizeof(call->er.secret));
        return;
    }
    r = enrol_node(l->h->enrol, &call->er, call->proof, &l->by, rq->now, clock_wall_s(),
        on_enrolled, l, &node, &e);
    secret_wipe(&call->er.secret, sizeof(call->er.secret));
    if (r != 0)
        refuse_enrolment(l, rs, r, &e);
    else if (node)
        welcome(l, rs, node, false);
    else if (!l->deferred.is_ready)
        l->is_waiting = true;
}

void handlers_enrol(void *ctx, const struct request *rq, struct response *rs)
{
    struct handlers *h = ctx;
    struct enrol_request er;
    struct enrol_proof proof;
    struct enrol_call *call;
    struct err e = ERR_NULL;
    int r = enrol_request_decode(&er, rq->body, &e);

    if (r != 0) {
        response_fail(rs, &e);
        return;
    }
    access_by_token(h, rq, &er.secret);
    call = reply_new(h, rq, rs, sizeof(*call), begin_enrol);
    if (call) {
        call->er = er;
        call->proof = proof_of(rq, &proof);
        /* Failures count against the address that they come from. */
        call->reply.by.from = rq->from.addr;
        reply_begin(&call->reply, rq, rs);
    }
    secret_wipe(&er.secret, sizeof(er.secret));
}

/* The member that the request proves to come from; NULL for any reason, which nobody is told. */
static const struct model_node *find_claimant(struct handlers *h, const struct request *rq)
{
    const struct model_network *net = model_find_network(h->model, rq->params[0]);
    struct stream_claim claim;
    struct stream_proof proof;
    const struct model_node *node = NULL;

    if (!net || !net->has_key || !rq->authorization ||
        !stream_claim_parse(&claim, rq->authorization))
        return NULL;
    if (stream_proof_make(&proof, &net->secret, &claim.node, &claim.node) &&
        secret_equal(proof.b, claim.proof.b, sizeof(proof.b)))
        node = model_find_key(net, &claim.node);
    secret_wipe(&proof, sizeof(proof));
    secret_wipe(&claim, sizeof(claim));
    return node;
}

void handlers_stream(void *ctx, const struct request *rq, struct response *rs)
{
    struct handlers *h = ctx;
    const struct model_node *node = find_claimant(h, rq);

    if (!node || node->spec.hub) {
        response_refuse(rs, 401,
            "a stream is for members, and the request proves no membership of a network \"%.63s\": "
            "a node that is told this was removed while it was away, or joined after the copy was "
            "made that this hub was restored from; weft leave and weft join with a new token mend "
            "that",
            rq->params[0]);
        return;
    }
    /* So it has made use of its token. */
    node->reported->only_enrolled_at = 0;
    streams_open(h->streams, node, rq, rs);
}

/* ---- leaving -------------------------------------------------------------------------------- */

/* All refusals have the same words. Only for the key of a member they also say what a proof is made
 * for; so who knows the key learns that it is a member's, and nobody else learns anything. */
void handlers_leave_public(void *ctx, const struct request *rq, struct response *rs)
{
    struct handlers *h = ctx;
    const struct model_network *net = model_find_network(h->model, rq->params[0]);
    const struct model_node *node = NULL;
    struct x25519_public key;

    if (net && hex_decode(rq->params[1], key.b, sizeof(key.b)))
        node = model_find_key(net, &key);
    if (!node || node->spec.hub || !proof_take(node, rq, rs)) {
        if (!rs->body)
            response_refuse(rs, 401, "%s", "");
        if (rs->body)
            (void)json_object_set_new(rs->body, "error",
                json_string("the request does not prove that it comes from a node with that key"));
        return;
    }
    access_by_node(h, rq, node);
    log_info("node \"%s\" leaves network \"%s\", by the public API", node->spec.meta.name,
        node->net->spec.meta.name);
    node_removal_leave(h, rq, rs, node);
}
