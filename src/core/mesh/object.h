/*
 * object.h - the objects of a network: Network, Node, MeshEdge.
 *
 * The same JSON in every store, on every door of the hub and in every
 * snapshot (docs/API.md). A decoder checks every field against its bounds, once;
 * whoever holds one of these structs may rely on them. `status` is what owners
 * observed; it is carried as JSON and not interpreted here.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/parse.h"
#include "crypto/aead.h"
#include "crypto/x25519.h"

struct err;
struct fields;
struct path_side;
struct subnets;

#define OBJECT_NAME_MAX       (2 * NAME_MAX_LEN + 2) /* "a--b", the longest */
#define OBJECT_LABELS_MAX     32
#define OBJECT_LABEL_MAX      63 /* bytes of a label's key, and of its value */
#define OBJECT_ENDPOINTS_MAX  8  /* of a hub */
#define OBJECT_HUB_NAMES_MAX  4
#define OBJECT_CANDIDATES_MAX 32 /* of a node's status */
#define OBJECT_OWNERS_MAX     8  /* of an edge's status: two agents, two probes, hubs */

#define OBJECT_SPEED_MAX 1000000 /* MB/s of a cipher */

#define NETWORK_MTU_DEFAULT       1420 /* 1500 less IPv6, UDP and WireGuard */
#define NETWORK_MTU_MIN           1280 /* IPv6 needs it */
#define NETWORK_MTU_MAX           65455
#define NETWORK_KEEPALIVE_MAX     3600
#define NETWORK_KEEPALIVE_AUTO    UINT16_MAX /* as each node measures it */
#define NETWORK_KEEPALIVE_UNKNOWN 10 /* s, until it has; under most UDP idle times seen in NATs */

enum object_kind {
    OBJECT_KIND_NONE,
    OBJECT_KIND_NETWORK,
    OBJECT_KIND_NODE,
    OBJECT_KIND_MESH_EDGE,
    OBJECT_KIND_N,
};

/** Which pairs should talk, and how. */
enum topology {
    TOPOLOGY_AUTO, /* every pair, by the best path there is */
    TOPOLOGY_HUB,  /* every pair, always through the hub */
    TOPOLOGY_MESH, /* every pair, by direct paths only */
    TOPOLOGY_N,
};

/** The cipher of data packets between two weft nodes. */
enum cipher {
    CIPHER_AUTO,
    CIPHER_CHACHA20POLY1305,
    CIPHER_AES256GCM,
    CIPHER_N,
};

/** What somebody said about one edge's path. */
enum edge_path {
    EDGE_PATH_AUTO,
    EDGE_PATH_DIRECT,
    EDGE_PATH_RELAY,
    EDGE_PATH_OFF, /* the two shall not talk */
    EDGE_PATH_N,
};

/** How strict a decoder is with fields that it does not know. */
enum object_mode {
    OBJECT_LENIENT, /* from a hub that may be newer: ignored */
    OBJECT_STRICT,  /* from a person: refused, since it may be a typing error */
};

struct object_meta {
    char name[OBJECT_NAME_MAX + 1];
    char network[NAME_MAX_LEN + 1]; /* "" for a Network */
    uint64_t resource_version;      /* 0: none given */
};

struct network {
    struct object_meta meta;
    struct ip_prefix cidr4; /* /8 to /30, host bits zero */
    struct ip_prefix cidr6; /* /32 to /124, host bits zero */
    enum topology topology;
    uint16_t mtu;       /* bytes */
    uint16_t keepalive; /* s; 0: none; or NETWORK_KEEPALIVE_AUTO */
    enum cipher cipher;
    uint32_t key_rotation; /* s; 0: never */
};

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
    uint16_t api_port; /* TCP, also on the overlay */
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
    bool stock;                    /* no agent runs there: a WireGuard of another kind */
    struct node_hub *hub;          /* owns; NULL unless the node is a hub */
    struct subnets *routes;        /* owns; what is reached through it, as the hub admits; NULL:
                                      nothing */
    json_t *status;                /* owns a reference; NULL or an object */
    char *hostname;                /* owns; of its machine, where that is no name of the node's and
                                      has no domain: as its status says; NULL: not said */
    struct node_speeds speeds;     /* as its status announces them */
    struct path_side *side;        /* owns; the same: where it may be reached; NULL: not said */
};

struct mesh_edge {
    struct object_meta meta;
    char nodes[2][NAME_MAX_LEN + 1]; /* in byte order, different */
    enum edge_path path;
    json_t *status; /* owns a reference; NULL or an object of objects by field owner */
};

/** Any of them. */
struct object {
    enum object_kind kind; /* NONE: nothing inside */
    union {
        struct network network;
        struct node node;
        struct mesh_edge edge;
    };
};

#define NETWORK_NULL                                                                               \
    {                                                                                              \
        0                                                                                          \
    }
#define NODE_NULL                                                                                  \
    {                                                                                              \
        0                                                                                          \
    }
#define MESH_EDGE_NULL                                                                             \
    {                                                                                              \
        0                                                                                          \
    }
#define OBJECT_NULL                                                                                \
    {                                                                                              \
        0                                                                                          \
    }

/** node_speeds_known() - a speed for every cipher? Then it speaks every profile. */
bool node_speeds_known(const struct node_speeds *s);

/** node_speeds_encode() - what `status.aead` says; a new reference, NULL for no memory. */
json_t *node_speeds_encode(const struct node_speeds *s);

/** object_kind_name() - "Network", "Node", "MeshEdge". */
const char *object_kind_name(enum object_kind kind);

/** object_kind_parse() - the kind of that name, OBJECT_KIND_NONE if there is none. */
enum object_kind object_kind_parse(const char *text);

const char *topology_name(enum topology t);
const char *cipher_name(enum cipher c);
const char *edge_path_name(enum edge_path p);

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
 * edge_name() - the name of the edge between two nodes, in either order
 *
 * Return: @buf.
 */
const char *edge_name(const char *a, const char *b, char buf[static OBJECT_NAME_MAX + 1]);

/**
 * network_keepalive_decode() - the field "keepalive": "auto", or seconds
 *
 * @ret stays as it is when the field is absent.
 */
void network_keepalive_decode(struct fields *f, uint16_t *ret);

/**
 * network_decode(), node_decode(), mesh_edge_decode() - check and take in an object
 * @ret:	untouched on failure, else to be released with the matching _deinit()
 * @json:	borrowed; a reference to its status may be kept
 *
 * Return: 0; -EINVAL with words that name the object, the value and what is
 * allowed; -ENOMEM.
 */
int network_decode(struct network *ret, const json_t *json, enum object_mode mode, struct err *e);
int node_decode(struct node *ret, const json_t *json, enum object_mode mode, struct err *e);
int mesh_edge_decode(
    struct mesh_edge *ret, const json_t *json, enum object_mode mode, struct err *e);

/**
 * node_check_status() - could others take in what a node says of itself?
 * @status:	an object: `status` of a Node
 * @where:	for the words
 *
 * Return: 0; -EINVAL with words; -ENOMEM.
 */
int node_check_status(const json_t *status, const char *where, struct err *e);

/** network_encode(), node_encode(), mesh_edge_encode() - a new reference, NULL for no memory. */
json_t *network_encode(const struct network *n);
json_t *node_encode(const struct node *n);
json_t *mesh_edge_encode(const struct mesh_edge *edge);

/** Release what the struct owns; idempotent, safe on FOO_NULL. */
void node_deinit(struct node *n);
void mesh_edge_deinit(struct mesh_edge *edge);

/** object_decode() - any kind, by its "kind" field. As node_decode(). */
int object_decode(struct object *ret, const json_t *json, enum object_mode mode, struct err *e);
json_t *object_encode(const struct object *o);
void object_deinit(struct object *o);

/** object_meta() - borrowed from @o, whose kind is not NONE. */
const struct object_meta *object_meta(const struct object *o);
