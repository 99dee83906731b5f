/*
 * sample_peers.h - an engine of which a test sees what it is told about peers.
 *
 * It has no data path. It keeps the changes of peers, and tells of the one peer that the test gives
 * it.
 */
#pragma once

#include "engine/engine.h"
#include "mesh/config/diff.h"

#define SAMPLE_PEERS_CHANGES_MAX 64

/** What engine_apply() said of one peer. */
struct sample_peers_change {
    enum diff_op op;
    struct x25519_public key;
    bool set_endpoint;
    struct endpoint endpoint;
    bool set_keepalive;
    uint16_t keepalive; /* s */
    bool set_mtu;
    uint16_t mtu;
    bool set_allowed;
    size_t n_allowed;
    struct ip_prefix allowed[4]; /* the first of them */
};

struct sample_peers {
    struct engine engine;
    struct sample_peers_change changes[SAMPLE_PEERS_CHANGES_MAX]; /* the oldest first */
    unsigned n_changes;
    const struct wg_peer *peer; /* borrowed: the one that engine_get() tells of; NULL: none */
};

/** sample_peers_init() - it was told nothing. There is nothing to release. */
void sample_peers_init(struct sample_peers *sp);
