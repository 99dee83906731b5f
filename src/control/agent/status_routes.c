/* status_routes.c - see status_routes.h. */
#include "agent/status_routes.h"

#include <stdio.h>
#include <string.h>

#include "agent/reconcile/subnet_routes.h"
#include "base/str.h"
#include "mesh/object/object.h"
#include "mesh/object/subnets.h"

#define WHY_MAX 256

/* ---- JSON ----------------------------------------------------------------------------------- */

/* Appends @item, which is taken. Takes @list, too: NULL if either is NULL, or without memory. */
static json_t *append(json_t *list, json_t *item)
{
    if (json_array_append_new(list, item) == 0)
        return list;
    json_decref(list);
    return NULL;
}

json_t *status_routes_encode(const struct status_routes *in)
{
    json_t *list = json_array();
    char text[IP_PREFIX_TEXT_MAX];

    for (size_t i = 0; list && in->others && i < in->others->n; i++) {
        const struct subnet_route *sub = &in->others->items[i];

        list = append(
            list, json_pack("{s:s, s:s, s:b, s:s}", "route", ip_prefix_format(&sub->to, text),
                      "node", sub->node, "used", (int)(sub->why[0] == '\0'), "why", sub->why));
    }
    return list;
}

/* Why no packets get to that subnet, and what helps; "": no obstacle is known on this machine. */
static void explain(const struct status_routes *in, const struct ip_prefix *route, bool is_admitted,
    char why[static WHY_MAX])
{
    bool v4 = ip_addr_is_v4(&route->addr);
    char text[IP_PREFIX_TEXT_MAX];

    why[0] = '\0';
    if (!is_admitted)
        (void)snprintf(why, WHY_MAX,
            "the hub has not admitted it; on the hub: weft node set %s --route %s",
            in->self->meta.name, ip_prefix_format(route, text));
    else if ((v4 ? in->forwards4 : in->forwards6) == 0)
        (void)snprintf(why, WHY_MAX,
            "this machine forwards no IPv%c: sysctl -w net.%s=1, and a line in /etc/sysctl.d keeps "
            "it so",
            v4 ? '4' : '6', v4 ? "ipv4.ip_forward" : "ipv6.conf.all.forwarding");
    else if (in->guard_fault[0] != '\0')
        (void)snprintf(
            why, WHY_MAX, "the packet filter does not take its rules: %.180s", in->guard_fault);
}

static json_t *encode_own(
    const struct status_routes *in, const struct ip_prefix *route, bool is_admitted)
{
    char text[IP_PREFIX_TEXT_MAX];
    char why[WHY_MAX];

    explain(in, route, is_admitted, why);
    return json_pack("{s:s, s:b, s:b, s:s}", "route", ip_prefix_format(route, text), "admitted",
        (int)is_admitted, "masquerade", (int)in->masquerades, "why", why);
}

json_t *status_routes_encode_own(const struct status_routes *in)
{
    const struct subnets *has = in->self->routes;
    json_t *list = json_array();

    for (unsigned i = 0; list && has && i < has->n; i++)
        list = append(list, encode_own(in, &has->items[i], true));
    for (unsigned i = 0; list && in->asked && i < in->asked->n; i++)
        if (!has || !subnets_has(has, &in->asked->items[i]))
            list = append(list, encode_own(in, &in->asked->items[i], false));
    return list;
}

/* ---- for people ----------------------------------------------------------------------------- */

static const char *text_of(const json_t *obj, const char *field)
{
    const char *text = json_string_value(json_object_get(obj, field));

    return text ? text : "";
}

static void format_own(const json_t *own, struct str *out)
{
    const json_t *item;
    size_t i;

    json_array_foreach(own, i, item) {
        const char *why = text_of(item, "why");

        str_addf(out, "this node is %sthe way to %s%s%s\n", why[0] ? "not yet " : "",
            text_of(item, "route"), why[0] ? ": " : "", why);
    }
}

static bool is_used(const json_t *item)
{
    return json_is_true(json_object_get(item, "used"));
}

/* One line for each node, with the subnets behind it, which follow each other in @routes. */
static void format_used(const json_t *routes, struct str *out)
{
    const char *node = NULL;
    const json_t *item;
    size_t i;

    json_array_foreach(routes, i, item) {
        if (!is_used(item))
            continue;
        if (node && strcmp(node, text_of(item, "node")) == 0)
            str_addf(out, ", %s", text_of(item, "route"));
        else
            str_addf(out, "%sthrough %s: %s", node ? "\n" : "", text_of(item, "node"),
                text_of(item, "route"));
        node = text_of(item, "node");
    }
    if (node)
        str_add(out, "\n");
}

void status_routes_format(const json_t *status, struct str *out)
{
    const json_t *routes = json_object_get(status, "routes");
    const json_t *item;
    size_t i;

    format_own(json_object_get(status, "ownRoutes"), out);
    format_used(routes, out);
    json_array_foreach(routes, i, item)
        if (!is_used(item))
            str_addf(out, "not through %s: %s, %s\n", text_of(item, "node"), text_of(item, "route"),
                text_of(item, "why"));
}
