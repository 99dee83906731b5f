/* stun_socket.c - see stun_socket.h. */
#include "agent/paths/socket/stun_socket.h"

#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "net/address/sockaddr.h"
#include "os/clock.h"

struct stun_socket {
    uv_udp_t handle;
    uint8_t buffer[128]; /* for one answer; what is longer is none, and ignored */
    bool is_closed;
    stun_socket_fn on_datagram;
    void *ctx; /* pins */
};

static void on_socket_closed(uv_handle_t *handle)
{
    free(handle->data);
}

static void lend_buffer(uv_handle_t *handle, size_t wanted, uv_buf_t *ret)
{
    struct stun_socket *s = handle->data;

    *ret = uv_buf_init((char *)s->buffer, sizeof(s->buffer));
}

static void on_stun_receive(
    uv_udp_t *handle, ssize_t len, const uv_buf_t *buf, const struct sockaddr *from, unsigned flags)
{
    struct stun_socket *s = handle->data;

    if (len > 0 && !(flags & UV_UDP_PARTIAL) && !s->is_closed)
        s->on_datagram(s->ctx, s->buffer, (size_t)len);
}

struct stun_socket *stun_socket_open(
    struct uv_loop_s *loop, bool v4, stun_socket_fn on_datagram, void *ctx)
{
    struct stun_socket *s = calloc(1, sizeof(*s));
    struct endpoint any = {.port = 0};
    union sockaddr_inet sa;

    if (!s)
        return NULL;
    *s = (struct stun_socket){.on_datagram = on_datagram, .ctx = ctx};
    if (v4)
        any.addr = ip_addr_v4((const uint8_t[4]){0});
    (void)sockaddr_from_endpoint(&sa, &any);
    if (uv_udp_init(loop, &s->handle) != 0) {
        free(s);
        return NULL;
    }
    s->handle.data = s;
    if (uv_udp_bind(&s->handle, &sa.any, v4 ? 0 : UV_UDP_IPV6ONLY) != 0 ||
        uv_udp_recv_start(&s->handle, lend_buffer, on_stun_receive) != 0)
        return stun_socket_close(s);
    return s;
}

struct stun_socket *stun_socket_close(struct stun_socket *s)
{
    if (!s)
        return NULL;
    s->is_closed = true;
    uv_close((uv_handle_t *)&s->handle, on_socket_closed);
    return NULL;
}

void stun_socket_send(
    struct stun_socket *s, const struct endpoint *to, const uint8_t *msg, size_t len)
{
    union sockaddr_inet sa;
    uv_buf_t buf = uv_buf_init((char *)msg, (unsigned)len);

    if (!s)
        return;
    (void)sockaddr_from_endpoint(&sa, to);
    (void)uv_udp_try_send(&s->handle, &buf, 1, &sa.any);
}

/* ---- does UDP get through? ------------------------------------------------------------------- */

void udp_probe_init(struct udp_probe *p, struct uv_loop_s *loop, udp_probe_fn on_answer, void *ctx)
{
    *p = (struct udp_probe){.loop = loop, .rng = rng_kernel(), .on_answer = on_answer, .ctx = ctx};
}

void udp_probe_stop(struct udp_probe *p)
{
    for (unsigned i = 0; i < 2; i++)
        p->sock[i] = stun_socket_close(p->sock[i]);
}

static void on_probe_datagram(void *ctx, const uint8_t *msg, size_t len)
{
    struct udp_probe *p = ctx;
    nsec_t now = clock_now();
    struct stun_response answer;

    if (stun_decode_response(&answer, msg, len) != 0)
        return;
    for (unsigned i = 0; i < UDP_PROBE_MAX; i++) {
        struct udp_probe_request *rq = &p->requests[i];
        struct endpoint to = rq->to;
        nsec_t rtt = now - rq->sent_at;

        if (rq->sent_at == 0 || memcmp(&rq->id, &answer.id, sizeof(rq->id)) != 0)
            continue;
        rq->sent_at = 0;
        p->on_answer(p->ctx, &to, rtt);
        return;
    }
}

void udp_probe_ask(struct udp_probe *p, const struct endpoint *to, nsec_t now)
{
    bool v4 = ip_addr_is_v4(&to->addr);
    struct stun_socket **sock = &p->sock[v4 ? 0 : 1];
    uint8_t request[STUN_REQUEST_SIZE];
    struct udp_probe_request *rq;

    if (!*sock)
        *sock = stun_socket_open(p->loop, v4, on_probe_datagram, p);
    if (!*sock)
        return;
    rq = &p->requests[0];
    for (unsigned i = 1; i < UDP_PROBE_MAX; i++)
        if (p->requests[i].sent_at < rq->sent_at)
            rq = &p->requests[i];
    *rq = (struct udp_probe_request){.to = *to, .sent_at = now};
    rng_fill(&p->rng, rq->id.b, sizeof(rq->id.b));
    stun_encode_request(&rq->id, 0, request);
    stun_socket_send(*sock, to, request, sizeof(request));
}

const struct udp_probe_request *udp_probe_unanswered(
    const struct udp_probe *p, const struct endpoint *to, nsec_t age, nsec_t now)
{
    const struct udp_probe_request *newest = NULL;

    for (unsigned i = 0; i < UDP_PROBE_MAX; i++) {
        const struct udp_probe_request *rq = &p->requests[i];

        if (rq->sent_at != 0 && now - rq->sent_at >= age && endpoint_equal(&rq->to, to) &&
            (!newest || rq->sent_at > newest->sent_at))
            newest = rq;
    }
    return newest;
}
