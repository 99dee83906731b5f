/* etcd2_http.c - see rdzv_process.h. */
#include "rendezvous/process/rdzv_process.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "api/content/body.h"
#include "base/err.h"
#include "os/clock.h"
#include "rendezvous/etcd2/etcd2_api.h"

/* Memory of one connection inside libmicrohttpd: its header lines, with the whole path. */
#define CONNECTION_MEMORY (16u << 10)

/* A connection without a request for so long is ended. Clients keep connections for later requests.
 */
#define IDLE_SECONDS 900u

/* Time of one run of libmicrohttpd. A request that it finds later is handled in another turn of the
 * loop. */
#define RUN_TIME (5 * NSEC_PER_MSEC)

/* Most bytes of an answer that libmicrohttpd is given at a time. */
#define BLOCK (16u << 10)

/** A connection. */
struct http_conn {
    struct rdzv_conn *c;      /* pins: it frees this */
    struct etcd2_http *h;     /* pins */
    struct mhd_loop_conn mhd; /* libmicrohttpd's part of it */
    struct request *request;  /* the current one; NULL: none */
};

/** A request, from its first header to the end of its answer. */
struct request {
    struct http_conn *hc; /* pins */
    struct list link;     /* in etcd2_http.waiting while it waits for an event */
    nsec_t gives_up_at;   /* while it waits: when it is answered without an event */
    char *query;          /* owns; as it came, with a zero; NULL: none */
    char *body;           /* owns; with a zero; NULL: none yet */
    size_t body_len;      /* bytes of it */
    bool too_long;        /* the body is longer than is taken */
    bool begun;           /* its headers have been seen */
    bool handled;         /* it has an answer, or waits for one */
    bool is_wait;         /* it waits for an event: the headers are sent before that comes */
    bool ready;           /* the answer may be sent */
    bool cut;             /* the connection has to end without an answer */
    size_t charged;       /* bytes that count in the job's quota until it is completed */
    struct etcd2_watcher watcher; /* while it waits for an event */
    struct rdzv_save_wait save;   /* while it waits for the disk */
    struct etcd2_answer answer;   /* see there */
};

static struct http_conn *conn_of(struct MHD_Connection *mhd)
{
    return container_of(mhd_loop_conn_of(mhd), struct http_conn, mhd);
}

static struct rdzv_job *job_of(const struct request *rq)
{
    return rq->hc->c->job;
}

/* ---- waiting -------------------------------------------------------------------------------- */

static void on_disconnect(uv_poll_t *poll, int status, int events)
{
    rdzv_conn_hang_up(poll->data);
}

/* libmicrohttpd does not see the end of a suspended connection, so it is watched for here. */
static void suspend(struct http_conn *hc)
{
    mhd_loop_suspend(&hc->mhd);
    rdzv_conn_poll(hc->c, UV_DISCONNECT, on_disconnect);
}

static void resume(struct http_conn *hc)
{
    if (!hc->mhd.is_suspended)
        return;
    rdzv_conn_poll(hc->c, 0, NULL);
    mhd_loop_resume(&hc->h->mhd, &hc->mhd);
}

static void stop_waiting(struct request *rq)
{
    list_remove(&rq->link);
    list_remove(&rq->watcher.link);
    list_remove(&rq->save.link);
}

static void on_saved(struct rdzv_save_wait *w, int error)
{
    struct request *rq = container_of(w, struct request, save);

    /* A request that waited has its status already, so all that can be done is to end it. */
    if (error != 0 && rq->is_wait)
        rq->cut = true;
    else if (error != 0)
        etcd2_api_fail(&rq->answer, rq->answer.index, "the disk did not take it");
    rq->ready = true;
    resume(rq->hc);
}

/* The event is told only once it is on the disk: before that it might still be lost. */
static void on_event(struct etcd2_watcher *w, struct etcd2_event *ev)
{
    struct request *rq = container_of(w, struct request, watcher);

    list_remove(&rq->link);
    etcd2_api_tell(&rq->answer, ev);
    rdzv_save_wait(job_of(rq)->jobs->link, &rq->save);
}

void etcd2_http_tick(struct etcd2_http *h, nsec_t now)
{
    struct request *rq;
    struct request *tmp;

    list_foreach_safe(rq, tmp, &h->waiting, link) {
        if (rq->gives_up_at > now)
            continue;
        stop_waiting(rq);
        etcd2_api_tell(&rq->answer, NULL);
        rq->ready = true;
        resume(rq->hc);
    }
}

/* ---- answers -------------------------------------------------------------------------------- */

static void add_number(struct MHD_Response *r, const char *name, uint64_t v)
{
    char text[32];

    (void)snprintf(text, sizeof(text), "%" PRIu64, v);
    (void)MHD_add_response_header(r, name, text);
}

static const char *id_of(const struct rdzv_job *job, char buf[static 24])
{
    (void)snprintf(buf, 24, "%" PRIx64,
        hash_bytes(0, job->jobs->network, strlen(job->jobs->network)) ^
            hash_bytes(1, job->name, strlen(job->name)));
    return buf;
}

/* libmicrohttpd wants bytes of the answer, or of the event that a request waits for. */
static ssize_t read_answer(void *ctx, uint64_t pos, char *buf, size_t max)
{
    struct request *rq = ctx;
    struct etcd2_text text;

    if (rq->cut || !job_of(rq))
        return MHD_CONTENT_READER_END_WITH_ERROR;
    if (!rq->ready) {
        suspend(rq->hc);
        return 0;
    }
    text = etcd2_answer_text(&rq->answer);
    if (pos >= text.len)
        return MHD_CONTENT_READER_END_OF_STREAM;
    if (max > text.len - pos)
        max = text.len - pos;
    memcpy(buf, text.p + pos, max);
    return (ssize_t)max;
}

static enum MHD_Result send_answer(struct request *rq)
{
    const struct etcd2_answer *a = &rq->answer;
    size_t len = etcd2_answer_text(a).len;
    struct MHD_Response *r;
    enum MHD_Result result;
    char id[24];

    /* The answer's bytes are read from the request: the text of an event is shared with other
     * requests. */
    if (rq->is_wait)
        r = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 4096, read_answer, rq, NULL);
    else
        r = MHD_create_response_from_callback(
            len, len > 0 && len < BLOCK ? len : BLOCK, read_answer, rq, NULL);
    if (!r)
        return MHD_NO;
    if (a->type || rq->is_wait)
        (void)MHD_add_response_header(r, "Content-Type", a->type ? a->type : "application/json");
    if (a->is_keys)
        (void)MHD_add_response_header(r, "X-Etcd-Cluster-Id", id_of(job_of(rq), id));
    if (a->has_index)
        add_number(r, "X-Etcd-Index", a->index);
    if (a->has_index && a->is_change) {
        add_number(r, "X-Raft-Index", a->index);
        add_number(r, "X-Raft-Term", 1);
    }
    if (a->allow)
        (void)MHD_add_response_header(r, "Allow", a->allow);
    result = MHD_queue_response(rq->hc->mhd.mhd, (unsigned)a->status, r);
    MHD_destroy_response(r);
    return result;
}

/* ---- requests ------------------------------------------------------------------------------- */

/* Reads the form: the body's fields go before those of the query, as in Go. A body whose
 * Content-Type is another one is not read. @words: what is wrong with it; "": nothing. */
static void read_form(
    struct request *rq, const char *method, struct form *form, char words[static FORM_WORDS_MAX])
{
    bool has_body = strcmp(method, "PUT") == 0 || strcmp(method, "POST") == 0;
    const char *type =
        MHD_lookup_connection_value(rq->hc->mhd.mhd, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_TYPE);
    char others[FORM_WORDS_MAX];

    words[0] = '\0';
    if (has_body && form_type(type, words) && words[0] == '\0' && rq->body)
        (void)form_parse(form, rq->body, rq->body_len, words);
    if (rq->query)
        (void)form_parse(form, rq->query, strlen(rq->query), words[0] ? others : words);
}

/* Counts @len bytes more in the job's quota until the request is completed. */
static void charge(struct request *rq, size_t len)
{
    rdzv_quota_take(&job_of(rq)->quota, len, 0);
    rq->charged += len;
}

static void handle(struct request *rq, const char *method, const char *path)
{
    struct rdzv_job *job = job_of(rq);
    struct form form = {.n = 0};
    char words[FORM_WORDS_MAX];
    char machines[2 * IP_ADDR_TEXT_MAX + 64];
    char v4[IP_ADDR_TEXT_MAX];
    char v6[IP_ADDR_TEXT_MAX];
    char id[24];
    struct etcd2_request request = {.method = method,
        .path = path,
        .form = &form,
        .machines = machines,
        .id = id_of(job, id),
        .when = {.now = clock_now(), .wall = clock_wall()},
        .started_at = rq->hc->h->started_at};

    rq->handled = true;
    rq->ready = true;
    (void)snprintf(machines, sizeof(machines), "http://%s:%u, http://[%s]:%u",
        ip_addr_format(&job->jobs->address4, v4), job->etcd_port,
        ip_addr_format(&job->jobs->address6, v6), job->etcd_port);
    if (rq->too_long) {
        etcd2_api_refuse_length(&rq->answer);
        return;
    }
    read_form(rq, method, &form, words);
    request.form_error = words[0] ? words : NULL;
    switch (etcd2_api_handle(&job->etcd2, &request, &rq->watcher, &rq->answer)) {
    case ETCD2_API_ANSWER:
        break;
    case ETCD2_API_SAVE:
        rq->ready = false;
        rdzv_save_wait(job->jobs->link, &rq->save);
        break;
    case ETCD2_API_WAIT:
        rq->ready = false;
        rq->is_wait = true;
        rq->answer.status = 200;
        rq->gives_up_at = request.when.now + ETCD2_HTTP_WAIT;
        list_add_tail(&rq->hc->h->waiting, &rq->link);
        break;
    }
    charge(rq, rq->answer.body_len);
    rdzv_job_note_expiry(job);
}

static bool take_body(struct request *rq, const char *p, size_t len)
{
    struct rdzv_quota *quota = &job_of(rq)->quota;
    char *body;

    if (rq->too_long || rq->body_len + len > ETCD2_HTTP_BODY_MAX ||
        !rdzv_quota_has(quota, len, 0)) {
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

static struct request *begin(struct http_conn *hc)
{
    struct request *rq = calloc(1, sizeof(*rq));

    if (!rq)
        return NULL;
    rq->hc = hc;
    list_init(&rq->link);
    list_init(&rq->watcher.link);
    list_init(&rq->save.link);
    rq->watcher.fire = on_event;
    rq->save.done = on_saved;
    hc->request = rq;
    return rq;
}

/* A request has begun. Its query is kept as it came: libmicrohttpd would end a value at a zero
 * byte. */
static void *on_uri(void *ctx, const char *uri, struct MHD_Connection *mhd)
{
    struct http_conn *hc = conn_of(mhd);
    struct request *rq = hc->c->job ? begin(hc) : NULL;
    const char *query = strchr(uri, '?');

    if (rq && query) {
        rq->query = strdup(query + 1);
        rq->cut = !rq->query;
    }
    return rq;
}

static enum MHD_Result on_request(void *ctx, struct MHD_Connection *mhd, const char *path,
    const char *method, const char *version, const char *data, size_t *data_len, void **request)
{
    struct http_conn *hc = conn_of(mhd);
    struct rdzv_job *job = hc->c->job;
    struct request *rq = *request;

    /* mhd_loop may have resumed a deferred connection by itself. */
    rdzv_conn_poll(hc->c, 0, NULL);
    if (!job || !rq || rq->cut)
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
    job->heard_at = clock_now();
    /* This run's time is used up: the request is handled in a later one. */
    if (!rq->handled && !mhd_loop_has_time(&hc->h->mhd, job->heard_at)) {
        mhd_loop_defer(&hc->h->mhd, &hc->mhd);
        rdzv_conn_poll(hc->c, UV_DISCONNECT, on_disconnect);
        return MHD_YES;
    }
    if (!rq->handled)
        handle(rq, method, path);
    if (rq->ready || rq->is_wait)
        return send_answer(rq);
    suspend(hc);
    return MHD_YES;
}

static void give_back(struct request *rq)
{
    if (job_of(rq))
        rdzv_quota_give(&job_of(rq)->quota, rq->charged, 0);
    rq->charged = 0;
}

static void on_completed(
    void *ctx, struct MHD_Connection *mhd, void **request, enum MHD_RequestTerminationCode how)
{
    struct request *rq = *request;

    if (!rq)
        return;
    stop_waiting(rq);
    give_back(rq);
    rq->hc->request = NULL;
    rq->hc->h->n_requests++;
    free(rq->watcher.path);
    etcd2_answer_deinit(&rq->answer);
    free(rq->query);
    free(rq->body);
    free(rq);
    *request = NULL;
}

/* ---- connections ---------------------------------------------------------------------------- */

/* libmicrohttpd closes the descriptor after this. */
static void on_ended(struct mhd_loop_conn *mhd)
{
    struct http_conn *hc = container_of(mhd, struct http_conn, mhd);

    rdzv_conn_detach(hc->c);
    rdzv_conn_close(hc->c);
}

/* Its request does not wait for anything any more, and holds nothing of the job. */
static void detach(struct rdzv_conn *c)
{
    struct http_conn *hc = c->state;

    if (!hc->request)
        return;
    stop_waiting(hc->request);
    give_back(hc->request);
    /* The answer may hold an event, which counts in the job's quota. */
    etcd2_answer_deinit(&hc->request->answer);
}

static void end(struct rdzv_conn *c)
{
    struct http_conn *hc = c->state;
    const union MHD_ConnectionInfo *info =
        hc->mhd.mhd ? MHD_get_connection_info(hc->mhd.mhd, MHD_CONNECTION_INFO_CONNECTION_FD)
                    : NULL;

    /* libmicrohttpd owns the descriptor. It sees the end, and closes it. */
    if (info)
        (void)shutdown(info->connect_fd, SHUT_RDWR);
    if (hc->request) {
        hc->request->cut = true;
        resume(hc);
    }
}

static void free_state(struct rdzv_conn *c)
{
    free(c->state);
}

static const struct rdzv_protocol protocol = {.detach = detach, .end = end, .free = free_state};

void etcd2_http_begin(struct etcd2_http *h, struct rdzv_conn *c)
{
    struct http_conn *hc = calloc(1, sizeof(*hc));
    int fd = c->fd;

    if (!hc) {
        rdzv_conn_hang_up(c);
        return;
    }
    hc->c = c;
    hc->h = h;
    c->protocol = &protocol;
    c->state = hc;
    rdzv_conn_poll(c, 0, NULL);
    c->fd = -1;
    if (!mhd_loop_add(&h->mhd, fd, &hc->mhd)) {
        rdzv_conn_detach(c);
        rdzv_conn_close(c);
    }
    mhd_loop_run(&h->mhd);
}

/* ---- life ----------------------------------------------------------------------------------- */

int etcd2_http_start(struct etcd2_http *h, struct uv_loop_s *loop, struct err *e)
{
    const struct mhd_loop_config config = {.connection_memory = CONNECTION_MEMORY,
        .idle_seconds = IDLE_SECONDS,
        .run_time = RUN_TIME,
        .ctx = h,
        .on_request = on_request,
        .on_answered = on_completed,
        .on_uri = on_uri,
        .on_ended = on_ended};

    list_init(&h->waiting);
    h->started_at = clock_wall();
    return mhd_loop_start(&h->mhd, loop, &config, e);
}
