/* admin_record.c - see admin_record.h. */
#include "admin_record.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/content/body.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/text.h"
#include "hub/record/seal.h"
#include "mesh/object/fields.h"

static void json_freep(json_t **json)
{
    json_decref(*json);
}

static enum role read_role(struct fields *f)
{
    const char *text = fields_string(f, "role", FIELDS_REQUIRED, 1, 40);
    enum role role = text ? role_parse(text) : ROLE_NONE;

    if (text && role == ROLE_NONE)
        fields_fail(f, "role \"%s\" is not viewer, operator or admin", text);
    return role;
}

int admin_request_decode(struct admin_request *ret, const json_t *json, struct err *e)
{
    _cleanup_(json_freep) json_t *none = json ? NULL : json_object();
    struct fields f = fields_make(json ? json : none, "admin token", e);
    struct admin_request rq = {.role = ROLE_NONE};
    uint64_t ttl = ADMIN_TTL_DEFAULT;

    fields_name(&f, "name", FIELDS_REQUIRED, rq.name);
    rq.role = read_role(&f);
    fields_name(&f, "network", FIELDS_OPTIONAL, rq.network);
    fields_u64(&f, "ttlSeconds", FIELDS_OPTIONAL, ADMIN_TTL_MIN, ADMIN_TTL_MAX, &ttl);
    fields_refuse_unknown(&f);
    rq.ttl_seconds = (uint32_t)ttl;
    if (fields_end(&f) == 0)
        *ret = rq;
    return fields_end(&f);
}

const char *admin_record_key(char buf[static RECORD_KEY_MAX], const char *name)
{
    (void)snprintf(buf, RECORD_KEY_MAX, ADMIN_RECORD_PREFIX "%s", name);
    return buf;
}

char *admin_record_encode(const struct admin_record *a)
{
    char hex[2 * sizeof(a->hash.b) + 1];
    char hub_key[X25519_BASE64_MAX];
    char key[RECORD_KEY_MAX];
    json_t *json;
    char *text;
    char *sealed;

    hex_encode(a->hash.b, sizeof(a->hash.b), hex);
    json = json_pack("{s:s, s:s, s:I, s:I, s:s}", "hash", hex, "role", role_name(a->role),
        "created", (json_int_t)a->created_at, "expires", (json_int_t)a->expires_at, "createdBy",
        a->created_by);
    if (json && a->network[0]) {
        json_object_set_new(json, "network", json_string(a->network));
        json_object_set_new(
            json, "hubKey", json_string(x25519_public_format(&a->hub_key, hub_key)));
    }
    text = json ? body_format(json) : NULL;
    json_decref(json);
    sealed = text ? seal_add(admin_record_key(key, a->name), text) : NULL;
    free(text);
    return sealed;
}

static void read_hash(struct fields *f, struct token_hash *ret)
{
    const char *hex = fields_string(f, "hash", FIELDS_REQUIRED, 1, 2 * sizeof(ret->b));

    if (hex && !hex_decode(hex, ret->b, sizeof(ret->b)))
        fields_fail(f, "\"hash\" is not the hex of %zu bytes", sizeof(ret->b));
}

int admin_record_decode(struct admin_record *ret, const char *key, const char *text, struct err *e)
{
    const char *name = key + strlen(ADMIN_RECORD_PREFIX);
    _cleanup_(json_freep) json_t *json = NULL;
    struct admin_record a = {.role = ROLE_NONE};
    uint64_t created_at = 0;
    uint64_t expires_at = 0;
    struct fields f;
    int r;

    if (strncmp(key, ADMIN_RECORD_PREFIX, strlen(ADMIN_RECORD_PREFIX)) != 0)
        return err_set(e, -EINVAL, "\"%.80s\" is not the key of an admin token", key);
    r = parse_name(name, "admin token", e);
    if (r == 0)
        r = seal_check(key, text, e);
    if (r == 0)
        r = body_parse(&json, text, strlen(text), e);
    if (r != 0)
        return r;
    f = fields_make(json, "admin token", e);
    read_hash(&f, &a.hash);
    a.role = read_role(&f);
    fields_name(&f, "network", FIELDS_OPTIONAL, a.network);
    if (a.network[0])
        fields_public_key(&f, "hubKey", FIELDS_REQUIRED, &a.hub_key);
    fields_u64(&f, "created", FIELDS_REQUIRED, 0, INT64_MAX, &created_at);
    fields_u64(&f, "expires", FIELDS_REQUIRED, 0, INT64_MAX, &expires_at);
    fields_text(&f, "createdBy", FIELDS_REQUIRED, 0, sizeof(a.created_by), a.created_by);
    if (fields_end(&f) != 0)
        return fields_end(&f);
    memcpy(a.name, name, strlen(name) + 1);
    a.created_at = (int64_t)created_at;
    a.expires_at = (int64_t)expires_at;
    *ret = a;
    return 0;
}
