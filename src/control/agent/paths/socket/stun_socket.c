/* stun_socket.c - see stun_socket.h. */
#include "agent/paths/socket/stun_socket.h"

#include <stdlib.h>
#include <uv.h>

#include "net/address/sockaddr.h"

struct stun_socket {
    uv_udp_t handle;
    uint8_t room[128]; /* for one answer; what is longer is none, and ignored */
    bool is_closed;
    stun_socket_fn on_datagram;
    void *ctx; /* pins */
};

static void on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

static void give_room(uv_handle_t *handle, size_t wanted, uv_buf_t *ret)
{
    struct stun_socket *s = handle->data;

    *ret = uv_buf_init((char *)s->room, sizeof(s->room));
}

static void on_receive(
    uv_udp_t *handle, ssize_t len, const uv_buf_t *buf, const struct sockaddr *from, unsigned flags)
{
    struct stun_socket *s = handle->data;

    if (len > 0 && !(flags & UV_UDP_PARTIAL) && !s->is_closed)
        s->on_datagram(s->ctx, s->room, (size_t)len);
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
        uv_udp_recv_start(&s->handle, give_room, on_receive) != 0)
        return stun_socket_close(s);
    return s;
}

struct stun_socket *stun_socket_close(struct stun_socket *s)
{
    if (!s)
        return NULL;
    s->is_closed = true;
    uv_close((uv_handle_t *)&s->handle, on_closed);
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
