/* hub_ask.c - see hub_ask.h. */
#include "agent/hublink/hub_ask.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/addr.h"
#include "base/err.h"
#include "wire/member_proof.h"

#define STATUS_UNPROVEN 401

struct hub_ask {
    struct client_loop *cl;      /* pins */
    struct client_request *rq;   /* in flight */
    struct client_target target; /* its texts are below */
    char address[ENDPOINT_TEXT_MAX];
    char interface[32];
    const char *method;
    char path[HUB_ASK_PATH_MAX + 1];
    json_t *body; /* owns a reference */
    unsigned timeout_ms;
    bool is_second; /* this is the second try, with the stamp that the hub takes */
    client_done_fn done;
    void *ctx; /* pins */
};

bool hub_ask_learn(
    struct member_proof_signer *signer, int result, const struct client_answer *answer)
{
    const json_t *boot = json_object_get(answer->body, "boot");
    const json_t *after = json_object_get(answer->body, "after");

    if (result != CLIENT_E_REFUSED || answer->status != STATUS_UNPROVEN || !json_is_integer(boot) ||
        !json_is_integer(after) || json_integer_value(boot) <= 0 || json_integer_value(after) < 0)
        return false;
    member_proof_signer_learn(
        signer, (uint64_t)json_integer_value(boot), (uint64_t)json_integer_value(after));
    return true;
}

static void ask_free(struct hub_ask *ask)
{
    json_decref(ask->body);
    free(ask);
}

static void on_done(void *ctx, int result, const struct client_answer *answer, const struct err *e);

static int send_it(struct hub_ask *ask, struct err *e)
{
    return client_start(ask->cl, &ask->target, ask->method, ask->path, ask->body, ask->timeout_ms,
        on_done, ask, &ask->rq, e);
}

static void on_done(void *ctx, int result, const struct client_answer *answer, const struct err *e)
{
    struct hub_ask *ask = ctx;

    ask->rq = NULL;
    if (!ask->is_second && hub_ask_learn(ask->target.signer, result, answer)) {
        ask->is_second = true;
        if (send_it(ask, NULL) == 0)
            return;
    }
    ask->done(ask->ctx, result, answer, e);
    ask_free(ask);
}

int hub_ask_start(struct client_loop *cl, const struct hub_ask_call *call, client_done_fn done,
    void *ctx, struct hub_ask **ret, struct err *e)
{
    struct hub_ask *ask = calloc(1, sizeof(*ask));
    int r;

    if (!ask)
        return err_set(e, -ENOMEM, "no memory for a request");
    *ask = (struct hub_ask){.cl = cl,
        .target = call->target,
        .method = call->method,
        .body = json_incref(call->body),
        .timeout_ms = call->timeout_ms,
        .done = done,
        .ctx = ctx};
    (void)snprintf(ask->address, sizeof(ask->address), "%s", call->target.address);
    (void)snprintf(ask->interface, sizeof(ask->interface), "%s", call->target.interface);
    (void)snprintf(ask->path, sizeof(ask->path), "%s", call->path);
    ask->target.address = ask->address;
    ask->target.interface = ask->interface;
    r = send_it(ask, e);
    if (r != 0) {
        ask_free(ask);
        return r;
    }
    *ret = ask;
    return 0;
}

struct hub_ask *hub_ask_cancel(struct hub_ask *ask)
{
    if (ask) {
        ask->rq = client_cancel(ask->rq);
        ask_free(ask);
    }
    return NULL;
}

int hub_ask_wait(const struct hub_ask_call *call, struct client_answer *ret, struct err *e)
{
    int r =
        client_call(&call->target, call->method, call->path, call->body, call->timeout_ms, ret, e);

    if (!hub_ask_learn(call->target.signer, r, ret))
        return r;
    client_answer_deinit(ret);
    if (e)
        *e = (struct err)ERR_NULL;
    return client_call(
        &call->target, call->method, call->path, call->body, call->timeout_ms, ret, e);
}
