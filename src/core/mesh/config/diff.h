/*
 * diff.h - from what an interface is to what it should be.
 *
 * The result is a list of changes for an engine (engine/engine.h). A peer that
 * did not change is not in it, so applying it never disturbs one; and when
 * nothing differs it is empty, and nothing is touched.
 *
 * Endpoints are special, because an engine learns them from authenticated
 * packets: a peer that moved is found at its new place without anybody's help.
 * So an endpoint is changed only when the *wanted* one changed since it was
 * last told to the engine, or when the engine has none.
 *
 * A peer that is wanted under the next key of one that the engine has, which is wanted no more, is
 * that peer: it is updated, and keeps its sessions. The same goes for the interface: a private key
 * that is its next one ends nothing.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mesh/config/wg_config.h"

enum diff_op {
    DIFF_OP_REMOVE, /* the peer and its session go */
    DIFF_OP_ADD,    /* a peer that the engine does not have: all fields */
    DIFF_OP_UPDATE, /* a peer that it has: the fields that are marked */
};

/** What happens to one peer. */
struct diff_peer {
    enum diff_op op;
    struct wg_peer peer;           /* owns; the wanted fields */
    bool is_replaced;              /* @peer goes on from another key; of an update */
    struct x25519_public replaces; /* that one */
    bool set_next_key;
    bool set_initiate_with_current;
    bool set_psk;
    bool set_endpoint;
    bool set_keepalive;
    bool set_cipher;
    bool set_pin;
    bool set_relayed;
    bool set_mtu;
    bool set_rate;
    bool set_allowed; /* replaces all of the peer's blocks */
};

/** What happens to one interface. */
struct diff {
    bool set_key;      /* the interface has another private key than it should, or none */
    bool set_next_key; /* the same of the next one */
    bool set_initiate_with_next;
    bool initiate_with_next;
    /* Pins, set by who applies the change: the next private key; NULL: none. */
    const struct x25519_secret *next_secret;
    bool set_listen_port;
    bool set_fwmark;
    bool set_relay;
    bool set_shows_dscp;
    bool set_rate;                         /* of all that is sent */
    bool set_class_rates[TRAFFIC_CLASS_N]; /* of each class */
    uint16_t listen_port;
    uint32_t fwmark;
    bool is_relay;
    bool shows_dscp;
    struct traffic_rates rates;
    struct diff_peer *peers; /* owns; removals first, so that their blocks are free to be moved */
    size_t n_peers;
    size_t cap_peers;
};

#define DIFF_NULL                                                                                  \
    {                                                                                              \
        0                                                                                          \
    }

/** diff_deinit() - release it, and wipe the preshared keys in it; idempotent, safe on DIFF_NULL. */
void diff_deinit(struct diff *d);

/** diff_count_rates() - how many of the interface's own rates change. */
unsigned diff_count_rates(const struct diff *d);

/** diff_is_empty() - nothing to apply. */
bool diff_is_empty(const struct diff *d);

/**
 * diff_make() - the changes that lead from @have to @want
 * @ret:	untouched on failure, else to be released with diff_deinit()
 * @have:	sorted; what the engine says
 * @want:	sorted; as render_config() gave it. A listen port of 0 is content with any.
 * @applied:	sorted; what was wanted when the engine was last told, NULL when nobody knows:
 *		then every endpoint that differs is set
 *
 * Addresses, routes and MTU are the interface's own and not in it: see
 * agent/reconcile/reconcile.h.
 *
 * Return: 0 or -ENOMEM.
 */
int diff_make(struct diff *ret, const struct wg_config *have, const struct wg_config *want,
    const struct wg_config *applied);
