/* path_door.c - see path_door.h. */
#include "dataplane/path_door.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/drop.h"
#include "base/err.h"
#include "dataplane/control.h"
#include "dataplane/port_internal.h"
#include "sys/socket_room.h"
#include "sys/unix_socket.h"
#include "wire/stun.h"

/* Taken from the client in one turn of the control thread. */
#define FRAMES_PER_TURN 64

/* The first byte of the types that WireGuard leaves alone. */
#define FIRST_TYPE 0x80

struct path_door {
    struct device *device;       /* pins */
    struct control_event listen; /* owns the descriptor */
    struct control_event client; /* owns the descriptor; -1: there is none */
    char *path;                  /* owns; where the socket lies */
};

/* ---- in: from the port to the client -------------------------------------------------------- */

bool path_door_takes(const uint8_t *frame, size_t len)
{
    return len > 0 && len <= PATH_DOOR_FRAME_MAX &&
           (frame[0] >= FIRST_TYPE || stun_is_answer(frame, len));
}

/* A second's worth, refilled as time passes. */
static bool is_within_quota(struct path_door_quota *q, nsec_t now)
{
    nsec_t per_frame = NSEC_PER_SEC / PATH_DOOR_RATE;
    nsec_t gained = q->filled_at == 0 ? PATH_DOOR_RATE : (now - q->filled_at) / per_frame;

    if (q->n_left + gained >= PATH_DOOR_RATE) {
        q->n_left = PATH_DOOR_RATE;
        q->filled_at = now;
    } else {
        q->n_left += (unsigned)gained;
        q->filled_at += gained * per_frame;
    }
    if (q->n_left == 0)
        return false;
    q->n_left--;
    return true;
}

void path_door_offer(
    struct rx_worker *w, const struct udp_run *run, const uint8_t *frame, size_t len)
{
    struct path_door_header header = {
        .port = run->path.remote.port,
        .ifindex = run->path.ifindex,
        .received_at = w->tx.now,
    };
    struct iovec iov[] = {
        {.iov_base = &header, .iov_len = sizeof(header)},
        {.iov_base = (uint8_t *)frame, .iov_len = len},
    };
    struct msghdr msg = {.msg_iov = iov, .msg_iovlen = 2};

    if (w->port->path_fd < 0) {
        drop_count(&w->drops, DROP_UNKNOWN_TYPE, 1);
        return;
    }
    if (!is_within_quota(&w->path_quota, w->tx.now)) {
        drop_count(&w->drops, DROP_PATH_QUOTA, 1);
        return;
    }
    memcpy(header.remote, run->path.remote.addr.b, sizeof(header.remote));
    memcpy(header.local, run->path.local.b, sizeof(header.local));
    if (sendmsg(w->port->path_fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
        drop_count(&w->drops, DROP_PATH_QUEUE_FULL, 1);
}

/* ---- out: from the client to the port ------------------------------------------------------- */

static struct udp_run run_of(const struct path_door_header *h, uint8_t *frame, size_t len)
{
    struct udp_run run = {.buf = frame,
        .len = (uint32_t)len,
        .seg = (uint16_t)len,
        .hops = (uint8_t)(h->flags >> PATH_DOOR_HOPS_SHIFT)};

    memcpy(run.path.remote.addr.b, h->remote, sizeof(h->remote));
    memcpy(run.path.local.b, h->local, sizeof(h->local));
    run.path.remote.port = h->port;
    run.path.ifindex = h->ifindex;
    if (ip_addr_is_link_local(&run.path.remote.addr) && !ip_addr_is_v4(&run.path.remote.addr))
        run.path.remote.scope = h->ifindex;
    return run;
}

/* May the client send that? Nothing that could be taken for a message of WireGuard's. */
static bool may_send(const struct path_door_header *h, const uint8_t *frame, size_t len)
{
    return len > 0 && h->port != 0 && (frame[0] >= FIRST_TYPE || stun_is_request(frame, len));
}

static void send_run(struct port *p, const struct udp_run *run)
{
    struct udp_outbox *out = &p->sender.out;
    uint64_t failed = out->n_failed;

    udp_outbox_add(out, port__sockets(p), run);
    udp_outbox_flush(out, port__sockets(p));
    drop_count(&p->drops, DROP_UDP_SEND, out->n_failed - failed);
}

/* DF is an option of the socket, which all threads send with: so nobody else may be sending. */
static void send_unfragmented(struct port *p, const struct udp_run *run)
{
    port__close_gates(p, NULL);
    if (udp_set_dont_fragment(port__sockets(p), true) == 0)
        send_run(p, run);
    (void)udp_set_dont_fragment(port__sockets(p), false);
    port__open_gates(p, NULL);
}

static void take_frame(struct path_door *door, uint8_t *msg, size_t len)
{
    struct port *p = door->device->port;
    struct path_door_header header;
    struct udp_run run;

    if (len <= sizeof(header))
        return;
    memcpy(&header, msg, sizeof(header));
    msg += sizeof(header);
    len -= sizeof(header);
    if (!door->device->is_up || !may_send(&header, msg, len))
        return;
    run = run_of(&header, msg, len);
    if (header.flags & PATH_DOOR_DONT_FRAGMENT)
        send_unfragmented(p, &run);
    else
        send_run(p, &run);
}

/* ---- the client ----------------------------------------------------------------------------- */

/* The rx workers write to it inside the gate. */
static void set_client(struct path_door *door, int fd)
{
    struct port *p = door->device->port;

    gate_close(&p->gate);
    p->path_fd = fd;
    gate_open(&p->gate);
    atomic_store(&p->has_path_client, fd >= 0);
}

static void hang_up(struct path_door *door)
{
    if (door->client.fd < 0)
        return;
    set_client(door, -1);
    control_remove(door->device->port, &door->client);
    (void)close(door->client.fd);
    door->client.fd = -1;
}

static void on_client(void *ctx, uint32_t epoll_events)
{
    uint8_t msg[sizeof(struct path_door_header) + PATH_DOOR_FRAME_MAX];
    struct path_door *door = ctx;

    for (unsigned i = 0; i < FRAMES_PER_TURN; i++) {
        ssize_t n = recv(door->client.fd, msg, sizeof(msg), MSG_DONTWAIT | MSG_TRUNC);

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n <= 0) {
            hang_up(door);
            return;
        }
        if ((size_t)n <= sizeof(msg))
            take_frame(door, msg, (size_t)n);
    }
}

static void on_connection(void *ctx, uint32_t epoll_events)
{
    struct path_door *door = ctx;
    int fd = accept4(door->listen.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (fd < 0)
        return;
    /* The one before may have ended, and nobody noticed yet. */
    if (door->client.fd >= 0)
        on_client(door, EPOLLIN);
    if (door->client.fd >= 0) {
        (void)close(fd);
        return;
    }
    door->client = (struct control_event){.fd = fd, .fn = on_client, .ctx = door};
    if (control_add(door->device->port, &door->client, EPOLLIN) < 0) {
        (void)close(fd);
        door->client.fd = -1;
        return;
    }
    socket_set_send_room(fd, PATH_DOOR_ROOM);
    set_client(door, fd);
}

/* ---- life ----------------------------------------------------------------------------------- */

int path_door_new(struct path_door **ret, struct device *d, const char *path, struct err *e)
{
    struct path_door *door = calloc(1, sizeof(*door));
    int r = -ENOMEM;

    if (!door || !(door->path = strdup(path))) {
        free(door);
        return err_set(e, r, "no memory for socket %s", path);
    }
    door->device = d;
    door->client.fd = -1;
    door->listen = (struct control_event){.fn = on_connection, .ctx = door};
    r = door->listen.fd = unix_socket_listen(path, SOCK_SEQPACKET);
    if (r >= 0)
        r = control_add(d->port, &door->listen, EPOLLIN);
    if (r < 0) {
        if (door->listen.fd >= 0)
            (void)close(door->listen.fd);
        free(door->path);
        free(door);
        return err_set(e, r, "cannot serve %s: %s", path,
            r == -EADDRINUSE ? "another process does" : strerror(-r));
    }
    *ret = door;
    return 0;
}

struct path_door *path_door_free(struct path_door *door)
{
    struct port *p;

    if (!door)
        return NULL;
    p = door->device->port;
    (void)pthread_mutex_lock(&p->lock);
    hang_up(door);
    control_remove(p, &door->listen);
    (void)pthread_mutex_unlock(&p->lock);
    (void)unlink(door->path);
    (void)close(door->listen.fd);
    free(door->path);
    free(door);
    return NULL;
}
