/* service.c - see service.h. Starts and stops the service; its thread listens and answers pings. */
#include "measure/service.h"

#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "measure/frame.h"
#include "measure/service_internal.h"
#include "net/address/sockaddr.h"
#include "net/socket/unix_socket.h"
#include "os/clock.h"
#include "os/fd_cleanup.h"
#include "os/thread.h"
#include "os/wakeup.h"

#define LOOK_PERIOD_MS 1000
#define BACKLOG        64
#define PINGS_A_TURN   64
#define PACKET_MAX     65535
#define IP_UDP_HEADERS 28

/* ---- sockets ------------------------------------------------------------------------------- */

/* Opens a socket that is bound to @ep and, unless its address is none, to the overlay's interface.
 * The address need not exist yet. */
static int open_inet(const struct service *s, const struct endpoint *ep, int type)
{
    union sockaddr_inet sa;
    socklen_t len = sockaddr_from_endpoint(&sa, ep);
    _cleanup_(closep) int fd = socket(sa.any.sa_family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int one = 1;

    if (fd < 0)
        return -errno;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    (void)setsockopt(fd, IPPROTO_IP, IP_FREEBIND, &one, sizeof(one));
    if (!ip_addr_is_none(&ep->addr) && dial_bind_device(fd, s->config.interface) < 0)
        return -EADDRNOTAVAIL;
    if (bind(fd, &sa.any, len) < 0 || (type == SOCK_STREAM && listen(fd, BACKLOG) < 0))
        return -errno;
    return TAKE_FD(fd);
}

static void close_overlay(struct service *s)
{
    closep(&s->tcp_fd);
    closep(&s->udp_fd);
    s->tcp_fd = s->udp_fd = -1;
}

/* Opens the sockets again when the interface was replaced or the node's address has changed. */
static void keep_overlay_open(struct service *s)
{
    unsigned ifindex = s->config.interface ? if_nametoindex(s->config.interface) : 1;
    struct endpoint ep = {.port = s->config.port};

    (void)pthread_mutex_lock(&s->lock);
    ep.addr = s->own;
    (void)pthread_mutex_unlock(&s->lock);
    if (s->tcp_fd >= 0 && ifindex == s->ifindex && ip_addr_equal(&ep.addr, &s->bound))
        return;
    close_overlay(s);
    if (ip_addr_is_none(&ep.addr) || ifindex == 0)
        return;
    s->tcp_fd = open_inet(s, &ep, SOCK_STREAM);
    s->udp_fd = open_inet(s, &ep, SOCK_DGRAM);
    s->ifindex = ifindex;
    s->bound = ep.addr;
    if (s->tcp_fd < 0 || s->udp_fd < 0)
        close_overlay(s);
}

static void keep_local_open(struct service *s)
{
    if (s->config.socket_path && s->unix_fd < 0)
        s->unix_fd = unix_socket_listen_mode(s->config.socket_path, SOCK_STREAM, 0660);
}

/* ---- connections --------------------------------------------------------------------------- */

static void add_connection(struct service *s, struct service_connection *c)
{
    (void)pthread_mutex_lock(&s->lock);
    list_add_tail(&s->connections, &c->link);
    s->n_connections++;
    s->n_underlay += c->access == SERVICE_ACCESS_UNDERLAY;
    (void)pthread_mutex_unlock(&s->lock);
}

static void remove_connection(struct service *s, struct service_connection *c)
{
    (void)pthread_mutex_lock(&s->lock);
    list_remove(&c->link);
    s->n_connections--;
    s->n_underlay -= c->access == SERVICE_ACCESS_UNDERLAY;
    (void)pthread_mutex_unlock(&s->lock);
}

static void *run_connection(void *arg)
{
    struct service_connection *c = arg;

    service__serve(c);
    closep(&c->fd);
    remove_connection(c->service, c);
    service__unref(c->service);
    free(c);
    return NULL;
}

static bool has_room(struct service *s, enum service_access access, const struct ip_addr *from)
{
    const struct service_connection *c;
    unsigned n_same = 0;
    bool yes;

    (void)pthread_mutex_lock(&s->lock);
    list_foreach(c, &s->connections, link)
        n_same += c->access == access && ip_addr_equal(&c->from, from);
    yes = s->n_connections < SERVICE_CONNECTIONS_MAX &&
          (access != SERVICE_ACCESS_UNDERLAY || s->n_underlay < SERVICE_UNDERLAY_MAX) &&
          (access != SERVICE_ACCESS_OVERLAY || n_same < SERVICE_FROM_ONE_MAX);
    (void)pthread_mutex_unlock(&s->lock);
    return yes;
}

static void start_connection(
    struct service *s, int fd, enum service_access access, const struct ip_addr *from)
{
    struct service_connection *c = has_room(s, access, from) ? calloc(1, sizeof(*c)) : NULL;
    pthread_t thread;

    if (!c) {
        (void)close(fd);
        return;
    }
    *c = (struct service_connection){.service = s, .fd = fd, .access = access, .from = *from};
    service__ref(s);
    add_connection(s, c);
    if (thread_start(&thread, "measure-peer", -1, run_connection, c) < 0) {
        (void)close(fd);
        remove_connection(s, c);
        service__unref(s);
        free(c);
        return;
    }
    (void)pthread_detach(thread);
}

/* Accepts one connection. Each listener is served once in a turn, so that none keeps the others
 * waiting. */
static void accept_one(struct service *s, int listener, enum service_access access)
{
    struct service_member member;
    union sockaddr_inet sa = {0};
    socklen_t len = sizeof(sa);
    struct endpoint from = {0};
    int fd = accept4(listener, access == SERVICE_ACCESS_LOCAL ? NULL : &sa.any,
        access == SERVICE_ACCESS_LOCAL ? NULL : &len, SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (fd < 0)
        return;
    if (access == SERVICE_ACCESS_LOCAL) {
        (void)pthread_mutex_lock(&s->lock);
        from.addr = s->own;
        (void)pthread_mutex_unlock(&s->lock);
    } else if (!sockaddr_to_endpoint(&sa, &from) ||
               (access == SERVICE_ACCESS_OVERLAY &&
                   (!service__find_member(s, &from.addr, &member) || member.is_hub))) {
        (void)close(fd);
        return;
    }
    start_connection(s, fd, access, &from.addr);
}

/* ---- pings --------------------------------------------------------------------------------- */

static void answer_ping(
    struct service *s, const struct frame *ping, size_t len, const union sockaddr_inet *sa)
{
    struct frame pong = *ping;
    uint8_t out[FRAME_LEN];
    struct endpoint from;

    if (ping->kind != FRAME_PING || !sockaddr_to_endpoint(sa, &from) ||
        !session_hear(&s->session, &ping->id, &from.addr, ping->counted, clock_now(), &pong.heard))
        return;
    pong.kind = FRAME_PONG;
    pong.arrived_at = clock_wall();
    pong.size = (uint16_t)(len + IP_UDP_HEADERS);
    frame_encode(&pong, out);
    (void)sendto(s->udp_fd, out, sizeof(out), MSG_DONTWAIT, &sa->any, sizeof(sa->v4));
}

static void take_pings(struct service *s)
{
    for (unsigned i = 0; i < PINGS_A_TURN; i++) {
        uint8_t in[FRAME_LEN];
        union sockaddr_inet sa;
        socklen_t sa_len = sizeof(sa);
        struct frame ping;
        /* MSG_TRUNC returns the whole datagram's length, though its padding is not copied. */
        ssize_t n = recvfrom(s->udp_fd, in, sizeof(in), MSG_DONTWAIT | MSG_TRUNC, &sa.any, &sa_len);

        if (n < 0)
            return;
        if ((size_t)n >= sizeof(in) && n <= PACKET_MAX - IP_UDP_HEADERS &&
            frame_decode(&ping, in, sizeof(in)))
            answer_ping(s, &ping, (size_t)n, &sa);
    }
}

/* ---- the thread ---------------------------------------------------------------------------- */

static void turn(struct service *s)
{
    struct pollfd fds[5];
    bool is_on = session_is_on(&s->session, clock_now());
    int patience_ms;
    int underlay_fd;

    keep_overlay_open(s);
    keep_local_open(s);
    if (!is_on)
        service__close_underlay(s);
    /* Nothing reports the end of a session, or that a socket can be opened now, so these are
     * checked every second. For all else service_set_members() and service_recheck() wake this
     * thread. */
    patience_ms =
        is_on || s->tcp_fd < 0 || (s->config.socket_path && s->unix_fd < 0) ? LOOK_PERIOD_MS : -1;
    (void)pthread_mutex_lock(&s->lock);
    underlay_fd = s->underlay_fd;
    (void)pthread_mutex_unlock(&s->lock);
    fds[0] = (struct pollfd){.fd = s->wake_fd, .events = POLLIN};
    fds[1] = (struct pollfd){.fd = s->tcp_fd, .events = POLLIN};
    fds[2] = (struct pollfd){.fd = s->udp_fd, .events = POLLIN};
    fds[3] = (struct pollfd){.fd = s->unix_fd, .events = POLLIN};
    fds[4] = (struct pollfd){.fd = underlay_fd, .events = POLLIN};
    if (poll(fds, 5, patience_ms) <= 0)
        return;
    if (fds[0].revents)
        (void)wakeup_clear(s->wake_fd);
    if (fds[1].revents)
        accept_one(s, s->tcp_fd, SERVICE_ACCESS_OVERLAY);
    if (fds[2].revents)
        take_pings(s);
    if (fds[3].revents)
        accept_one(s, s->unix_fd, SERVICE_ACCESS_LOCAL);
    if (fds[4].revents & POLLIN)
        accept_one(s, underlay_fd, SERVICE_ACCESS_UNDERLAY);
}

static void *run_listener(void *service)
{
    struct service *s = service;

    while (!service__is_stopping(s))
        turn(s);
    close_overlay(s);
    /* It is unlinked before it is closed, because afterwards another process may have made a socket
     * of that name. */
    if (s->unix_fd >= 0)
        (void)unlink(s->config.socket_path);
    closep(&s->unix_fd);
    service__close_underlay(s);
    service__unref(s);
    return NULL;
}

/* ---- start and stop ------------------------------------------------------------------------ */

int service_new(struct service **ret, const struct service_config *config, struct err *e)
{
    struct service *s = calloc(1, sizeof(*s));
    int r;

    if (!s)
        return err_set(e, -ENOMEM, "no memory for the measuring service");
    s->config = *config;
    s->users = 2;
    s->underlay_fd = s->tcp_fd = s->udp_fd = s->unix_fd = -1;
    (void)pthread_mutex_init(&s->lock, NULL);
    session_init(&s->session);
    list_init(&s->connections);
    s->wake_fd = wakeup_open();
    r = s->wake_fd < 0 ? s->wake_fd : thread_start(&s->thread, "measure", -1, run_listener, s);
    if (r < 0) {
        s->users = 1;
        service__unref(s);
        return err_set(e, r, "the measuring service does not start: %s", strerror(-r));
    }
    *ret = s;
    return 0;
}

void service_recheck(struct service *s)
{
    wakeup_signal(s->wake_fd);
}

struct service *service_free(struct service *s)
{
    if (!s)
        return NULL;
    (void)pthread_mutex_lock(&s->lock);
    s->is_stopping = true;
    (void)pthread_mutex_unlock(&s->lock);
    wakeup_signal(s->wake_fd);
    (void)pthread_join(s->thread, NULL);
    service__unref(s);
    return NULL;
}
