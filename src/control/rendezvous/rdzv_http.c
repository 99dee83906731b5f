/* rdzv_http.c - see rdzv_http.h. */
#include "rdzv_http.h"

#include <errno.h>
#include <inttypes.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "api/form.h"
#include "base/err.h"
#include "rendezvous/rdzv_etcd.h"
#include "rendezvous/rdzv_internal.h"
#include "os/clock.h"

/* Memory of one connection inside libmicrohttpd: its header lines, with the whole path. */
#define CONNECTION_MEMORY (16u << 10)

/* A connection on which nothing is asked for so long is ended; clients keep them for the next. */
#define IDLE_SECONDS 900u

/* Rounds of the engine in one turn of the loop, and its time: a request that comes later than that
 * is handled in another turn. */
#define ENGINE_ROUNDS 8
#define ENGINE_TIME   (5 * NSEC_PER_MSEC)

/* What is handed to the engine at a time, of an answer that is longer. */
#define BLOCK (16u << 10)

/* One request, from its first header to the end of its answer. */
struct rdzv_http_request {
    struct rdzv_conn *conn;         /* pins */
    struct list link;               /* in rdzv_http.waiting, or .deferred, or in none */
    nsec_t deadline;                /* of waiting for an event */
    char *query;                    /* owns; as it came, with a zero; NULL: none */
    char *body;                     /* owns; with a zero; NULL: none yet */
    size_t body_len;                /* bytes */
    bool too_long;                  /* more came than is taken */
    bool begun;                     /* its headers have been seen */
    bool handled;                   /* it has an answer, or waits for one */
    bool is_wait;                   /* for an event: the headers are sent before it comes */
    bool ready;                     /* the answer may be sent */
    bool suspended;                 /* libmicrohttpd waits for us */
    bool cut;                       /* the connection is to end without an answer */
    size_t charged;                 /* bytes of the answer that count in the job's quota */
    struct rdzv_watcher watcher;    /* while it waits for an event */
    struct rdzv_save_wait save;     /* while it waits for the disk */
    struct rdzv_etcd_answer answer; /* see there */
};

static void engine_run(struct rdzv_http *h);

static struct rdzv_http *http_of(const struct rdzv_conn *c)
{
    return &c->rz->http;
}

/* ---- waiting -------------------------------------------------------------------------------- */

static void on_again(uv_timer_t *timer)
{
    engine_run(timer->data);
}

static void on_disconnect(uv_poll_t *poll, int status, int events)
{
    struct rdzv_conn *c = poll->data;

    rdzv__hang_up(c);
}

static void suspend(struct rdzv_http_request *rq)
{
    rq->suspended = true;
    MHD_suspend_connection(rq->conn->mhd);
    rdzv__poll(rq->conn, UV_DISCONNECT, on_disconnect);
}

/* The engine sees a resumed connection in its next run, which has to be asked for; not from here,
 * which may be within a run. */
static void resume(struct rdzv_http_request *rq)
{
    struct rdzv_http *h = http_of(rq->conn);

    if (!rq->suspended)
        return;
    rq->suspended = false;
    rq->conn->events = 0;
    (void)uv_poll_stop(&rq->conn->poll);
    MHD_resume_connection(rq->conn->mhd);
    if (!uv_is_closing((uv_handle_t *)&h->again))
        (void)uv_timer_start(&h->again, on_again, 0, 0);
}

static void stop_waiting(struct rdzv_http_request *rq)
{
    list_remove(&rq->link);
    rdzv_tree_unwatch(&rq->watcher);
    rdzv_save_forget(&rq->save);
}

static void on_saved(struct rdzv_save_wait *w, int error)
{
    struct rdzv_http_request *rq = container_of(w, struct rdzv_http_request, save);

    /* Who waits has had a status already, that cannot be taken back. */
    if (error != 0 && rq->is_wait)
        rq->cut = true;
    else if (error != 0)
        rdzv_etcd_fail(&rq->answer, rq->answer.index, "the disk did not take it");
    rq->ready = true;
    resume(rq);
}

/* Nobody is told of what may still be lost. */
static void on_event(struct rdzv_watcher *w, struct rdzv_event *ev)
{
    struct rdzv_http_request *rq = container_of(w, struct rdzv_http_request, watcher);

    list_remove(&rq->link);
    rdzv_etcd_tell(&rq->answer, ev);
    rdzv_save_wait(&rq->conn->rz->save, &rq->save);
}

void rdzv_http_tick(struct rdzv_http *h, nsec_t now)
{
    struct rdzv_http_request *rq;
    struct rdzv_http_request *tmp;

    list_foreach_safe(rq, tmp, &h->waiting, link) {
        if (rq->deadline > now)
            continue;
        stop_waiting(rq);
        rdzv_etcd_tell(&rq->answer, NULL);
        rq->ready = true;
        resume(rq);
    }
}

/* ---- answers -------------------------------------------------------------------------------- */

static void add_number(struct MHD_Response *r, const char *name, const char *fmt, uint64_t v)
{
    char text[32];

    (void)snprintf(text, sizeof(text), strcmp(fmt, "x") == 0 ? "%" PRIx64 : "%" PRIu64, v);
    (void)MHD_add_response_header(r, name, text);
}

static uint64_t id_of(const struct rdzv_job *job)
{
    return hash_bytes(0, job->network->name, strlen(job->network->name)) ^
           hash_bytes(1, job->name, strlen(job->name));
}

/* The engine wants bytes of the answer, or of the event that a request waits for. */
static ssize_t read_answer(void *ctx, uint64_t pos, char *buf, size_t max)
{
    struct rdzv_http_request *rq = ctx;
    struct rdzv_text text;

    if (rq->cut || !rq->conn->job)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    if (!rq->ready) {
        suspend(rq);
        return 0;
    }
    text = rdzv_etcd_answer_text(&rq->answer);
    if (pos >= text.len)
        return MHD_CONTENT_READER_END_OF_STREAM;
    if (max > text.len - pos)
        max = text.len - pos;
    memcpy(buf, text.p + pos, max);
    return (ssize_t)max;
}

/* The answer is the request's: an event in it is everybody's. */
static struct MHD_Response *make_response(struct rdzv_http_request *rq)
{
    size_t len = rdzv_etcd_answer_text(&rq->answer).len;

    if (rq->is_wait)
        return MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 4096, read_answer, rq, NULL);
    return MHD_create_response_from_callback(
        len, len > 0 && len < BLOCK ? len : BLOCK, read_answer, rq, NULL);
}

static enum MHD_Result send_answer(struct rdzv_http_request *rq)
{
    const struct rdzv_etcd_answer *a = &rq->answer;
    const struct rdzv_job *job = rq->conn->job;
    struct MHD_Response *r = make_response(rq);
    enum MHD_Result result;

    if (!r)
        return MHD_NO;
    if (a->type || rq->is_wait)
        (void)MHD_add_response_header(r, "Content-Type", a->type ? a->type : "application/json");
    if (a->is_keys)
        add_number(r, "X-Etcd-Cluster-Id", "x", id_of(job));
    if (a->has_index)
        add_number(r, "X-Etcd-Index", "u", a->index);
    if (a->has_index && a->is_change) {
        add_number(r, "X-Raft-Index", "u", a->index);
        add_number(r, "X-Raft-Term", "u", 1);
    }
    if (a->allow)
        (void)MHD_add_response_header(r, "Allow", a->allow);
    result = MHD_queue_response(rq->conn->mhd, (unsigned)a->status, r);
    MHD_destroy_response(r);
    return result;
}

/* ---- requests ------------------------------------------------------------------------------- */

/* What the body says goes before what the path says, as Go has it; and what is wrong with it. A
 * body that says it is something else is not looked at. */
static void read_form(struct rdzv_http_request *rq, const char *method, struct form *form,
    char words[static FORM_WORDS_MAX])
{
    bool has_body = strcmp(method, "PUT") == 0 || strcmp(method, "POST") == 0;
    const char *type =
        MHD_lookup_connection_value(rq->conn->mhd, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_TYPE);
    char others[FORM_WORDS_MAX];

    words[0] = '\0';
    if (has_body && form_type(type, words) && words[0] == '\0' && rq->body)
        (void)form_parse(form, rq->body, rq->body_len, words);
    if (rq->query)
        (void)form_parse(form, rq->query, strlen(rq->query), words[0] ? others : words);
}

static void machines_of(const struct rdzv_job *job, char *buf, size_t cap)
{
    unsigned port = job->etcd_port;
    char v4[IP_ADDR_TEXT_MAX];
    char v6[IP_ADDR_TEXT_MAX];

    (void)snprintf(buf, cap, "http://%s:%u, http://[%s]:%u",
        ip_addr_format(&job->network->address4, v4), port,
        ip_addr_format(&job->network->address6, v6), port);
}

/* It has @len bytes more until it is completed. */
static void charge(struct rdzv_http_request *rq, size_t len)
{
    rdzv_quota_take(&rq->conn->job->quota, len, 0);
    rq->charged += len;
}

static void handle(struct rdzv_http_request *rq, const char *method, const char *path)
{
    struct rdzv_job *job = rq->conn->job;
    struct form form = {.n = 0};
    char words[FORM_WORDS_MAX];
    char machines[2 * IP_ADDR_TEXT_MAX + 64];
    struct rdzv_etcd_request request = {.method = method,
        .path = path,
        .form = &form,
        .machines = machines,
        .id = id_of(job),
        .when = {.now = clock_now(), .wall = clock_wall()},
        .since = http_of(rq->conn)->since};

    rq->handled = true;
    rq->ready = true;
    machines_of(job, machines, sizeof(machines));
    if (rq->too_long) {
        rdzv_etcd_refuse_length(&rq->answer);
        return;
    }
    read_form(rq, method, &form, words);
    request.form_error = words[0] ? words : NULL;
    switch (rdzv_etcd_handle(&job->tree, &request, &rq->watcher, &rq->answer)) {
    case RDZV_ETCD_ANSWER:
        break;
    case RDZV_ETCD_SAVE:
        rq->ready = false;
        rdzv_save_wait(&job->rz->save, &rq->save);
        break;
    case RDZV_ETCD_WAIT:
        rq->ready = false;
        rq->is_wait = true;
        rq->answer.status = 200;
        rq->deadline = request.when.now + RDZV_HTTP_WAIT;
        list_add_tail(&http_of(rq->conn)->waiting, &rq->link);
        break;
    }
    charge(rq, rq->answer.body_len);
    rdzv__arm_ttl(job);
}

static bool take_body(struct rdzv_http_request *rq, const char *p, size_t len)
{
    struct rdzv_quota *quota = &rq->conn->job->quota;
    char *body;

    if (rq->too_long || rq->body_len + len > RDZV_HTTP_BODY_MAX || !rdzv_quota_has(quota, len, 0)) {
        if (!rq->too_long)
            rdzv_quota_refuse(quota, "a request was too long");
        rq->too_long = true;
        return true;
    }
    body = realloc(rq->body, rq->body_len + len + 1);
    if (!body)
        return false;
    charge(rq, len);
    memcpy(body + rq->body_len, p, len);
    rq->body = body;
    rq->body_len += len;
    body[rq->body_len] = '\0';
    return true;
}

static struct rdzv_http_request *begin(struct rdzv_conn *c)
{
    struct rdzv_http_request *rq = calloc(1, sizeof(*rq));

    if (!rq)
        return NULL;
    rq->conn = c;
    list_init(&rq->link);
    list_init(&rq->watcher.link);
    list_init(&rq->save.link);
    rq->watcher.fire = on_event;
    rq->save.done = on_saved;
    c->request = rq;
    return rq;
}

/* A request has begun: what stands behind its path is ours to read, since a value may be any bytes.
 */
static void *on_uri(void *ctx, const char *uri, struct MHD_Connection *mhd)
{
    struct rdzv_conn *c =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
    struct rdzv_http_request *rq = c->job ? begin(c) : NULL;
    const char *query = strchr(uri, '?');

    if (rq && query) {
        rq->query = strdup(query + 1);
        rq->cut = !rq->query;
    }
    return rq;
}

/* This turn's time is used up: the request is handled when another has some. */
static void defer(struct rdzv_http_request *rq)
{
    list_add_tail(&http_of(rq->conn)->deferred, &rq->link);
    suspend(rq);
}

static enum MHD_Result on_request(void *ctx, struct MHD_Connection *mhd, const char *path,
    const char *method, const char *version, const char *data, size_t *data_len, void **request)
{
    struct rdzv_conn *c =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
    struct rdzv_http_request *rq = *request;

    if (!c->job || !rq || rq->cut)
        return MHD_NO;
    if (!rq->begun) {
        rq->begun = true;
        return MHD_YES;
    }
    if (*data_len > 0) {
        size_t len = *data_len;

        *data_len = 0;
        return take_body(rq, data, len) ? MHD_YES : MHD_NO;
    }
    c->job->heard = clock_now();
    if (!rq->handled && c->job->heard >= http_of(c)->turn_end) {
        defer(rq);
        return MHD_YES;
    }
    if (!rq->handled)
        handle(rq, method, path);
    if (rq->ready || rq->is_wait)
        return send_answer(rq);
    suspend(rq);
    return MHD_YES;
}

static void give_back(struct rdzv_http_request *rq)
{
    if (rq->conn->job)
        rdzv_quota_give(&rq->conn->job->quota, rq->charged, 0);
    rq->charged = 0;
}

static void on_completed(
    void *ctx, struct MHD_Connection *mhd, void **request, enum MHD_RequestTerminationCode how)
{
    struct rdzv_http_request *rq = *request;

    if (!rq)
        return;
    stop_waiting(rq);
    give_back(rq);
    rq->conn->request = NULL;
    rq->conn->rz->http.n_requests++;
    free(rq->watcher.path);
    rdzv_etcd_answer_deinit(&rq->answer);
    free(rq->query);
    free(rq->body);
    free(rq);
    *request = NULL;
}

/* ---- connections ---------------------------------------------------------------------------- */

/* The engine has started or ended a connection; its descriptor is closed after this. */
static void on_connection(void *ctx, struct MHD_Connection *mhd, void **socket_ctx,
    enum MHD_ConnectionNotificationCode what)
{
    struct rdzv_http *h = ctx;
    struct rdzv_conn *c = *socket_ctx;

    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        *socket_ctx = h->starting;
        h->starting->mhd = mhd;
        return;
    }
    *socket_ctx = NULL;
    c->mhd = NULL;
    rdzv__detach(c);
    rdzv__close(c);
}

void rdzv_http_begin(struct rdzv_http *h, struct rdzv_conn *c)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
    } nobody = {.v4 = {.sin_family = AF_INET}};
    int fd = c->fd;

    c->events = 0;
    (void)uv_poll_stop(&c->poll);
    c->is_http = true;
    c->fd = -1;
    h->starting = c;
    /* The engine only wants an address for limits of its own, which are off. It has the
     * descriptor now, also when it fails. */
    if (MHD_add_connection(h->daemon, fd, &nobody.any, sizeof(nobody.v4)) != MHD_YES && !c->mhd) {
        rdzv__detach(c);
        rdzv__close(c);
    }
    h->starting = NULL;
    engine_run(h);
}

void rdzv_http_detach(struct rdzv_conn *c)
{
    if (!c->request)
        return;
    stop_waiting(c->request);
    give_back(c->request);
    /* An event in it counts in the job's quota. */
    rdzv_etcd_answer_deinit(&c->request->answer);
}

void rdzv_http_end(struct rdzv_conn *c)
{
    const union MHD_ConnectionInfo *info =
        c->mhd ? MHD_get_connection_info(c->mhd, MHD_CONNECTION_INFO_CONNECTION_FD) : NULL;

    /* The engine sees the end, and closes it. */
    if (info)
        (void)shutdown(info->connect_fd, SHUT_RDWR);
    if (c->request) {
        c->request->cut = true;
        resume(c->request);
    }
}

/* ---- the engine ----------------------------------------------------------------------------- */

/* The first of those who wait for a turn. */
static void resume_one(struct rdzv_http *h)
{
    struct rdzv_http_request *rq = list_first(&h->deferred, struct rdzv_http_request, link);

    if (!rq)
        return;
    list_remove(&rq->link);
    resume(rq);
}

static void engine_run(struct rdzv_http *h)
{
    MHD_UNSIGNED_LONG_LONG wait_ms = 1;
    bool has_wait;
    int rounds = 0;

    h->turn_end = clock_now() + ENGINE_TIME;
    do {
        resume_one(h);
        (void)MHD_run(h->daemon);
        has_wait = MHD_get_timeout(h->daemon, &wait_ms) == MHD_YES;
        if (!list_is_empty(&h->deferred)) {
            has_wait = true;
            wait_ms = 0;
        }
    } while (has_wait && wait_ms == 0 && ++rounds < ENGINE_ROUNDS && clock_now() < h->turn_end);
    if (has_wait)
        (void)uv_timer_start(&h->again, on_again, wait_ms, 0);
}

static void on_engine(uv_poll_t *poll, int status, int events)
{
    engine_run(poll->data);
}

int rdzv_http_start(struct rdzv_http *h, struct uv_loop_s *loop, struct err *e)
{
    const union MHD_DaemonInfo *info;

    list_init(&h->waiting);
    list_init(&h->deferred);
    h->since = clock_wall();
    h->daemon = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL,
        on_request, h, MHD_OPTION_NOTIFY_CONNECTION, on_connection, h, MHD_OPTION_NOTIFY_COMPLETED,
        on_completed, h, MHD_OPTION_URI_LOG_CALLBACK, on_uri, h, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)CONNECTION_MEMORY, MHD_OPTION_CONNECTION_LIMIT, 1u << 18,
        MHD_OPTION_CONNECTION_TIMEOUT, IDLE_SECONDS, MHD_OPTION_END);
    if (!h->daemon)
        return err_set(e, -EIO, "the HTTP server of rendezvous does not start");
    info = MHD_get_daemon_info(h->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    (void)uv_poll_init(loop, &h->poll, info->epoll_fd);
    (void)uv_timer_init(loop, &h->again);
    h->poll.data = h;
    h->again.data = h;
    (void)uv_poll_start(&h->poll, UV_READABLE, on_engine);
    return 0;
}

void rdzv_http_stop(struct rdzv_http *h)
{
    if (!h->daemon)
        return;
    uv_close((uv_handle_t *)&h->poll, NULL);
    uv_close((uv_handle_t *)&h->again, NULL);
    /* What was resumed has to be seen as resumed, or stopping would be an error. */
    (void)MHD_run(h->daemon);
    MHD_stop_daemon(h->daemon);
    h->daemon = NULL;
}
