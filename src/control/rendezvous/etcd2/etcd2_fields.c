/* etcd2_fields.c - see etcd2_fields.h. */
#include "etcd2_fields.h"

#include <stdio.h>
#include <string.h>

#include "base/parse.h"

/* The field as a text; NULL: it is not in the form. With a zero byte inside it becomes one that no
 * number or word is. */
static const char *text_of(const struct form *f, const char *name)
{
    const struct form_field *field = form_find(f, name);

    if (!field)
        return NULL;
    return strlen(field->value) == field->value_len ? field->value : "\\0";
}

/* Reads a field as Go's strconv.ParseBool() does. @ret is unchanged when the form has no such
 * field. */
static int read_bool(const struct form *f, const char *name, bool *ret, struct etcd2_refusal *why)
{
    static const char *const words[2][6] = {
        {"0", "f", "F", "false", "FALSE", "False"}, {"1", "t", "T", "true", "TRUE", "True"}};
    const char *text = text_of(f, name);

    if (!text)
        return 0;
    for (int i = 0; i < 12; i++) {
        if (strcmp(text, words[i / 6][i % 6]) == 0) {
            *ret = i / 6;
            return 0;
        }
    }
    return etcd2_refusal_set(why, ETCD2_E_FIELD, "invalid value for \"%s\"", name);
}

static int read_number(
    const struct form *f, const char *name, uint64_t *ret, int code, struct etcd2_refusal *why)
{
    const char *text = text_of(f, name);

    if (!text || parse_u64(ret, text, 0, UINT64_MAX, name, NULL) == 0)
        return 0;
    return etcd2_refusal_set(why, code, "invalid value for \"%s\"", name);
}

static int read_ttl(const struct form *f, struct etcd2_change *c, struct etcd2_refusal *why)
{
    const char *text = text_of(f, "ttl");
    uint64_t ttl = 0;
    int r;

    if (!text || text[0] == '\0')
        return 0;
    r = read_number(f, "ttl", &ttl, ETCD2_E_TTL, why);
    c->has_ttl = true;
    c->ttl_seconds = ttl < ETCD2_TTL_MAX ? (uint32_t)ttl : ETCD2_TTL_MAX;
    return r;
}

static int read_refresh(const struct form *f, struct etcd2_fields *ret, struct etcd2_refusal *why)
{
    int r = read_bool(f, "refresh", &ret->change.is_refresh, why);

    if (r != 0 || !ret->change.is_refresh)
        return r ? etcd2_refusal_set(why, ETCD2_E_FIELD, "invalid value for %s", "refresh") : 0;
    if (ret->value.len > 0)
        return etcd2_refusal_set(
            why, ETCD2_E_REFRESH_VALUE, "%s", "A value was provided on a refresh");
    if (!ret->change.has_ttl)
        return etcd2_refusal_set(why, ETCD2_E_REFRESH_TTL, "%s", "No TTL value set");
    return 0;
}

/* Reads a field of any bytes; false when the form has no such field. */
static bool read_value(const struct form *f, const char *name, struct etcd2_text *ret)
{
    const struct form_field *field = form_find(f, name);

    if (field)
        *ret = (struct etcd2_text){field->value, field->value_len};
    return field != NULL;
}

static int read_flags(const struct form *f, struct etcd2_fields *ret, struct etcd2_refusal *why)
{
    bool ignored = false;
    bool is_stream = false;
    const struct {
        const char *name;
        bool *ret;
    } flags[] = {{"recursive", &ret->recursive}, {"sorted", &ignored}, {"wait", &ret->wait},
        {"dir", &ret->change.is_dir}, {"quorum", &ignored}, {"stream", &is_stream}};
    int r = 0;

    for (size_t i = 0; r == 0 && i < sizeof(flags) / sizeof(*flags); i++)
        r = read_bool(f, flags[i].name, flags[i].ret, why);
    /* "stream" means something only together with "wait". */
    if (r == 0 && is_stream && ret->wait)
        r = etcd2_refusal_set(
            why, ETCD2_E_FIELD, "\"%s\" is not served: wait again with the next index", "stream");
    return r;
}

/* The fields are checked in etcd's order, since the answer tells the first mistake. */
int etcd2_fields_read(
    const struct etcd2_request *rq, struct etcd2_fields *ret, struct etcd2_refusal *why)
{
    const struct form *f = rq->form;
    int r = rq->form_error ? etcd2_refusal_set(why, ETCD2_E_FORM, "%s", rq->form_error) : 0;

    if (r == 0)
        r = read_number(f, "prevIndex", &ret->change.prev_index, ETCD2_E_INDEX, why);
    if (r == 0)
        r = read_number(f, "waitIndex", &ret->from_index, ETCD2_E_INDEX, why);
    if (r == 0)
        r = read_flags(f, ret, why);
    if (r == 0 && ret->wait && strcmp(rq->method, "GET") != 0)
        r = etcd2_refusal_set(
            why, ETCD2_E_FIELD, "\"%s\" can only be used with GET requests", "wait");
    ret->change.has_prev_value = read_value(f, "prevValue", &ret->change.prev_value);
    if (r == 0 && ret->change.has_prev_value && ret->change.prev_value.len == 0)
        r = etcd2_refusal_set(why, ETCD2_E_NO_PREV_VALUE, "\"%s\" cannot be empty", "prevValue");
    if (r == 0)
        r = read_bool(f, "noValueOnSuccess", &ret->no_value, why);
    if (r == 0)
        r = read_ttl(f, &ret->change, why);
    ret->has_exist = form_find(f, "prevExist") != NULL;
    if (r == 0 && read_bool(f, "prevExist", &ret->exist, why) != 0)
        r = etcd2_refusal_set(why, ETCD2_E_FIELD, "invalid value for %s", "prevExist");
    (void)read_value(f, "value", &ret->value);
    if (r == 0)
        r = read_refresh(f, ret, why);
    if (r == 0 && ret->value.len > ETCD2_VALUE_MAX)
        r = etcd2_refusal_set(why, ETCD2_E_FORM, "%s", "the value is too long");
    return r;
}
