/*
 * overlay_internal.h - the overlay's structs, for overlay*.c and their tests.
 *
 *     overlay_nodes.c  the members: peers of a network's device, and nodes of the relay
 *     overlay.c        the networks' interfaces and devices, the port and the relay
 *
 * Each calls only those above it.
 */
#pragma once

#include <jansson.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/addr.h"
#include "base/clock.h"
#include "base/containers.h"
#include "base/rate.h"
#include "crypto/x25519.h"
#include "hub/model/model.h"
#include "hub/overlay/overlay.h"
#include "net/netlink/netlink.h"
#include "net/socket/udp_batch.h"
#include "os/log.h"
#include "os/timestamp_file.h"
#include "shared/frame_client.h"

struct err;

/* ---- which nodes the hub speaks to first, though nodes otherwise come to it ------------------ */

/*
 * When a hub is started again, the sessions of all nodes are void, and nothing tells them. So the
 * hub remembers where each node was (overlay_nodes.c), and has its WireGuard device make a
 * handshake with it there: it gives the peer that endpoint, and a keepalive, which is sent at once,
 * and without a session begins a handshake. The keepalive is taken back when the node was heard, or
 * after 20 s: a node that has moved meanwhile comes by itself, as ever. The same is done for a node
 * without a session that has opened a stream.
 *
 * Theory of operation. Only the times are kept here. The owner, overlay_nodes.c, says where a node
 * may be and whether it was heard, and changes its peer as it is told.
 *
 * Pure: no I/O, and time is an argument.
 */

/** Seconds between two keepalives to such a node. */
#define RECONTACT_KEEPALIVE_S 5

/** For how long the hub tries to reach such a node. */
#define RECONTACT_FOR (20 * NSEC_PER_SEC)

/** What is kept for each node. */
struct recontact_node {
    struct list link;   /* among those that are spoken to */
    struct endpoint at; /* where it may be; none: nobody knows */
    nsec_t ends_at;     /* when it is spoken to no more */
};

/**
 * recontact_begin() - is the node to be spoken to, at node->at, from now on?
 * @nodes:	those that are; it is added
 *
 * Once more for a node that is spoken to already begins its time anew.
 *
 * Return: false when nobody knows where it may be.
 */
bool recontact_begin(struct list *nodes, struct recontact_node *node, nsec_t now);

/** recontact_is_over() - is a node that is spoken to to be left alone now? @is_heard: it answered.
 */
bool recontact_is_over(const struct recontact_node *node, bool is_heard, nsec_t now);

/* ---- members measure how long packets the way to the hub and back carries -------------------- */

/*
 * A member sends path frames of many lengths to the hub's port, with DF and under the key that
 * only the two have (docs/wire/path.md, "To a hub"). Each is answered with as many bytes, with DF
 * too, so an answer proves both directions. What the member has found it says in the frame: the
 * hub's own packets to it, and the routes that they go by, have that size from then on.
 *
 * Who asks is known by where the frame comes from: a member whose session was heard there last. A
 * stranger costs a look into a table, and is not answered.
 *
 * Threads: the loop's.
 */

/** A frame as the frame socket has it. */
struct probe_answers_frame {
    struct frame_socket_header header;
    uint8_t frame[FRAME_SOCKET_FRAME_MAX];
};

struct probe_answers {
    struct overlay *overlay;     /* pins */
    struct frame_socket *frames; /* owns; NULL: it is not open */
    int fd;                      /* owns; its other end */
    uv_poll_t poll;
    struct rate rate;  /* of all answers */
    uint64_t run;      /* random, never 0 */
    uint64_t sequence; /* of the last answer */
};

/** probe_answers_open() - before the port is started. 0 or negative errno with words. */
int probe_answers_open(struct probe_answers *pa, struct overlay *o, struct err *e);

/** probe_answers__take() - a frame of @len bytes, any content; garbage afterwards. */
void probe_answers__take(
    struct probe_answers *pa, struct probe_answers_frame *msg, size_t len, nsec_t now);

/** probe_answers_close() - its handle closes in the loop's next turns; before the port is freed.
 * Idempotent. */
void probe_answers_close(struct probe_answers *pa);

/* ---- where the nodes were, for a hub that is started again ----------------------------------- */

/*
 * STATE/addresses.json:
 *
 *     {"default": {"PUBLIC KEY": "203.0.113.5:51820", ...}, ...}
 *
 * An address in the file is a hint: nothing is relayed there before a handshake has shown that the
 * node is there.
 *
 * The file is written whole, so the more nodes are in it, the less often it is written: what it
 * costs each second stays the same. A hub that ends between two writes has not noted the last ones,
 * which then come back by themselves, more slowly.
 *
 * Threads: the hub's loop only. Writing the file waits for the disk, at most once in two seconds.
 */

struct addresses {
    char *path;      /* owns; NULL: nothing is written */
    json_t *known;   /* owns: what was read at the start; NULL: nothing was */
    nsec_t write_at; /* the file is not written before */
    struct log_limit limit;
};

#define ADDRESSES_NULL                                                                             \
    {                                                                                              \
        0                                                                                          \
    }

/**
 * addresses_open() - read what the hub knew when it ran last
 *
 * A file that does not parse is named in a warning and left as it is; then nothing is written.
 */
void addresses_open(struct addresses *a, const char *state_dir);

/** addresses_close() - release. Idempotent. */
void addresses_close(struct addresses *a);

/** addresses_find() - where the node with @key was; false: nobody knows, and @ret is untouched. */
bool addresses_find(const struct addresses *a, const char *network, const struct x25519_public *key,
    struct endpoint *ret);

/** addresses_may_write() - is there a file, and was it not written just now? */
bool addresses_may_write(const struct addresses *a, nsec_t now);

/** addresses_add() - one entry of a network's object in what addresses_write() takes. */
void addresses_add(json_t *network, const struct x25519_public *key, const struct endpoint *at);

/**
 * addresses_write() - replace what is in the file
 * @all:	taken; the object of all networks; NULL: no memory
 *
 * A failure is named in the log.
 */
void addresses_write(struct addresses *a, json_t *all, nsec_t now);

/* ---- the overlay, its networks and their members --------------------------------------------- */

struct overlay {
    struct uv_loop_s *loop; /* pins */
    struct port *port;      /* owns */
    struct relay *relay;    /* owns */
    uint64_t seed;          /* of the tables; random */
    const char *state_dir;  /* pins */
    uint16_t api_port;      /* TCP, at which members ask the hub */
    bool has_said_line;     /* it was said what its line carries */

    /* The loop's. */
    struct netlink nl;          /* for interfaces, addresses and routes */
    uv_timer_t tick;            /* each second */
    struct list networks;       /* of struct overlay_network, in the order in which they came */
    uint32_t next_rank;         /* of the next network */
    bool is_started;            /* @tick is there, the port runs */
    struct list recontacts;     /* of struct recontact_node: those that are spoken to */
    struct addresses addresses; /* where the nodes were */
    struct probe_answers probes;
    struct timestamp_file timestamps; /* of the port's handshakes */

    _Atomic bool has_updates; /* some node's address is not in the file yet; any thread */

    pthread_mutex_t lock;  /* guards @by_remote, overlay_network.by_key, and of each node what is
                              said below; after the port's lock, before the router's */
    struct htab by_remote; /* under the lock: overlay_node by where it was heard last */
};

/** Bytes of a TCP header without options. */
#define OVERLAY__TCP_HEADER 20

/** A network: hangs on served_network.overlay. The loop's but for @by_key. */
struct overlay_network {
    struct overlay *overlay;           /* pins */
    const struct model_network *model; /* pins */
    struct list siblings;              /* in overlay->networks */
    struct device *device;             /* owns */
    struct engine *engine;             /* owns: changes the device's peers and tells of them */
    struct uapi_server *uapi;          /* owns; NULL: wg(8) cannot see the interface */
    struct router_network *router;     /* lent by the router */
    unsigned ifindex;                  /* of its interface */
    uint32_t rank;                     /* greater came later */
    bool has_rule[2];                  /* there may be a routing rule for IPv6, and for IPv4 */
    nsec_t facts_at;                   /* when the engine was asked last; 0: never */
    struct htab by_key;                /* under the lock: overlay_node by public key */
};

/** What a member measures of its way to the hub. The loop's. */
struct overlay_probes {
    struct path_keys *keys; /* owns; wiped with the key; NULL: it has not asked yet */
    struct rate rate;       /* of its frames */
    uint64_t sequence;      /* of the last that was believed */
    uint16_t mtu;           /* inner bytes that the way carries in both directions; 0: not known */
    uint16_t routed;        /* that its own routes have; 0: it has none */
};

/** A member but the hub itself: hangs on served_node.overlay. */
struct overlay_node {
    struct overlay_network *network; /* pins */
    const struct model_node *model;  /* pins; the loop's */
    struct x25519_public key;        /* changes under the lock, read on the loop without */
    struct htab_link by_key;         /* under the lock */
    struct router_node *router;      /* under the lock; lent; NULL: nothing is relayed for it */
    struct udp_path path;            /* under the lock; last authenticated; remote none: never */
    struct htab_link by_remote;      /* under the lock; a member while is_placed */
    bool is_placed;                  /* under the lock: @path.remote is in overlay->by_remote */
    nsec_t handshake_at;             /* under the lock; monotonic; 0: never */
    struct recontact_node recontact; /* the loop's */
    struct overlay_probes probes;    /* the loop's */
    uint64_t rx_bytes;               /* the loop's; as of the network's facts_at */
    uint64_t tx_bytes;               /* likewise */
};

/* ---- overlay_nodes.c: the loop's, unless said otherwise -------------------------------------- */

/** overlay__tick_nodes() - each second: end handshakes that were tried long enough, and write the
 * file of addresses. */
void overlay__tick_nodes(struct overlay *o, nsec_t now);

/**
 * overlay__note_path() - an authenticated packet of the node with @key has come by @path
 * @handshake_at:	when that was the end of a handshake; 0: it was none
 *
 * Threads: any, with the port's lock held.
 */
void overlay__note_path(struct overlay_network *net, const struct x25519_public *key,
    const struct udp_path *path, nsec_t handshake_at);

/**
 * overlay__is_leased() - does the node with @key send with this receiver index to another node?
 *
 * Threads: any, with the port's lock held.
 */
bool overlay__is_leased(
    struct overlay_network *net, const struct x25519_public *key, uint32_t index, nsec_t now);
