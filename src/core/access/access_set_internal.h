/*
 * access_set_internal.h - what lines of text become (access_text.c), and what that becomes
 * (access_set.c).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "access/access_set.h"
#include "allowedips/allowedips.h"
#include "base/addr.h"
#include "base/containers.h"

/* What a line about a peer names: a set, a block, or the others of a block. */
enum access_peer_kind {
    ACCESS_PEER_SET,
    ACCESS_PEER_BLOCK,
    ACCESS_PEER_OTHERS,
    ACCESS_PEER_N,
};

/** A peer as one number. */
#define ACCESS_PEER(kind, number) ((uint32_t)(number)*ACCESS_PEER_N + (uint32_t)(kind))

/** What a packet is for, as one number: a block; this: it goes out. */
#define ACCESS_SCOPE_OUT UINT32_MAX

/** An array that grows. */
struct access_array {
    void *items; /* owns */
    size_t n;
    size_t cap;
};

/** A block that some line names. */
struct access_block {
    struct allowedips_owner owner; /* of that block alone, in the set's trie */
    struct htab_link link;         /* by the block */
    struct ip_prefix prefix;       /* host bits are zero */
    uint32_t number;
    struct access_block
        *parent; /* the next larger one that has it; NULL: none. Once a set has it */
};

struct access_address {
    struct ip_addr addr;
    uint32_t set;
};

struct access_range {
    uint16_t first;
    uint16_t last;
};

struct access_service {
    uint8_t protocol; /* IP_PROTO_TCP or _UDP; IP_PROTO_ICMP: both versions; 0: any */
    struct access_range ports;
};

struct access_built_rule {
    char name[NAME_MAX_LEN + 1];
    uint32_t first; /* of its services */
    uint32_t n;
};

/** "in" or "out": a rule is about packets from or to a peer. */
struct access_pair {
    uint32_t scope;
    uint32_t peer;
    uint32_t rule;
};

/** "open" or "shut". */
struct access_door {
    uint32_t first_range;
    uint32_t n_ranges;
    uint32_t first_set;
    uint32_t n_sets;
    bool is_open;
};

struct access_builder {
    struct access_array own;       /* struct ip_addr */
    struct access_array addresses; /* struct access_address */
    struct access_array blocks;    /* struct access_block *, owns them; each once */
    struct htab by_block;          /* of them */
    struct access_array rules;     /* struct access_built_rule */
    struct access_array services;  /* struct access_service, rule by rule */
    struct access_array pairs;     /* struct access_pair */
    struct access_array doors;     /* struct access_door */
    struct access_array ranges;    /* struct access_range, of doors */
    struct access_array door_sets; /* uint32_t */
    uint32_t n_sets;
    uint64_t seed;
    bool refuses[ACCESS_WAY_N];
};

/** access_array_add() - room for one more item of @size bytes, which is all zero; NULL: no memory.
 */
void *access_array_add(struct access_array *a, size_t size);
