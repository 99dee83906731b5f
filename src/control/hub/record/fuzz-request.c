/* fuzz-request.c - bodies from strangers and members; what is taken must survive the store. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "api/content/body.h"
#include "api/content/route.h"
#include "base/err.h"
#include "hub/record/keys_request.h"
#include "hub/record/record.h"
#include "hub/record/request.h"
#include "store/store.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void check_report(const json_t *json)
{
    struct report_record a = {.last_seen_at = 1};
    struct report_record b = {0};
    struct err e = ERR_NULL;
    char *text;

    if (report_decode(&a.report, json, a.last_seen_at, &e) != 0) {
        assert(e.text[0]);
        return;
    }
    text = record_report_encode(&a);
    assert(text && strlen(text) <= STORE_VALUE_MAX);
    assert(record_report_decode(&b, text, &e) == 0);
    assert(!a.report.candidates == !b.report.candidates);
    assert(a.report.edges.n >= b.report.edges.n);
    assert(strcmp(a.report.hostname, b.report.hostname) == 0);
    assert(a.report.metrics_port == b.report.metrics_port);
    free(text);
    report_record_deinit(&a);
    report_record_deinit(&b);
}

/* What is announced is kept as text, and read again at the next start. */
static void check_move(const json_t *json)
{
    struct hub_places places;
    struct hub_public again;
    struct err e = ERR_NULL;

    if (move_request_decode(&places, json, 51820, &e) != 0) {
        assert(e.text[0]);
        return;
    }
    for (unsigned i = 0; i < places.n; i++) {
        assert(hub_public_parse(&again, places.items[i].text, 1, &e) == 0);
        assert(strcmp(again.text, places.items[i].text) == 0);
        assert(again.is_name == places.items[i].is_name);
    }
}

static void check_requests(const json_t *json)
{
    struct enrol_request enrol;
    struct enrol_request node;
    struct token_request token;
    struct job_request job;
    struct nccl_request nccl;
    struct presence_request presence;
    struct drain_request drain;
    struct web_request web;
    struct web_login_request login;
    struct keys_request keys;
    struct network network;
    struct err e = ERR_NULL;

    if (enrol_request_decode(&enrol, json, &e) == 0)
        assert(strlen(enrol.name) <= NAME_MAX_LEN);
    if (node_request_decode(&node, json, &e) == 0)
        assert(node.name[0] && !x25519_public_is_none(&node.key));
    if (token_request_decode(&token, json, &e) == 0)
        assert(token.uses >= 1 && token.ttl_seconds >= REQUEST_TTL_MIN);
    if (job_request_decode(&job, json, &e) == 0)
        assert(strlen(job.broken_run) <= REQUEST_RUN_MAX && !(job.is_dry_run && job.broken_run[0]));
    if (web_request_decode(&web, json, &e) == 0)
        assert(web.role < ROLE_N && web.ttl_seconds >= REQUEST_LOGIN_TTL_MIN);
    if (web_login_request_decode(&login, json, &e) == 0)
        assert(login.login[0] && strlen(login.login) <= REQUEST_LOGIN_MAX);
    if (nccl_request_decode(&nccl, json, &e) == 0)
        assert(nccl.run[0] && nccl.verdict[0] && nccl.profile[0] && nccl.text[0]);
    if (presence_request_decode(&presence, json, &e) == 0)
        assert(presence.run[0] && presence.command[0] && presence.every_seconds > 0);
    if (drain_request_decode(&drain, json, &e) == 0)
        assert(drain.every_seconds > 0 && (drain.n_failed > 0) == (drain.reason[0] != '\0') &&
               (drain.ask != DRAIN_ASK_DRAIN || drain.n_failed >= FITNESS_CHECKS));
    if (keys_request_decode(&keys, json, &e) == 0)
        assert(keys.stage < KEYS_STAGE_N && (keys.stage == KEYS_STAGE_NONE || keys.text) &&
               json_object_size(keys.acks) <= KEYS_REQUEST_ACKS_MAX);
    if (network_request_decode(&network, json, &e) == 0)
        assert(network.meta.name[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct err e = ERR_NULL;
    json_t *json = NULL;

    if (len > BODY_MAX || body_parse(&json, (const char *)data, len, &e) != 0)
        return 0;
    check_requests(json);
    check_report(json);
    check_move(json);
    json_decref(json);
    return 0;
}
