/* node_jobs.c - see node_jobs.h. */
#include "agent/node_jobs.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>

#include "agent/hublink/hub_link.h"
#include "agent/meter.h"
#include "api/server/server.h"
#include "base/err.h"
#include "os/file.h"

/* ---- calls to the hub ----------------------------------------------------------------------- */

/*
 * Calls that are sent at once. The hub takes eight connections of a member, and the agent itself
 * needs four: the watch, a report, a question about UDP, and one of weft leave.
 */
#define AT_ONCE 4

#define TIMEOUT_MS 5000

#define STATUS_OTHER_HUB 421

/** A call. Freed when the server needs its answer no more. */
struct job_call {
    struct deferred deferred;
    struct list link;        /* of its owner's list */
    struct job_calls *owner; /* pins */
    struct hub_ask *ask;     /* on its way; NULL: not sent yet, or answered */
    struct hub_link *at; /* pins; the hub that it goes to; NULL: the one that serves this node */
    bool is_sent_on;     /* a hub has named another one */
    const char *method;
    json_t *body; /* owned; NULL: none */
    char path[HUB_ASK_PATH_MAX + 1];
};

static void send_more(struct job_calls *jc);

static void calls_on_closed(struct deferred *d)
{
    struct job_call *call = container_of(d, struct job_call, deferred);
    struct job_calls *jc = call->owner;

    call->ask = hub_ask_cancel(call->ask);
    list_remove(&call->link);
    json_decref(call->body);
    free(call);
    if (!jc->is_ending)
        send_more(jc);
}

/* @said: NULL, or without a status, if the hub has not answered; @e says why. */
static void answer(struct job_call *call, const struct client_answer *said, const struct err *e)
{
    struct response rs = {0};

    if (said && said->status == 204)
        response_empty(&rs);
    else if (said && said->status != 0)
        response_json(&rs, said->status, json_incref(said->body));
    else
        response_refuse(&rs, 502, "%s", err_text(e));
    deferred_answer(&call->deferred, &rs);
}

/* Does the hub say that another one serves the jobs? Then the call is to be sent there. */
static bool is_sent_on(struct job_call *call, const struct client_answer *said)
{
    const char *name = json_string_value(json_object_get(said->body, "hub"));

    if (said->status != STATUS_OTHER_HUB || !name || call->is_sent_on)
        return false;
    call->at = call->owner->find(call->owner->ctx, name);
    call->is_sent_on = call->at != NULL;
    return call->is_sent_on;
}

static void on_done(void *ctx, int result, const struct client_answer *said, const struct err *e)
{
    struct job_call *call = ctx;

    call->ask = NULL;
    if (is_sent_on(call, said))
        send_more(call->owner);
    else
        answer(call, said, e);
}

static void send_more(struct job_calls *jc)
{
    struct job_call *call;
    unsigned n = 0;

    list_foreach(call, &jc->calls, link) {
        struct err e = ERR_NULL;

        if (call->deferred.is_ready)
            continue;
        if (n++ >= AT_ONCE)
            return;
        if (!call->ask && hub_link_ask(call->at ? call->at : jc->hub, call->method, call->path,
                              call->body, TIMEOUT_MS, on_done, call, &call->ask, &e) != 0)
            answer(call, NULL, &e);
    }
}

void job_calls_init(struct job_calls *jc, job_calls_find_fn find, void *ctx)
{
    *jc = (struct job_calls){.find = find, .ctx = ctx};
    list_init(&jc->calls);
}

void job_calls_on_gone(struct job_calls *jc, const struct hub_link *hub)
{
    struct job_call *call;

    list_foreach(call, &jc->calls, link) {
        if (hub && call->at != hub)
            continue;
        call->ask = hub_ask_cancel(call->ask);
        call->at = NULL;
        call->is_sent_on = false;
    }
    if (!jc->is_ending)
        send_more(jc);
}

void job_calls_set_hub(struct job_calls *jc, struct hub_link *hub)
{
    if (jc->hub == hub)
        return;
    jc->hub = hub;
    job_calls_on_gone(jc, NULL);
}

/* @path: HUB_ASK_PATH_MAX at most. */
static void begin_call(struct job_calls *jc, const char *method, const char *path,
    const json_t *body, struct response *rs)
{
    struct job_call *call = calloc(1, sizeof(*call));

    if (!call) {
        response_refuse(rs, 500, "no memory for a call to the hub");
        return;
    }
    call->deferred.on_closed = calls_on_closed;
    call->owner = jc;
    call->method = method;
    call->body = json_incref((json_t *)body);
    (void)snprintf(call->path, sizeof(call->path), "%s", path);
    list_add_tail(&jc->calls, &call->link);
    rs->deferred = &call->deferred;
    send_more(jc);
}

void job_calls_begin(struct job_calls *jc, const char *method, const char *job, const char *what,
    const json_t *body, struct response *rs)
{
    char path[HUB_ASK_PATH_MAX + 1];
    struct err e = ERR_NULL;

    if (job && parse_name(job, "job", &e) != 0) {
        response_fail(rs, &e);
        return;
    }
    (void)snprintf(path, sizeof(path), "/v1/jobs%s%s%s%s", job ? "/" : "", job ? job : "",
        job ? "/" : "", job ? what : "");
    begin_call(jc, method, path, body, rs);
}

void job_calls_drain(struct job_calls *jc, const json_t *body, struct response *rs)
{
    begin_call(jc, "PUT", "/v1/drain", body, rs);
}

/* ---- jobs that run here --------------------------------------------------------------------- */

/* How often the hub is asked who is in a run: at first its nodes are still coming. */
#define ASK_SOON (2 * NSEC_PER_SEC)
#define ASK_SLOW (10 * NSEC_PER_SEC)
#define AT_FIRST (60 * NSEC_PER_SEC)

static void forget_answer(struct node_job *j)
{
    struct deferred *d = j->ask;

    j->ask = NULL;
    if (!d)
        return;
    response_deinit(&d->rs);
    d->on_closed(d);
}

static void jobs_drop(struct node_jobs *nj, unsigned i)
{
    struct node_job *j = &nj->items[i];

    forget_answer(j);
    json_decref(j->nccl);
    json_decref(j->budget);
    closep(&j->pid_fd);
    *j = nj->items[--nj->n];
}

void node_jobs_stop(struct node_jobs *nj)
{
    while (nj->n > 0)
        jobs_drop(nj, nj->n - 1);
}

/* The command's place; @nj->n: it is not known. */
static unsigned jobs_find(const struct node_jobs *nj, const char *job, int32_t pid)
{
    unsigned i = 0;

    while (i < nj->n && (nj->items[i].pid != pid || strcmp(nj->items[i].job, job) != 0))
        i++;
    return i;
}

void node_jobs_begin(struct node_jobs *nj, const char *job, int32_t pid, nsec_t now)
{
    struct node_job *j = &nj->items[nj->n];
    int pid_fd;

    if (nj->n == NODE_JOBS_MAX || jobs_find(nj, job, pid) < nj->n)
        return;
    pid_fd = pid > 0 ? pidfd_open(pid, 0) : -1;
    /* It was killed before its request was read, and will never say that it has ended. */
    if (pid > 0 && pid_fd < 0 && errno == ESRCH)
        return;
    *j = (struct node_job){.pid = pid, .pid_fd = pid_fd, .began_at = now, .ask_at = now};
    (void)snprintf(j->job, sizeof(j->job), "%s", job);
    nj->n++;
    meter_job_begin(nj->meter, job);
}

void node_jobs_start(struct node_jobs *nj, const char *job, int32_t pid)
{
    unsigned i = jobs_find(nj, job, pid);

    if (i < nj->n)
        nj->items[i].is_started = true;
}

unsigned node_jobs_started(const struct node_jobs *nj)
{
    unsigned n = 0;

    for (unsigned i = 0; i < nj->n; i++)
        n += nj->items[i].is_started;
    return n;
}

static void jobs_end(struct node_jobs *nj, unsigned i)
{
    meter_job_end(nj->meter, nj->items[i].job);
    jobs_drop(nj, i);
    nj->has_ended = true;
}

void node_jobs_end(struct node_jobs *nj, const char *job, int32_t pid)
{
    unsigned i = jobs_find(nj, job, pid);

    if (i < nj->n)
        jobs_end(nj, i);
}

void node_jobs_set_nccl(struct node_jobs *nj, const char *job, int32_t pid, json_t *said)
{
    unsigned i = jobs_find(nj, job, pid);

    if (i == nj->n) {
        json_decref(said);
        return;
    }
    json_decref(nj->items[i].nccl);
    nj->items[i].nccl = said;
}

/* What the commands of that job here have said; one that has another network than was wanted
 * counts most. */
static json_t *nccl_of(const struct node_jobs *nj, const char *job)
{
    json_t *nccl = NULL;

    for (unsigned i = 0; job && i < nj->n; i++) {
        json_t *said = strcmp(nj->items[i].job, job) == 0 ? nj->items[i].nccl : NULL;
        const char *verdict = json_string_value(json_object_get(said, "verdict"));

        if (said && (!nccl || (verdict && strcmp(verdict, "other") == 0)))
            nccl = said;
    }
    return nccl;
}

/* ---- budgets -------------------------------------------------------------------------------- */

/* The fields that are known, as far as they are what they should be; NULL: there is no budget. */
static json_t *read_budget(const json_t *said)
{
    static const char *const numbers[] = {
        "share", "bytes", "cost", "unpricedBytes", "bytesPerDay", "costPerDay"};
    const json_t *level = json_object_get(said, "level");
    json_t *budget = json_is_string(level) ? json_object() : NULL;

    if (budget) {
        (void)json_object_set(budget, "level", (json_t *)level);
        (void)json_object_set_new(budget, "capBitsPerSecond", json_null());
    }
    for (size_t i = 0; budget && i < sizeof(numbers) / sizeof(*numbers); i++) {
        json_t *number = json_object_get(said, numbers[i]);

        if (json_is_number(number))
            (void)json_object_set(budget, numbers[i], number);
    }
    return budget;
}

/* Of the first command of that job of which one is known; NULL: none. */
static json_t *budget_of(const struct node_jobs *nj, const char *job)
{
    for (unsigned i = 0; job && i < nj->n; i++)
        if (nj->items[i].budget && strcmp(nj->items[i].job, job) == 0)
            return nj->items[i].budget;
    return NULL;
}

static void add_copy(json_t *job, const char *field, json_t *value)
{
    (void)json_object_set_new(job, field, value ? json_copy(value) : json_null());
}

void node_jobs_tell(const struct node_jobs *nj, json_t *list)
{
    json_t *job;
    size_t i;

    json_array_foreach(list, i, job) {
        const char *name = json_string_value(json_object_get(job, "job"));

        add_copy(job, "nccl", nccl_of(nj, name));
        add_copy(job, "budget", budget_of(nj, name));
    }
}

static bool has_exited(const struct node_job *j)
{
    struct pollfd p = {.fd = j->pid_fd, .events = POLLIN};

    return j->pid_fd >= 0 && poll(&p, 1, 0) == 1;
}

/* An answer without the names is a hub's that is away: those of before stay. */
static void take_answer(struct node_jobs *nj, struct node_job *j, nsec_t now)
{
    const json_t *names = json_object_get(j->ask->rs.body, "members");
    struct meter_job *job = meter_job_find(nj->meter, j->job);

    if (job && json_array_size(names) > 0) {
        meter_job_members(job, names);
        json_decref(j->budget);
        j->budget = read_budget(json_object_get(j->ask->rs.body, "budget"));
    }
    j->ask_at = now + (now - j->began_at < AT_FIRST ? ASK_SOON : ASK_SLOW);
    forget_answer(j);
}

void node_jobs_poll(struct node_jobs *nj, nsec_t now)
{
    for (unsigned i = nj->n; i-- > 0;) {
        struct node_job *j = &nj->items[i];

        if (has_exited(j)) {
            jobs_end(nj, i);
            continue;
        }
        if (j->ask && j->ask->is_ready) {
            take_answer(nj, j, now);
        } else if (!j->ask && now >= j->ask_at) {
            struct response rs = {0};

            job_calls_begin(nj->calls, "GET", j->job, "rendezvous", NULL, &rs);
            j->ask = rs.deferred;
            j->ask_at = now + ASK_SLOW;
            rs.deferred = NULL;
            response_deinit(&rs);
        }
    }
}
