/* probe_link.c - see probe_link.h. */
#include "agent/probe_link.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/hublink/hub_link.h"
#include "agent/state/state.h"
#include "base/err.h"
#include "base/secret.h"
#include "mesh/render/render.h"
#include "os/worker.h"
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

    struct worker *worker; /* owns; NULL: nothing was sent yet */

    /* The caller's while no report is on its way, else the thread's. */
    struct list link;
    struct member_proof_signer signer;
    json_t *body; /* owns */
    int result;
    int status; /* HTTP's */
    struct err e;
};

int probe_link_new(struct probe_link **ret, const struct state *st, struct err *e)
{
    const struct node *hub = render_hub(&st->snapshot);
    struct probe_link *pl = calloc(1, sizeof(*pl));
    struct endpoint api;

    if (!pl)
        return err_set(e, -ENOMEM, "no memory for reports");
    if (!hub || !member_proof_signer_init(&pl->signer, &st->secret, &hub->key)) {
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
    pl->worker = worker_stop(pl->worker);
    json_decref(pl->body);
    secret_wipe(&pl->signer, sizeof(pl->signer));
    free(pl);
    return NULL;
}

int probe_link_fd(const struct probe_link *pl)
{
    return pl->worker ? worker_done_fd(pl->worker) : -1;
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

static void send_report(struct list *link)
{
    struct probe_link *pl = container_of(link, struct probe_link, link);
    struct client_answer answer = CLIENT_ANSWER_NULL;

    pl->result = call(pl, &answer);
    if (hub_ask_learn(&pl->signer, pl->result, &answer)) {
        pl->signer.next += LEFT_TO_AGENT;
        client_answer_deinit(&answer);
        pl->result = call(pl, &answer);
    }
    pl->status = answer.status;
    client_answer_deinit(&answer);
}

int probe_link_send(struct probe_link *pl, json_t *body)
{
    const struct worker_config config = {.name = "report", .max = 1, .job = send_report};
    int r = 0;

    json_decref(pl->body);
    pl->body = body;
    /* Not before: until then the probe has privileges, which a thread would keep. */
    if (!pl->worker)
        r = worker_start(&pl->worker, &config);
    if (r == 0 && !worker_put(pl->worker, &pl->link))
        r = -EBUSY;
    return r;
}

bool probe_link_take(struct probe_link *pl, enum edge_report_result *ret, struct err *why)
{
    if (!pl->worker || !worker_collect(pl->worker))
        return false;
    *ret = EDGE_REPORT_LOST;
    if (pl->result == 0)
        *ret = pl->status == STATUS_NO_NUMBER ? EDGE_REPORT_OLD : EDGE_REPORT_TAKEN;
    else if (pl->result == CLIENT_E_REFUSED && pl->status == STATUS_BEGIN_ANEW)
        *ret = EDGE_REPORT_AGAIN;
    *why = pl->e;
    return true;
}
