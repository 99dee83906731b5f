/*
 * admin_record.h - an admin token as the store keeps it: key and value to and from a struct.
 *
 *     admin/NAME      the hash of the secret, the role, the network, when it was made and ends
 *
 * Also the body that asks for one. Pure.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "api/content/role.h"
#include "base/parse.h"
#include "crypto/x25519.h"
#include "hub/record/record.h"

struct err;

#define ADMIN_RECORD_PREFIX "admin/"

#define ADMIN_TTL_MIN     1
#define ADMIN_TTL_MAX     (3650 * 86400)
#define ADMIN_TTL_DEFAULT (30 * 86400)

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

/** admin_record_encode() - the value as text, with its sum (seal.h); free(). NULL: no memory. */
char *admin_record_encode(const struct admin_record *a);

/** admin_record_decode() - from @key and its value. 0; -EINVAL with words; -ENOMEM. */
int admin_record_decode(struct admin_record *ret, const char *key, const char *text, struct err *e);
