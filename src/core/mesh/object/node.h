/*
 * node.h - the Node among the objects: one machine in a network; see object.h.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/parse.h"
#include "crypto/aead.h"
#include "crypto/hash.h"
#include "crypto/x25519.h"
#include "mesh/object/object_meta.h"

#define OBJECT_LABELS_MAX     32
#define OBJECT_LABEL_MAX      63 /* bytes of a label's key, and of its value */
#define OBJECT_ENDPOINTS_MAX  8  /* of a hub */
#define OBJECT_HUB_NAMES_MAX  4
#define OBJECT_CANDIDATES_MAX 32 /* of a node's status */

#define OBJECT_SPEED_MAX 1000000 /* MB/s of a cipher */

/** Longest reason why a node is drained, with its zero. */
#define NODE_DRAINED_MAX 256

struct label {
    char key[OBJECT_LABEL_MAX + 1];
    char value[OBJECT_LABEL_MAX + 1];
};

/** Where a hub is reached. */
struct node_hub {
    struct endpoint endpoints[OBJECT_ENDPOINTS_MAX];     /* UDP, best first */
    unsigned n_endpoints;                                /* at least 1 */
    char names[OBJECT_HUB_NAMES_MAX][HOST_PORT_MAX + 1]; /* "HOST:PORT" of it, which name servers
                                                            lead to its endpoints of the day */
    unsigned n_names;
    uint16_t api_port;         /* TCP, also on the overlay */
    bool has_tls_pin;          /* an earlier version's hub does not say it */
    struct tls_pin tls_pin;    /* of the key with which its public API is served */
    uint64_t rendezvous_epoch; /* of the time that it last took over the network's rendezvous; the
                                  hub with the greatest one serves it; 0: it never did */
};

/** How fast a node seals and opens, in MB/s by cipher; a node that speaks WireGuard only says 0. */
struct node_speeds {
    uint32_t mb_per_s[AEAD_CIPHER_N];
};

struct node {
    struct object_meta meta;
    struct x25519_public key;
    struct ip_addr address4;
    struct ip_addr address6;
    struct label *labels; /* owns; sorted by key */
    unsigned n_labels;
    char island[NAME_MAX_LEN + 1]; /* "": none */
    bool ephemeral;                /* removed when it stays away */
    bool relay;                    /* it may be a relay for others, if it wants to */
    bool shows_dscp;               /* its datagrams carry the DSCP of the packets in them */
    bool stock;                    /* no agent runs there: a WireGuard of another kind */
    char *drained;                 /* owns; why it is to get no new work; NULL: it may have it */
    struct node_hub *hub;          /* owns; NULL unless the node is a hub */
    struct subnets *routes;        /* owns; what is reached through it, as the hub admits; NULL:
                                      nothing */
    struct traffic_rates *rates;   /* owns; how fast it sends; NULL: nothing is said of that */
    bool finds_no_rate; /* without a rate it sends as fast as it can, whatever is found of
                           its uplink */
    json_t *status;     /* owns a reference; NULL or an object */
    /* The parts of the status that others rely on: */
    char *hostname;               /* owns; its machine's, without a domain, where it is another than
                                     the node's name; NULL: not said */
    struct node_speeds speeds;    /* zeroes: not said */
    struct path_side *side;       /* owns; where it may be reached; NULL: not said */
    struct fabric_report *fabric; /* owns; the fabric that it has found; NULL: not said */
    struct path_relay_notice *notice; /* owns; what it tells of its line as a relay; NULL: nothing
                                       */
};

#define NODE_NULL                                                                                  \
    {                                                                                              \
        0                                                                                          \
    }

/** The row of the kind; kinds.c lists it. */
extern const struct object_kind node_kind;

/** node_has_agent() - does an agent of ours run there? On no hub's own node, and on no stock one.
 */
bool node_has_agent(const struct node *n);

/** node_speeds_known() - a speed for every cipher? Then it speaks every profile. */
bool node_speeds_known(const struct node_speeds *s);

/** node_speeds_encode() - what `status.aead` says; a new reference, NULL for no memory. */
json_t *node_speeds_encode(const struct node_speeds *s);

/**
 * node_check_name() - may a node be called that?
 *
 * A name as parse_name() wants it, without "--", which separates the two names
 * in an edge's.
 *
 * Return: 0, or -EINVAL with words.
 */
int node_check_name(const char *text, struct err *e);

/** label_check() - may a node carry that label? 0, or -EINVAL with words. */
int label_check(const char *key, const char *value, struct err *e);

/**
 * node_check_status() - could others take in what a node says of itself?
 * @status:	an object: `status` of a Node
 * @where:	what it is, for the words
 *
 * Return: 0; -EINVAL with words; -ENOMEM.
 */
int node_check_status(const json_t *status, const char *where, struct err *e);

/**
 * node_decode() - check a Node and take it in
 * @ret:	untouched on failure, else to be released with node_deinit()
 * @json:	borrowed; a reference to its status is kept
 *
 * Return: 0; -EINVAL with words that name the object, the value and what is
 * allowed; -ENOMEM.
 */
int node_decode(struct node *ret, const json_t *json, enum object_mode mode, struct err *e);

/** node_encode() - a new reference, NULL for no memory. */
json_t *node_encode(const struct node *n);

/** node_deinit() - release what it owns; idempotent, safe on NODE_NULL. */
void node_deinit(struct node *n);
