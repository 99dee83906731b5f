/*
 * router_sample.h - what the router's tests and fuzz target share: handshake messages as a
 * stock WireGuard would make them, and a slow reference router.
 *
 * The reference keeps everything in arrays and looks at all of it each time. It knows
 * no budgets; those have a test of their own.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/clock.h"
#include "crypto/x25519.h"
#include "relay/router.h"
#include "wire/wg.h"

/** router_sample_key() - public key number @n; not one of a real secret, which nothing here needs.
 */
struct x25519_public router_sample_key(unsigned n);

/** sample_endpoint() - address number @n of 192.0.2.0/24 with a port that depends on @n. */
struct endpoint sample_endpoint(unsigned n);

/** sample_initiation(), sample_response() - with noise/cookie.h's mac1 for @to. */
struct wg_initiation sample_initiation(const struct x25519_public *to, uint32_t sender);
struct wg_response sample_response(
    const struct x25519_public *to, uint32_t sender, uint32_t receiver);

/** sample_data(), sample_cookie() - garbage but for the header. */
#define SAMPLE_DATA_SIZE 64
struct sample_data {
    struct wg_data header;
    uint8_t rest[SAMPLE_DATA_SIZE - sizeof(struct wg_data)];
};
struct sample_data sample_data(uint32_t receiver);
struct wg_cookie_reply sample_cookie(uint32_t receiver);

#define REFERENCE_NETWORKS_MAX 3
#define REFERENCE_NODES_MAX    16
#define REFERENCE_LEASES_MAX   64

struct reference_network {
    bool is_there;
    struct x25519_public hub;
};

struct reference_node {
    bool is_there;
    unsigned network;
    struct x25519_public key;
    struct endpoint remote; /* none: not known */
    uint64_t heard;         /* greater is later */
    bool blocked[REFERENCE_NODES_MAX];
};

struct reference_lease {
    bool is_there;
    bool is_established;
    unsigned from;
    unsigned to;
    unsigned initiator;
    uint32_t index;
    nsec_t until;
};

struct reference {
    struct reference_network networks[REFERENCE_NETWORKS_MAX];
    struct reference_node nodes[REFERENCE_NODES_MAX];
    struct reference_lease leases[REFERENCE_LEASES_MAX];
    uint64_t heard;           /* counts */
    unsigned leases_per_node; /* as the router's option */
    unsigned leases_max;      /* as the router's option */
};

/** The reference's verdict: as the router's, and to which node. */
struct reference_verdict {
    enum router_action action;
    enum drop_reason reason;
    unsigned to; /* of a forward */
};

void reference_node_add(
    struct reference *t, unsigned node, unsigned network, const struct x25519_public *k);
void reference_node_remove(struct reference *t, unsigned node);
void reference_node_set_address(struct reference *t, unsigned node, const struct endpoint *remote);
void reference_edge_set_blocked(struct reference *t, unsigned a, unsigned b, bool blocked);
void reference_expire(struct reference *t, nsec_t now);
struct reference_verdict reference_route(
    struct reference *t, const struct router_arrival *in, const uint8_t *msg, size_t len);
