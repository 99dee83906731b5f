/* udp_probe.c - see udp_probe.h. */
#include "agent/udp_probe.h"

#include <string.h>

#include "sys/clock.h"
#include "sys/rng_kernel.h"
#include "sys/sockaddr.h"

void udp_probe_init(struct udp_probe *p, uv_loop_t *loop, udp_probe_fn on_answer, void *ctx)
{
    *p = (struct udp_probe){.loop = loop, .rng = rng_kernel(), .on_answer = on_answer, .ctx = ctx};
}

void udp_probe_stop(struct udp_probe *p)
{
    for (unsigned i = 0; i < 2; i++) {
        if (p->is_there[i])
            uv_close((uv_handle_t *)&p->sock[i], NULL);
        p->is_there[i] = false;
    }
}

static void give_room(uv_handle_t *h, size_t wanted, uv_buf_t *ret)
{
    struct udp_probe *p = h->data;

    *ret = uv_buf_init((char *)p->room, sizeof(p->room));
}

static void on_datagram(
    uv_udp_t *sock, ssize_t len, const uv_buf_t *buf, const struct sockaddr *from, unsigned flags)
{
    struct udp_probe *p = sock->data;
    nsec_t now = clock_now();
    struct stun_response answer;

    if (len <= 0 || (flags & UV_UDP_PARTIAL) ||
        stun_decode_response(&answer, p->room, (size_t)len) != 0)
        return;
    for (unsigned i = 0; i < UDP_PROBE_MAX; i++) {
        struct udp_probe_request *rq = &p->requests[i];
        struct endpoint to = rq->to;
        nsec_t rtt = now - rq->sent;

        if (rq->sent == 0 || memcmp(&rq->id, &answer.id, sizeof(rq->id)) != 0)
            continue;
        rq->sent = 0;
        p->on_answer(p->ctx, &to, rtt);
        return;
    }
}

static bool open_socket(struct udp_probe *p, unsigned which)
{
    uv_udp_t *sock = &p->sock[which];
    struct endpoint any = {.port = 0};
    union sockaddr_inet sa;

    if (p->is_there[which])
        return true;
    if (which == 0)
        any.addr = ip_addr_v4((const uint8_t[4]){0});
    (void)sockaddr_from_endpoint(&sa, &any);
    if (uv_udp_init(p->loop, sock) != 0)
        return false;
    sock->data = p;
    p->is_there[which] = uv_udp_bind(sock, &sa.any, which == 1 ? UV_UDP_IPV6ONLY : 0) == 0 &&
                         uv_udp_recv_start(sock, give_room, on_datagram) == 0;
    if (!p->is_there[which])
        uv_close((uv_handle_t *)sock, NULL);
    return p->is_there[which];
}

static struct udp_probe_request *find_place(struct udp_probe *p)
{
    struct udp_probe_request *oldest = &p->requests[0];

    for (unsigned i = 1; i < UDP_PROBE_MAX; i++)
        if (p->requests[i].sent < oldest->sent)
            oldest = &p->requests[i];
    return oldest;
}

void udp_probe_ask(struct udp_probe *p, const struct endpoint *to, nsec_t now)
{
    unsigned which = ip_addr_is_v4(&to->addr) ? 0 : 1;
    uint8_t request[STUN_REQUEST_SIZE];
    struct udp_probe_request *rq;
    union sockaddr_inet sa;
    uv_buf_t buf = uv_buf_init((char *)request, sizeof(request));

    if (!open_socket(p, which))
        return;
    rq = find_place(p);
    *rq = (struct udp_probe_request){.to = *to, .sent = now};
    rng_fill(&p->rng, rq->id.b, sizeof(rq->id.b));
    stun_encode_request(&rq->id, request);
    (void)sockaddr_from_endpoint(&sa, to);
    (void)uv_udp_try_send(&p->sock[which], &buf, 1, &sa.any);
}
