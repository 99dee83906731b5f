/* route_guard.c - see route_guard.h. */
#include "agent/reconcile/route_guard.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdio.h>
#include <unistd.h>

#include "agent/reconcile/filter_table.h"
#include "base/err.h"
#include "base/str.h"
#include "mesh/object/subnets.h"
#include "os/fd_cleanup.h"

#define TABLE "weft_route"

/* Adds "ip daddr { 10.9.0.0/24, ... }" and @then, with one family's subnets; nothing if there are
 * none. */
static void add_rule(
    struct str *out, const char *before, const struct subnets *routes, bool v4, const char *then)
{
    char text[IP_PREFIX_TEXT_MAX];
    unsigned n = 0;

    for (unsigned i = 0; i < routes->n; i++) {
        if (ip_addr_is_v4(&routes->items[i].addr) != v4)
            continue;
        if (n++ == 0)
            str_addf(out, "%s%s daddr { ", before, v4 ? "ip" : "ip6");
        else
            str_add(out, ", ");
        str_add(out, ip_prefix_format(&routes->items[i], text));
    }
    if (n > 0)
        str_addf(out, " } %s\n", then);
}

void route_guard_format(
    struct str *out, const char *interface, const struct subnets *routes, bool masquerades)
{
    char from[IFNAMSIZ + 32];

    (void)snprintf(from, sizeof(from), "iifname \"%.*s\" ", IFNAMSIZ - 1, interface);
    str_add(out, "chain forward {\ntype filter hook forward priority filter; policy accept;\n");
    str_addf(out, "%sct state established,related accept\n", from);
    str_addf(out, "%sct status dnat accept\n", from);
    add_rule(out, from, routes, true, "accept");
    add_rule(out, from, routes, false, "accept");
    str_addf(out, "%sdrop\n}\n", from);
    if (!masquerades || routes->n == 0)
        return;
    str_add(out, "chain postrouting {\ntype nat hook postrouting priority srcnat;\n");
    add_rule(out, from, routes, true, "masquerade");
    add_rule(out, from, routes, false, "masquerade");
    str_add(out, "}\n");
}

int route_guard_put(
    const char *interface, const struct subnets *routes, bool masquerades, struct err *e)
{
    _cleanup_(str_deinit) struct str body = STR_NULL;

    route_guard_format(&body, interface, routes, masquerades);
    if (body.failed)
        return err_set(e, -ENOMEM, "no memory for the packet filter");
    return filter_table_replace(TABLE, interface, str_text(&body), e);
}

int route_guard_remove(const char *interface, struct err *e)
{
    return filter_table_remove(TABLE, interface, e);
}

int route_guard_is_forwarding(const char *interface, bool v4)
{
    _cleanup_(closep) int fd = -1;
    char path[96];
    char value = '\0';

    (void)snprintf(path, sizeof(path), "/proc/sys/net/ipv%c/conf/%.*s/forwarding", v4 ? '4' : '6',
        IFNAMSIZ - 1, interface);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read(fd, &value, 1) != 1)
        return -1;
    return value != '0';
}
