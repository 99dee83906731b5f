/* door_public.c - what a machine may ask that is no member yet. */
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "base/secret.h"
#include "base/text.h"
#include "base/version.h"
#include "hub/doors.h"
#include "hub/hub_internal.h"
#include "hub/proof.h"
#include "hub/view.h"
#include "wire/stream_proof.h"

void door_health(void *ctx, const struct request *rq, struct response *rs)
{
    response_json(rs, 200, json_pack("{s:b, s:s}", "ok", 1, "version", version_text));
}

void door_refuse_newcomer(struct response *rs, int r, const struct err *e)
{
    static const int statuses[] = {
        [ENROL_E_DENIED] = 401,
        [ENROL_E_TAKEN] = 409,
        [ENROL_E_GONE] = 410,
        [ENROL_E_FULL] = 507,
        [ENROL_E_TOO_OFT] = 429,
    };

    if (r > 0)
        response_refuse(rs, statuses[r], "%s", err_text(e));
    else
        response_fail(rs, e);
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

void door_enrol(void *ctx, const struct request *rq, struct response *rs)
{
    static struct log_limit refusals;
    struct hub *hub = ctx;
    struct enrol_request er;
    struct enrol_proof proof;
    struct err e = ERR_NULL;
    struct model_node *node;
    char from[ENDPOINT_TEXT_MAX];
    int r = enrol_request_decode(&er, rq->body, &e);

    if (r != 0) {
        response_fail(rs, &e);
        return;
    }
    access_by_token(hub, rq, &er.secret);
    r = enrol_node(
        &hub->enrol, &er, proof_of(rq, &proof), &rq->from.addr, rq->now, hub__wall(), &node, &e);
    secret_wipe(&er.secret, sizeof(er.secret));
    if (r != 0) {
        log_limited(&refusals, rq->now, LOG_LEVEL_INFO, "enrolment from %s is refused: %s",
            endpoint_format(&rq->from, from), err_text(&e));
        door_refuse_newcomer(rs, r, &e);
        return;
    }
    log_info("node \"%s\" of network \"%s\" has enrolled from %s", node->pub.spec.meta.name,
        node->net->pub.spec.meta.name, endpoint_format(&rq->from, from));
    memcpy(node->heard.report.engine, er.engine, sizeof(er.engine));
    node->heard.report.routes = er.routes;
    reports_seen(&hub->reports, node, rq->now, hub__wall());
    response_text(rs, 200, view_snapshot_text(node), "application/json");
}

/* The member that the request proves to come from; NULL for any reason, which nobody is told. */
static struct model_node *find_claimant(struct hub *hub, const struct request *rq)
{
    struct model_network *net = model_find_network(&hub->model, rq->params[0]);
    struct stream_claim claim;
    struct stream_proof proof;
    struct model_node *node = NULL;

    if (!net || !rq->authorization || !stream_claim_parse(&claim, rq->authorization))
        return NULL;
    if (stream_proof_make(&proof, &net->pub.secret, &claim.node, &claim.node) &&
        secret_equal(proof.b, claim.proof.b, sizeof(proof.b)))
        node = model_find_key(net, &claim.node);
    secret_wipe(&proof, sizeof(proof));
    secret_wipe(&claim, sizeof(claim));
    return node;
}

void door_stream(void *ctx, const struct request *rq, struct response *rs)
{
    struct hub *hub = ctx;
    struct model_node *node = find_claimant(hub, rq);

    if (!node || node->pub.spec.hub) {
        response_refuse(rs, 401,
            "a stream is for members, and the request proves no membership of a network \"%.63s\"",
            rq->params[0]);
        return;
    }
    streams_open(&hub->streams, node, rq, rs);
}

/* ---- leaving -------------------------------------------------------------------------------- */

/* The node with that key, in hex; NULL for any reason, which nobody is told. */
static struct model_node *find_leaver(struct hub *hub, const struct request *rq)
{
    struct model_network *net = model_find_network(&hub->model, rq->params[0]);
    struct x25519_public key;

    return net && hex_decode(rq->params[1], key.b, sizeof(key.b)) ? model_find_key(net, &key)
                                                                  : NULL;
}

/* Who knows a node's key learns nothing here but that it is one; who does not, not even that. */
void door_leave_public(void *ctx, const struct request *rq, struct response *rs)
{
    struct hub *hub = ctx;
    struct model_node *node = find_leaver(hub, rq);
    struct err e = ERR_NULL;

    if (!node || node->pub.spec.hub || !proof_take(node, rq, rs)) {
        if (!rs->body)
            response_refuse(rs, 401, "%s", "");
        if (rs->body)
            (void)json_object_set_new(rs->body, "error",
                json_string("the request does not prove that it comes from a node with that key"));
        return;
    }
    access_by_node(hub, rq, node);
    log_info("node \"%s\" leaves network \"%s\", by the public door", node->pub.spec.meta.name,
        node->net->pub.spec.meta.name);
    if (hub__remove_node(hub, node, "it has left", rq->now, &e) != 0)
        response_fail(rs, &e);
    else
        response_empty(rs);
}
