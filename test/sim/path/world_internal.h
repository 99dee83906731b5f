/* world_internal.h - what world.c (the net) and node.c (what nodes do) share. */
#pragma once

#include "test/sim/path/world.h"

#include "wire/path.h"

enum event_kind {
    EVENT_FRAME,   /* a path frame arrives */
    EVENT_DATA,    /* a data packet arrives */
    EVENT_RELAYED, /* the same, through the hub */
    EVENT_TICK,    /* a node's deadline */
    EVENT_SIDE,    /* the hub tells a node what a peer has reported */
    EVENT_KEEP,    /* a node's keepalive to the hub */
    EVENT_GATHER,  /* a node notices that its addresses may have changed */
    EVENT_FLOW,    /* data of an edge */
};

struct event {
    nsec_t at;
    uint64_t order;
    enum event_kind kind;
    unsigned node;      /* whose, or who gets it */
    unsigned edge;      /* FLOW */
    unsigned site;      /* packets: where they go */
    bool is_public;     /* packets: to a public address */
    bool is_change;     /* GATHER: the network has changed, not only the report */
    unsigned sender;    /* packets, SIDE */
    unsigned meant_for; /* packets */
    struct endpoint from;
    struct endpoint to;
    size_t len;
    uint8_t bytes[PATH_FRAME_MIN];
    struct path_side *side; /* owns; SIDE */
};

struct event *world__event(enum event_kind kind, unsigned node);
void world__push(struct world *w, struct event *ev, nsec_t at);
nsec_t world__to_hub(const struct world *w, unsigned site);
struct endpoint world__hub(unsigned i);

/**
 * world__route() - @ev, a packet, leaves @node for @to; taken
 * @hops:	its time to live; 0: enough. Two or more pass the sender's own NAT
 */
void world__route(struct world *w, unsigned node, uint32_t socket, const struct endpoint *to,
    uint8_t hops, struct event *ev);

/** world__arrive() - who gets the packet, at @ret; NULL: nobody. */
struct world_node *world__arrive(struct world *w, const struct event *ev, struct endpoint *ret);

/** world__socket_port() - inner port of a socket that paths asked for. */
uint16_t world__socket_port(uint32_t socket);

/** world__handle() - in node.c. */
void world__handle(struct world *w, struct event *ev);
