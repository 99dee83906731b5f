/* frames_raw.c - path frames beside the kernel's WireGuard; see frames.h and net/socket/raw_udp.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "engine/frames.h"
#include "net/socket/raw_udp.h"
#include "os/clock.h"

struct frames_raw {
    struct engine_frames frames;
    struct raw_udp udp;
};

static int raw_send(struct engine_frames *ef, const struct engine_frame *frame)
{
    struct frames_raw *fr = (struct frames_raw *)ef;
    struct raw_udp_packet to = {.remote = frame->remote,
        .local = frame->local,
        .dont_fragment = frame->dont_fragment,
        .hops = frame->hops};
    int r = raw_udp_send(&fr->udp, &to, frame->data, frame->len);

    /* As through `weft wg`'s frame socket: what does not go out is a lost frame, and no more. */
    return r < 0 && r != -EMSGSIZE ? 0 : r;
}

static int raw_receive(struct engine_frames *ef, struct engine_frame *ret)
{
    struct frames_raw *fr = (struct frames_raw *)ef;
    struct raw_udp_packet packet;
    int r = raw_udp_receive(&fr->udp, &packet, ret->data, sizeof(ret->data), &ret->len);

    if (r == RAW_UDP_E_EMPTY)
        return ENGINE_FRAMES_E_EMPTY;
    if (r < 0)
        return r;
    ret->remote = packet.remote;
    ret->local = packet.local;
    ret->ifindex = packet.ifindex;
    ret->received_at = clock_now();
    ret->dont_fragment = false;
    ret->hops = 0;
    return 0;
}

static void raw_close(struct engine_frames *ef)
{
    struct frames_raw *fr = (struct frames_raw *)ef;

    raw_udp_close(&fr->udp);
    free(fr);
}

static const struct engine_frames_ops raw_ops = {
    .send = raw_send,
    .receive = raw_receive,
    .close = raw_close,
};

int engine_frames_open_raw(struct engine_frames **ret, uint16_t port, struct err *e)
{
    struct frames_raw *fr = calloc(1, sizeof(*fr));
    int r;

    if (!fr)
        return -ENOMEM;
    r = raw_udp_open(&fr->udp, port);
    if (r < 0) {
        free(fr);
        return err_set(e, r, "raw sockets beside UDP port %u do not open: %s", port, strerror(-r));
    }
    fr->frames = (struct engine_frames){.ops = &raw_ops, .fd = fr->udp.poll_fd};
    *ret = &fr->frames;
    return 0;
}
