/* frame_socket.c - see frame_socket.h. */
#include "port/frame_socket.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/drop.h"
#include "base/err.h"
#include "net/socket/socket.h"
#include "net/socket/unix_socket.h"
#include "packet/run_split.h"
#include "peer/sender.h"
#include "shared/device_state.h"
#include "shared/frame_client.h"
#include "shared/port_state.h"
#include "wire/stun.h"

/* Taken from the client in one turn of the control thread. */
#define FRAMES_PER_TURN 64

struct frame_socket {
    struct port *port;           /* pins */
    const struct device *device; /* pins: nothing is sent while its link is down; NULL: none */
    struct loop_event listen;    /* owns the descriptor; -1: the client is in this process */
    struct loop_event client;    /* owns the descriptor; -1: there is none */
    char *path;                  /* owns; where the socket lies; NULL: as above */
};

/* ---- out: from the client to the port ------------------------------------------------------- */

static struct udp_run run_of(const struct frame_socket_header *h, uint8_t *frame, size_t len)
{
    struct udp_run run = {.buf = frame,
        .len = (uint32_t)len,
        .seg = (uint16_t)len,
        .hops = (uint8_t)(h->flags >> FRAME_SOCKET_HOPS_SHIFT)};

    memcpy(run.path.remote.addr.b, h->remote, sizeof(h->remote));
    memcpy(run.path.local.b, h->local, sizeof(h->local));
    run.path.remote.port = h->port;
    run.path.ifindex = h->ifindex;
    if (ip_addr_is_link_local(&run.path.remote.addr) && !ip_addr_is_v4(&run.path.remote.addr))
        run.path.remote.scope = h->ifindex;
    return run;
}

/* Datagrams that are not WireGuard's, at once. Fails when the kernel did not take all of them. */
static int send_run(struct sender *s, const struct udp_run *run)
{
    uint64_t failed = s->out.n_failed;

    udp_outbox_add(&s->out, port_state_sockets(s->port), run);
    udp_outbox_flush(&s->out, port_state_sockets(s->port));
    return s->out.n_failed != failed ? -s->out.last_error : 0;
}

/* DF is an option of the socket, which all threads send with: so nobody else may be sending. */
static int send_unfragmented(struct port *p, const struct udp_run *run)
{
    const struct udp_sockets *sockets = port_state_sockets(p);
    int r = 0;

    port_gates_close(p, NULL);
    if (udp_set_dont_fragment(sockets, true) == 0)
        r = send_run(p->sender, run);
    (void)udp_set_dont_fragment(sockets, false);
    port_gates_open(p, NULL);
    return r;
}

static void take_frame(struct frame_socket *fs, uint8_t *msg, size_t len)
{
    struct port *p = fs->port;
    struct frame_socket_header header;
    struct udp_run run;
    int r;

    if (len <= sizeof(header))
        return;
    memcpy(&header, msg, sizeof(header));
    msg += sizeof(header);
    len -= sizeof(header);
    if ((fs->device && !fs->device->link.is_up) || len == 0 || header.port == 0)
        return;
    /* Nothing that could be taken for a message of WireGuard's. */
    if (msg[0] < FRAME_FIRST_TYPE && !stun_is_request(msg, len))
        return;
    run = run_of(&header, msg, len);
    if (header.flags & FRAME_SOCKET_DONT_FRAGMENT)
        r = send_unfragmented(p, &run);
    else
        r = send_run(p->sender, &run);
    if (r < 0)
        drop_count(&p->drops, DROP_UDP_SEND, 1);
}

/* ---- the client ----------------------------------------------------------------------------- */

/* The rx workers write to it inside the gate. */
static void set_client(struct frame_socket *fs, int fd)
{
    struct port *p = fs->port;

    gate_close(&p->gate);
    p->frames.fd = fd;
    gate_open(&p->gate);
    atomic_store(&p->frames.is_there, fd >= 0);
}

static void hang_up(struct frame_socket *fs)
{
    if (fs->client.fd < 0)
        return;
    set_client(fs, -1);
    loop_remove(&fs->port->loop, &fs->client);
    (void)close(fs->client.fd);
    fs->client.fd = -1;
}

static void on_client(void *ctx, uint32_t epoll_events)
{
    uint8_t msg[sizeof(struct frame_socket_header) + FRAME_SOCKET_FRAME_MAX];
    struct frame_socket *fs = ctx;

    for (unsigned i = 0; i < FRAMES_PER_TURN; i++) {
        ssize_t n = recv(fs->client.fd, msg, sizeof(msg), MSG_DONTWAIT | MSG_TRUNC);

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n <= 0) {
            hang_up(fs);
            return;
        }
        if ((size_t)n <= sizeof(msg))
            take_frame(fs, msg, (size_t)n);
    }
}

/* Takes @fd as the client's end, or closes it. */
static int take_client(struct frame_socket *fs, int fd)
{
    int r;

    fs->client = (struct loop_event){.fd = fd, .fn = on_client, .ctx = fs};
    r = loop_add(&fs->port->loop, &fs->client, EPOLLIN);
    if (r < 0) {
        (void)close(fd);
        fs->client.fd = -1;
        return r;
    }
    socket_set_send_buffer(fd, FRAME_SOCKET_BUFFER);
    set_client(fs, fd);
    return 0;
}

static void on_connection(void *ctx, uint32_t epoll_events)
{
    struct frame_socket *fs = ctx;
    int fd = accept4(fs->listen.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (fd < 0)
        return;
    /* The one before may have ended, and nobody noticed yet. */
    if (fs->client.fd >= 0)
        on_client(fs, EPOLLIN);
    if (fs->client.fd >= 0)
        (void)close(fd);
    else
        (void)take_client(fs, fd);
}

/* ---- life ----------------------------------------------------------------------------------- */

int frame_socket_new(struct frame_socket **ret, struct device *d, const char *path, struct err *e)
{
    struct frame_socket *fs = calloc(1, sizeof(*fs));
    int r = -ENOMEM;

    if (!fs || !(fs->path = strdup(path))) {
        free(fs);
        return err_set(e, r, "no memory for socket %s", path);
    }
    fs->port = d->port;
    fs->device = d;
    fs->client.fd = -1;
    fs->listen = (struct loop_event){.fn = on_connection, .ctx = fs};
    r = fs->listen.fd = unix_socket_listen(path, SOCK_SEQPACKET, 0600);
    if (r >= 0)
        r = loop_add(&d->port->loop, &fs->listen, EPOLLIN);
    if (r < 0) {
        if (fs->listen.fd >= 0)
            (void)close(fs->listen.fd);
        free(fs->path);
        free(fs);
        return err_set(e, r, "cannot serve %s: %s", path,
            r == -EADDRINUSE ? "another process does" : strerror(-r));
    }
    *ret = fs;
    return 0;
}

int frame_socket_join(struct frame_socket **ret, struct port *p, int *ret_fd, struct err *e)
{
    struct frame_socket *fs = calloc(1, sizeof(*fs));
    int fds[2];
    int r;

    if (!fs)
        return err_set(e, -ENOMEM, "no memory for path frames");
    *fs = (struct frame_socket){.port = p, .listen.fd = -1, .client.fd = -1};
    r = socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) < 0 ? -errno : 0;
    if (r == 0) {
        socket_set_send_buffer(fds[1], FRAME_SOCKET_BUFFER);
        (void)pthread_mutex_lock(&p->lock);
        r = take_client(fs, fds[0]);
        (void)pthread_mutex_unlock(&p->lock);
        if (r < 0)
            (void)close(fds[1]);
    }
    if (r < 0) {
        free(fs);
        return err_set(e, r, "path frames cannot be taken in: %s", strerror(-r));
    }
    *ret = fs;
    *ret_fd = fds[1];
    return 0;
}

struct frame_socket *frame_socket_free(struct frame_socket *fs)
{
    struct port *p;

    if (!fs)
        return NULL;
    p = fs->port;
    (void)pthread_mutex_lock(&p->lock);
    hang_up(fs);
    if (fs->listen.fd >= 0)
        loop_remove(&p->loop, &fs->listen);
    (void)pthread_mutex_unlock(&p->lock);
    if (fs->listen.fd >= 0) {
        (void)unlink(fs->path);
        (void)close(fs->listen.fd);
    }
    free(fs->path);
    free(fs);
    return NULL;
}
