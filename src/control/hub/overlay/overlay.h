/*
 * overlay.h - the data half of a hub: its interfaces, its WireGuard peers, its relay.
 *
 * One UDP port for everything. Each network has an interface of its own on the
 * hub, with the network's first addresses, and a WireGuard device behind it
 * whose peers are the network's nodes. What those sessions tell about where a
 * node is goes to the relay, which shares the port.
 *
 * Theory of operation. The hooks (hub_hooks.h) run on the loop and configure devices
 * and router. The devices' listeners run on the port's control thread; they
 * look the node up by its key and tell the router. What both touch is
 * under one lock of the overlay.
 *
 * Two networks may have the same block of addresses. The machine's own programs
 * reach the one that was there first; the other one's interface serves the
 * hub's API and nothing else, so that no answer of the kernel goes to the
 * wrong network (see overlay.c).
 *
 * Lock order: port (dataplane/), overlay, router. The loop holds none of them
 * when it calls into the port.
 */
#pragma once

#include <stdint.h>

#include "hub/model/hub_hooks.h"

struct err;
struct overlay;
struct uv_loop_s;

/** How an overlay is set up. */
struct overlay_options {
    const char *state_dir; /* pinned: where nodes' addresses are remembered */
    uint16_t listen_port;  /* UDP; 0: the kernel chooses */
    uint16_t api_port;     /* TCP, at which members ask the hub */
    unsigned n_workers;    /* receiving threads; 0: half of the CPUs, at most 4 */
};

/**
 * overlay_new() - a port without sockets and networks yet
 * @loop:	pinned
 *
 * Return: 0 or negative errno with words.
 */
int overlay_new(
    struct overlay **ret, struct uv_loop_s *loop, const struct overlay_options *opt, struct err *e);

/**
 * overlay_hooks() - what hub_new() needs to know
 *
 * The words of a network that cannot be added name its interface and what is missing: root, or
 * /dev/net/tun.
 */
struct hub_hooks overlay_hooks(struct overlay *o);

/**
 * overlay_start() - bind the port and start the threads; between hub_new() and hub_start()
 *
 * Return: 0 or negative errno with words (-EADDRINUSE: the port is taken).
 */
int overlay_start(struct overlay *o, struct err *e);

/** overlay_stop() - after hub_stop(); then run the loop until it is empty. Idempotent. */
void overlay_stop(struct overlay *o);

/** overlay_free() - after overlay_stop() and the loop's end. */
struct overlay *overlay_free(struct overlay *o);
