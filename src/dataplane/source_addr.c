/* source_addr.c - see source_addr.h. */
#include "dataplane/source_addr.h"

#include <sys/epoll.h>
#include <unistd.h>

#include "dataplane/peer.h"
#include "dataplane/port_internal.h"
#include "os/clock.h"
#include "net/net_watch.h"
#include "net/rtnl.h"

/* A change comes in several pieces, as a rule: the old route goes, the new one comes. */
#define SETTLE (100 * NSEC_PER_MSEC)

/* A look costs a question for each peer: not more often, whatever goes on in the network. */
#define LOOK_EVERY NSEC_PER_SEC

/** By which interface packets to a place leave, against the one that packets from there came by. */
enum way {
    WAY_UNKNOWN, /* there is none at present, or nobody can tell */
    WAY_SAME,
    WAY_OTHER,
};

static enum way find_way(struct port *p, const struct udp_path *path)
{
    struct rtnl_flow flow = {
        .to = path->remote, .from = path->local, .from_port = p->listen_port, .fwmark = p->fwmark};
    unsigned ifindex;

    /* A link-local address has but one interface. */
    if (!p->source.nl.socket || ip_addr_is_none(&path->local) || path->ifindex == 0 ||
        ip_addr_is_link_local(&path->local) || rtnl_way_out(&p->source.nl, &flow, &ifindex) != 0)
        return WAY_UNKNOWN;
    return ifindex == path->ifindex ? WAY_SAME : WAY_OTHER;
}

void source_addr_check(struct peer *peer, nsec_t now)
{
    struct port *p = peer->device->port;
    struct udp_path left = peer_get_left(peer);
    struct udp_path path = peer_get_path(peer);
    enum way way = find_way(p, &path);

    if (find_way(p, &left) == WAY_SAME)
        peer_set_left(peer, NULL);
    if (way == WAY_SAME)
        peer->follows_route = true;
    if (way != WAY_OTHER || !peer->follows_route)
        return;
    peer_set_left(peer, &path);
    if (peer->device->is_up)
        (void)sender_keepalive(&p->sender, peer, now);
}

void source_addr_tick(struct port *p, nsec_t now)
{
    struct device *d;
    struct peer *peer;

    if (now < p->source.due)
        return;
    p->source.due = NSEC_NEVER;
    p->source.looked_at = now;
    list_foreach(d, &p->devices, siblings)
        list_foreach(peer, &d->peers, siblings)
            source_addr_check(peer, now);
}

static void on_news(void *ctx, uint32_t epoll_events)
{
    struct port *p = ctx;
    struct source_addr *w = &p->source;

    if (!net_watch_read(w->fd) || w->due != NSEC_NEVER)
        return;
    w->due = clock_now() + SETTLE;
    if (w->looked_at != 0)
        w->due = nsec_max(w->due, w->looked_at + LOOK_EVERY);
}

int source_addr_init(struct port *p)
{
    struct source_addr *w = &p->source;
    int r = netlink_open(&w->nl, NETLINK_ROUTE);

    if (r == 0)
        r = w->fd = net_watch_open();
    if (r >= 0) {
        w->event = (struct loop_event){.fd = w->fd, .fn = on_news, .ctx = p};
        r = loop_add(&p->loop, &w->event, EPOLLIN);
    }
    if (r < 0)
        source_addr_deinit(p);
    return r < 0 ? r : 0;
}

void source_addr_deinit(struct port *p)
{
    struct source_addr *w = &p->source;

    netlink_close(&w->nl);
    if (w->fd >= 0)
        (void)close(w->fd);
    w->fd = -1;
    w->due = NSEC_NEVER;
}
