/* owner_record.c - see owner_record.h. */
#include "owner_record.h"

#include <stdio.h>
#include <string.h>

#include "api/content/body.h"
#include "mesh/object/fields.h"

const char *owner_key(char buf[static RECORD_KEY_MAX], const char *prefix, const char *name)
{
    (void)snprintf(buf, RECORD_KEY_MAX, "%s%s", prefix, name);
    return buf;
}

/* @json: taken. */
static char *text_of(json_t *json)
{
    char *text = json ? body_format(json) : NULL;

    json_decref(json);
    return text;
}

char *beat_record_encode(const struct beat_record *b)
{
    return text_of(
        json_pack("{s:I, s:I}", "boot", (json_int_t)b->boot, "beat", (json_int_t)b->beat));
}

int beat_record_decode(struct beat_record *ret, const char *text, struct err *e)
{
    struct beat_record b = {0};
    json_t *json = NULL;
    struct fields f;
    int r = body_parse(&json, text, strlen(text), e);

    if (r != 0)
        return r;
    f = fields_make(json, "hub's beat", e);
    fields_u64(&f, "boot", FIELDS_REQUIRED, 1, INT64_MAX, &b.boot);
    fields_u64(&f, "beat", FIELDS_REQUIRED, 0, INT64_MAX, &b.beat);
    r = fields_end(&f);
    json_decref(json);
    if (r == 0)
        *ret = b;
    return r;
}

char *owner_record_encode(const struct owner_record *o)
{
    char key[X25519_BASE64_MAX];

    return text_of(json_pack("{s:s*, s:I, s:s*}", "hub", o->hub[0] ? o->hub : NULL, "epoch",
        (json_int_t)o->epoch, "network",
        o->has_network ? x25519_public_format(&o->network, key) : NULL));
}

int owner_record_decode(struct owner_record *ret, const char *text, struct err *e)
{
    struct owner_record o = {.hub = ""};
    json_t *json = NULL;
    struct fields f;
    int r = body_parse(&json, text, strlen(text), e);

    if (r != 0)
        return r;
    f = fields_make(json, "owner of a rendezvous", e);
    fields_name(&f, "hub", FIELDS_OPTIONAL, o.hub);
    fields_u64(&f, "epoch", FIELDS_REQUIRED, 1, INT64_MAX, &o.epoch);
    o.has_network = fields_get(&f, "network", FIELDS_OPTIONAL) != NULL;
    if (o.has_network)
        fields_public_key(&f, "network", FIELDS_REQUIRED, &o.network);
    r = fields_end(&f);
    json_decref(json);
    if (r == 0)
        *ret = o;
    return r;
}
