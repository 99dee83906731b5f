/*
 * order.h - what a member's measuring service can be asked to do (docs/PREFLIGHT.md, "Protocol").
 *
 * An order is one line of JSON. The first line of a connection says what kind of connection it is:
 * one from a coordinator, which gives orders one after the other, or one that carries data between
 * two members of the same session. The bounds of every field are here and nowhere else.
 *
 * Pure: no socket, no clock.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/clock.h"
#include "base/parse.h"
#include "wire/measure_proof.h"

/** TCP and UDP port of the measuring service on a member's overlay address. */
#define PROBE_PORT 51829

/** Longest line of an order or an answer, bytes. */
#define ORDER_LINE_MAX (128u << 10)

#define ORDER_NODES_MAX      1024           /* addresses in one order, and names in one */
#define ORDER_STREAMS_MAX    16             /* of one transfer */
#define ORDER_PINGS_MAX      1000           /* of one train */
#define ORDER_MS_MAX         30000          /* of one transfer or all-reduce */
#define ORDER_BYTES_MAX      (16ull << 30)  /* of one transfer */
#define ORDER_VECTOR_MAX     (1ull << 30)   /* bytes of a vector; see also ALLREDUCE_SURE_MAX */
#define ORDER_SECONDS_MAX    600            /* of one session */
#define ORDER_DATAGRAMS_MAX  100000         /* of one test of loss */
#define ORDER_PER_SECOND_MAX 50000          /* datagrams of it */
#define ORDER_BURST_MS_MAX   1000           /* of one burst, or of one train */
#define ORDER_BURST_MAX      (256ull << 20) /* bytes of it */
#define ORDER_DATAGRAM_MAX   9216           /* bytes of one of its datagrams */
#define ORDER_AT_ONCE_MAX    32             /* datagrams of a train that are sent together */

enum order_kind {
    ORDER_NONE,
    ORDER_SESSION,   /* begin a session: the member then measures for this coordinator only */
    ORDER_FACTS,     /* report about the machine (facts.h) */
    ORDER_NAMES,     /* resolve these names */
    ORDER_WARM,      /* ping these members until they answer, so that the tunnels are up */
    ORDER_IDLE_TEST, /* measure reachability, RTT, loss, clock, MTU and MSS to a peer */
    ORDER_BULK,      /* measure throughput to a peer, from it, or both */
    ORDER_LOSS,      /* count how many of many datagrams to a peer are lost */
    ORDER_HEARD,     /* report how many pings came from each member */
    ORDER_UNDERLAY,  /* open a port outside the overlay for this session */
    ORDER_ALLREDUCE, /* take part in an all-reduce */
    ORDER_SINK,      /* data connection: receive what follows and discard it */
    ORDER_SOURCE,    /* data connection: send, for the given time */
    ORDER_HOP,       /* data connection: from a neighbour in an all-reduce */
    ORDER_PORT,      /* between members: report the port that is open outside the overlay */
    ORDER_BURST,     /* measure with datagrams what a way to a peer carries, and its RTT */
    ORDER_CATCH,     /* data connection: count the datagrams of a burst */
    ORDER_N,
};

/** Identifies a session. Known only to its members, and random, so that nobody can guess it. */
struct session_id {
    uint8_t b[16];
};

/** The proof of a session (wire/measure_proof.h). */
struct order_proof {
    uint8_t mac[MEASURE_PROOF_MAC];
};

/** The challenge that a service makes for one connection. */
struct order_challenge {
    uint8_t b[MEASURE_PROOF_CHALLENGE];
};

enum order_direction {
    ORDER_OUT,  /* to the peer */
    ORDER_IN,   /* from the peer */
    ORDER_BOTH, /* at the same time */
    ORDER_DIRECTION_N,
};

enum order_algorithm {
    ORDER_RING,
    ORDER_TREE,
    ORDER_ALGORITHM_N,
};

/** A name, and the address to which it should resolve. */
struct order_name {
    char name[NAME_MAX_LEN + 1];
    struct ip_addr address;
};

/** An order. The comment of a field says in which kinds it is used. */
struct order {
    enum order_kind kind;
    struct session_id id;     /* SESSION, SINK, SOURCE, HOP, PORT, CATCH */
    char purpose[16];         /* SESSION: "preflight", "bench" */
    uint32_t seconds;         /* SESSION: how long it lasts at most */
    bool has_proof;           /* SESSION: */
    struct order_proof proof; /* SESSION: for the challenge of this connection */
    struct ip_addr peer;      /* IDLE_TEST, BULK, LOSS, BURST */
    uint32_t pings;           /* IDLE_TEST */
    uint32_t datagrams;       /* LOSS: at most */
    uint32_t per_second;      /* LOSS: datagrams, at most */
    uint32_t streams;         /* BULK */
    uint32_t ms; /* BULK, SINK, SOURCE, BURST, CATCH: how long to send; LOSS, ALLREDUCE: at most */
    uint64_t bytes;           /* BULK, SOURCE, BURST: at most; ALLREDUCE: of the vector */
    bool is_paced;            /* BURST: a train (uplink/train.h); the next two are set */
    uint64_t bits_per_s;      /* BURST: at which it is sent, with headers */
    uint32_t at_once;         /* BURST: so many datagrams are sent together at most */
    uint32_t size;            /* CATCH: bytes of each datagram */
    uint32_t port;            /* CATCH: of the sender's socket */
    uint32_t mapped;          /* CATCH: the same, as a server sees it; 0: not known */
    enum order_direction way; /* BULK */
    bool underlay;            /* BULK, BURST, CATCH: outside the overlay; see bulk_run() and
                                 burst_run() */
    bool tls;                 /* BURST: encrypted first, as a stream in TLS is */
    uint32_t rank;            /* ALLREDUCE: the member's own index in @addrs; HOP: the sender's */
    uint32_t repeats;         /* ALLREDUCE */
    enum order_algorithm algorithm; /* ALLREDUCE */
    struct ip_addr *addrs;          /* owns; ALLREDUCE: of all ranks, in their order; WARM */
    size_t n_addrs;
    struct order_name *names; /* owns; NAMES */
    size_t n_names;
};

#define ORDER_NULL                                                                                 \
    {                                                                                              \
        0                                                                                          \
    }

/** order_deinit() - release the order's lists; idempotent, safe on ORDER_NULL. */
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

/** order_proof_input() - what the proof of SESSION @o is about, in answer to @c. */
struct measure_proof order_proof_input(const struct order *o, const struct order_challenge *c);

/** order_challenge_encode() - a refusal with the challenge; a new reference, NULL for no memory. */
json_t *order_challenge_encode(const struct order_challenge *c, const char *sentence);

/** order_challenge_decode() - the challenge in an answer. False: it has none. */
bool order_challenge_decode(struct order_challenge *ret, const json_t *answer);

/** order_algorithm_names - "ring" or "tree". */
extern const char *const order_algorithm_names[];

/** session_id_equal() - are these ids of the same session? */
bool session_id_equal(const struct session_id *a, const struct session_id *b);

/* ---- pings ----------------------------------------------------------------------------------- */

/*
 * The datagrams of a train: a ping asks, and a pong answers it. A pong is as long as the shortest
 * ping, so that nobody receives more bytes than they sent. The layout is in docs/PREFLIGHT.md,
 * "Datagrams".
 */

/** Length of a pong, and least length of a ping, bytes. */
#define FRAME_LEN 56

enum frame_kind {
    FRAME_PING = 1,
    FRAME_PONG = 2,
};

struct frame {
    enum frame_kind kind;
    bool counted;         /* the ping belongs to a train, so the receiver counts it */
    bool is_silent;       /* ping: no pong is wanted; a service of an earlier version sends one */
    uint16_t size;        /* pong: bytes of the IPv4 packet in which the ping came; ping: 0 */
    struct session_id id; /* of the session in which both take part */
    uint32_t seq;         /* of the ping; a pong repeats it */
    uint32_t heard;       /* pong: counted pings that have come from that member so far */
    nsec_t sent_at;       /* when the ping was sent, by its sender's wall clock */
    nsec_t arrived_at;    /* pong: when the ping came, by the answerer's wall clock */
};

/** frame_encode() - write a frame as FRAME_LEN bytes. */
void frame_encode(const struct frame *f, uint8_t out[static FRAME_LEN]);

/** frame_decode() - read a frame; false unless the @len bytes at @p begin with one. */
bool frame_decode(struct frame *ret, const uint8_t *p, size_t len);
