/* relay_device.c - see relay_device.h. */
#include "peer/relay_device.h"

#include <errno.h>

#include "filter/relay.h"
#include "os/clock.h"
#include "peer/peer.h"
#include "relay/router.h"
#include "shared/device_state.h"
#include "shared/port_state.h"

/* Leases that are over are given back so often. */
#define EXPIRE_EVERY NSEC_PER_SEC

static struct router *router_of(const struct device *d)
{
    return relay_router(d->relay.relay);
}

/* Makes the peer known to the router, where it was heard last. */
static int admit(struct peer *peer)
{
    struct device *d = peer->device;
    struct udp_path heard = peer_copy_path(peer, &peer->heard);
    int r = router_node_add(&peer->at_router, router_of(d), d->relay.network, &peer->remote.public);

    if (r == 0 && !endpoint_is_none(&heard.remote))
        relay_device_on_heard(peer, &heard);
    return r;
}

void relay_device_forget(struct peer *peer)
{
    if (peer->at_router)
        router_node_remove(router_of(peer->device), peer->at_router);
    peer->at_router = NULL;
}

static void end(struct device *d)
{
    struct peer *peer;

    list_foreach(peer, &d->peers, siblings)
        peer->at_router = NULL;
    port_gates_set_filter(d->port, NULL, NULL);
    d->relay.network = NULL;
    d->relay.relay = relay_free(d->relay.relay);
    d->relay.due = NSEC_NEVER;
}

static int begin(struct device *d)
{
    struct peer *peer;
    int r;

    if (!d->local.has_key)
        return -EINVAL;
    if (d->port->filter.fn)
        return -EBUSY;
    r = relay_new(&d->relay.relay, d->port->opt.n_workers, &d->port->rng);
    if (r < 0)
        return r;
    r = router_network_add(&d->relay.network, router_of(d), &d->local.public);
    list_foreach(peer, &d->peers, siblings)
        if (r == 0 && peer->is_relayed)
            r = admit(peer);
    if (r < 0) {
        end(d);
        return r;
    }
    d->relay.due = clock_now() + EXPIRE_EVERY;
    port_gates_set_filter(d->port, relay_filter, d->relay.relay);
    return 0;
}

int relay_device_set(struct device *d, bool on)
{
    if (on == (d->relay.relay != NULL))
        return 0;
    if (on)
        return begin(d);
    end(d);
    return 0;
}

int relay_device_set_peer(struct peer *peer, bool on)
{
    peer->is_relayed = on;
    if (!on)
        relay_device_forget(peer);
    return on && peer->device->relay.relay && !peer->at_router ? admit(peer) : 0;
}

void relay_device_on_heard(struct peer *peer, const struct udp_path *path)
{
    if (peer->at_router)
        router_node_set_address(
            router_of(peer->device), peer->at_router, &path->remote, &path->local);
}

bool relay_device_has_index(const struct peer *peer, uint32_t index)
{
    return peer->at_router &&
           router_is_leased(router_of(peer->device), peer->at_router, index, clock_now());
}

nsec_t relay_device_expire(struct device *d, nsec_t now)
{
    if (now < d->relay.due)
        return d->relay.due;
    /* What the interface may send is what its line is for. Whether somebody has said that, or it
     * was found, its owner knows. */
    relay_set_line(d->relay.relay, pace_rate(&d->shaping.all), false);
    relay_tick(d->relay.relay, now);
    d->relay.due = now + EXPIRE_EVERY;
    return d->relay.due;
}
