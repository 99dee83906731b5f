/*
 * overlay_internal.h - the overlay's structs, for overlay*.c only.
 */
#pragma once

#include <jansson.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/clock.h"
#include "base/htab.h"
#include "base/list.h"
#include "os/log.h"
#include "hub/hub_hooks.h"
#include "hub/overlay.h"
#include "net/netlink.h"
#include "net/udp_batch.h"

struct device;
struct diff;
struct port;
struct relay;
struct router_network;
struct router_node;
struct uapi_server;

struct overlay {
    struct uv_loop_s *loop; /* pins */
    struct port *port;      /* owns */
    struct relay *relay;    /* owns */
    uint64_t seed;          /* of the tables; random */

    /* The loop's. */
    const char *state_dir; /* pins */
    uint16_t api_port;     /* TCP, at which members ask the hub */
    struct netlink nl;     /* for interfaces, addresses and routes */
    uv_timer_t tick;       /* gives back expired leases */
    struct list networks;  /* in the order in which they came; members: siblings */
    uint32_t next_rank;    /* of the next network */
    bool is_started;       /* tick is there, the port runs */
    struct list greeted;   /* nodes that are asked to speak; members: overlay_node.greeting */
    char *memory_path;     /* owns; NULL: nothing is written */
    json_t *memory;        /* owns; what was read at the start: network, key, address */
    nsec_t memory_due;     /* when the file may be written again */
    struct log_limit memory_limit;

    _Atomic bool has_news; /* some node's address is not in the file yet; any thread */

    pthread_mutex_t lock; /* guards overlay_network.by_key, and of each node what is said below;
                             after the port's lock, before the router's */
};

/** A network: hangs on hub_network.plug. The loop's but for by_key. */
struct overlay_network {
    struct overlay *overlay;       /* pins */
    struct hub_network *hub;       /* pins */
    struct list siblings;          /* in overlay->networks */
    struct device *device;         /* owns */
    struct uapi_server *uapi;      /* owns; NULL if wg(8) cannot see the interface */
    struct router_network *router; /* lent by the router */
    unsigned ifindex;              /* of its interface */
    uint32_t rank;                 /* greater came later */
    nsec_t facts_read;             /* when the device was asked last; 0: never */
    struct htab by_key;            /* under the lock: overlay_node by public key */
};

/** A member but the hub itself: hangs on hub_node.plug. */
struct overlay_node {
    struct overlay_network *network; /* pins */
    struct hub_node *hub;            /* pins; the loop's */
    struct x25519_public key;        /* changes under the lock, read on the loop without */
    struct htab_link by_key;         /* under the lock */
    struct router_node *router;      /* under the lock; lent; NULL: nothing is relayed for it */
    struct udp_path path;            /* under the lock; last authenticated; remote none: never */
    nsec_t handshake;                /* under the lock; monotonic; 0: never */
    struct list greeting;            /* the loop's; in overlay->greeted */
    struct endpoint hint;            /* the loop's; where it was said to be, none: nobody knows */
    nsec_t greeting_ends;            /* the loop's; then we wait for it to come by itself */
    uint64_t rx_bytes;               /* the loop's; as of facts_read */
    uint64_t tx_bytes;               /* likewise */
};

/**
 * overlay__network_new() - interface, device, addresses, routes, relay tables
 * @ret:	gives it, in overlay->networks
 *
 * Return: 0 or negative errno with words.
 */
int overlay__network_new(
    struct overlay_network **ret, struct overlay *o, struct hub_network *hub, struct err *e);

/** overlay__network_free() - after all its nodes. NULL is fine. Returns NULL. */
struct overlay_network *overlay__network_free(struct overlay_network *net);

/** overlay__find_node() - by key; under the lock. */
struct overlay_node *overlay__find_node(
    const struct overlay_network *net, const struct x25519_public *key);

/** overlay__configure() - apply a change to the network's device. 0 or negative errno with words.
 */
int overlay__configure(struct overlay_network *net, const struct diff *d, struct err *e);

/** overlay__read_facts() - ask the device what it has counted, unless that was just done. */
void overlay__read_facts(struct overlay_network *net, nsec_t now);

/**
 * overlay__memory_open() - read where the nodes were when the hub ran last
 *
 * The file is STATE/addresses.json. One that does not parse is named in a warning and left alone;
 * then nothing is remembered this time.
 */
void overlay__memory_open(struct overlay *o, const char *state_dir);
void overlay__memory_close(struct overlay *o);

/** overlay__memory_find() - where the node was; false when nobody knows. */
bool overlay__memory_find(const struct overlay_node *node, struct endpoint *ret);

/** overlay__memory_save() - write the file if there is news, and not too often. */
void overlay__memory_save(struct overlay *o, nsec_t now);
