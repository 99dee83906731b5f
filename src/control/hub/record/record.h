/*
 * record.h - what the hub keeps in its store: keys, and values to and from structs.
 *
 *     network/NET         the Network; "hubKey", the public key in it of the hub that made it,
 *                         which tells it from another one of that name; "hubName", that hub's name
 *     node/NET/NAME       the Node, and "token", the hash of the secret that admitted it
 *     edge/NET/A--B       the MeshEdge
 *     PREFIX/NET/NAME     an object of any other kind, with its row's prefix (mesh/object/object.h)
 *     ipam/NET            {"next": the cursor of ipam.h, "high": its highest number}
 *     token/HASH          who may enrol; HASH is the SHA-256 of the secret, in hex
 *     report/NET/NAME     the last report of a node, and when it was heard
 *
 * A key's revision is its object's resourceVersion, so that is not in the value.
 * Pure.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "api/content/route.h"
#include "api/content/token.h"
#include "base/addr.h"
#include "base/parse.h"
#include "crypto/x25519.h"
#include "hub/record/request.h"
#include "mesh/object/object.h"

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

/** report_record_deinit() - release what it owns. */
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

/** record_object_encode() - an object of any other kind, without its status. */
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

/** record_report_decode() - @ret: for report_record_deinit(). */
int record_report_decode(struct report_record *ret, const char *text, struct err *e);

/**
 * record_report_is_by() - was the record written by this run of a hub? Reads no more of it.
 * @text:	a record's value, as it is in the store
 * @run:	as `by`; none is 0
 * @ret_last_seen_at:	as it says; set if so
 *
 * Return: false of a record that another run has written, or that does not begin as
 * record_report_encode() has it.
 */
bool record_report_is_by(const char *text, uint64_t run, int64_t *ret_last_seen_at);

/* ---- a sum in each record of the store, so that a damaged one is seen as such ---------------- */

/*
 *     {"next":7}   of key "ipam/default"   is kept as   {"next":7,"sum":"0f1e2d3c4b5a6978"}
 *
 * The sum is the beginning of the SHA-256 of the key, a newline and the text
 * without the sum, so a bit that flipped is seen, and so is a record that lies
 * under another one's key. It is no signature: who can write to the store can
 * make it. A record without one, of a hub that wrote none, passes.
 *
 * Pure.
 */

/** seal_add() - the JSON object @text with the sum; free(). NULL: no memory, or no object. */
char *seal_add(const char *key, const char *text);

/** seal_is_there() - does @text end with a sum? */
bool seal_is_there(const char *text);

/**
 * seal_check() - is the text as it was when it got its sum?
 * @key:	under which it lies
 *
 * Return: 0, also when it has none; -EINVAL with words: the sum is another one, or the text does
 * not end behind it as it should; -ENOMEM with words.
 */
int seal_check(const char *key, const char *text, struct err *e);

/* ---- an admin token as the store keeps it: key and value to and from a struct ---------------- */

/*
 *     admin/NAME      the hash of the secret, the role, the network, when it was made and ends
 *
 * Also the body that asks for one. Pure.
 */

#define ADMIN_RECORD_PREFIX "admin/"
#define ADMIN_TTL_MIN       1
#define ADMIN_TTL_MAX       (3650 * 86400)
#define ADMIN_TTL_DEFAULT   (30 * 86400)

struct admin_record {
    char name[NAME_MAX_LEN + 1]; /* unique on the hub; in the key, not in the value */
    struct token_hash hash;      /* of the secret */
    enum role role;
    char network[NAME_MAX_LEN + 1];       /* the only one that it is for; "": all */
    struct x25519_public hub_key;         /* of that network: another one of that name is not it */
    int64_t created_at;                   /* s since 1970 */
    int64_t expires_at;                   /* likewise */
    char created_by[CALLER_NAME_MAX + 1]; /* as the audit log names them */
};

/** POST /v1/admin-tokens */
struct admin_request {
    char name[NAME_MAX_LEN + 1];
    enum role role;
    char network[NAME_MAX_LEN + 1]; /* "": all */
    uint32_t ttl_seconds;
};

/** admin_request_decode() - check a body. 0; -EINVAL with words. */
int admin_request_decode(struct admin_request *ret, const json_t *json, struct err *e);

/** admin_record_key() - of the token of that name. Returns @buf. */
const char *admin_record_key(char buf[static RECORD_KEY_MAX], const char *name);

/** admin_record_encode() - the value, with its sum (seal_add()); free(). NULL: no memory. */
char *admin_record_encode(const struct admin_record *a);

/** admin_record_decode() - from @key and its value. 0; -EINVAL with words; -ENOMEM. */
int admin_record_decode(struct admin_record *ret, const char *key, const char *text, struct err *e);

/* ---- one entry of the audit log, as the store keeps it and as the API tells it --------------- */

/*
 *     audit/ID        a change that was made
 *     refused/ID      attempts that were refused, like ones together
 *
 * An ID is the revision of the commit that wrote the entry and its number in it, in hex of fixed
 * width: so the byte order of the keys is the order of events, also across the two kinds.
 * Pure.
 */

/** Room for an ID: 16 digits, '-', 3 digits and a zero. */
#define AUDIT_ID_MAX 21

/** Digits of a join token's ID: the start of the hash of its secret. */
#define AUDIT_TOKEN_ID_LEN 12

/** Longest texts of an entry. */
#define AUDIT_ACTOR_MAX     (2 * NAME_MAX_LEN + 16)
#define AUDIT_OPERATION_MAX 95
#define AUDIT_OBJECT_MAX    (2 * NAME_MAX_LEN + OBJECT_NAME_MAX)
#define AUDIT_WHY_MAX       255

enum audit_kind {
    AUDIT_CHANGE,
    AUDIT_REFUSAL,
    AUDIT_KIND_N,
};

struct audit_record {
    enum audit_kind kind;
    char id[AUDIT_ID_MAX];                   /* in the key, not in the value */
    int64_t time;                            /* s since 1970; of the last, when there are several */
    char actor[AUDIT_ACTOR_MAX + 1];         /* see audit.h */
    char from[IP_ADDR_TEXT_MAX];             /* an address; "": this machine */
    char operation[AUDIT_OPERATION_MAX + 1]; /* create, change, remove; of a refusal the call */
    char object[AUDIT_OBJECT_MAX + 1];       /* "node/default/gpu-1"; "": none */
    char network[NAME_MAX_LEN + 1];          /* that it is about; "": the hub */
    uint64_t old_revision;                   /* of the object before; 0: there was none */
    uint64_t new_revision;                   /* of the object now; 0: it is gone */
    unsigned others;                         /* objects of the same commit without an entry */
    unsigned status;                         /* of a refusal: HTTP's */
    char why[AUDIT_WHY_MAX + 1];             /* of a refusal: the sentence of the last */
    uint64_t count;                          /* of a refusal: how many like it */
    int64_t first;                           /* of a refusal: when the first of them was */
};

/** "audit/" and "refused/". */
extern const char *const audit_prefixes[];

/** audit_id() - of entry @n of those of @number, which are of one commit. Returns @buf. */
const char *audit_id(char buf[static AUDIT_ID_MAX], uint64_t number, unsigned n);

/** audit_id_number() - the first half of an ID, by which IDs are in order; 0: it is none. */
uint64_t audit_id_number(const char *id);

/** audit_id_check() - is @text an ID? */
bool audit_id_check(const char *text);

/** audit_record_key() - where it is kept. Returns @buf. */
const char *audit_record_key(char buf[static RECORD_KEY_MAX], enum audit_kind kind, const char *id);

/** audit_record_encode() - the value, with its sum (seal_add()); free(). NULL: no memory. */
char *audit_record_encode(const struct audit_record *a);

/** audit_record_json() - the same with the ID, for who reads the log. NULL: no memory. */
json_t *audit_record_json(const struct audit_record *a);

/** audit_record_decode() - from @key and its value. 0; -EINVAL with words; -ENOMEM. */
int audit_record_decode(struct audit_record *ret, const char *key, const char *text, struct err *e);

/* ---- what hubs of one store tell each other: that they live, and who serves what ------------- */

/*
 *     hub/NAME        {"boot": of its run, "beat": counts up}, written every two seconds
 *     owner/NET       {"hub": the name of the one that serves the network's jobs, "epoch": counts
 *                     up with each hub that does so, "network": the key by which that network is
 *                     told from others of its name}; without "hub" the last one has given them up
 *
 * Pure.
 */

#define OWNER_HEARTBEAT_PREFIX "hub/"
#define OWNER_RECORD_PREFIX    "owner/"

/** The value of hub/NAME. */
struct heartbeat_record {
    uint64_t boot; /* of the hub's run, random */
    uint64_t heartbeat;
};

/** The value of owner/NET. */
struct owner_record {
    char hub[NAME_MAX_LEN + 1];   /* "": nobody's now */
    uint64_t epoch;               /* at least 1 */
    bool has_network;             /* older hubs did not say of which network */
    struct x25519_public network; /* its struct network_maker's */
};

/** owner_key() - OWNER_HEARTBEAT_PREFIX or OWNER_RECORD_PREFIX, and a name. Returns @buf. */
const char *owner_key(char buf[static RECORD_KEY_MAX], const char *prefix, const char *name);

/** heartbeat_record_encode() - text for free(); NULL: no memory. */
char *heartbeat_record_encode(const struct heartbeat_record *b);

/** heartbeat_record_decode() - 0; -EINVAL with words; -ENOMEM. */
int heartbeat_record_decode(struct heartbeat_record *ret, const char *text, struct err *e);

/** owner_record_encode() - text for free(); NULL: no memory. */
char *owner_record_encode(const struct owner_record *o);

/** owner_record_decode() - 0; -EINVAL with words; -ENOMEM. */
int owner_record_decode(struct owner_record *ret, const char *text, struct err *e);
