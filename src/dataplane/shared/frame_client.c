/* frame_client.c - see frame_client.h. */
#include "shared/frame_client.h"

#include <string.h>
#include <sys/socket.h>

#include "base/rate.h"
#include "net/socket/udp_batch.h"

bool frame_client_offer(const struct frame_client *client, struct rate *rate,
    const struct udp_run *one, nsec_t now, enum drop_reason *ret_why)
{
    struct frame_socket_header header = {
        .port = one->path.remote.port,
        .ifindex = one->path.ifindex,
        .received_at = now,
    };
    struct iovec iov[] = {
        {.iov_base = &header, .iov_len = sizeof(header)},
        {.iov_base = one->buf, .iov_len = one->len},
    };
    struct msghdr msg = {.msg_iov = iov, .msg_iovlen = 2};

    *ret_why = DROP_UNKNOWN_TYPE;
    if (client->fd < 0 || one->len > FRAME_SOCKET_FRAME_MAX)
        return false;
    *ret_why = DROP_PATH_QUOTA;
    if (!rate_take(rate, now, NSEC_PER_SEC / FRAME_SOCKET_RATE, FRAME_SOCKET_RATE))
        return false;
    memcpy(header.remote, one->path.remote.addr.b, sizeof(header.remote));
    memcpy(header.local, one->path.local.b, sizeof(header.local));
    *ret_why = DROP_PATH_QUEUE_FULL;
    return sendmsg(client->fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}
