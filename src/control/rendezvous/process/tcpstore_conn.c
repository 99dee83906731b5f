/* tcpstore_conn.c - see rdzv_process.h. */
#include "rendezvous/process/rdzv_process.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "os/clock.h"

/* No requests are read from a client that has more unread answers than this. */
#define OUT_PAUSE (256u << 10)

/* A client's share of a turn of the loop: the time for its requests, and the bytes that are sent to
 * it. TCPSTORE_CONNS_READ_MAX is how much is read. */
#define TURN_TIME (2 * NSEC_PER_MSEC)
#define TURN_SEND (1u << 20)

/* Most pieces of output that are sent with one call. */
#define SEND_RUNS 64

/** A connection. */
struct tcpstore_conn {
    struct rdzv_conn *c;           /* pins: it frees this */
    struct tcpstore_conns *all;    /* pins */
    struct tcpstore_client client; /* its part in the job's TCPStore */
    uint8_t *in;      /* owns; requests that are not handled yet; the last may be cut */
    size_t in_len;    /* bytes of them */
    size_t in_cap;    /* room for them */
    size_t in_need;   /* how many bytes the first request needs to be complete */
    bool has_more;    /* @in may hold complete requests, for the next turn */
    struct list turn; /* in tcpstore_conns.turns while it waits for its next turn */
};

static void on_event(uv_poll_t *poll, int status, int events);
static void on_turn(uv_timer_t *timer);

/* ---- sending -------------------------------------------------------------------------------- */

/* Polls for what can be done next on the connection. */
static void poll_for(struct tcpstore_conn *tc)
{
    size_t unsent = tc->client.out.len;
    bool is_heard = unsent < OUT_PAUSE && !tc->has_more;

    rdzv_conn_poll(tc->c, (is_heard ? UV_READABLE : 0) | (unsent > 0 ? UV_WRITABLE : 0), on_event);
}

/* Sends as much as the socket takes and its share of the turn allows. False: the connection is
 * broken. */
static bool send_some(struct tcpstore_conn *tc)
{
    struct tcpstore_client *cl = &tc->client;
    size_t sent = 0;

    while (cl->out.len > 0 && sent < TURN_SEND) {
        struct iovec iov[SEND_RUNS];
        struct msghdr msg = {.msg_iov = iov};
        ssize_t n;

        msg.msg_iovlen = tcpstore_out_peek(&cl->out, iov, SEND_RUNS);
        n = sendmsg(tc->c->fd, &msg, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN;
        tcpstore_client_sent(cl, (size_t)n);
        sent += (size_t)n;
    }
    return true;
}

/* Gives a client with more requests another turn, unless it has too many unread answers. */
static void schedule(struct tcpstore_conn *tc)
{
    uv_timer_t *timer = &tc->all->next;

    if (!tc->has_more || tc->client.out.len >= OUT_PAUSE || !list_is_empty(&tc->turn))
        return;
    list_add_tail(&tc->all->turns, &tc->turn);
    if (!uv_is_active((uv_handle_t *)timer))
        (void)uv_timer_start(timer, on_turn, 0, 0);
}

static void send_out(struct tcpstore_conn *tc)
{
    if (!send_some(tc)) {
        rdzv_conn_hang_up(tc->c);
        return;
    }
    schedule(tc);
    poll_for(tc);
}

/* Ends a connection. The answers to its earlier requests are sent before, so that the request which
 * fails at the client is the one that was refused. */
static void refuse(struct tcpstore_conn *tc)
{
    if (!tc->c->job)
        return;
    (void)send_some(tc);
    rdzv_conn_hang_up(tc->c);
}

/* Sends to all clients that have output: one request may have answered many. */
static void send_all(struct rdzv_job *job)
{
    struct tcpstore_server *ts = &job->tcpstore;
    struct tcpstore_client *cl;

    /* The hub gets all changes before any client gets an answer: see rdzv_link.h. */
    if (!list_is_empty(&ts->ready))
        rdzv_jobs_flush(job->jobs);
    while ((cl = list_first(&ts->ready, struct tcpstore_client, ready))) {
        struct tcpstore_conn *tc = container_of(cl, struct tcpstore_conn, client);

        list_remove(&cl->ready);
        if (cl->failed)
            refuse(tc);
        else
            send_out(tc);
    }
}

/* ---- requests ------------------------------------------------------------------------------- */

/* Why a request is refused. */
static const char *words_of(int r)
{
    if (r == TCPSTORE_SERVER_E_FULL)
        return "the job or its network is full (48 and 64 MiB, 65536 entries)";
    if (r == TCPSTORE_SERVER_E_LONG)
        return "a value would be longer than 8 MiB";
    return "it asks for what is not there, or is no number";
}

/* Before a connection is ended: count that, and log why, at a limited rate. */
static void complain(struct rdzv_conn *c, const char *why)
{
    char text[IP_ADDR_TEXT_MAX];

    c->conns->n_hung_up++;
    log_limited(&c->conns->limit, clock_now(), LOG_LEVEL_INFO,
        "a connection of %s to job \"%s\" is ended: %s", ip_addr_format(&c->from, text),
        c->job->name, why);
}

/* Handles the first request of @len bytes at @p. 0: it had @ret_used bytes; TCPSTORE_E_MORE: it is
 * not complete; TCPSTORE_E_BAD: end the connection. */
static int handle_one(struct tcpstore_conn *tc, const uint8_t *p, size_t len, size_t *ret_used)
{
    struct tcpstore_request rq;
    size_t used;
    int r = tcpstore_decode(&rq, tc->client.dialect, p, len, &used);

    if (r == TCPSTORE_E_MORE)
        tc->in_need = used;
    if (r == TCPSTORE_E_BAD) {
        rdzv_quota_refuse(&tc->c->job->quota, "a request was too long");
        complain(tc->c, "that is no request, or a key over 8 KiB, a value over 8 MiB, or a request "
                        "over 16 MiB or of more than 16384 keys");
    }
    if (r != 0)
        return r;
    tc->all->n_requests++;
    r = tcpstore_server_handle(&tc->c->job->tcpstore, &tc->client, &rq);
    *ret_used = used;
    if (r != 0)
        complain(tc->c, words_of(r));
    return r == 0 ? 0 : TCPSTORE_E_BAD;
}

/* Handles the requests that are complete, within its share of the turn. @ret_used: their bytes.
 * False: end the connection. */
static bool handle(struct tcpstore_conn *tc, const uint8_t *p, size_t len, size_t *ret_used)
{
    nsec_t end = clock_now() + TURN_TIME;
    size_t off = 0;
    int r = 0;

    if (tc->client.dialect == TCPSTORE_UNKNOWN) {
        tc->client.dialect = tcpstore_dialect(p, len);
        off = tc->client.dialect == TCPSTORE_VALIDATED ? TCPSTORE_HELLO_SIZE : 0;
    }
    tc->has_more = false;
    while (r == 0 && off < len && !tc->client.failed && tc->client.dialect != TCPSTORE_UNKNOWN) {
        size_t used = 0;

        if (tc->client.out.len >= OUT_PAUSE || clock_now() >= end) {
            tc->has_more = true;
            break;
        }
        r = handle_one(tc, p + off, len - off, &used);
        off += used;
    }
    *ret_used = off;
    return r != TCPSTORE_E_BAD;
}

/* Makes room for @len bytes of requests, which count in the job's quota. False: there is none, and
 * that was said. */
static bool make_space(struct tcpstore_conn *tc, size_t len)
{
    struct rdzv_quota *quota = &tc->c->job->quota;
    size_t cap = 2 * tc->in_cap > len ? 2 * tc->in_cap : len;
    size_t most = tc->in_need > len ? tc->in_need : len;
    uint8_t *in = NULL;

    if (len <= tc->in_cap)
        return true;
    if (cap > most)
        cap = most;
    /* There has to be room for the whole request, as its lengths announce it: if not, its client is
     * told before it has sent all of it. */
    if (rdzv_quota_has(quota, most - tc->in_cap, 0))
        in = realloc(tc->in, cap);
    if (!in) {
        rdzv_quota_refuse(quota, "the job or its network is full");
        complain(tc->c, words_of(TCPSTORE_SERVER_E_FULL));
        return false;
    }
    rdzv_quota_take(quota, cap - tc->in_cap, 0);
    tc->in = in;
    tc->in_cap = cap;
    return true;
}

static void forget_input(struct tcpstore_conn *tc)
{
    list_remove(&tc->turn);
    rdzv_quota_give(&tc->c->job->quota, tc->in_cap, 0);
    free(tc->in);
    tc->in = NULL;
    tc->in_cap = 0;
    tc->in_len = 0;
    tc->in_need = 0;
}

/* Keeps the @len bytes at @p, which may lie in @tc->in, for later. False: there is no room. */
static bool keep(struct tcpstore_conn *tc, const uint8_t *p, size_t len)
{
    bool is_in = tc->in && p >= tc->in && p <= tc->in + tc->in_len;
    uint8_t *in = NULL;

    if (len == 0) {
        forget_input(tc);
        return true;
    }
    if (!is_in && !make_space(tc, len))
        return false;
    memmove(tc->in, p, len);
    tc->in_len = len;
    /* Give back the room of a large request that has been handled. */
    if (tc->in_cap > 2 * TCPSTORE_CONNS_READ_MAX && len <= TCPSTORE_CONNS_READ_MAX &&
        tc->in_need <= TCPSTORE_CONNS_READ_MAX)
        in = realloc(tc->in, TCPSTORE_CONNS_READ_MAX);
    if (in) {
        rdzv_quota_give(&tc->c->job->quota, tc->in_cap - TCPSTORE_CONNS_READ_MAX, 0);
        tc->in = in;
        tc->in_cap = TCPSTORE_CONNS_READ_MAX;
    }
    return true;
}

/* Handles the requests at @p, and keeps the rest. False: end the connection. */
static bool work(struct tcpstore_conn *tc, const uint8_t *p, size_t len)
{
    size_t used = 0;

    tc->in_need = 0;
    if (!handle(tc, p, len, &used) || !keep(tc, p + used, len - used))
        return false;
    schedule(tc);
    return true;
}

/* Takes @n bytes that have come into the read buffer. False: end the connection. */
static bool take_in(struct tcpstore_conn *tc, size_t n)
{
    const uint8_t *p = tc->all->read_buf;

    if (tc->in_len == 0)
        return work(tc, p, n);
    if (!make_space(tc, tc->in_len + n))
        return false;
    memcpy(tc->in + tc->in_len, p, n);
    tc->in_len += n;
    return tc->in_len < tc->in_need || work(tc, tc->in, tc->in_len);
}

static void on_event(uv_poll_t *poll, int status, int events)
{
    struct rdzv_conn *c = poll->data;
    struct tcpstore_conn *tc = c->state;
    struct rdzv_job *job = c->job;
    ssize_t n;

    if (events & UV_WRITABLE)
        send_out(tc);
    if (uv_is_closing((uv_handle_t *)poll) || !(c->events & UV_READABLE))
        return;
    n = recv(c->fd, tc->all->read_buf, sizeof(tc->all->read_buf), 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    job->heard_at = clock_now();
    if (n <= 0)
        rdzv_conn_hang_up(c);
    else if (!take_in(tc, (size_t)n))
        refuse(tc);
    else
        poll_for(tc);
    send_all(job);
}

/* ---- turns ---------------------------------------------------------------------------------- */

/* Gives a turn to each client that waits for one now. */
static void on_turn(uv_timer_t *timer)
{
    struct tcpstore_conns *all = container_of(timer, struct tcpstore_conns, next);
    struct tcpstore_conn *tc;
    struct list now;

    list_init(&now);
    list_add_tail(&all->turns, &now);
    list_remove(&all->turns);
    while ((tc = list_first(&now, struct tcpstore_conn, turn))) {
        struct rdzv_job *job = tc->c->job;

        list_remove(&tc->turn);
        if (!work(tc, tc->in, tc->in_len))
            refuse(tc);
        else
            poll_for(tc);
        send_all(job);
    }
    if (!list_is_empty(&all->turns))
        (void)uv_timer_start(&all->next, on_turn, 0, 0);
}

void tcpstore_conns_start(struct tcpstore_conns *all, struct uv_loop_s *loop)
{
    list_init(&all->turns);
    (void)uv_timer_init(loop, &all->next);
}

/* ---- connections ---------------------------------------------------------------------------- */

static void detach(struct rdzv_conn *c)
{
    struct tcpstore_conn *tc = c->state;

    forget_input(tc);
    tcpstore_client_deinit(&c->job->tcpstore, &tc->client);
}

static void free_state(struct rdzv_conn *c)
{
    free(c->state);
}

static const struct rdzv_protocol protocol = {.detach = detach, .free = free_state};

void tcpstore_conn_begin(struct tcpstore_conns *all, struct rdzv_conn *c)
{
    struct tcpstore_conn *tc = calloc(1, sizeof(*tc));

    if (!tc) {
        rdzv_conn_hang_up(c);
        return;
    }
    tc->c = c;
    tc->all = all;
    list_init(&tc->turn);
    tcpstore_client_init(&tc->client, TCPSTORE_UNKNOWN);
    c->protocol = &protocol;
    c->state = tc;
    rdzv_conn_poll(c, 0, NULL);
    rdzv_conn_poll(c, UV_READABLE, on_event);
}
