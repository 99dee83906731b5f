/* node_keys.c - see node_keys.h. */
#include "mesh/object/node_keys.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "mesh/object/fields.h"

struct node_keys *node_keys_free(struct node_keys *k)
{
    for (unsigned i = 0; k && i < k->n_statements; i++)
        free(k->statements[i]);
    free(k);
    return NULL;
}

const char *node_keys_last(const struct node_keys *k)
{
    return k && k->n_statements > 0 ? k->statements[k->n_statements - 1] : NULL;
}

int node_keys_add(struct node_keys *k, const char *statement)
{
    char *copy = strdup(statement);

    if (!copy)
        return -ENOMEM;
    if (k->n_statements == NODE_KEYS_STATEMENTS_MAX) {
        free(k->statements[0]);
        k->n_statements--;
        memmove(k->statements, k->statements + 1, k->n_statements * sizeof(*k->statements));
    }
    k->statements[k->n_statements++] = copy;
    return 0;
}

struct node_keys *node_keys_copy(const struct node_keys *k)
{
    struct node_keys *copy = k ? malloc(sizeof(*copy)) : NULL;

    if (!copy)
        return NULL;
    *copy = *k;
    copy->n_statements = 0;
    for (unsigned i = 0; i < k->n_statements; i++)
        if (node_keys_add(copy, k->statements[i]) != 0)
            return node_keys_free(copy);
    return copy;
}

/* Only what base64 is made of: it is shown to people as it is. */
static bool is_base64(const char *text)
{
    static const char alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t len = strlen(text);
    size_t n = strspn(text, alphabet);

    return len % 4 == 0 && len - n <= 2 && strspn(text + n, "=") == len - n;
}

/* Into @k, which the caller releases also on failure. */
static int statements_decode(struct node_keys *k, const json_t *list, struct fields *f)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < json_array_size(list); i++) {
        const char *text = json_string_value(json_array_get(list, i));
        size_t len = text ? strnlen(text, NODE_KEYS_STATEMENT_MAX + 1) : 0;

        if (len < 4 || len > NODE_KEYS_STATEMENT_MAX || !is_base64(text)) {
            fields_fail(f, "a statement of \"statements\" is not base64 of 4 to %d characters",
                NODE_KEYS_STATEMENT_MAX);
            return 0;
        }
        r = node_keys_add(k, text);
    }
    return r;
}

int node_keys_decode(struct node_keys **ret, struct fields *f, enum object_mode mode)
{
    const json_t *json = fields_object(f, "keys", FIELDS_OPTIONAL);
    char where[OBJECT_FRAME_WHERE_MAX + 16];
    struct node_keys *k;
    const json_t *list;
    struct fields one;
    int r;

    if (!json || json_object_size(json) == 0)
        return 0;
    k = calloc(1, sizeof(*k));
    if (!k)
        return -ENOMEM;
    (void)snprintf(where, sizeof(where), "%s: keys", f->where);
    one = fields_make(json, where, f->e);
    fields_public_key(&one, "next", FIELDS_OPTIONAL, &k->next);
    fields_u64(&one, "wantedSerial", FIELDS_OPTIONAL, 1, INT64_MAX, &k->wanted_serial);
    fields_bool(&one, "forced", FIELDS_OPTIONAL, &k->is_forced);
    list = fields_array(&one, "statements", FIELDS_OPTIONAL, 0, NODE_KEYS_STATEMENTS_MAX);
    r = statements_decode(k, list, &one);
    f->failed = object_fields_end(&one, mode);
    if (r == 0 && !f->failed)
        *ret = k;
    else
        k = node_keys_free(k);
    return r;
}

json_t *node_keys_encode(const struct node_keys *k)
{
    json_t *statements = k->n_statements > 0 ? json_array() : NULL;
    bool has_next = !x25519_public_is_none(&k->next);
    char next[X25519_BASE64_MAX];

    for (unsigned i = 0; i < k->n_statements; i++)
        fields_append(&statements, json_string(k->statements[i]));
    return json_pack("{s:s*, s:o*, s:o*, s:o*}", "next",
        has_next ? x25519_public_format(&k->next, next) : NULL, "wantedSerial",
        k->wanted_serial ? json_integer((json_int_t)k->wanted_serial) : NULL, "forced",
        k->is_forced ? json_true() : NULL, "statements", statements);
}
