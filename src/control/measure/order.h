/*
 * order.h - what a member's measuring service may be asked (docs/PREFLIGHT.md, "Protocol").
 *
 * An order is one line of JSON. The first line of a connection says what the
 * connection is: a coordinator's, which gives orders one after the other, or
 * one that carries data between two members of the same session. Every field
 * has its bounds here, and nowhere else.
 *
 * Pure: no socket, no clock.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/parse.h"

struct err;

/** TCP and UDP port of the measuring service on a member's overlay address. */
#define PROBE_PORT 51829

/** Longest line, order or answer, bytes. */
#define ORDER_LINE_MAX (128u << 10)

#define ORDER_NODES_MAX   1024           /* members of one all-reduce, names of one question */
#define ORDER_STREAMS_MAX 16             /* of one transfer */
#define ORDER_PINGS_MAX   1000           /* of one train */
#define ORDER_MS_MAX      30000          /* of one transfer */
#define ORDER_BYTES_MAX   (16ull << 30)  /* of one transfer */
#define ORDER_VECTOR_MAX  (256ull << 20) /* bytes of an all-reduce's vector */
#define ORDER_REPEATS_MAX 1000           /* of one all-reduce */
#define ORDER_SECONDS_MAX 600            /* of one session */

enum order_kind {
    ORDER_NONE,
    ORDER_SESSION,   /* begin: this member measures for this coordinator only */
    ORDER_FACTS,     /* tell about the machine */
    ORDER_NAMES,     /* resolve these names */
    ORDER_WARM,      /* ping these once, so that tunnels are up */
    ORDER_IDLE_TEST, /* reachability, RTT, loss, clock, MTU and MSS to a peer */
    ORDER_BULK,      /* throughput to and from a peer */
    ORDER_HEARD,     /* how many pings came from whom */
    ORDER_UNDERLAY,  /* open a port beside the overlay for this session */
    ORDER_ALLREDUCE, /* take part in one */
    ORDER_SINK,      /* data connection: what follows is to be swallowed */
    ORDER_SOURCE,    /* data connection: send for so long */
    ORDER_HOP,       /* data connection: an all-reduce's neighbour */
    ORDER_PORT,      /* between members: which port is open beside the overlay? */
    ORDER_N,
};

/** Known only to the members of one session, which lasts seconds. */
struct session_id {
    uint8_t b[16];
};

enum order_direction {
    ORDER_OUT,
    ORDER_IN,
    ORDER_BOTH, /* at once */
    ORDER_DIRECTION_N,
};

enum order_algorithm {
    ORDER_RING,
    ORDER_TREE,
    ORDER_ALGORITHM_N,
};

/** A name, and where it should lead. */
struct order_name {
    char name[NAME_MAX_LEN + 1];
    struct ip_addr address;
};

struct order {
    enum order_kind kind;
    struct session_id id;     /* SESSION, SINK, SOURCE, HOP, PORT */
    char purpose[16];         /* SESSION: "preflight", "bench" */
    uint32_t seconds;         /* SESSION: how long at most */
    struct ip_addr peer;      /* IDLE_TEST, BULK */
    uint32_t pings;           /* IDLE_TEST */
    uint32_t streams;         /* BULK */
    uint32_t ms;              /* BULK, SINK, SOURCE: how long; ALLREDUCE: at most */
    uint64_t bytes;           /* BULK, SOURCE: at most; ALLREDUCE: of the vector */
    enum order_direction way; /* BULK */
    bool underlay;            /* BULK: beside the overlay; where is not for the order to say */
    uint32_t rank;            /* ALLREDUCE, HOP: who I am in @nodes */
    uint32_t repeats;         /* ALLREDUCE */
    enum order_algorithm algorithm; /* ALLREDUCE */
    struct ip_addr *addrs;          /* owns; ALLREDUCE: by rank; WARM */
    size_t n_addrs;
    struct order_name *names; /* owns; NAMES */
    size_t n_names;
};

#define ORDER_NULL                                                                                 \
    {                                                                                              \
        0                                                                                          \
    }

/** order_deinit() - release its lists; idempotent, safe on ORDER_NULL. */
void order_deinit(struct order *o);

/**
 * order_decode() - check an order against the bounds above, and take it in
 * @ret:	untouched on failure; otherwise to be released with order_deinit()
 *
 * Return: 0; -EINVAL with words that name the field and what is allowed; -ENOMEM.
 */
int order_decode(struct order *ret, const json_t *json, struct err *e);

/** order_encode() - the order as JSON: a new reference; NULL for no memory. */
json_t *order_encode(const struct order *o);

/** order_is_data() - does this kind begin a data connection between two members? */
bool order_is_data(enum order_kind kind);

/** order_algorithm_name() - "ring" or "tree". */
const char *order_algorithm_name(enum order_algorithm a);

/** session_id_equal() - are these ids of the same session? */
bool session_id_equal(const struct session_id *a, const struct session_id *b);
