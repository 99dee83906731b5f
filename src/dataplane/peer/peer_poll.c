/* peer_poll.c - see peer.h: what is due for peers, and by which interface each is reached. */
#include "peer/peer.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "net/netlink/link_watch.h"
#include "net/netlink/netlink.h"
#include "net/netlink/rtnl.h"
#include "os/clock.h"
#include "peer/relay_device.h"
#include "peer/sender.h"
#include "shared/device_state.h"
#include "shared/port_state.h"

/* ---- the address that packets leave from ----------------------------------------------------- */

/* A check of all peers costs a question to the kernel for each. Whatever goes on in the network, it
 * takes one part in so many of the thread's time at most. */
#define CHECK_SHARE 20

struct source_addr {
    struct port *port;       /* pins */
    int fd;                  /* owns: news of routes; -1: none can be had */
    struct loop_event event; /* of fd */
    struct netlink nl;       /* for questions */
    nsec_t due;              /* of the next check of all peers; NSEC_NEVER: nothing is new */
    nsec_t rests_until;      /* none is made before */
};

/** Is the interface by which packets to a place leave the one by which packets from there came? */
enum way {
    WAY_UNKNOWN, /* there is no route at present, or it cannot be asked for */
    WAY_SAME,
    WAY_OTHER,
};

static enum way find_way(struct port *p, const struct udp_path *path)
{
    struct rtnl_flow flow = {.to = path->remote,
        .from = path->local,
        .from_port = p->sockets.listen_port,
        .fwmark = p->sockets.fwmark};
    unsigned ifindex;

    /* A link-local address has but one interface. */
    if (!p->source->nl.socket || ip_addr_is_none(&path->local) || path->ifindex == 0 ||
        ip_addr_is_link_local(&path->local) || rtnl_way_out(&p->source->nl, &flow, &ifindex) != 0)
        return WAY_UNKNOWN;
    return ifindex == path->ifindex ? WAY_SAME : WAY_OTHER;
}

/* Packets of @peer do not leave from our address on @path any more; NULL: there is no such path.
 * From packets that come by any other path our address is learned as before. */
static void set_left(struct peer *peer, const struct udp_path *path)
{
    (void)pthread_mutex_lock(&peer->lock);
    peer->left = path ? *path : (struct udp_path){.ifindex = 0};
    if (path && udp_path_equal(&peer->path, path))
        peer->path = (struct udp_path){.remote = path->remote};
    (void)pthread_mutex_unlock(&peer->lock);
}

/* Asks for the route to @peer, which speaks from or to another place than before. */
static void check_route(struct peer *peer, nsec_t now)
{
    struct port *p = peer->device->port;
    struct udp_path left = peer_copy_path(peer, &peer->left);
    struct udp_path path = peer_copy_path(peer, &peer->path);
    enum way way = find_way(p, &path);

    if (find_way(p, &left) == WAY_SAME)
        set_left(peer, NULL);
    if (way == WAY_SAME)
        peer->follows_route = true;
    if (way != WAY_OTHER || !peer->follows_route)
        return;
    set_left(peer, &path);
    if (peer->device->link.is_up)
        (void)sender_keepalive(p->sender, peer, now);
}

nsec_t source_addr_tick(struct source_addr *s, nsec_t now)
{
    struct device *d;
    struct peer *peer;

    if (now < s->due)
        return s->due;
    s->due = NSEC_NEVER;
    list_foreach(d, &s->port->devices, siblings)
        list_foreach(peer, &d->peers, siblings)
            check_route(peer, now);
    s->rests_until = now + CHECK_SHARE * (clock_now() - now);
    return s->due;
}

static void on_route_event(void *ctx, uint32_t epoll_events)
{
    struct source_addr *s = ctx;

    if (!net_watch_read(s->fd) || s->due != NSEC_NEVER)
        return;
    s->due = s->rests_until;
}

int source_addr_new(struct source_addr **ret, struct port *p)
{
    struct source_addr *s = calloc(1, sizeof(*s));

    if (!s)
        return -ENOMEM;
    s->port = p;
    s->fd = -1;
    s->due = NSEC_NEVER;
    *ret = s;
    return 0;
}

struct source_addr *source_addr_free(struct source_addr *s)
{
    free(s);
    return NULL;
}

int source_addr_start(struct source_addr *s)
{
    int r = netlink_open(&s->nl, NETLINK_ROUTE);

    if (r == 0)
        r = s->fd = net_watch_open();
    if (r >= 0) {
        s->event = (struct loop_event){.fd = s->fd, .fn = on_route_event, .ctx = s};
        r = loop_add(&s->port->loop, &s->event, EPOLLIN);
    }
    if (r < 0)
        source_addr_stop(s);
    return r < 0 ? r : 0;
}

void source_addr_stop(struct source_addr *s)
{
    netlink_close(&s->nl);
    if (s->fd >= 0)
        (void)close(s->fd);
    s->fd = -1;
    s->due = NSEC_NEVER;
}

/* ---- what is due ----------------------------------------------------------------------------- */

void peer_forget_session(struct peer *peer)
{
    struct keypairs_evicted evicted;

    keypairs_clear(&peer->keypairs, &evicted);
    peer_retire(peer, &evicted);
    handshake_io_abandon(peer);
}

/* Keepalives wait for the caller's sender_flush(). */
static void poll_one(struct peer *peer, nsec_t now)
{
    struct port *p = peer->device->port;
    unsigned todo;

    if (!peer->device->link.is_up)
        return;
    todo = timers_poll(&peer->timers, now);
    if (todo & TIMERS_DROP_STAGED)
        peer_drop_staged(peer, &p->drops);
    if (todo & TIMERS_ZERO_KEYS)
        peer_forget_session(peer);
    if (todo & TIMERS_SEND_INITIATION)
        handshake_io_initiate(peer, now);
    if (todo & TIMERS_SEND_KEEPALIVE) {
        if (atomic_load(&peer->staged.n) > 0)
            sender_add_staged(p->sender, peer, now);
        if (!sender_add_keepalive(p->sender, peer, now) && timers_on_rekey_wanted(&peer->timers))
            peer_tell(peer);
    }
    /* Cannot fail: poll_list_add() has reserved the room. */
    (void)heap_set(&p->polls.timers, &peer->poll.due, timers_due(&peer->timers));
}

void peer_poll(struct peer *peer, nsec_t now)
{
    poll_one(peer, now);
    sender_flush(peer->device->port->sender);
}

void peer_poll_due(struct port *p, nsec_t now)
{
    struct poll_link *link;

    while ((link = poll_list_pop_due(&p->polls, now)) != NULL)
        poll_one(container_of(link, struct peer, poll), now);
    sender_flush(p->sender);
}

/* The peer has begun a session with the key that we are about to leave, and would begin the next
 * ones so, too: it does not know better before we begin one. */
static bool wants_next_key(const struct peer *peer)
{
    return peer->device->next && peer->device->initiates_with_next && !peer->keeps_to_our_key &&
           !peer->has_session_under_next;
}

static void take_notified(struct peer *peer, nsec_t now)
{
    const struct device_listener *l = &peer->device->listener;
    bool is_confirmed;

    if (peer->is_unlinked)
        return;
    if (atomic_exchange(&peer->has_moved, false)) {
        struct udp_path path = peer_copy_path(peer, &peer->heard);

        relay_device_on_heard(peer, &path);
        if (l->on_path)
            l->on_path(l->ctx, &peer->remote.public, &path);
    }
    if (atomic_exchange(&peer->has_new_path, false))
        check_route(peer, now);
    is_confirmed = atomic_exchange(&peer->has_confirmed, false);
    if (is_confirmed)
        handshake_io_session_ready(peer, now);
    poll_one(peer, now);
    if (is_confirmed && wants_next_key(peer) && timers_on_rekey_wanted(&peer->timers))
        poll_one(peer, now);
}

void peer_poll_notified(struct port *p)
{
    struct poll_link *link = poll_list_take_notified(&p->polls);
    nsec_t now = clock_now();

    while (link) {
        struct peer *peer = container_of(link, struct peer, poll);

        link = poll_list_next_notified(link);
        take_notified(peer, now);
    }
    sender_flush(p->sender);
}
