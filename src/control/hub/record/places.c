/* places.c - see places.h. */
#include "hub/record/places.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "mesh/object/block.h"
#include "net/address/resolve.h"

static int refuse_reserved(const struct ip_addr *a, const char *text, struct err *e)
{
    const char *block = block_find_reserved(a);

    if (!block)
        return 0;
    return err_set(e, -EINVAL,
        "%.60s is in %s, where no other machine reaches this one: nodes need an address of it that "
        "they can send to",
        text, block);
}

static int parse_host(struct hub_public *ret, const char *text, uint16_t dflt_port, struct err *e)
{
    int n = strchr(text, ':') ? snprintf(ret->text, sizeof(ret->text), "%s", text)
                              : snprintf(ret->text, sizeof(ret->text), "%s:%u", text, dflt_port);

    if (n < 0 || n > HOST_PORT_MAX || host_port_check(ret->text, NULL) != 0)
        return err_set(e, -EINVAL, "\"%.80s\" is not HOST or HOST:PORT", text);
    ret->is_name = true;
    return 0;
}

int hub_public_parse(struct hub_public *ret, const char *text, uint16_t dflt_port, struct err *e)
{
    struct hub_public p = {.n = 0};
    struct ip_addr address;
    char buf[ENDPOINT_TEXT_MAX];
    int r = resolve_check(text, &address, e);

    if (r == 0 && ip_addr_is_none(&address)) {
        r = parse_host(&p, text, dflt_port, e);
    } else if (r == 0) {
        r = resolve_host(text, dflt_port, p.at, 1, &p.n, e);
        if (r == 0)
            r = refuse_reserved(&p.at[0].addr, text, e);
        (void)snprintf(p.text, sizeof(p.text), "%s", endpoint_format(&p.at[0], buf));
    }
    if (r == 0)
        *ret = p;
    return r;
}

/* ---- as nodes are told them ------------------------------------------------------------------ */

static void tell_endpoint(struct node_hub *hub, const struct endpoint *ep)
{
    for (unsigned i = 0; i < hub->n_endpoints; i++)
        if (endpoint_equal(&hub->endpoints[i], ep))
            return;
    if (hub->n_endpoints < OBJECT_ENDPOINTS_MAX)
        hub->endpoints[hub->n_endpoints++] = *ep;
}

static void tell_name(struct node_hub *hub, const char *text)
{
    for (unsigned i = 0; i < hub->n_names; i++)
        if (strcmp(hub->names[i], text) == 0)
            return;
    /* One too many is told by its addresses only. */
    if (hub->n_names < OBJECT_HUB_NAMES_MAX)
        (void)snprintf(hub->names[hub->n_names++], sizeof(hub->names[0]), "%s", text);
}

static void tell_places(struct node_hub *hub, const struct hub_places *places)
{
    for (unsigned i = 0; i < places->n; i++) {
        const struct hub_public *p = &places->items[i];

        if (p->is_name)
            tell_name(hub, p->text);
        for (unsigned k = 0; k < p->n; k++)
            tell_endpoint(hub, &p->at[k]);
    }
}

void hub_places_tell(
    struct node_hub *ret, const struct hub_places *here, const struct hub_places *next)
{
    ret->n_endpoints = 0;
    ret->n_names = 0;
    tell_places(ret, here);
    tell_places(ret, next);
}

json_t *hub_places_encode(const struct hub_places *places)
{
    json_t *list = json_array();

    for (unsigned i = 0; i < places->n; i++)
        json_array_append_new(list, json_string(places->items[i].text));
    return list;
}
