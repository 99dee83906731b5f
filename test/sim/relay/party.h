/*
 * party.h - a WireGuard endpoint without I/O, as small as it can be: for simulations.
 *
 * The real protocol core (noise/) and, around it, only what a conversation needs:
 * handshakes when there is something to send and no young session, one retry
 * every five seconds, a new session after two minutes or when nothing comes back
 * for fifteen seconds, roaming; and, as an agent has it, back to where the peer
 * was said to be when it is silent there where it was heard last. Indices are drawn from a small
 * range, so that they clash all the time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/clock.h"
#include "base/secret.h"
#include "crypto/x25519.h"
#include "noise/cookie.h"
#include "noise/handshake.h"
#include "noise/identity.h"
#include "noise/keypair.h"

#define PARTY_PEERS_MAX  8
#define PARTY_INDEX_MAX  96 /* indices are 1 to this */
#define PARTY_PACKET_MAX 256

struct party;

struct party_peer {
    struct noise_remote remote;
    struct handshake hs; /* that we have begun */
    struct cookie_maker cookies;
    struct keypairs keypairs;
    struct endpoint ep;   /* where it is; learned */
    struct endpoint home; /* where it was said to be; none: nowhere */
    nsec_t initiated;     /* when a handshake was begun last */
    bool has_initiated;
    nsec_t unanswered; /* when data was sent first since something came back; 0: it was not */
};

/** What happens to what a party does. */
struct party_events {
    void (*send)(void *ctx, const struct endpoint *to, const void *msg, size_t len);
    /* An authenticated, fresh packet; @len 0: a keepalive. */
    void (*receive)(void *ctx, struct party_peer *from, const void *data, size_t len);
    /* May the party not use this index towards that peer? */
    bool (*is_taken)(void *ctx, struct party_peer *peer, uint32_t index);
    void *ctx; /* pinned */
};

struct party {
    struct noise_local local;
    struct cookie_checker checker;
    struct party_peer peers[PARTY_PEERS_MAX];
    unsigned n_peers;
    struct aead_lane *lane; /* owns */
    struct rng rng;         /* pins its state */
    struct party_events events;
};

void party_init(struct party *p, const struct rng *rng, const struct party_events *events);
void party_deinit(struct party *p);

/** party_add_peer() - lends it; @ep: none if it will come by itself. */
struct party_peer *party_add_peer(
    struct party *p, const struct x25519_public *public, const struct endpoint *ep);

/** party_send() - @len 0: a keepalive. Lost when there is no session yet; one is then begun. */
void party_send(struct party *p, struct party_peer *peer, const void *data, size_t len, nsec_t now);

/** party_receive() - a datagram that arrived from @from. */
void party_receive(
    struct party *p, const struct endpoint *from, const void *msg, size_t len, nsec_t now);

/** party_has_index() - is it one of a handshake or a session of this party? */
bool party_has_index(struct party *p, uint32_t index);
