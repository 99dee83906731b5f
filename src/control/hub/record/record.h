/*
 * record.h - what the hub keeps in its store: keys, and values to and from structs.
 *
 *     network/NET         the Network; "hubKey", the public key in it of the hub that made it,
 * which tells it from another network of that name; "hubName", that hub's name node/NET/NAME the
 * Node, and "token", the hash of the secret that admitted it edge/NET/A--B       the MeshEdge
 *     PREFIX/NET/NAME     an object of any other kind, with its row's prefix (mesh/object/object.h)
 *     ipam/NET            {"next": the cursor of ipam.h, "high": its highest number}
 *     token/HASH          who may enrol; HASH is the SHA-256 of the secret, in hex
 *     report/NET/NAME     the last report of a node, and when it was heard
 *
 * A key's revision is its object's resourceVersion, so that is not in the value.
 * Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/content/role.h"
#include "api/content/token.h"
#include "base/parse.h"
#include "crypto/x25519.h"
#include "hub/record/request.h"
#include "mesh/object/object.h"

struct err;

#define RECORD_KEY_MAX 256 /* with the terminating zero; longer than any below */

/** SHA-256 of a token's secret. */
struct token_hash {
    uint8_t b[32];
};

enum record_kind {
    RECORD_NONE, /* a key of no kind that this version knows */
    RECORD_NETWORK,
    RECORD_NODE,
    RECORD_EDGE,
    RECORD_IPAM,
    RECORD_TOKEN,
    RECORD_REPORT,
    RECORD_OBJECT, /* an object of a kind that has none of the above */
    RECORD_N,
};

/** A key's parts. */
struct record_key {
    enum record_kind kind;
    const struct object_kind *object; /* of the object; NULL: it is none */
    char network[NAME_MAX_LEN + 1];   /* "" for a token */
    char name[OBJECT_NAME_MAX + 1];   /* of the object, but a network; of a report's node; the hash
                                         of a token; else "" */
};

/** Which hub has made a network; absent in a record of a hub without a name of its own: "hub". */
struct network_maker {
    struct x25519_public key;    /* that hub's in the network: no other network has it */
    char name[NAME_MAX_LEN + 1]; /* that hub's */
};

/** The name of a hub that was given none. */
#define HUB_NAME_DEFAULT "hub"

/** The value of token/HASH. */
struct token_record {
    char network[NAME_MAX_LEN + 1];
    struct x25519_public hub_key; /* of the network as it was: another one of that name is not it */
    int64_t expires_at;           /* s since 1970 */
    uint32_t uses;                /* how many more machines it admits */
    bool ephemeral;               /* nodes that it admits are ephemeral */
    bool relay;                   /* nodes that it admits may be relays */
    struct subnets routes;        /* nodes that it admits may have routes inside these */
    int64_t created_at;           /* s since 1970; 0: by a hub that did not note it */
    char created_by[CALLER_NAME_MAX + 1]; /* as the audit log names them; "": likewise */
};

/** The value of report/NET/NAME. */
struct report_record {
    int64_t last_seen_at;     /* s since 1970 */
    uint64_t by;              /* run of the hub that wrote it; 0: of an older one, or not written */
    bool has_reported;        /* its agent has, be it that it said nothing; else it was only seen */
    struct report report;     /* of its agent */
    struct edge_parts probed; /* owns; of its probe; its owner is EDGE_OWNER_PROBE */
};

/** report_record_deinit() - release what it owns; idempotent. */
void report_record_deinit(struct report_record *r);

/** record_prefix() - "node/": what all keys of a kind start with; "" for NONE and OBJECT. */
const char *record_prefix(enum record_kind kind);

/** record_kind_of() - of the record of an object of that kind: its own, or RECORD_OBJECT. */
enum record_kind record_kind_of(const struct object_kind *object);

/** record_key_prefix() - the prefix of a kind of record with which @key starts; NULL: of none. */
const char *record_key_prefix(const char *key);

/** record_key_parse() - kind RECORD_NONE when it is none of the above, or has other parts. */
struct record_key record_key_parse(const char *key);

/** record_object_key() - of an object of any kind but a network. Returns @buf. */
const char *record_object_key(char buf[static RECORD_KEY_MAX], const struct object_kind *kind,
    const char *network, const char *name);

/** record_key() - "node/default/gpu-1"; not for OBJECT; @name as in struct record_key. Returns
 * @buf.
 */
const char *record_key(
    char buf[static RECORD_KEY_MAX], enum record_kind kind, const char *network, const char *name);

/** token_hash_of() - the hash of a secret, which is all that is kept of it. */
struct token_hash token_hash_of(const struct token_secret *secret);

/** token_hash_key() - the key of the token's record. Returns @buf. */
const char *token_hash_key(char buf[static RECORD_KEY_MAX], const struct token_hash *hash);

/*
 * record_KIND_encode() - a record's value: text for the caller to free(); NULL for no memory.
 *
 * record_KIND_decode() - from that text. Return: 0; -EINVAL with words; -ENOMEM. Outputs are
 * untouched on failure; what @ret owns is released as its struct says.
 */

/** record_network_encode() - with the hub that made it. */
char *record_network_encode(const struct network *n, const struct network_maker *maker);

/** record_network_decode() - what record_network_encode() has made. */
int record_network_decode(
    struct network *ret, struct network_maker *ret_maker, const char *text, struct err *e);

/** record_node_encode() - @token: of the secret that admitted it; zeroes: an administrator did. */
char *record_node_encode(const struct node *n, const struct token_hash *token);

/** record_node_decode() - @ret: for node_deinit(). */
int record_node_decode(
    struct node *ret, struct token_hash *ret_token, const char *text, struct err *e);

/** record_edge_encode() - what was said about an edge. */
char *record_edge_encode(const struct mesh_edge *edge);

/** record_edge_decode() - @ret: for mesh_edge_deinit(). */
int record_edge_decode(struct mesh_edge *ret, const char *text, struct err *e);

/** record_object_encode() - an object of any other kind. */
char *record_object_encode(const struct object *o);

/** record_object_decode() - @ret: for object_deinit(). */
int record_object_decode(
    struct object *ret, const struct object_kind *kind, const char *text, struct err *e);

/** record_ipam_encode() - where the next search begins, and the highest number ever taken. */
char *record_ipam_encode(uint32_t next, uint32_t high);

/** record_ipam_decode() - *@ret_high is untouched where the record does not say it. */
int record_ipam_decode(uint32_t *ret_next, uint32_t *ret_high, const char *text, struct err *e);

/** record_token_encode() - a join token; its secret is in no record. */
char *record_token_encode(const struct token_record *t);

/** record_token_decode() - what record_token_encode() has made. */
int record_token_decode(struct token_record *ret, const char *text, struct err *e);

/** record_report_encode() - what a node has reported, and when it was heard. */
char *record_report_encode(const struct report_record *r);

/** record_report_decode() - @ret: its report is for report_deinit(). */
int record_report_decode(struct report_record *ret, const char *text, struct err *e);
