/*
 * rdzv_store.c - connections that speak TCPStore: bytes in, requests, answers, bytes out.
 *
 * What a request does is in rdzv_kv.c. Answers are sent at the end of what was
 * read at once, so a client that asks many things in a row costs few calls.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "hub/rdzv_internal.h"
#include "sys/clock.h"

/* A client that does not take its answers is not heard until it does. */
#define OUT_PAUSE (256u << 10)

static void on_event(uv_poll_t *poll, int status, int events);

/* ---- saving --------------------------------------------------------------------------------- */

static const char *blob_key(
    const struct rdzv_job *job, char buf[static RDZV_KEY_MAX], const void *name, size_t len)
{
    return rdzv_key_of_blob(buf, RDZV_KEY_ENTRY, job->network->name, job->name, name, len);
}

static void on_put(
    void *ctx, const void *name, size_t name_len, const void *p, size_t len, size_t before)
{
    struct rdzv_job *job = ctx;
    char key[RDZV_KEY_MAX];

    /* Without memory for it the change is in the answers only. */
    (void)rdzv_save_blob(&job->rz->save, blob_key(job, key, name, name_len), p, len, before);
}

static void on_drop(void *ctx, const void *name, size_t name_len, size_t before)
{
    struct rdzv_job *job = ctx;
    char key[RDZV_KEY_MAX];

    (void)rdzv_save_drop_blob(&job->rz->save, blob_key(job, key, name, name_len), before);
}

struct rdzv_kv_saver rdzv__store_saver(struct rdzv_job *job)
{
    return (struct rdzv_kv_saver){.ctx = job, .put = on_put, .drop = on_drop};
}

/* ---- sending -------------------------------------------------------------------------------- */

/* As much as the socket takes; the rest when it takes more. */
static void send_out(struct rdzv_conn *c)
{
    struct rdzv_client *cl = &c->client;
    size_t sent = 0;

    while (sent < cl->out_len) {
        ssize_t n = send(c->fd, cl->out + sent, cl->out_len - sent, MSG_NOSIGNAL);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno != EAGAIN) {
            rdzv__hang_up(c);
            return;
        }
        if (n < 0)
            break;
        sent += (size_t)n;
    }
    rdzv_client_sent(&c->job->kv, cl, sent);
    rdzv__poll(c, (cl->out_len < OUT_PAUSE ? UV_READABLE : 0) | (cl->out_len > 0 ? UV_WRITABLE : 0),
        on_event);
}

/* Everybody for whom there is something; a request may have answered many. */
static void send_all(struct rdzv_kv *kv)
{
    struct rdzv_client *cl;

    while ((cl = list_first(&kv->ready, struct rdzv_client, ready))) {
        struct rdzv_conn *c = container_of(cl, struct rdzv_conn, client);

        list_remove(&cl->ready);
        if (cl->failed)
            rdzv__hang_up(c);
        else
            send_out(c);
    }
}

/* ---- requests ------------------------------------------------------------------------------- */

static void complain(struct rdzv_conn *c, const char *why)
{
    char text[IP_ADDR_TEXT_MAX];

    c->job->rz->n_hung_up++;
    log_limited(&c->job->rz->limit, clock_now(), LOG_LEVEL_INFO,
        "rendezvous: a connection of %s to job \"%s\" is ended: %s", ip_addr_format(&c->from, text),
        c->job->name, why);
}

/* The requests that are complete; @ret_used: bytes of them. False: hang up. */
static bool handle(struct rdzv_conn *c, const uint8_t *p, size_t len, size_t *ret_used)
{
    size_t off = 0;
    int r = 0;

    if (c->client.dialect == TCPSTORE_UNKNOWN) {
        c->client.dialect = tcpstore_dialect(p, len);
        off = c->client.dialect == TCPSTORE_VALIDATED ? TCPSTORE_HELLO_SIZE : 0;
    }
    *ret_used = off;
    if (c->client.dialect == TCPSTORE_UNKNOWN)
        return true;
    while (off < len && !c->client.failed) {
        struct tcpstore_request rq;
        size_t used;

        r = tcpstore_decode(&rq, c->client.dialect, p + off, len - off, &used);
        if (r != 0)
            break;
        c->job->rz->n_requests++;
        r = rdzv_kv_handle(&c->job->kv, &c->client, &rq);
        if (r != 0) {
            complain(c, r == RDZV_KV_E_FULL ? "it is over a limit"
                                            : "it asks for what is not there, or is no number");
            return false;
        }
        off += used;
    }
    *ret_used = off;
    if (r == TCPSTORE_E_BAD)
        complain(c, "that is no request, or one over a limit");
    return r != TCPSTORE_E_BAD;
}

/* Room for @len bytes of a request; they count as the job's. False: there is none. */
static bool make_room(struct rdzv_conn *c, size_t len)
{
    size_t cap = 2 * c->in_cap > len ? 2 * c->in_cap : len;
    uint8_t *in;

    if (len <= c->in_cap)
        return true;
    if (!rdzv_quota_has(&c->job->quota, cap - c->in_cap, 0))
        return false;
    in = realloc(c->in, cap);
    if (!in)
        return false;
    rdzv_quota_take(&c->job->quota, cap - c->in_cap, 0);
    c->in = in;
    c->in_cap = cap;
    return true;
}

void rdzv__store_forget_input(struct rdzv_conn *c)
{
    rdzv_quota_give(&c->job->quota, c->in_cap, 0);
    free(c->in);
    c->in = NULL;
    c->in_cap = 0;
    c->in_len = 0;
}

/* @n bytes have come into the read buffer. False: hang up. */
static bool take_in(struct rdzv_conn *c, size_t n)
{
    const uint8_t *p = c->job->rz->read_buf;
    size_t len = c->in_len + n;
    size_t used = 0;

    if (c->in_len > 0) {
        if (!make_room(c, len))
            return false;
        memcpy(c->in + c->in_len, p, n);
        p = c->in;
    }
    if (!handle(c, p, len, &used))
        return false;
    if (used == len) {
        rdzv__store_forget_input(c);
        return true;
    }
    if (!make_room(c, len - used))
        return false;
    memmove(c->in, p + used, len - used);
    c->in_len = len - used;
    return true;
}

static void on_event(uv_poll_t *poll, int status, int events)
{
    struct rdzv_conn *c = poll->data;
    struct rdzv_job *job = c->job;
    ssize_t n;

    if (events & UV_WRITABLE)
        send_out(c);
    if (uv_is_closing((uv_handle_t *)poll) || !(c->events & UV_READABLE))
        return;
    n = recv(c->fd, job->rz->read_buf, sizeof(job->rz->read_buf), 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    job->heard = clock_now();
    if (n <= 0 || !take_in(c, (size_t)n))
        rdzv__hang_up(c);
    send_all(&job->kv);
}

void rdzv__store_begin(struct rdzv_conn *c)
{
    c->is_store = true;
    rdzv_client_init(&c->client, TCPSTORE_UNKNOWN);
    c->events = 0;
    rdzv__poll(c, UV_READABLE, on_event);
}
