/*
 * driver_world.h - a path driver among neighbours that answer, in a network of its own.
 *
 * The peer n3 is a machine of path/'s like the driver's own, the hub answers STUN and the probes of
 * its way, and the frames between them go through an engine that keeps them. There is one world at
 * a time.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "agent/paths/edge/path_driver.h"
#include "mesh/render/render.h"
#include "mesh/snapshot/snapshot.h"
#include "net/netlink/netlink.h"
#include "path/paths.h"
#include "test/support/sample_engine.h"
#include "wire/path.h"

struct echo_socket;

#define DRIVER_WORLD_PORT 51820 /* WireGuard's */
#define DRIVER_WORLD_SELF 2

struct driver_world {
    struct netlink *nl;
    unsigned ifindex; /* of the interface that has this node's address, "lan" */
    unsigned lo;
    uv_loop_t loop;
    struct sample_engine engine;
    unsigned n_taken; /* of what the engine was given to send */
    struct snapshot snapshot;
    struct path_driver *driver;
    struct echo_socket *pings;
    unsigned n_routes;
    unsigned n_self;
    unsigned n_look;
    unsigned n_network;

    struct endpoint own;
    struct endpoint at; /* where n3 is */
    struct paths *peer; /* n3's */
    struct x25519_public peer_key;
    bool is_peer_deaf; /* as to what goes through the engine */
    int peer_socket;   /* at @at; for what does not; -1: that is lost */

    struct endpoint hub;
    int hub_socket; /* at that endpoint; where packets come that do not go through the engine */
    struct path_keys hub_keys;
    struct x25519_public hub_key;
    struct endpoint seen;  /* where the hub sees this node */
    uint16_t seen_step;    /* the NAT's next mapping, towards the API's port, has that port more */
    bool is_hub_deaf;      /* it answers nothing */
    unsigned n_stun;       /* requests that came through the engine */
    unsigned n_probes;     /* of the way to it */
    struct path_frame say; /* the last of them */
};

extern struct driver_world driver_world;

/** driver_world_begin_on() - nothing is known yet. @interface: the overlay's. Skips the test where
 * there can be no namespace. */
void driver_world_begin_on(void **state, const char *interface);

/** driver_world_begin() - the engine runs, and the network is known. */
void driver_world_begin(void **state);
void driver_world_end(void);

/** driver_world_put_peer() - node 3 reports its address; as a relay, unless @run is 0. */
void driver_world_put_peer(uint64_t run);

/** driver_world_open_peer() - n3 is there, and hears other sockets than WireGuard's, too. */
void driver_world_open_peer(const char *at);

/** driver_world_run_until() - until it is so, or for ten seconds. */
bool driver_world_run_until(bool (*is_so)(void));

/** driver_world_take_sent() - the neighbours get what was sent until now. */
void driver_world_take_sent(void);

/** driver_world_see() - the engine shows sessions with the hub and with n3, and that many bytes of
 * each. */
void driver_world_see(uint64_t n_bytes);

/** driver_world_view() - how that node is reached; fails the test when it is no peer. */
struct path_view driver_world_view(const char *node);

/** driver_world_route() - lends the route of that node; NULL: there is none. */
const struct render_path *driver_world_route(const char *node);

/** driver_world_endpoint() - of "ADDRESS:PORT"; fails the test when it is none. */
struct endpoint driver_world_endpoint(const char *text);
