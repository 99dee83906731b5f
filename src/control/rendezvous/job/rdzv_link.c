/* rdzv_link.c - see rdzv_link.h. */
#include "rendezvous/job/rdzv_link.h"

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
    list_init(&l->waiting);
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

static void write_out(struct rdzv_link *l)
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

void rdzv_link_say(struct rdzv_link *l, const struct rdzv_wire *m)
{
    rdzv_wire_encode(&l->out, m);
    /* A change that is not told would be lost silently. So the process ends instead: the hub starts
     * another one with all that was saved. */
    if (l->out.failed)
        l->failed = true;
    if (l->out.len > OUT_MAX)
        write_out(l);
}

void rdzv_link_flush(struct rdzv_link *l)
{
    if (l->is_asked) {
        l->is_asked = false;
        l->seq++;
        rdzv_link_say(l, &(struct rdzv_wire){.type = RDZV_WIRE_SYNC, .seq = l->seq});
    }
    if (l->out.len > 0)
        write_out(l);
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

/* Calls @on_message for each message that is complete. */
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
        if (r == 0 && m.type == RDZV_WIRE_LISTENER && l->n_fds > 0) {
            fd = l->fds[0];
            memmove(l->fds, l->fds + 1, --l->n_fds * sizeof(int));
        }
        if (r != 0 || m.type > RDZV_WIRE_END || (m.type == RDZV_WIRE_LISTENER && fd < 0)) {
            l->failed = true;
            break;
        }
        off += used;
        l->on_message(l->ctx, &m, fd);
    }
    memmove(l->in, l->in + off, l->in_len - off);
    l->in_len -= off;
}

void rdzv_link_read(struct rdzv_link *l)
{
    while (!l->failed && take_bytes(l))
        handle(l);
}

/* ==== changes on their way to the disk ======================================================= */

static void say_piece(struct rdzv_link *l, struct rdzv_wire *m, const uint8_t *p, size_t len)
{
    size_t off = (size_t)m->piece * RDZV_CHUNK;

    m->data = p + off;
    m->len = len - off < RDZV_CHUNK ? len - off : RDZV_CHUNK;
    rdzv_link_say(l, m);
}

/* How many pieces a blob of @len bytes has; at least 1. */
static unsigned count_pieces(size_t len)
{
    return len <= RDZV_CHUNK ? 1 : (unsigned)((len + RDZV_CHUNK - 1) / RDZV_CHUNK);
}

void rdzv_save_blob(struct rdzv_link *l, uint32_t job, uint32_t run, enum rdzv_key_kind kind,
    const void *name, size_t name_len, const void *p, size_t len)
{
    struct rdzv_wire m = {.type = RDZV_WIRE_PUT,
        .job = job,
        .run = run,
        .kind = (uint8_t)kind,
        .hash = rdzv_hash_of(name, name_len),
        .n_pieces = (uint16_t)count_pieces(len)};

    /* The first piece is sent last: see rdzv_wire.h. */
    for (m.piece = 1; m.piece < m.n_pieces; m.piece++)
        say_piece(l, &m, p, len);
    m.piece = 0;
    say_piece(l, &m, p, len);
}

void rdzv_save_drop_blob(struct rdzv_link *l, uint32_t job, uint32_t run, enum rdzv_key_kind kind,
    const void *name, size_t name_len)
{
    struct rdzv_wire m = {.type = RDZV_WIRE_DROP,
        .job = job,
        .run = run,
        .kind = (uint8_t)kind,
        .hash = rdzv_hash_of(name, name_len)};

    rdzv_link_say(l, &m);
}

void rdzv_save_wait(struct rdzv_link *l, struct rdzv_save_wait *w)
{
    w->seq = l->seq + 1;
    l->is_asked = true;
    list_add_tail(&l->waiting, &w->link);
}

void rdzv_save_on_saved(struct rdzv_link *l, uint64_t seq, int error)
{
    struct rdzv_save_wait *w;

    /* @done may call rdzv_save_wait() again. That waits for a later SYNC, so this loop ends. */
    while ((w = list_first(&l->waiting, struct rdzv_save_wait, link)) && w->seq <= seq) {
        list_remove(&w->link);
        w->done(w, error);
    }
}
