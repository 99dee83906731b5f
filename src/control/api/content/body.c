/* body.c - see body.h. */
#include "body.h"

#include <errno.h>

#include "base/err.h"
#include "base/secret.h"

/* Is it nested deeper than @max levels? It looks no deeper than that itself. */
static bool is_deeper(const json_t *json, unsigned max)
{
    const char *key;
    json_t *value;
    size_t i;

    if (!json_is_object(json) && !json_is_array(json))
        return false;
    if (max == 0)
        return true;
    json_object_foreach((json_t *)json, key, value)
        if (is_deeper(value, max - 1))
            return true;
    json_array_foreach(json, i, value)
        if (is_deeper(value, max - 1))
            return true;
    return false;
}

int body_check_depth(const json_t *json, unsigned max, struct err *e)
{
    if (!is_deeper(json, max))
        return 0;
    return err_set(e, -EINVAL, "the body has more than %u objects or arrays in one another", max);
}

int body_parse(json_t **ret, const char *text, size_t len, struct err *e)
{
    json_error_t je;
    json_t *json = json_loadb(text, len, JSON_REJECT_DUPLICATES, &je);

    if (!json && json_error_code(&je) == json_error_out_of_memory)
        return err_set(e, -ENOMEM, "no memory for a body of %zu bytes", len);
    if (!json)
        return err_set(e, -EINVAL, "the body is not JSON: %s, at line %d, column %d", je.text,
            je.line, je.column);
    if (!json_is_object(json)) {
        json_decref(json);
        return err_set(e, -EINVAL, "the body is JSON, but not an object");
    }
    if (body_check_depth(json, BODY_DEPTH_MAX, e) != 0) {
        json_decref(json);
        return -EINVAL;
    }
    *ret = json;
    return 0;
}

char *body_format(const json_t *json)
{
    return json_dumps(json, JSON_COMPACT);
}

json_t *body_refusal(const char *sentence)
{
    /* What is no UTF-8 cannot be said in JSON. */
    json_t *text = json_string(sentence);

    return json_pack("{s:o}", "error", text ? text : json_string("the request was refused"));
}

const char *body_refusal_text(const json_t *json)
{
    return json_string_value(json_object_get(json, "error"));
}

void body_wipe_text(json_t *json, const char *field)
{
    const json_t *text = json_object_get(json, field);
    size_t len = json_string_length(text);

    /* jansson hands out its own writable memory as const. */
    if (len > 0)
        secret_wipe((char *)json_string_value(text), len);
}
