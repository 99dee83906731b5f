/* peer_poll.c - see peer_poll.h. */
#include "peer/peer_poll.h"

#include "os/clock.h"
#include "peer/handshake_io.h"
#include "peer/peer.h"
#include "peer/relay_device.h"
#include "peer/sender.h"
#include "peer/source_addr.h"
#include "shared/device_state.h"
#include "shared/port_state.h"
#include "shared/retire.h"

void peer_forget_session(struct peer *peer)
{
    struct keypairs_evicted evicted;

    keypairs_clear(&peer->keypairs, &evicted);
    retire_keypairs(peer->device->port, &evicted);
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
    poll_list_arm(&p->polls, &peer->poll, timers_due(&peer->timers));
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

static void tell_listener(struct peer *peer)
{
    const struct device_listener *l = &peer->device->listener;
    struct udp_path path = peer_get_heard(peer);

    relay_device_on_heard(peer, &path);
    if (l->on_path)
        l->on_path(l->ctx, &peer->remote.public, &path);
}

static void take_told(struct peer *peer, nsec_t now)
{
    if (peer->is_unlinked)
        return;
    if (atomic_exchange(&peer->has_moved, false))
        tell_listener(peer);
    if (atomic_exchange(&peer->has_new_path, false))
        source_addr_check(peer, now);
    if (atomic_exchange(&peer->has_confirmed, false))
        handshake_io_session_ready(peer, now);
    poll_one(peer, now);
}

void peer_poll_told(struct port *p)
{
    struct poll_link *link = poll_list_take_told(&p->polls);
    nsec_t now = clock_now();

    while (link) {
        struct peer *peer = container_of(link, struct peer, poll);

        link = poll_list_next_told(link);
        take_told(peer, now);
    }
    sender_flush(p->sender);
}
