/* stun_port.c - see stun_port.h. */
#include "hub/streams/stun_port.h"

#include <errno.h>
#include <stdlib.h>
#include <uv.h>

#include "base/err.h"
#include "net/socket/udp_batch.h"
#include "net/tun/offload.h"
#include "noise/ratelimit.h"
#include "os/clock.h"
#include "wire/stun.h"

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

static void start(struct stun_port *sp, struct uv_loop_s *loop)
{
    for (unsigned i = 0; i < UDP_FAMILY_N; i++) {
        if (sp->sockets.fd[i] < 0)
            continue;
        (void)uv_poll_init(loop, &sp->poll[i], sp->sockets.fd[i]);
        sp->poll[i].data = sp;
        sp->n_handles++;
        (void)uv_poll_start(&sp->poll[i], UV_READABLE, on_readable);
    }
}

int stun_port_new(
    struct stun_port **ret, struct uv_loop_s *loop, uint16_t port, uint64_t seed, struct err *e)
{
    struct stun_port *sp = calloc(1, sizeof(*sp));
    struct offloads none = {0};
    int r = -ENOMEM;

    if (!sp)
        return err_set(e, r, "no memory for a STUN port");
    sp->sockets = (struct udp_sockets)UDP_SOCKETS_NULL;
    ratelimit_init(&sp->longer, seed);
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
    start(sp, loop);
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
