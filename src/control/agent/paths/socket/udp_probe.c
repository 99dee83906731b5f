/* udp_probe.c - see udp_probe.h. */
#include "agent/paths/socket/udp_probe.h"

#include <string.h>

#include "agent/paths/socket/stun_socket.h"
#include "os/clock.h"
#include "os/rng_kernel.h"

void udp_probe_init(struct udp_probe *p, struct uv_loop_s *loop, udp_probe_fn on_answer, void *ctx)
{
    *p = (struct udp_probe){.loop = loop, .rng = rng_kernel(), .on_answer = on_answer, .ctx = ctx};
}

void udp_probe_stop(struct udp_probe *p)
{
    for (unsigned i = 0; i < 2; i++)
        p->sock[i] = stun_socket_close(p->sock[i]);
}

static void on_datagram(void *ctx, const uint8_t *msg, size_t len)
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

static struct udp_probe_request *find_place(struct udp_probe *p)
{
    struct udp_probe_request *oldest = &p->requests[0];

    for (unsigned i = 1; i < UDP_PROBE_MAX; i++)
        if (p->requests[i].sent_at < oldest->sent_at)
            oldest = &p->requests[i];
    return oldest;
}

void udp_probe_ask(struct udp_probe *p, const struct endpoint *to, nsec_t now)
{
    bool v4 = ip_addr_is_v4(&to->addr);
    struct stun_socket **sock = &p->sock[v4 ? 0 : 1];
    uint8_t request[STUN_REQUEST_SIZE];
    struct udp_probe_request *rq;

    if (!*sock)
        *sock = stun_socket_open(p->loop, v4, on_datagram, p);
    if (!*sock)
        return;
    rq = find_place(p);
    *rq = (struct udp_probe_request){.to = *to, .sent_at = now};
    rng_fill(&p->rng, rq->id.b, sizeof(rq->id.b));
    stun_encode_request(&rq->id, request);
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
