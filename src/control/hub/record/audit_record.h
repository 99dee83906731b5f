/*
 * audit_record.h - one entry of the audit log, as the store keeps it and as the API tells it.
 *
 *     audit/ID        a change that was made
 *     refused/ID      attempts that were refused, like ones together
 *
 * An ID is the revision of the commit that wrote the entry and its number in it, in hex of fixed
 * width: so the byte order of the keys is the order of events, also across the two kinds.
 * Pure.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "api/content/role.h"
#include "base/addr.h"
#include "base/parse.h"
#include "hub/record/record.h"

struct err;

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

/** audit_record_prefix() - "audit/" or "refused/". */
const char *audit_record_prefix(enum audit_kind kind);

/** audit_id() - of entry @n of those of @number, which are of one commit. Returns @buf. */
const char *audit_id(char buf[static AUDIT_ID_MAX], uint64_t number, unsigned n);

/** audit_id_number() - the first half of an ID, by which IDs are in order; 0: it is none. */
uint64_t audit_id_number(const char *id);

/** audit_id_check() - is @text an ID? */
bool audit_id_check(const char *text);

/** audit_record_key() - where it is kept. Returns @buf. */
const char *audit_record_key(char buf[static RECORD_KEY_MAX], enum audit_kind kind, const char *id);

/** audit_record_encode() - the value as text, with its sum (seal.h); free(). NULL: no memory. */
char *audit_record_encode(const struct audit_record *a);

/** audit_record_json() - the same with the ID, for who reads the log. NULL: no memory. */
json_t *audit_record_json(const struct audit_record *a);

/** audit_record_decode() - from @key and its value. 0; -EINVAL with words; -ENOMEM. */
int audit_record_decode(struct audit_record *ret, const char *key, const char *text, struct err *e);
