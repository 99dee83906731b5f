/*
 * rdzv_store.c - connections that speak TCPStore: bytes in, requests, answers, bytes out.
 *
 * What a request does is in rdzv_kv.c. Answers are sent at the end of what was
 * read at once, so a client that asks many things in a row costs few calls.
 *
 * A client has a budget of bytes and of time in a turn of the loop. One that has asked for more
 * than goes into it has the rest of its requests kept, is not read from meanwhile, and goes on in
 * the next turn, after all others have had theirs.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/err.h"
#include "rendezvous/rdzv_internal.h"
#include "os/clock.h"

/* A client that does not take its answers is not heard until it does. */
#define OUT_PAUSE (256u << 10)

/* A client's part of a turn of the loop: handling requests, and bytes that are sent. What is read
 * at once is RDZV__READ_MAX. */
#define TURN_TIME (2 * NSEC_PER_MSEC)
#define TURN_SEND (1u << 20)

/* Runs of bytes that are sent with one call. */
#define SEND_RUNS 64

static void on_event(uv_poll_t *poll, int status, int events);
static void on_turn(uv_timer_t *timer);

/* ---- sending -------------------------------------------------------------------------------- */

/* What may happen next on the connection. */
static void poll_for(struct rdzv_conn *c)
{
    size_t unsent = c->client.out.len;
    bool is_heard = unsent < OUT_PAUSE && !c->has_more;

    rdzv__poll(c, (is_heard ? UV_READABLE : 0) | (unsent > 0 ? UV_WRITABLE : 0), on_event);
}

/* As much as the socket takes, and the budget allows. False: the connection is broken. */
static bool send_some(struct rdzv_conn *c)
{
    struct rdzv_client *cl = &c->client;
    size_t sent = 0;

    while (cl->out.len > 0 && sent < TURN_SEND) {
        struct iovec iov[SEND_RUNS];
        struct msghdr msg = {.msg_iov = iov};
        ssize_t n;

        msg.msg_iovlen = rdzv_out_peek(&cl->out, iov, SEND_RUNS);
        n = sendmsg(c->fd, &msg, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN;
        rdzv_client_sent(cl, (size_t)n);
        sent += (size_t)n;
    }
    return true;
}

/* Who has asked for more, and takes the answers, has a turn later. */
static void schedule(struct rdzv_conn *c)
{
    uv_timer_t *timer = &c->job->rz->later;

    if (!c->has_more || c->client.out.len >= OUT_PAUSE || !list_is_empty(&c->turn))
        return;
    list_add_tail(&c->job->rz->turns, &c->turn);
    if (!uv_is_active((uv_handle_t *)timer))
        (void)uv_timer_start(timer, on_turn, 0, 0);
}

static void send_out(struct rdzv_conn *c)
{
    if (!send_some(c)) {
        rdzv__hang_up(c);
        return;
    }
    schedule(c);
    poll_for(c);
}

/* What it was answered before goes out first: the call that fails is the one that is refused. */
static void refuse(struct rdzv_conn *c)
{
    if (!c->job)
        return;
    (void)send_some(c);
    rdzv__hang_up(c);
}

/* Everybody for whom there is something; a request may have answered many. */
static void send_all(struct rdzv *rz, struct rdzv_kv *kv)
{
    struct rdzv_client *cl;

    /* What is acknowledged is in the hub's hands, whatever becomes of this process. */
    if (!list_is_empty(&kv->ready))
        rdzv__flush(rz);
    while ((cl = list_first(&kv->ready, struct rdzv_client, ready))) {
        struct rdzv_conn *c = container_of(cl, struct rdzv_conn, client);

        list_remove(&cl->ready);
        if (cl->failed)
            refuse(c);
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
        "a connection of %s to job \"%s\" is ended: %s", ip_addr_format(&c->from, text),
        c->job->name, why);
}

/* Why a request is refused. */
static const char *words_of(int r)
{
    if (r == RDZV_KV_E_FULL)
        return "the job or its network is full (48 and 64 MiB, 65536 entries)";
    if (r == RDZV_KV_E_LONG)
        return "a value would be longer than 8 MiB";
    return "it asks for what is not there, or is no number";
}

/* Handles the first request of @len bytes. 0: one of @ret_used bytes; TCPSTORE_E_MORE: the next is
 * not complete; TCPSTORE_E_BAD: hang up. */
static int handle_one(struct rdzv_conn *c, const uint8_t *p, size_t len, size_t *ret_used)
{
    struct tcpstore_request rq;
    size_t used;
    int r = tcpstore_decode(&rq, c->client.dialect, p, len, &used);

    if (r == TCPSTORE_E_MORE)
        c->in_need = used;
    if (r == TCPSTORE_E_BAD) {
        rdzv_quota_refuse(&c->job->quota, "a request was too long");
        complain(c, "that is no request, or a key over 8 KiB, a value over 8 MiB, or a request "
                    "over 16 MiB or of more than 16384 keys");
    }
    if (r != 0)
        return r;
    c->job->rz->n_requests++;
    r = rdzv_kv_handle(&c->job->kv, &c->client, &rq);
    *ret_used = used;
    if (r != 0)
        complain(c, words_of(r));
    return r == 0 ? 0 : TCPSTORE_E_BAD;
}

/* The requests that are complete, as far as the budget goes; @ret_used: bytes of them. False: hang
 * up. */
static bool handle(struct rdzv_conn *c, const uint8_t *p, size_t len, size_t *ret_used)
{
    nsec_t end = clock_now() + TURN_TIME;
    size_t off = 0;
    int r = 0;

    if (c->client.dialect == TCPSTORE_UNKNOWN) {
        c->client.dialect = tcpstore_dialect(p, len);
        off = c->client.dialect == TCPSTORE_VALIDATED ? TCPSTORE_HELLO_SIZE : 0;
    }
    c->has_more = false;
    while (r == 0 && off < len && !c->client.failed && c->client.dialect != TCPSTORE_UNKNOWN) {
        size_t used = 0;

        if (c->client.out.len >= OUT_PAUSE || clock_now() >= end) {
            c->has_more = true;
            break;
        }
        r = handle_one(c, p + off, len - off, &used);
        off += used;
    }
    *ret_used = off;
    return r != TCPSTORE_E_BAD;
}

/* Room for @len bytes of requests; they count as the job's. False: there is none. */
static bool make_room(struct rdzv_conn *c, size_t len)
{
    size_t cap = 2 * c->in_cap > len ? 2 * c->in_cap : len;
    size_t most = c->in_need > len ? c->in_need : len;
    uint8_t *in;

    if (len <= c->in_cap)
        return true;
    if (cap > most)
        cap = most;
    /* Also all that was announced must find room: who sends it, is told early that it does not. */
    if (!rdzv_quota_has(&c->job->quota, most - c->in_cap, 0))
        return false;
    in = realloc(c->in, cap);
    if (!in)
        return false;
    rdzv_quota_take(&c->job->quota, cap - c->in_cap, 0);
    c->in = in;
    c->in_cap = cap;
    return true;
}

static bool make_room_or_complain(struct rdzv_conn *c, size_t len)
{
    if (make_room(c, len))
        return true;
    rdzv_quota_refuse(&c->job->quota, "the job or its network is full");
    complain(c, words_of(RDZV_KV_E_FULL));
    return false;
}

void rdzv__store_forget_input(struct rdzv_conn *c)
{
    list_remove(&c->turn);
    rdzv_quota_give(&c->job->quota, c->in_cap, 0);
    free(c->in);
    c->in = NULL;
    c->in_cap = 0;
    c->in_len = 0;
    c->in_need = 0;
}

/* The large request that it had room for has been handled. */
static void shrink(struct rdzv_conn *c)
{
    uint8_t *in = realloc(c->in, RDZV__READ_MAX);

    if (!in)
        return;
    rdzv_quota_give(&c->job->quota, c->in_cap - RDZV__READ_MAX, 0);
    c->in = in;
    c->in_cap = RDZV__READ_MAX;
}

/* What is left of @len bytes at @p, which may lie in @c->in, is kept. */
static bool keep(struct rdzv_conn *c, const uint8_t *p, size_t len)
{
    bool is_in = c->in && p >= c->in && p <= c->in + c->in_len;

    if (len == 0) {
        rdzv__store_forget_input(c);
        return true;
    }
    if (!is_in && !make_room_or_complain(c, len))
        return false;
    memmove(c->in, p, len);
    c->in_len = len;
    if (c->in_cap > 2 * RDZV__READ_MAX && len <= RDZV__READ_MAX && c->in_need <= RDZV__READ_MAX)
        shrink(c);
    return true;
}

/* Handles what is at @p. False: hang up. */
static bool work(struct rdzv_conn *c, const uint8_t *p, size_t len)
{
    size_t used = 0;

    c->in_need = 0;
    if (!handle(c, p, len, &used) || !keep(c, p + used, len - used))
        return false;
    schedule(c);
    return true;
}

/* @n bytes have come into the read buffer. False: hang up. */
static bool take_in(struct rdzv_conn *c, size_t n)
{
    const uint8_t *p = c->job->rz->read_buf;

    if (c->in_len == 0)
        return work(c, p, n);
    if (!make_room_or_complain(c, c->in_len + n))
        return false;
    memcpy(c->in + c->in_len, p, n);
    c->in_len += n;
    return c->in_len < c->in_need || work(c, c->in, c->in_len);
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
    if (n <= 0)
        rdzv__hang_up(c);
    else if (!take_in(c, (size_t)n))
        refuse(c);
    else
        poll_for(c);
    send_all(job->rz, &job->kv);
}

/* ---- turns ---------------------------------------------------------------------------------- */

/* A turn for each that waits for one now. */
static void on_turn(uv_timer_t *timer)
{
    struct rdzv *rz = container_of(timer, struct rdzv, later);
    struct list now;
    struct rdzv_conn *c;

    list_init(&now);
    list_add_tail(&rz->turns, &now);
    list_remove(&rz->turns);
    while ((c = list_first(&now, struct rdzv_conn, turn))) {
        struct rdzv_job *job = c->job;

        list_remove(&c->turn);
        if (!work(c, c->in, c->in_len))
            refuse(c);
        else
            poll_for(c);
        send_all(job->rz, &job->kv);
    }
    if (!list_is_empty(&rz->turns))
        (void)uv_timer_start(&rz->later, on_turn, 0, 0);
}

void rdzv__store_start(struct rdzv *rz)
{
    list_init(&rz->turns);
    (void)uv_timer_init(&rz->loop, &rz->later);
}

/* ---- connections ---------------------------------------------------------------------------- */

void rdzv__store_begin(struct rdzv_conn *c)
{
    c->is_store = true;
    list_init(&c->turn);
    rdzv_client_init(&c->client, TCPSTORE_UNKNOWN);
    c->events = 0;
    rdzv__poll(c, UV_READABLE, on_event);
}
