/* device_config.c - see device_config.h. */
#include "port/device_config.h"

#include <errno.h>

#include "peer/peer.h"
#include "peer/peer_poll.h"
#include "peer/relay_device.h"
#include "port/shaping_config.h"
#include "shared/device_state.h"
#include "shared/port_gates.h"
#include "shared/port_state.h"

void device_config_set_key(struct device *d, const struct x25519_secret *secret)
{
    struct peer *peer, *next;

    /* Its router knows the old key; whoever wants a relay says so again. */
    (void)relay_device_set(d, false);
    noise_local_set(&d->local, secret);
    port_gates_close(d->port, d);
    cookie_checker_set_key(&d->checker, &d->local.public);
    port_gates_open(d->port, d);
    list_foreach_safe(peer, next, &d->peers, siblings) {
        noise_remote_set_local(&peer->remote, &d->local);
        peer_forget_session(peer);
        if (d->local.has_key && x25519_public_equal(&peer->remote.public, &d->local.public))
            device_config_remove_peer(d, peer);
    }
}

/* The gates are closed. */
static void unlink_peer(struct peer *peer)
{
    peer_unlink(peer);
    shaping_config_set_peer(peer, 0);
    peer_forget_session(peer);
    relay_device_forget(peer);
}

int device_config_hand_over(struct device *d)
{
    int r = d->listener.on_handed_over ? tun_set_persistent(&d->tun, true) : -EOPNOTSUPP;

    if (r == 0)
        d->listener.on_handed_over(d->listener.ctx);
    return r;
}

void device_config_remove_peer(struct device *d, struct peer *peer)
{
    port_gates_close(d->port, d);
    unlink_peer(peer);
    port_gates_open(d->port, d);
    peer_poll_told(d->port);
    peer_free(peer);
}

void device_config_remove_peers(struct device *d)
{
    struct list gone = LIST_NULL(gone);
    struct peer *peer, *next;

    port_gates_close(d->port, d);
    list_foreach_safe(peer, next, &d->peers, siblings) {
        unlink_peer(peer);
        list_add_tail(&gone, &peer->siblings);
    }
    port_gates_open(d->port, d);
    peer_poll_told(d->port);
    list_foreach_safe(peer, next, &gone, siblings)
        peer_free(peer);
}

void device_config_set_keepalive(struct peer *peer, uint16_t seconds, nsec_t now)
{
    peer->keepalive_s = seconds;
    timers_set_persistent_keepalive(&peer->timers, seconds * NSEC_PER_SEC, now);
}

void device_config_set_cipher(struct peer *peer, struct noise_choice choice)
{
    enum aead_cipher before = peer->remote.profile->transport;
    struct keypair *kp;

    noise_remote_set_choice(&peer->remote, choice);
    if (before == choice.wanted)
        return;
    /* A handshake under way goes on: packets wait for it. take_response() has the rest. */
    kp = keypairs_acquire_current(&peer->keypairs);
    if (kp && kp->alg->cipher != choice.wanted && timers_on_rekey_wanted(&peer->timers))
        peer_tell(peer);
    (void)keypair_unref(kp);
}
