/* frames.c - see frames.h: the common part, and the frame socket of `weft wg`. */
#include "engine/frames.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "net/socket/socket.h"
#include "net/socket/unix_socket.h"
#include "shared/frame_client.h"
#include "uapi/uapi.h"

_Static_assert(ENGINE_FRAME_MAX == FRAME_SOCKET_FRAME_MAX, "one length for all engines");

/* ---- the frame socket of `weft wg` ---------------------------------------------------------- */

static bool means_gone(int error)
{
    return error == EPIPE || error == ECONNRESET || error == ENOTCONN;
}

static int socket_send(struct engine_frames *ef, const struct engine_frame *frame)
{
    struct frame_socket_header header = {
        .port = frame->remote.port,
        .flags = (uint16_t)((frame->dont_fragment ? FRAME_SOCKET_DONT_FRAGMENT : 0) |
                            frame->hops << FRAME_SOCKET_HOPS_SHIFT),
        .ifindex = frame->remote.scope ? frame->remote.scope : frame->ifindex,
    };
    struct iovec iov[] = {
        {.iov_base = &header, .iov_len = sizeof(header)},
        {.iov_base = (uint8_t *)frame->data, .iov_len = frame->len},
    };
    struct msghdr msg = {.msg_iov = iov, .msg_iovlen = 2};

    memcpy(header.remote, frame->remote.addr.b, sizeof(header.remote));
    memcpy(header.local, frame->local.b, sizeof(header.local));
    if (sendmsg(ef->fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0 || errno == EAGAIN)
        return 0;
    return means_gone(errno) ? ENGINE_FRAMES_E_GONE : -errno;
}

static int socket_receive(struct engine_frames *ef, struct engine_frame *ret)
{
    struct frame_socket_header header;
    struct iovec iov[] = {
        {.iov_base = &header, .iov_len = sizeof(header)},
        {.iov_base = ret->data, .iov_len = sizeof(ret->data)},
    };
    struct msghdr msg = {.msg_iov = iov, .msg_iovlen = 2};
    ssize_t n = recvmsg(ef->fd, &msg, MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return ENGINE_FRAMES_E_EMPTY;
    if (n < 0 && !means_gone(errno))
        return -errno;
    if (n < (ssize_t)sizeof(header))
        return ENGINE_FRAMES_E_GONE;
    memcpy(ret->remote.addr.b, header.remote, sizeof(header.remote));
    memcpy(ret->local.b, header.local, sizeof(header.local));
    ret->remote.port = header.port;
    ret->remote.scope = 0;
    if (ip_addr_is_link_local(&ret->remote.addr) && !ip_addr_is_v4(&ret->remote.addr))
        ret->remote.scope = header.ifindex;
    ret->ifindex = header.ifindex;
    ret->received_at = header.received_at;
    ret->dont_fragment = false;
    ret->hops = 0;
    ret->len = (size_t)n - sizeof(header);
    return 0;
}

static void socket_close(struct engine_frames *ef)
{
    (void)close(ef->fd);
    free(ef);
}

static const struct engine_frames_ops socket_ops = {
    .send = socket_send,
    .receive = socket_receive,
    .close = socket_close,
};

int engine_frames_open_socket(struct engine_frames **ret, const char *interface, struct err *e)
{
    struct engine_frames *ef = calloc(1, sizeof(*ef));
    char path[108];
    int fd;

    if (!ef)
        return -ENOMEM;
    (void)snprintf(path, sizeof(path), UAPI_SOCKET_DIR "/%s.path", interface);
    fd = unix_socket_connect(path, SOCK_SEQPACKET);
    if (fd < 0) {
        free(ef);
        return err_set(
            e, fd, "the engine's frame socket %s does not open: %s", path, strerror(-fd));
    }
    socket_set_send_buffer(fd, FRAME_SOCKET_BUFFER);
    *ef = (struct engine_frames){.ops = &socket_ops, .fd = fd};
    *ret = ef;
    return 0;
}
