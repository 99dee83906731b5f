/*
 * network.h - the Network among the objects: what holds for all of its nodes; see object.h.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/parse.h"
#include "base/traffic.h"
#include "mesh/object/object_meta.h"

struct fields;

#define NETWORK_MTU_DEFAULT       1420 /* bytes: 1500 less IPv6, UDP and WireGuard */
#define NETWORK_MTU_MIN           1280 /* bytes: IPv6 needs it */
#define NETWORK_MTU_MAX           65455
#define NETWORK_KEEPALIVE_MAX     3600       /* s */
#define NETWORK_KEEPALIVE_AUTO    UINT16_MAX /* as each node measures it */
#define NETWORK_KEEPALIVE_UNKNOWN 10  /* s, until it has; under most UDP idle times seen in NATs */
#define NETWORK_DRAIN_SHARE_MAX   100 /* percent */

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

/* ---- `spec.budgets`: what may be moved or spent on a day, by a job or by all -------------------
 */

/** Most budgets of a network. */
#define BUDGETS_MAX 16

/** Most that a budget may be, of money or of bytes. */
#define BUDGET_MAX 1e15

/** A budget of a day, UTC. */
struct budget {
    char job[NAME_MAX_LEN + 1]; /* "": all that the network moves */
    double cost;                /* in the price table's currency; 0: it is of bytes */
    uint64_t bytes;             /* 0: it is of money */
    /* A cap that was stored when budgets had some: shown as without effect, and not written again;
     * "": none. */
    char ignored_cap[TRAFFIC_RATE_TEXT_MAX];
};

/** Those of a network. */
struct budgets {
    struct budget items[BUDGETS_MAX];
    unsigned n;
};

/* ---- the Network ----------------------------------------------------------------------------- */

struct network {
    struct object_meta meta;
    struct ip_prefix cidr4; /* /8 to /30, host bits zero */
    struct ip_prefix cidr6; /* /32 to /124, host bits zero */
    enum topology topology;
    uint16_t mtu;       /* bytes */
    uint16_t keepalive; /* s; 0: none; or NETWORK_KEEPALIVE_AUTO */
    enum cipher cipher;
    uint32_t key_rotation; /* s; 0: never */
    bool shows_dscp;       /* its nodes' datagrams carry the DSCP of the packets in them */
    uint16_t drain_share;  /* most of its nodes that may be drained at once, percent; 0: none is,
                              and it is said what would be done */
    struct budgets budgets;
    struct prices *prices; /* owns; what bytes cost; NULL: it has no table of its own */
};

#define NETWORK_NULL                                                                               \
    {                                                                                              \
        0                                                                                          \
    }

/** The row of the kind; kinds.c lists it. */
extern const struct object_kind network_kind;

/** topology_names - "auto", "hub", "mesh". */
extern const char *const topology_names[];

/**
 * network_keepalive_decode() - the field "keepalive": "auto", or seconds
 *
 * @ret stays as it is when the field is absent.
 */
void network_keepalive_decode(struct fields *f, uint16_t *ret);

/**
 * network_decode() - check a Network and take it in
 * @ret:	untouched on failure, else to be released with network_deinit()
 * @json:	borrowed
 *
 * Return: 0; -EINVAL with words that name the object, the value and what is allowed; -ENOMEM.
 */
int network_decode(struct network *ret, const json_t *json, enum object_mode mode, struct err *e);

/** network_encode() - a new reference, NULL for no memory. */
json_t *network_encode(const struct network *n);

/** network_deinit() - release what it owns; idempotent, safe on NETWORK_NULL. */
void network_deinit(struct network *n);

/** budgets_decode() - the field "budgets", of which a job has one at most. */
void budgets_decode(struct fields *f, enum object_mode mode, struct budgets *ret);

/** budget_encode() - {"job", "costPerDay" or "bytesPerDay"}; a new reference, NULL: no memory. */
json_t *budget_encode(const struct budget *b);

/** budgets_encode() - [budget_encode()]; a new reference; NULL: there are none, or no memory. */
json_t *budgets_encode(const struct budgets *b);
