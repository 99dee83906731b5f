/* fields.c - see fields.h. */
#include "mesh/object/fields.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/parse.h"
#include "base/text.h"
#include "base/traffic.h"
#include "crypto/x25519.h"

/* Shortest and longest prefix: room for millions, and for the hub and one node. */
#define BLOCK_LEN4_MIN 8
#define BLOCK_LEN4_MAX 30
#define BLOCK_LEN6_MIN 32
#define BLOCK_LEN6_MAX 124

void fields_fail(struct fields *f, const char *fmt, ...)
{
    char text[256];
    va_list ap;

    if (f->failed)
        return;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    f->failed = err_set(f->e, -EINVAL, "%s: %s", f->where, text);
}

struct fields fields_make(const json_t *json, const char *where, struct err *e)
{
    struct fields f = {.json = json, .where = where, .e = e};

    if (!json_is_object(json))
        fields_fail(&f, "is not a JSON object");
    return f;
}

const json_t *fields_get(struct fields *f, const char *name, enum fields_need need)
{
    const json_t *v;

    if (f->failed)
        return NULL;
    assert(f->n_seen < FIELDS_SEEN_MAX);
    f->seen[f->n_seen++] = name;
    v = json_object_get(f->json, name);
    if (json_is_null(v))
        v = NULL;
    if (!v && need == FIELDS_REQUIRED)
        fields_fail(f, "\"%s\" is missing", name);
    return v;
}

const char *fields_string(
    struct fields *f, const char *name, enum fields_need need, size_t min, size_t max)
{
    const json_t *v = fields_get(f, name, need);
    const char *text;
    size_t len;

    if (!v)
        return NULL;
    if (!json_is_string(v)) {
        fields_fail(f, "\"%s\" is not a string", name);
        return NULL;
    }
    text = json_string_value(v);
    len = json_string_length(v);
    if (len < min || len > max) {
        fields_fail(f, "\"%s\" has %zu bytes, and %zu to %zu are allowed", name, len, min, max);
        return NULL;
    }
    if (!text_is_plain(text, len)) {
        fields_fail(f, "\"%s\" has a control character, which is not allowed", name);
        return NULL;
    }
    return text;
}

void fields_text(
    struct fields *f, const char *name, enum fields_need need, size_t min, size_t cap, char *ret)
{
    const char *text = fields_string(f, name, need, min, cap - 1);

    if (text)
        memcpy(ret, text, strlen(text) + 1);
}

void fields_u64(struct fields *f, const char *name, enum fields_need need, uint64_t min,
    uint64_t max, uint64_t *ret)
{
    const json_t *v = fields_get(f, name, need);
    json_int_t n;

    if (!v)
        return;
    n = json_integer_value(v);
    if (!json_is_integer(v) || n < 0 || (uint64_t)n < min || (uint64_t)n > max) {
        fields_fail(f, "\"%s\" is not a whole number from %" PRIu64 " to %" PRIu64, name, min, max);
        return;
    }
    *ret = (uint64_t)n;
}

void fields_int_of_size(struct fields *f, const char *name, enum fields_need need, uint64_t min,
    uint64_t max, size_t size, void *ret)
{
    uint64_t n = UINT64_MAX; /* which no number of JSON is */

    fields_u64(f, name, need, min, max, &n);
    if (n == UINT64_MAX)
        return;
    switch (size) {
    case sizeof(uint16_t):
        *(uint16_t *)ret = (uint16_t)n;
        return;
    case sizeof(uint32_t):
        *(uint32_t *)ret = (uint32_t)n;
        return;
    default:
        assert(size == sizeof(n));
        *(uint64_t *)ret = n;
    }
}

void fields_bool(struct fields *f, const char *name, enum fields_need need, bool *ret)
{
    const json_t *v = fields_get(f, name, need);

    if (!v)
        return;
    if (!json_is_boolean(v)) {
        fields_fail(f, "\"%s\" is neither true nor false", name);
        return;
    }
    *ret = json_is_true(v);
}

void fields_enum(struct fields *f, const char *name, enum fields_need need,
    const char *const names[], unsigned n_names, unsigned *ret)
{
    const char *text = fields_string(f, name, need, 1, 40);
    size_t found = parse_word(text, names, n_names);
    char allowed[120] = "";
    size_t len = 0;

    if (found < n_names)
        *ret = (unsigned)found;
    if (!text || found < n_names)
        return;
    for (unsigned i = 0; i < n_names; i++) {
        len += (size_t)snprintf(
            allowed + len, sizeof(allowed) - len, "%s%s", i > 0 ? ", " : "", names[i]);
        assert(len < sizeof(allowed));
    }
    fields_fail(f, "\"%s\" is \"%s\", and one of %s is allowed", name, text, allowed);
}

void fields_name(struct fields *f, const char *name, enum fields_need need, char *ret)
{
    const char *text = fields_string(f, name, need, 1, NAME_MAX_LEN);
    struct err e = ERR_NULL;

    if (!text)
        return;
    if (parse_name(text, name, &e) < 0) {
        fields_fail(f, "%s", err_text(&e));
        return;
    }
    memcpy(ret, text, strlen(text) + 1);
}

void fields_address(
    struct fields *f, const char *name, enum fields_need need, bool v4, struct ip_addr *ret)
{
    const char *text = fields_string(f, name, need, 1, IP_ADDR_TEXT_MAX);
    struct err e = ERR_NULL;
    struct ip_addr a;

    if (!text)
        return;
    if (ip_addr_parse(&a, text, &e) < 0)
        fields_fail(f, "%s: %s", name, err_text(&e));
    else if (ip_addr_is_v4(&a) != v4 || ip_addr_is_none(&a))
        fields_fail(
            f, "\"%s\" is \"%s\", which is not an IPv%c address", name, text, v4 ? '4' : '6');
    else
        *ret = a;
}

void fields_block(
    struct fields *f, const char *name, enum fields_need need, bool v4, struct ip_prefix *ret)
{
    const char *text = fields_string(f, name, need, 1, IP_PREFIX_TEXT_MAX);
    struct err e = ERR_NULL;
    char what[64];

    (void)snprintf(what, sizeof(what), "\"%s\"", name);
    if (text && block_parse(ret, text, v4, what, &e) < 0)
        fields_fail(f, "%s", err_text(&e));
}

void fields_public_key(
    struct fields *f, const char *name, enum fields_need need, struct x25519_public *ret)
{
    const char *text = fields_string(f, name, need, 0, X25519_BASE64_MAX);
    struct x25519_public key;

    if (!text)
        return;
    if (x25519_public_parse(&key, text, NULL) < 0 || x25519_public_is_none(&key))
        fields_fail(f, "\"%s\" is not a public key: 44 characters of base64", name);
    else
        *ret = key;
}

void fields_rate(struct fields *f, const char *name, enum fields_need need, uint64_t *ret)
{
    const char *text = fields_string(f, name, need, 1, TRAFFIC_RATE_TEXT_MAX);
    struct err e = ERR_NULL;
    char what[64];

    (void)snprintf(what, sizeof(what), "\"%s\"", name);
    if (text && traffic_rate_parse(ret, text, what, &e) < 0)
        fields_fail(f, "%s", err_text(&e));
}

/* Longest number in a text. */
#define NUMBER_TEXT_MAX 32

static const char digits[] = "0123456789";

/* Is it written as people write amounts, 2000 or 12.5 or 2e12? Not as strtod() takes it, too: in
 * other bases, with blanks, or "inf". */
static bool is_decimal(const char *text)
{
    size_t n = strspn(text, digits);
    size_t at = n;

    if (n == 0 || strnlen(text, NUMBER_TEXT_MAX + 1) > NUMBER_TEXT_MAX)
        return false;
    if (text[at] == '.') {
        n = strspn(text + at + 1, digits);
        at += n > 0 ? n + 1 : 0;
    }
    if (text[at] == 'e' || text[at] == 'E') {
        bool has_sign = text[at + 1] == '+' || text[at + 1] == '-';

        n = strspn(text + at + 1 + has_sign, digits);
        at += n > 0 ? n + 1 + has_sign : 0;
    }
    return text[at] == '\0';
}

double fields_decimal(const json_t *json)
{
    const char *text = json_string_value(json);

    if (!text)
        return json_is_number(json) ? json_number_value(json) : (double)NAN;
    return is_decimal(text) ? strtod(text, NULL) : (double)NAN;
}

const json_t *fields_object(struct fields *f, const char *name, enum fields_need need)
{
    const json_t *v = fields_get(f, name, need);

    if (v && !json_is_object(v)) {
        fields_fail(f, "\"%s\" is not an object", name);
        return NULL;
    }
    return v;
}

const json_t *fields_array(
    struct fields *f, const char *name, enum fields_need need, size_t min, size_t max)
{
    const json_t *v = fields_get(f, name, need);

    if (!v)
        return NULL;
    if (!json_is_array(v) || json_array_size(v) < min || json_array_size(v) > max) {
        fields_fail(f, "\"%s\" is not an array of %zu to %zu items", name, min, max);
        return NULL;
    }
    return v;
}

void fields_refuse_unknown(struct fields *f)
{
    const char *name;
    json_t *value;

    if (f->failed)
        return;
    /* The iterator wants a mutable object; nothing is changed. */
    json_object_foreach((json_t *)f->json, name, value)
        if (parse_word(name, f->seen, f->n_seen) == f->n_seen) {
            fields_fail(f, "\"%.40s\" is not a field of it", name);
            return;
        }
}

int fields_end(const struct fields *f)
{
    return f->failed;
}

int fields_give(const struct fields *f, void *ret, const void *read, size_t size)
{
    if (!f->failed)
        memcpy(ret, read, size);
    return f->failed;
}

const char *fields_text_of(const json_t *json, const char *name)
{
    const char *text = json_string_value(json_object_get(json, name));

    return text ? text : "";
}

bool fields_list_has(const json_t *list, const char *text)
{
    const json_t *item;
    size_t i;

    json_array_foreach(list, i, item)
        if (json_is_string(item) && strcmp(json_string_value(item), text) == 0)
            return true;
    return false;
}

void fields_set(json_t **object, const char *name, json_t *value)
{
    if (json_object_set_new(*object, name, value) < 0)
        *object = (json_decref(*object), NULL);
}

void fields_append(json_t **array, json_t *item)
{
    if (json_array_append_new(*array, item) < 0)
        *array = (json_decref(*array), NULL);
}

/* ---- blocks of addresses ---- */

/* What RFC 6890 and RFC 4291 keep for other uses. */
static const char *const reserved[] = {
    "0.0.0.0/8",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "224.0.0.0/3",
    "::/8",
    "fe80::/10",
    "ff00::/8",
};

const char *block_find_reserved_part(const struct ip_prefix *p)
{
    for (unsigned i = 0; i < sizeof(reserved) / sizeof(*reserved); i++) {
        struct ip_prefix r;

        if (ip_prefix_parse(&r, reserved[i], NULL) == 0 && ip_prefix_overlaps(p, &r))
            return reserved[i];
    }
    return NULL;
}

int block_parse(struct ip_prefix *ret, const char *text, bool v4, const char *what, struct err *e)
{
    unsigned min = v4 ? BLOCK_LEN4_MIN : BLOCK_LEN6_MIN;
    unsigned max = v4 ? BLOCK_LEN4_MAX : BLOCK_LEN6_MAX;
    struct ip_prefix p;
    struct ip_prefix whole;
    const char *other;

    if (ip_prefix_parse(&p, text, e) < 0)
        return err_prefix(e, "%s", what);
    whole = ip_prefix_mask(&p);
    other = block_find_reserved_part(&whole);
    if (ip_addr_is_v4(&p.addr) != v4)
        return err_set(e, -EINVAL, "%s is \"%s\", which is not IPv%c", what, text, v4 ? '4' : '6');
    if (p.len < min || p.len > max)
        return err_set(
            e, -EINVAL, "%s is \"%s\", and lengths /%u to /%u are allowed", what, text, min, max);
    if (!ip_prefix_equal(&p, &whole))
        return err_set(e, -EINVAL, "%s is \"%s\", which has bits set after its length", what, text);
    if (other)
        return err_set(e, -EINVAL, "%s is \"%s\", which overlaps %s, and nodes cannot have those",
            what, text, other);
    *ret = p;
    return 0;
}

const char *block_find_reserved(const struct ip_addr *a)
{
    struct ip_prefix whole = {.addr = *a, .len = ip_addr_is_v4(a) ? 32 : 128};

    return block_find_reserved_part(&whole);
}
