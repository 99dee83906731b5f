/*
 * server_begin.c - how a connection begins: its limits, which other one it may replace, and how
 * libmicrohttpd gets it; and how it ends.
 */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "api/server/server_internal.h"
#include "api/server/stream.h"
#include "api/server/tls_front.h"
#include "base/secret.h"

/* How long bytes may be unacknowledged before the kernel ends a connection. */
#define TCP_GIVE_UP_MS 30000

/* Most unsent bytes that the kernel takes: in a stream, more would delay what is newer. */
#define TCP_UNSENT_MAX (256 << 10)

/* Who is at the other end of a unix socket; uid UINT32_MAX and pid 0 when the kernel does not say.
 */
static struct ucred peer_of(int fd)
{
    struct ucred who = {.uid = UINT32_MAX};
    socklen_t len = sizeof(who);

    (void)getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len);
    return who;
}

static void set_tcp(int fd)
{
    int one = 1;
    int give_up = TCP_GIVE_UP_MS;
    int unsent = TCP_UNSENT_MAX;

    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &give_up, sizeof(give_up));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof(unsent));
}

/*
 * Ends the oldest connection from @from that has sent no request yet. Any program on a member's
 * machine can hold all connections that the member may have, and its agent would get none without
 * this. Connections without a request are at most SERVER__REQUEST_TIME old, so only those are
 * walked.
 */
static bool make_room(struct server_listener *l, const struct ip_addr *from, nsec_t now)
{
    struct list *all = &l->s->connections;
    struct ip_addr block = admission_block(from);
    struct server__connection *oldest = NULL;

    for (struct list *it = all->prev; it != all; it = it->prev) {
        struct server__connection *c = container_of(it, struct server__connection, link);
        struct ip_addr theirs = admission_block(&c->from.addr);

        if (now - c->began_at >= SERVER__REQUEST_TIME)
            break;
        if (c->listener == l && c->is_inside && !c->has_asked && ip_addr_equal(&theirs, &block))
            oldest = c;
    }
    if (!oldest)
        return false;
    server__leave_listener(oldest);
    server__cut(oldest);
    return true;
}

static bool enter(struct server_listener *l, const struct ip_addr *from, nsec_t now)
{
    if (admission_enter(&l->admission, from))
        return true;
    return l->access == API_ACCESS_OVERLAY && make_room(l, from, now) &&
           admission_enter(&l->admission, from);
}

void server__connection_free(struct server__connection *c)
{
    list_remove(&c->link);
    list_remove(&c->timed);
    list_remove(&c->busy);
    list_remove(&c->ready);
    c->s->counts.connections--;
    server__leave_listener(c);
    server__end_upgrade(c);
    server__end_deferred(c);
    if (c->stream) {
        c->stream->wake = NULL;
        c->stream->check = NULL;
        c->stream->on_closed(c->stream);
    }
    if (c->body)
        secret_wipe(c->body, c->body_len);
    free(c->body);
    free(c);
}

/* Where a connection of @l goes. */
static struct mhd_loop *loop_of(const struct server_listener *l)
{
    struct server *s = l->s;

    if (l->access != API_ACCESS_OVERLAY)
        return &s->http;
    return &s->members[s->next_members++ % SERVER__MEMBERS_LOOPS];
}

static void start(struct server__connection *c)
{
    struct mhd_loop *loop = c->loop;

    if (!mhd_loop_add(loop, c->fd, &c->http))
        server__connection_free(c);
    mhd_loop_run_soon(loop);
}

bool server__take(struct server_listener *l, int fd, const struct endpoint *from, nsec_t now)
{
    struct server *s = l->s;
    struct server__connection *c = calloc(1, sizeof(*c));
    struct ucred who = {.uid = 0};

    if (l->access != API_ACCESS_ADMIN)
        set_tcp(fd);
    if (!c || !enter(l, &from->addr, now)) {
        s->counts.refused++;
        (void)close(fd);
        free(c);
        return false;
    }
    if (l->access == API_ACCESS_PUBLIC && tls_front_wrap(s->front, fd, &fd) < 0) {
        s->counts.refused++;
        admission_leave(&l->admission, &from->addr);
        free(c);
        return false;
    }
    if (l->access == API_ACCESS_ADMIN)
        who = peer_of(fd);
    *c = (struct server__connection){.s = s,
        .loop = loop_of(l),
        .listener = l,
        .fd = fd,
        .access = l->access,
        .listener_ctx = l->listener_ctx,
        .from = *from,
        .uid = who.uid,
        .pid = who.pid,
        .role = l->role,
        .is_inside = true,
        .began_at = now,
        .cut_at = now + SERVER__REQUEST_TIME};
    list_add_tail(&s->connections, &c->link);
    list_add_tail(&s->timed, &c->timed);
    list_init(&c->busy);
    list_init(&c->ready);
    server__watch_deadlines(s);
    s->counts.accepted++;
    s->counts.connections++;
    start(c);
    return true;
}
