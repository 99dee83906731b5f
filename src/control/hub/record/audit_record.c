/* audit_record.c - see audit_record.h. */
#include "audit_record.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/content/body.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "hub/record/seal.h"
#include "mesh/object/fields.h"

static const char *const prefixes[] = {
    [AUDIT_CHANGE] = "audit/",
    [AUDIT_REFUSAL] = "refused/",
};
_Static_assert(sizeof(prefixes) / sizeof(*prefixes) == AUDIT_KIND_N, "a prefix per kind");

static void json_freep(json_t **json)
{
    json_decref(*json);
}

/* ---- keys ----------------------------------------------------------------------------------- */

const char *audit_record_prefix(enum audit_kind kind)
{
    return prefixes[kind];
}

const char *audit_id(char buf[static AUDIT_ID_MAX], uint64_t number, unsigned n)
{
    (void)snprintf(buf, AUDIT_ID_MAX, "%016" PRIx64 "-%03x", number, n & 0xfff);
    return buf;
}

uint64_t audit_id_number(const char *id)
{
    return audit_id_check(id) ? strtoull(id, NULL, 16) : 0;
}

bool audit_id_check(const char *text)
{
    static const char digits[] = "0123456789abcdef";

    return strlen(text) == AUDIT_ID_MAX - 1 && strspn(text, digits) == 16 && text[16] == '-' &&
           strspn(text + 17, digits) == 3;
}

const char *audit_record_key(char buf[static RECORD_KEY_MAX], enum audit_kind kind, const char *id)
{
    (void)snprintf(buf, RECORD_KEY_MAX, "%s%s", prefixes[kind], id);
    return buf;
}

/* Its parts; AUDIT_KIND_N when it is none. */
static enum audit_kind parse_key(const char *key, char id[static AUDIT_ID_MAX])
{
    for (int kind = 0; kind < AUDIT_KIND_N; kind++) {
        size_t len = strlen(prefixes[kind]);

        if (strncmp(key, prefixes[kind], len) != 0 || !audit_id_check(key + len))
            continue;
        memcpy(id, key + len, AUDIT_ID_MAX);
        return (enum audit_kind)kind;
    }
    return AUDIT_KIND_N;
}

/* ---- values --------------------------------------------------------------------------------- */

static void add_text(json_t *json, const char *name, const char *text)
{
    if (text[0])
        json_object_set_new(json, name, json_string(text));
}

static void add_number(json_t *json, const char *name, uint64_t n)
{
    if (n > 0)
        json_object_set_new(json, name, json_integer((json_int_t)n));
}

/* What is not there is empty, or 0. */
static json_t *encode(const struct audit_record *a)
{
    json_t *json = json_pack("{s:I, s:s, s:s}", "time", (json_int_t)a->time, "actor", a->actor,
        "operation", a->operation);

    if (!json)
        return NULL;
    add_text(json, "from", a->from);
    add_text(json, "object", a->object);
    add_text(json, "network", a->network);
    add_number(json, "oldRevision", a->old_revision);
    add_number(json, "newRevision", a->new_revision);
    add_number(json, "others", a->others);
    if (a->kind == AUDIT_REFUSAL) {
        add_number(json, "status", a->status);
        add_text(json, "why", a->why);
        add_number(json, "count", a->count);
        add_number(json, "firstTime", (uint64_t)a->first);
    }
    return json;
}

char *audit_record_encode(const struct audit_record *a)
{
    _cleanup_(json_freep) json_t *json = encode(a);
    _cleanup_(freep) char *text = json ? body_format(json) : NULL;
    char key[RECORD_KEY_MAX];

    return text ? seal_add(audit_record_key(key, a->kind, a->id), text) : NULL;
}

json_t *audit_record_json(const struct audit_record *a)
{
    json_t *json = encode(a);

    if (!json)
        return NULL;
    json_object_set_new(json, "id", json_string(a->id));
    json_object_set_new(json, "answer", json_string(a->kind == AUDIT_CHANGE ? "done" : "refused"));
    return json;
}

static void read_time(struct fields *f, const char *name, enum fields_need need, int64_t *ret)
{
    uint64_t n = 0;

    fields_u64(f, name, need, 0, INT64_MAX, &n);
    *ret = (int64_t)n;
}

static void read_refusal(struct fields *f, struct audit_record *a)
{
    uint64_t status = 0;

    fields_u64(f, "status", FIELDS_REQUIRED, 400, 599, &status);
    fields_text(f, "why", FIELDS_OPTIONAL, 0, sizeof(a->why), a->why);
    fields_u64(f, "count", FIELDS_REQUIRED, 1, INT64_MAX, &a->count);
    read_time(f, "firstTime", FIELDS_OPTIONAL, &a->first);
    a->status = (unsigned)status;
}

int audit_record_decode(struct audit_record *ret, const char *key, const char *text, struct err *e)
{
    _cleanup_(json_freep) json_t *json = NULL;
    struct audit_record a = {.time = 0};
    uint64_t others = 0;
    struct fields f;
    int r;

    a.kind = parse_key(key, a.id);
    if (a.kind == AUDIT_KIND_N)
        return err_set(e, -EINVAL, "\"%.80s\" is not the key of an audit entry", key);
    r = seal_check(key, text, e);
    if (r == 0)
        r = body_parse(&json, text, strlen(text), e);
    if (r != 0)
        return r;
    f = fields_make(json, "audit entry", e);
    read_time(&f, "time", FIELDS_REQUIRED, &a.time);
    fields_text(&f, "actor", FIELDS_REQUIRED, 1, sizeof(a.actor), a.actor);
    fields_text(&f, "operation", FIELDS_REQUIRED, 1, sizeof(a.operation), a.operation);
    fields_text(&f, "from", FIELDS_OPTIONAL, 0, sizeof(a.from), a.from);
    fields_text(&f, "object", FIELDS_OPTIONAL, 0, sizeof(a.object), a.object);
    fields_text(&f, "network", FIELDS_OPTIONAL, 0, sizeof(a.network), a.network);
    fields_u64(&f, "oldRevision", FIELDS_OPTIONAL, 0, INT64_MAX, &a.old_revision);
    fields_u64(&f, "newRevision", FIELDS_OPTIONAL, 0, INT64_MAX, &a.new_revision);
    fields_u64(&f, "others", FIELDS_OPTIONAL, 0, UINT32_MAX, &others);
    if (a.kind == AUDIT_REFUSAL)
        read_refusal(&f, &a);
    a.others = (unsigned)others;
    if (fields_end(&f) == 0)
        *ret = a;
    return fields_end(&f);
}
