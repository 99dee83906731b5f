/*
 * wg_config.h - one WireGuard interface as data.
 *
 * What render.h wants an interface to be, and what an engine says it is. The
 * interface's private keys are not in it, only what follows from them: the secrets
 * stay in the node's own state and are handed to the engine beside this.
 *
 * Peers are sorted by public key, so that two configurations are compared by
 * one walk over both.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/traffic.h"
#include "crypto/x25519.h"
#include "noise/identity.h"

struct relay_line_report;

#define WG_CONFIG_ADDRESSES_MAX 4

/** What an engine observed of a peer; zero in a wanted configuration. */
struct wg_facts {
    int64_t handshake_sec; /* wall clock of the last one, Unix seconds; 0: never */
    uint32_t handshake_nsec;
    uint64_t rx_bytes;
    uint64_t tx_bytes;
    struct arrivals arrivals; /* of its datagrams; none received: the engine does not count them */
    struct endpoint heard; /* where its last authentic packet came from; none: the engine does not
                              tell that apart from its endpoint, which follows its packets */
    bool heard_next;       /* it has spoken under its next key */
    bool session_next;     /* its last handshake was under the interface's next key */
};

struct wg_peer {
    struct x25519_public key;
    struct x25519_public next_key; /* under which it is the same peer, too; none: it has one key */
    bool initiate_with_current;    /* it knows but the interface's key, and is initiated to under it
                                      even while others are under the next one */
    struct noise_psk psk;
    struct endpoint endpoint;   /* none: it is not known, the peer will come to us */
    uint16_t keepalive;         /* s; 0: none */
    uint16_t mtu;               /* inner bytes that its path carries; 0: the routes' */
    uint16_t mss_mtu;           /* TCP asks it for packets of so much at most; 0: of what the
                                   machine's links carry */
    struct noise_choice cipher; /* of its data */
    enum pin pin;               /* what moves its endpoint while paths are found */
    bool is_relayed;            /* this node may relay between it and others of its kind */
    uint64_t rate;              /* of what is sent to it, bit/s; 0: none */
    struct ip_prefix *allowed;  /* owns; sorted by ip_prefix_compare(), host bits zero */
    size_t n_allowed;
    struct wg_facts facts;
};

struct wg_config {
    struct x25519_public public;      /* of the interface's own key; none: it has no key yet */
    struct x25519_public next_public; /* of the key that it answers under, too; none: of no other */
    bool initiate_with_next;          /* and under which it initiates */
    struct ip_prefix addresses[WG_CONFIG_ADDRESSES_MAX]; /* host bits kept */
    unsigned n_addresses;
    struct ip_prefix routes[WG_CONFIG_ADDRESSES_MAX]; /* that must lead into the interface */
    unsigned n_routes;
    uint16_t mtu;       /* bytes; 0: not known, as an engine leaves it */
    uint16_t link_mtu;  /* inner bytes beyond which nothing can be received; 0: the same as @mtu */
    uint16_t route_mtu; /* of @routes, for peers without an MTU of their own; 0: the interface's */
    uint16_t listen_port;  /* 0: any */
    unsigned listen_errno; /* observed: why it cannot be listened on, and is tried; 0: it is, or the
                              interface is down */
    uint32_t fwmark;       /* of the packets sent; 0: none */
    uint64_t socket_drops; /* observed: what arrived and had no room in the sockets; merged
                              datagrams are one */
    uint32_t merging_ifindex; /* observed: by the interface of that index datagrams of one flow come
                                 so fast that they could be merged; 0: not known */
    uint32_t merging_percent; /* and so many of a hundred that could come merged do */
    uint32_t merging_age_s;   /* as it was seen so long ago */
    bool is_relay;            /* it relays between those of its peers that are marked so */
    /* Owns; observed: how the line is by which it relays; NULL: not known. */
    struct relay_line_report *line;
    struct traffic_rates rates; /* of what it sends */
    bool shows_dscp;            /* its datagrams carry the DSCP of the packets in them */
    struct wg_peer *peers;      /* owns; sorted by key once wg_config_sort() was called */
    size_t n_peers;
    size_t cap_peers;
};

#define WG_PEER_NULL                                                                               \
    {                                                                                              \
        0                                                                                          \
    }
#define WG_CONFIG_NULL                                                                             \
    {                                                                                              \
        0                                                                                          \
    }

/** wg_peer_deinit(), wg_config_deinit() - wipe keys, release; idempotent, safe on ..._NULL. */
void wg_peer_deinit(struct wg_peer *p);
void wg_config_deinit(struct wg_config *c);

/** wg_peer_allow() - one more block, its host bits cleared. 0, -E2BIG or -ENOMEM. */
int wg_peer_allow(struct wg_peer *p, const struct ip_prefix *block);

/** wg_peer_copy() - @ret: untouched on failure. 0 or -ENOMEM. */
int wg_peer_copy(struct wg_peer *ret, const struct wg_peer *from);

/** wg_peer_allows_equal() - the same blocks; both sorted. */
bool wg_peer_allows_equal(const struct wg_peer *a, const struct wg_peer *b);

/**
 * wg_config_add() - one more peer, at the end
 * @p:		what it holds is taken, also on failure
 *
 * Return: 0, -E2BIG or -ENOMEM.
 */
int wg_config_add(struct wg_config *c, struct wg_peer *p);

/**
 * wg_config_sort() - peers by key, each one's blocks by address
 *
 * Blocks that a peer has twice are kept once.
 *
 * Return: 0; -EINVAL with words when two peers have one key.
 */
int wg_config_sort(struct wg_config *c, struct err *e);

/** wg_config_find() - lends the peer of that key, NULL if none. @c is sorted. */
struct wg_peer *wg_config_find(const struct wg_config *c, const struct x25519_public *key);

/** wg_config_has_rates() - is anything that it sends to be kept to a rate? */
bool wg_config_has_rates(const struct wg_config *c);

/** wg_config_has_next_keys() - does the interface or a peer have a next key? */
bool wg_config_has_next_keys(const struct wg_config *c);

/** wg_config_clear_next_keys() - none has, as for an engine that knows none. */
void wg_config_clear_next_keys(struct wg_config *c);

/** wg_config_clear_rates() - nothing is, and datagrams show no DSCP. */
void wg_config_clear_rates(struct wg_config *c);

/** ip_prefix_compare() - by address, then by length. */
int ip_prefix_compare(const struct ip_prefix *a, const struct ip_prefix *b);
