/*
 * tunnel.h - one WireGuard session with the hub for each of thousands of nodes, in one thread.
 *
 * The kernel's TCP runs on top: all overlay addresses of the nodes are local in this network
 * namespace, and packets for the hub's overlay address leave through one TUN interface. A packet's
 * source address says which node sends it, and so by which session it is sealed. Below, each node
 * has an address of its own too, so that the hub sees that many machines.
 *
 * The handshakes, the cookies and the time of rekeying are those of noise/. A node that has heard
 * and says nothing for Keepalive-Timeout sends a keepalive, as every WireGuard does: the hub would
 * take it for gone, and begin handshakes with it.
 */
#pragma once

#include <stdint.h>

#include "base/addr.h"
#include "crypto/x25519.h"

struct tunnel;

/** Most nodes: the low bits of a receiver index are the node's number. */
#define TUNNEL_NODES_MAX (1u << 14)

/** What has happened since the start. */
struct tunnel_counts {
    uint64_t handshakes; /* finished */
    uint64_t cookies;    /* replies that asked for another initiation */
    uint64_t again;      /* initiations that were repeated */
    uint64_t asked;      /* initiations of the hub's */
    uint64_t invalid;    /* messages that no session could open */
};

/**
 * tunnel_start() - open the TUN interface and begin to serve it
 * @interface:	of the TUN interface, which must be there
 * @hub:	the hub's public key, and where it is
 *
 * Ends the program when that fails. The thread runs until the program ends.
 */
struct tunnel *tunnel_start(
    const char *interface, uint32_t n, const struct x25519_public *hub, const struct endpoint *at);

/** tunnel_add() - node @number has this key and overlay address from now on. Threads: any. */
void tunnel_add(struct tunnel *t, uint32_t number, const struct x25519_secret *secret,
    const struct ip_addr *inner);

/** tunnel_counts() - Threads: any. */
struct tunnel_counts tunnel_counts(const struct tunnel *t);

/** tunnel_outer() - the address that node @number has in the world: 172.20.0.0 and its number. */
struct ip_addr tunnel_outer(uint32_t number);
