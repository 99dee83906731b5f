/* probe_link.c - see probe_link.h. */
#include "agent/probe_link.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "agent/hublink/hub_link.h"
#include "agent/state/state.h"
#include "base/err.h"
#include "base/secret.h"
#include "mesh/render/render.h"
#include "os/file.h"
#include "os/thread.h"
#include "wire/member_proof.h"

#define TIMEOUT_MS 5000

/* How many numbers of the row are left to the agent. */
#define LEFT_TO_AGENT 24

#define STATUS_BEGIN_ANEW 409
#define STATUS_NO_NUMBER  204

struct probe_link {
    /* Immutable after the start. */
    char interface[STATE_INTERFACE_MAX];
    char address[ENDPOINT_TEXT_MAX];
    int done_fd; /* owns */

    /* The caller's while no report is on its way, else the thread's. */
    struct member_proof_signer signer;
    json_t *body; /* owns */
    int result;
    int status; /* HTTP's */
    struct err e;

    /* The caller's. */
    pthread_t thread;
    bool is_sending;
};

int probe_link_new(struct probe_link **ret, const struct state *st, struct err *e)
{
    const struct node *hub = render_hub(&st->snapshot);
    struct probe_link *pl = calloc(1, sizeof(*pl));
    struct endpoint api;

    if (!pl)
        return err_set(e, -ENOMEM, "no memory for reports");
    pl->done_fd = wakeup_open();
    if (!hub || !member_proof_signer_init(&pl->signer, &st->secret, &hub->key) || pl->done_fd < 0) {
        (void)probe_link_free(pl);
        return err_set(e, -EINVAL, "there is no hub that could be told");
    }
    api = (struct endpoint){.addr = hub->address4, .port = hub->hub->api_port};
    (void)endpoint_format(&api, pl->address);
    memcpy(pl->interface, st->interface, sizeof(pl->interface));
    *ret = pl;
    return 0;
}

struct probe_link *probe_link_free(struct probe_link *pl)
{
    if (!pl)
        return NULL;
    if (pl->is_sending)
        (void)pthread_join(pl->thread, NULL);
    json_decref(pl->body);
    closep(&pl->done_fd);
    secret_wipe(&pl->signer, sizeof(pl->signer));
    free(pl);
    return NULL;
}

int probe_link_fd(const struct probe_link *pl)
{
    return pl->done_fd;
}

static int call(struct probe_link *pl, struct client_answer *ret)
{
    const struct client_target target = {.access = CLIENT_ACCESS_OVERLAY,
        .address = pl->address,
        .interface = pl->interface,
        .signer = &pl->signer};

    pl->e = (struct err)ERR_NULL;
    return client_call(&target, "PUT", "/v1/status", pl->body, TIMEOUT_MS, ret, &pl->e);
}

static void *send_report(void *arg)
{
    struct probe_link *pl = arg;
    struct client_answer answer = CLIENT_ANSWER_NULL;

    pl->result = call(pl, &answer);
    if (hub_ask_learn(&pl->signer, pl->result, &answer)) {
        pl->signer.next += LEFT_TO_AGENT;
        client_answer_deinit(&answer);
        pl->result = call(pl, &answer);
    }
    pl->status = answer.status;
    client_answer_deinit(&answer);
    wakeup_signal(pl->done_fd);
    return NULL;
}

int probe_link_send(struct probe_link *pl, json_t *body)
{
    int r;

    json_decref(pl->body);
    pl->body = body;
    r = thread_start(&pl->thread, "report", -1, send_report, pl);
    pl->is_sending = r == 0;
    return r;
}

bool probe_link_take(struct probe_link *pl, enum probe_report_result *ret, struct err *why)
{
    if (!pl->is_sending || !wakeup_clear(pl->done_fd))
        return false;
    (void)pthread_join(pl->thread, NULL);
    pl->is_sending = false;
    *ret = PROBE_REPORT_LOST;
    if (pl->result == 0)
        *ret = pl->status == STATUS_NO_NUMBER ? PROBE_REPORT_OLD : PROBE_REPORT_TAKEN;
    else if (pl->result == CLIENT_E_REFUSED && pl->status == STATUS_BEGIN_ANEW)
        *ret = PROBE_REPORT_AGAIN;
    *why = pl->e;
    return true;
}
