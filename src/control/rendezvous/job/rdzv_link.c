/* rdzv_link.c - see rdzv_link.h. */
#include "rdzv_link.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define IN_MAX (RDZV_WIRE_MAX + 4)

/* Output that is more than this is written at once, without waiting for a flush. */
#define OUT_MAX (128u << 10)

/* A buffer for output that is larger than this is freed after use. */
#define OUT_KEEP (512u << 10)

int rdzv_link_init(struct rdzv_link *l, int fd)
{
    *l = (struct rdzv_link){.fd = fd, .out = STR_NULL};
    l->in = malloc(IN_MAX);
    return l->in ? 0 : -ENOMEM;
}

void rdzv_link_deinit(struct rdzv_link *l)
{
    while (l->n_fds > 0)
        (void)close(l->fds[--l->n_fds]);
    free(l->in);
    l->in = NULL;
    str_deinit(&l->out);
}

/* ---- writing -------------------------------------------------------------------------------- */

void rdzv_link_say(struct rdzv_link *l, const struct rdzv_wire *m)
{
    rdzv_wire_encode(&l->out, m);
    /* A change that is not told would be lost silently. So the process ends instead: the hub starts
     * another one with all that was saved. */
    if (l->out.failed)
        l->failed = true;
    if (l->out.len > OUT_MAX)
        rdzv_link_flush(l);
}

void rdzv_link_flush(struct rdzv_link *l)
{
    size_t sent = 0;

    while (!l->failed && sent < l->out.len) {
        ssize_t n = send(l->fd, l->out.text + sent, l->out.len - sent, MSG_NOSIGNAL);
        struct pollfd wait = {.fd = l->fd, .events = POLLOUT};

        if (n > 0)
            sent += (size_t)n;
        else if (n < 0 && errno == EAGAIN)
            (void)poll(&wait, 1, -1);
        else if (n < 0 && errno != EINTR)
            l->failed = true;
    }
    if (l->out.cap > OUT_KEEP)
        str_deinit(&l->out);
    l->out.len = 0;
}

/* ---- reading -------------------------------------------------------------------------------- */

static void take_fds(struct rdzv_link *l, struct msghdr *h)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(h); c; c = CMSG_NXTHDR(h, c)) {
        size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        int fds[RDZV_LINK_FDS_MAX];

        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        memcpy(fds, CMSG_DATA(c), n * sizeof(int));
        for (size_t i = 0; i < n; i++) {
            if (l->n_fds < RDZV_LINK_FDS_MAX)
                l->fds[l->n_fds++] = fds[i];
            else
                (void)close(fds[i]);
        }
    }
}

/* Reads more bytes. False: there are none now, or the link has failed. */
static bool take_bytes(struct rdzv_link *l)
{
    char control[CMSG_SPACE(RDZV_LINK_FDS_MAX * sizeof(int))];
    struct iovec iov = {.iov_base = l->in + l->in_len, .iov_len = IN_MAX - l->in_len};
    struct msghdr h = {.msg_iov = &iov,
        .msg_iovlen = 1,
        .msg_control = control,
        .msg_controllen = sizeof(control)};
    ssize_t n = recvmsg(l->fd, &h, MSG_CMSG_CLOEXEC);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (n <= 0) {
        l->failed = true;
        return false;
    }
    take_fds(l, &h);
    l->in_len += (size_t)n;
    return true;
}

static int next_fd(struct rdzv_link *l)
{
    int fd = l->n_fds > 0 ? l->fds[0] : -1;

    if (fd >= 0)
        memmove(l->fds, l->fds + 1, --l->n_fds * sizeof(int));
    return fd;
}

/* Calls @told for each message that is complete. */
static void handle(struct rdzv_link *l)
{
    size_t off = 0;

    while (!l->failed) {
        struct rdzv_wire m;
        size_t used = 0;
        int fd = -1;
        int r = rdzv_wire_decode(&m, l->in + off, l->in_len - off, &used);

        if (r == RDZV_WIRE_E_SHORT)
            break;
        if (r == 0 && m.type == RDZV_WIRE_LISTENER)
            fd = next_fd(l);
        if (r != 0 || !rdzv_wire_is_from_hub(m.type) || (m.type == RDZV_WIRE_LISTENER && fd < 0)) {
            l->failed = true;
            break;
        }
        off += used;
        l->told(l->ctx, &m, fd);
    }
    memmove(l->in, l->in + off, l->in_len - off);
    l->in_len -= off;
}

void rdzv_link_read(struct rdzv_link *l)
{
    while (!l->failed && take_bytes(l))
        handle(l);
}
