/* rdzv_child.c - see rdzv_child.h. */
#include "rdzv_child.h"

#include <errno.h>
#include <linux/sockios.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#include "base/containers.h"
#include "base/err.h"
#include "base/text.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/process.h"

/* Room for what was received and not dropped, in bytes: the longest message with its length. */
#define IN_MAX (RDZV_WIRE_MAX + 4)

/* How many bytes may wait to be sent. A process that lets more gather is taken to be stuck. */
#define OUT_MAX (16u << 20)

struct rdzv_child {
    uv_poll_t poll; /* of @fd */
    int events;     /* what the loop polls for */
    int fd;         /* owns */
    pid_t pid;
    rdzv_child_fn fn;
    void *ctx;        /* pins */
    struct str out;   /* what is to be sent */
    size_t out_off;   /* bytes of @out that were sent */
    size_t in_off;    /* bytes of @in that were dropped */
    size_t in_len;    /* bytes of @in, with the dropped ones */
    size_t first_len; /* of the message that rdzv_child_next() gave */
    uint8_t in[IN_MAX];
};

/* ---- life ----------------------------------------------------------------------------------- */

int rdzv_child_start(struct rdzv_child **ret, struct uv_loop_s *loop, const char *network,
    rdzv_child_fn fn, void *ctx, struct err *e)
{
    const char *const argv[] = {"/proc/self/exe", "rendezvous", network, NULL};
    _cleanup_(freep) struct rdzv_child *child = calloc(1, sizeof(*child));
    _cleanup_(closep) int theirs = -1;
    _cleanup_(closep) int ours = -1;
    int pair[2];
    int r;

    if (!child)
        return err_set(e, -ENOMEM, "no memory for a rendezvous");
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
        return err_set(e, -errno, "no socket for a rendezvous: %s", strerror(errno));
    ours = pair[0];
    theirs = pair[1];
    r = process_link(argv, theirs, &child->pid, e);
    if (r != 0)
        return r;
    child->fd = TAKE_FD(ours);
    child->fn = fn;
    child->ctx = ctx;
    (void)uv_poll_init(loop, &child->poll, child->fd);
    *ret = TAKE_PTR(child);
    return 0;
}

static void on_closed(uv_handle_t *h)
{
    struct rdzv_child *child = container_of((uv_poll_t *)h, struct rdzv_child, poll);

    (void)close(child->fd);
    str_deinit(&child->out);
    free(child);
}

struct rdzv_child *rdzv_child_free(struct rdzv_child *child)
{
    if (!child)
        return NULL;
    (void)kill(child->pid, SIGKILL);
    uv_close((uv_handle_t *)&child->poll, on_closed);
    return NULL;
}

pid_t rdzv_child_pid(const struct rdzv_child *child)
{
    return child->pid;
}

void rdzv_child_kill(struct rdzv_child *child)
{
    (void)kill(child->pid, SIGKILL);
}

static void on_event(uv_poll_t *poll, int status, int events)
{
    struct rdzv_child *child = container_of(poll, struct rdzv_child, poll);

    child->fn(child->ctx, events & (UV_READABLE | UV_DISCONNECT) || status < 0,
        (events & UV_WRITABLE) != 0);
}

void rdzv_child_poll(struct rdzv_child *child, bool reads, bool writes)
{
    int events = (reads ? UV_READABLE | UV_DISCONNECT : 0) | (writes ? UV_WRITABLE : 0);

    if (child->out.failed || rdzv_child_unsent(child) > OUT_MAX)
        rdzv_child_kill(child);
    if (events == child->events)
        return;
    child->events = events;
    if (events)
        (void)uv_poll_start(&child->poll, events, on_event);
    else
        (void)uv_poll_stop(&child->poll);
}

/* ---- saying --------------------------------------------------------------------------------- */

void rdzv_child_say(struct rdzv_child *child, const struct rdzv_wire *m)
{
    rdzv_wire_encode(&child->out, m);
}

void rdzv_child_say_bytes(struct rdzv_child *child, const char *bytes, size_t len)
{
    str_add_bytes(&child->out, bytes, len);
}

size_t rdzv_child_unsent(const struct rdzv_child *child)
{
    return child->out.len - child->out_off;
}

void rdzv_child_flush(struct rdzv_child *child)
{
    while (rdzv_child_unsent(child) > 0) {
        ssize_t n = send(child->fd, child->out.text + child->out_off, rdzv_child_unsent(child),
            MSG_NOSIGNAL | MSG_DONTWAIT);

        if (n < 0 && errno == EINTR)
            continue;
        /* That it has ended is noticed by polling. */
        if (n < 0)
            return;
        child->out_off += (size_t)n;
    }
    /* That there was no memory for a message is for rdzv_child_poll() to see. */
    if (child->out.cap > RDZV_CHILD_UNSENT_LOAD && !child->out.failed)
        str_deinit(&child->out);
    child->out.len = 0;
    child->out_off = 0;
}

/* The message and the descriptor beside it. So short a message goes whole or not at all. */
static bool send_socket(int link, const struct str *message, int fd)
{
    char control[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec iov = {.iov_base = message->text, .iov_len = message->len};
    struct msghdr h = {.msg_iov = &iov,
        .msg_iovlen = 1,
        .msg_control = control,
        .msg_controllen = sizeof(control)};
    struct cmsghdr *c = CMSG_FIRSTHDR(&h);

    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(c), &fd, sizeof(fd));
    return sendmsg(link, &h, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0;
}

bool rdzv_child_say_socket(struct rdzv_child *child, uint32_t job, int fd)
{
    struct str message = STR_NULL;
    bool is_sent = false;

    rdzv_child_flush(child);
    rdzv_wire_encode(&message, &(struct rdzv_wire){.type = RDZV_WIRE_LISTENER, .job = job});
    if (rdzv_child_unsent(child) == 0 && !message.failed)
        is_sent = send_socket(child->fd, &message, fd);
    str_deinit(&message);
    return is_sent;
}

/* ---- hearing -------------------------------------------------------------------------------- */

int rdzv_child_receive(struct rdzv_child *child)
{
    ssize_t n;

    memmove(child->in, child->in + child->in_off, child->in_len - child->in_off);
    child->in_len -= child->in_off;
    child->in_off = 0;
    n = recv(child->fd, child->in + child->in_len, IN_MAX - child->in_len, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n <= 0)
        return RDZV_CHILD_E_ENDED;
    child->in_len += (size_t)n;
    return 0;
}

int rdzv_child_next(struct rdzv_child *child, struct rdzv_wire *ret)
{
    return rdzv_wire_decode(
        ret, child->in + child->in_off, child->in_len - child->in_off, &child->first_len);
}

void rdzv_child_drop(struct rdzv_child *child)
{
    child->in_off += child->first_len;
}

bool rdzv_child_has_unread(const struct rdzv_child *child)
{
    int bytes = 0;

    return child->in_len > child->in_off || (ioctl(child->fd, SIOCINQ, &bytes) == 0 && bytes > 0);
}

bool rdzv_child_wait(struct rdzv_child *child, nsec_t deadline)
{
    for (;;) {
        nsec_t left = deadline - clock_now();
        short events = (short)(POLLIN | (rdzv_child_unsent(child) > 0 ? POLLOUT : 0));
        struct pollfd wait = {.fd = child->fd, .events = events};

        if (left <= 0 || poll(&wait, 1, (int)(left / NSEC_PER_MSEC) + 1) < 0)
            return false;
        rdzv_child_flush(child);
        if (wait.revents & (POLLIN | POLLHUP | POLLERR))
            return true;
    }
}
