/* mesh_options.c - see mesh_options.h. */
#include "cmd/mesh_options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/addr.h"
#include "base/err.h"
#include "base/parse.h"
#include "cmd/options.h"
#include "hub/networks/public_addresses.h"
#include "mesh/object/fields.h"
#include "mesh/object/object.h"
#include "mesh/object/subnets.h"

int option_subnets(const struct option *o, const char *text, struct err *e)
{
    return subnets_parse(o->field, text, e);
}

int option_public(const struct option *o, const char *text, struct err *e)
{
    struct hub_public place;
    struct err why = ERR_NULL;
    /* Any port will do as the default one: only the form is checked here. */
    int r = hub_public_parse(&place, text, 1, &why);

    if (r != 0)
        return err_set(e, r, "%s %s", o->name, err_text(&why));
    return option_append(o, text, e);
}

int option_listen(const struct option *o, const char *text, struct err *e)
{
    const char *digits = text[0] == ':' ? text + 1 : text;
    struct endpoint ep = {.port = 0};
    uint64_t port;

    if (digits[strspn(digits, "0123456789")] == '\0') {
        if (parse_u64(&port, digits, o->min, UINT16_MAX, o->name, e) < 0)
            return -EINVAL;
        ep.port = (uint16_t)port;
    } else if (endpoint_parse(&ep, text, NULL) < 0) {
        return err_set(e, -EINVAL, "%s \"%.60s\" is not :PORT or ADDRESS:PORT", o->name, text);
    }
    *(struct endpoint *)o->field = ep;
    return 0;
}

int option_cidr4(const struct option *o, const char *text, struct err *e)
{
    return block_parse(o->field, text, true, o->name, e);
}

int mesh_options_check_name(const char *text, const char *what, struct err *e)
{
    const char *middle = strstr(text, "--");
    char first[NAME_MAX_LEN + 1];

    if (!middle || (size_t)(middle - text) > NAME_MAX_LEN)
        return parse_name(text, what, e);
    memcpy(first, text, (size_t)(middle - text));
    first[middle - text] = '\0';
    return parse_name(first, what, e) < 0 ? -EINVAL : parse_name(middle + 2, what, e);
}

int option_object_name(const struct option *o, const char *text, struct err *e)
{
    int r = mesh_options_check_name(text, o->name, e);

    return r == 0 ? option_text(o, text, e) : r;
}

static int parse_label(struct label *ret, const char *text, struct err *e)
{
    const char *equals = strchr(text, '=');
    size_t len = equals ? (size_t)(equals - text) : 0;

    if (len == 0 || len > OBJECT_LABEL_MAX || strlen(equals + 1) > OBJECT_LABEL_MAX)
        return err_set(e, -EINVAL, "label \"%.70s\" is not KEY=VALUE with at most %d bytes each",
            text, OBJECT_LABEL_MAX);
    (void)snprintf(ret->key, sizeof(ret->key), "%.*s", (int)len, text);
    (void)snprintf(ret->value, sizeof(ret->value), "%s", equals + 1);
    return label_check(ret->key, ret->value, e);
}

int mesh_options_parse_labels(struct label **ret, const struct option_list *given, struct err *e)
{
    _cleanup_(freep) struct label *labels = NULL;
    int r;

    if (given->n > OBJECT_LABELS_MAX)
        return err_set(
            e, -EINVAL, "%zu labels are given, and %d are allowed", given->n, OBJECT_LABELS_MAX);
    labels = calloc(given->n + 1, sizeof(*labels));
    if (!labels)
        return err_set(e, -ENOMEM, "no memory for the labels");
    for (size_t i = 0; i < given->n; i++) {
        r = parse_label(&labels[i], given->items[i], e);
        if (r < 0)
            return r;
    }
    *ret = TAKE_PTR(labels);
    return 0;
}

int mesh_options_set_rate(json_t *rates, const char *name, const char *text)
{
    if (strcmp(text, "none") != 0)
        return json_object_set_new(rates, name, json_string(text));
    (void)json_object_del(rates, name);
    return 0;
}

void mesh_options_print_admit(const char *node, const struct subnets *routes)
{
    char text[IP_PREFIX_TEXT_MAX];

    (void)printf("weft node set %s", node);
    for (unsigned i = 0; i < routes->n; i++)
        (void)printf(" --route %s", ip_prefix_format(&routes->items[i], text));
}
