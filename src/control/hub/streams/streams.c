/* streams.c - see streams.h. */
#include "streams.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <uv.h>

#include "api/content/route.h"
#include "api/server/server.h"
#include "base/err.h"
#include "base/rate.h"
#include "hub/model/model.h"
#include "net/socket/stream_pump.h"
#include "net/socket/udp_batch.h"
#include "net/tun/offload.h"
#include "os/clock.h"
#include "wire/stun.h"

/* The protocol that a request's Upgrade header has to name. */
#define STREAMS_PROTOCOL "weft-stream"

/* ---- STUN on a second UDP port --------------------------------------------------------------- */

struct stun_port {
    struct udp_sockets sockets;
    struct udp_inbox inbox;
    struct udp_outbox outbox;
    struct ratelimit longer;      /* of answers that are longer than their requests */
    uv_poll_t poll[UDP_FAMILY_N]; /* of the sockets that there are */
    unsigned n_handles;           /* that are not closed yet */
};

static void answer(struct stun_port *sp, const struct udp_run *run, nsec_t now)
{
    uint8_t out[STUN_ANSWER_MAX];
    struct udp_run reply = {.buf = out, .path = run->path};
    struct stun_request req;

    /* Requests that arrive merged are none of an honest client's. */
    if (stun_decode_request(&req, run->buf, run->len) != 0)
        return;
    stun_refuse_port(&req);
    reply.len = (uint32_t)stun_encode_answer(&req, &run->path.remote, out);
    reply.seg = (uint16_t)reply.len;
    if (reply.len > run->len && !ratelimit_allow(&sp->longer, &run->path.remote.addr, now))
        return;
    udp_outbox_add(&sp->outbox, &sp->sockets, &reply);
    udp_outbox_flush(&sp->outbox, &sp->sockets);
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    struct stun_port *sp = poll->data;
    nsec_t now = clock_now();
    uv_os_fd_t fd;
    unsigned n;

    if (uv_fileno((uv_handle_t *)poll, &fd) != 0)
        return;
    n = udp_receive(&sp->inbox, fd);
    for (unsigned i = 0; i < n; i++)
        answer(sp, &sp->inbox.runs[i], now);
}

static void on_closed(uv_handle_t *handle)
{
    struct stun_port *sp = handle->data;

    if (--sp->n_handles > 0)
        return;
    udp_close(&sp->sockets);
    udp_inbox_deinit(&sp->inbox);
    udp_outbox_deinit(&sp->outbox);
    ratelimit_deinit(&sp->longer);
    free(sp);
}

int stun_port_new(
    struct stun_port **ret, struct uv_loop_s *loop, uint16_t port, uint64_t seed, struct err *e)
{
    struct stun_port *sp = calloc(1, sizeof(*sp));
    struct offloads none = {0};
    int r = -ENOMEM;

    if (!sp)
        return err_set(e, r, "no memory for a STUN port");
    ratelimit_init(&sp->longer, STUN_LIMIT_EACH, STUN_LIMIT_BURST, seed);
    r = udp_inbox_init(&sp->inbox);
    if (r == 0)
        r = udp_outbox_init(&sp->outbox, false, false);
    r = r < 0 ? err_set(e, r, "no memory for a STUN port")
              : udp_open(&sp->sockets, port, 0, UDP_SHARE_NONE, &none, e);
    if (r < 0) {
        udp_inbox_deinit(&sp->inbox);
        udp_outbox_deinit(&sp->outbox);
        free(sp);
        return r;
    }
    for (unsigned i = 0; i < UDP_FAMILY_N; i++) {
        if (sp->sockets.fd[i] < 0)
            continue;
        (void)uv_poll_init(loop, &sp->poll[i], sp->sockets.fd[i]);
        sp->poll[i].data = sp;
        sp->n_handles++;
        (void)uv_poll_start(&sp->poll[i], UV_READABLE, on_readable);
    }
    *ret = sp;
    return 0;
}

struct stun_port *stun_port_free(struct stun_port *sp)
{
    for (unsigned i = 0; sp && i < UDP_FAMILY_N; i++)
        if (sp->sockets.fd[i] >= 0)
            uv_close((uv_handle_t *)&sp->poll[i], on_closed);
    return NULL;
}

/* ---- members' streams ------------------------------------------------------------------------ */

/** The hub's end of one stream. Freed when its handles have closed. */
struct stream_end {
    struct list link;              /* in all */
    struct list of_node;           /* in the node's, oldest first */
    struct streams *s;             /* pins */
    const struct model_node *node; /* pins; NULL once it has ended */
    struct upgrade upgrade;        /* the connection */
    struct stream_pump pump;       /* the UDP end */
    struct endpoint from;          /* the other end of the connection */
    int fd;                        /* the connection's bytes; lent */
    bool is_open;                  /* the handles are there */
    uv_poll_t bytes;               /* of fd */
    uv_poll_t udp;                 /* of the UDP end */
    unsigned n_handles;            /* not closed yet */
    nsec_t heard_at;               /* when bytes last came */
};

void streams_init(struct streams *s, struct uv_loop_s *loop, uint16_t udp_port)
{
    *s = (struct streams){.loop = loop, .udp_port = udp_port};
    list_init(&s->all);
}

/* ---- the end of a stream -------------------------------------------------------------------- */

static void on_handle_closed(uv_handle_t *h)
{
    struct stream_end *e = h->data;

    if (--e->n_handles == 0)
        free(e);
}

/* Take the stream out of all lists. The caller sees to the connection. */
static void forget(struct stream_end *e)
{
    e->s->n--;
    e->s->rx_bytes += e->pump.rx_bytes;
    e->s->tx_bytes += e->pump.tx_bytes;
    list_remove(&e->link);
    list_remove(&e->of_node);
    if (!e->is_open) {
        stream_pump_close(&e->pump);
        free(e);
        return;
    }
    uv_close((uv_handle_t *)&e->bytes, on_handle_closed);
    uv_close((uv_handle_t *)&e->udp, on_handle_closed);
    stream_pump_close(&e->pump);
}

static void end(struct stream_end *e)
{
    struct upgrade *u = &e->upgrade;

    /* It is not open yet; when it opens, it finds that its node is gone. */
    if (!e->is_open) {
        list_remove(&e->of_node);
        e->node = NULL;
        return;
    }
    forget(e);
    upgrade_end(u);
}

static void end_because(struct stream_end *e, const char *why)
{
    char text[ENDPOINT_TEXT_MAX];

    if (e->node)
        log_limited(&e->s->limit, clock_now(), LOG_LEVEL_INFO,
            "the stream of node \"%s\" of network \"%s\" from %s has ended: %s",
            e->node->spec.meta.name, e->node->net->spec.meta.name, endpoint_format(&e->from, text),
            why);
    end(e);
}

/* ---- bytes ---------------------------------------------------------------------------------- */

static ssize_t read_bytes(void *ctx, void *buf, size_t cap)
{
    struct stream_end *e = ctx;
    ssize_t n = recv(e->fd, buf, cap, 0);

    if (n < 0)
        return -errno;
    e->heard_at = clock_now();
    return n;
}

static ssize_t write_bytes(void *ctx, const void *buf, size_t len)
{
    const struct stream_end *e = ctx;
    ssize_t n = send(e->fd, buf, len, MSG_NOSIGNAL);

    return n < 0 ? -errno : n;
}

static void on_ready(uv_poll_t *poll, int status, int events);

/* Say what the loop is to wait for: while the connection is full, no datagram is read. */
static void wait_for(struct stream_end *e)
{
    bool is_full = stream_pump_is_full(&e->pump);

    (void)uv_poll_start(&e->bytes, UV_READABLE | (is_full ? UV_WRITABLE : 0), on_ready);
    if (is_full)
        (void)uv_poll_stop(&e->udp);
    else
        (void)uv_poll_start(&e->udp, UV_READABLE, on_ready);
}

static void on_ready(uv_poll_t *poll, int status, int events)
{
    struct stream_end *e = poll->data;
    struct stream_bytes bytes = {.read = read_bytes, .write = write_bytes, .ctx = e};
    int r = 0;

    if (poll == &e->bytes && (status < 0 || (events & UV_READABLE)))
        r = stream_pump_inward(&e->pump, &bytes);
    if (r == 0 || r == STREAM_PUMP_E_MORE)
        r = stream_pump_outward(&e->pump, &bytes);
    if (r == 0 || r == STREAM_PUMP_E_MORE)
        wait_for(e);
    else if (r == STREAM_PUMP_E_ENDED)
        end_because(e, "its node has closed it");
    else
        end_because(e, r == STREAM_PUMP_E_GARBAGE ? "what came is not a frame" : strerror(-r));
}

/* ---- the beginning -------------------------------------------------------------------------- */

static void on_upgraded(struct upgrade *u, int fd, const void *early, size_t len)
{
    struct stream_end *e = container_of(u, struct stream_end, upgrade);
    struct endpoint ep = stream_pump_local(&e->pump);

    e->fd = fd;
    e->is_open = true;
    e->n_handles = 2;
    e->heard_at = clock_now();
    (void)uv_poll_init(e->s->loop, &e->bytes, fd);
    (void)uv_poll_init(e->s->loop, &e->udp, e->pump.udp_fd);
    e->bytes.data = e;
    e->udp.data = e;
    if (!e->node || stream_pump_take(&e->pump, early, len) != 0) {
        /* It must not be freed in this call. Reading then finds the end, and frees it. */
        (void)shutdown(fd, SHUT_RDWR);
    } else if (e->s->on_open) {
        e->s->on_open(e->s->ctx, e->node, &ep);
    }
    wait_for(e);
}

static void on_gone(struct upgrade *u)
{
    forget(container_of(u, struct stream_end, upgrade));
}

/* End the node's oldest streams until there is room for a new one. */
static void make_space(const struct model_node *node)
{
    struct stream_end *e;
    struct stream_end *tmp;
    unsigned n = 0;

    list_foreach(e, &node->served->streams, of_node)
        n++;
    list_foreach_safe(e, tmp, &node->served->streams, of_node) {
        if (n-- < STREAMS_BY_NODE)
            break;
        end(e);
    }
}

void streams_open(
    struct streams *s, const struct model_node *node, const struct request *rq, struct response *rs)
{
    struct endpoint hub = {
        .addr = ip_addr_v4((const uint8_t[4]){127, 0, 0, 1}), .port = s->udp_port};
    struct endpoint own = {.port = 0};
    struct stream_end *e;
    uint16_t address;
    struct err err = ERR_NULL;
    char text[ENDPOINT_TEXT_MAX];

    make_space(node);
    if (s->n >= STREAMS_MAX) {
        response_refuse(rs, 503, "%u streams are open, and no more are taken", s->n);
        return;
    }
    e = calloc(1, sizeof(*e));
    address = s->next_address++;
    own.addr = ip_addr_v4((const uint8_t[4]){127, 87, (uint8_t)(address >> 8), (uint8_t)address});
    if (!e || stream_pump_open(&e->pump, &own, &hub, true, &err) < 0) {
        response_refuse(rs, 500, "%s", e ? err_text(&err) : "no memory for a stream");
        free(e);
        return;
    }
    e->s = s;
    e->node = node;
    e->from = rq->from;
    e->upgrade = (struct upgrade){
        .protocol = STREAMS_PROTOCOL, .on_open = on_upgraded, .on_closed = on_gone};
    list_add_tail(&s->all, &e->link);
    list_add_tail(&node->served->streams, &e->of_node);
    s->n++;
    log_limited(&s->limit, rq->now, LOG_LEVEL_INFO,
        "node \"%s\" of network \"%s\" opens a stream from %s", node->spec.meta.name,
        node->net->spec.meta.name, endpoint_format(&rq->from, text));
    rs->status = 101;
    rs->upgrade = &e->upgrade;
}

bool streams_is_near(const struct endpoint *ep)
{
    const struct ip_addr all = ip_addr_v4((const uint8_t[4]){127, 87, 0, 0});

    return memcmp(ep->addr.b, all.b, sizeof(all.b) - 2) == 0;
}

bool streams_far_end(
    const struct model_node *node, const struct endpoint *near, struct endpoint *ret)
{
    const struct stream_end *e;

    list_foreach(e, &node->served->streams, of_node) {
        struct endpoint own = stream_pump_local(&e->pump);

        if (!endpoint_equal(&own, near))
            continue;
        *ret = e->from;
        return true;
    }
    return false;
}

/* ---- all of them ---------------------------------------------------------------------------- */

void streams_end_node(const struct model_node *node)
{
    struct stream_end *e;
    struct stream_end *tmp;

    list_foreach_safe(e, tmp, &node->served->streams, of_node)
        end(e);
}

void streams_stop(struct streams *s)
{
    struct stream_end *e;
    struct stream_end *tmp;

    list_foreach_safe(e, tmp, &s->all, link)
        end(e);
}

void streams_tick(struct streams *s, nsec_t now)
{
    struct stream_end *e;
    struct stream_end *tmp;

    list_foreach_safe(e, tmp, &s->all, link) {
        if (e->is_open && now - e->heard_at >= STREAMS_IDLE)
            end_because(e, "it was silent");
    }
}

void streams_count_bytes(const struct streams *s, uint64_t *ret_rx, uint64_t *ret_tx)
{
    struct stream_end *e;

    *ret_rx = s->rx_bytes;
    *ret_tx = s->tx_bytes;
    list_foreach(e, &s->all, link) {
        *ret_rx += e->pump.rx_bytes;
        *ret_tx += e->pump.tx_bytes;
    }
}
