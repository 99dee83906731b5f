/* filter_rules.c - see filter_rules.h. */
#include "agent/reconcile/filter_rules.h"

#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "measure/order.h"
#include "mesh/config/wg_config.h"
#include "mesh/snapshot/snapshot.h"
#include "net/socket/socket.h"
#include "os/log.h"
#include "rules/access_rules.h"

/* Rules that are there are put again after this time. */
#define FORWARD_PERIOD (60 * NSEC_PER_SEC)

/* ---- the segment size ------------------------------------------------------------------------ */

#define CLAMP_TABLE "weft_mss"

/* In nft "rt mtu" is the smaller MTU of the routes to both ends, and the rule never raises the MSS
 * that was announced. */
static void clamp_add_rule(struct str *out, const char *direction, const char *interface)
{
    str_addf(out, "%s \"%s\" tcp flags & (syn|rst) == syn tcp option maxseg size set rt mtu\n",
        direction, interface);
}

static int mss_clamp_put(const char *interface, struct err *e)
{
    _cleanup_(str_deinit) struct str body = STR_NULL;

    str_add(&body, "chain forward {\ntype filter hook forward priority mangle;\n");
    clamp_add_rule(&body, "oifname", interface);
    clamp_add_rule(&body, "iifname", interface);
    str_add(&body, "}");
    return kept_table_replace(CLAMP_TABLE, interface, &body, e);
}

/* ---- what is forwarded ----------------------------------------------------------------------- */

#define GUARD_TABLE "weft_route"

/* Adds "ip daddr { 10.9.0.0/24, ... }" and @then, with one family's subnets; nothing if there are
 * none. */
static void guard_add_rule(
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
    guard_add_rule(out, from, routes, true, "accept");
    guard_add_rule(out, from, routes, false, "accept");
    str_addf(out, "%sdrop\n}\n", from);
    if (!masquerades || routes->n == 0)
        return;
    str_add(out, "chain postrouting {\ntype nat hook postrouting priority srcnat;\n");
    guard_add_rule(out, from, routes, true, "masquerade");
    guard_add_rule(out, from, routes, false, "masquerade");
    str_add(out, "}\n");
}

/* ---- when ------------------------------------------------------------------------------------ */

static bool is_due(nsec_t done_at, nsec_t now)
{
    return done_at == 0 || now - done_at >= FORWARD_PERIOD;
}

bool forward_rules_clamp_is_due(const struct forward_rules *fr, nsec_t now)
{
    return is_due(fr->clamped_at, now);
}

bool forward_rules_guard_is_due(
    const struct forward_rules *fr, const struct subnets *routes, bool is_router, nsec_t now)
{
    if (!is_router && fr->is_removed)
        return false;
    return is_due(fr->guarded_at, now) || is_router != fr->was_router ||
           !subnets_equal(routes, &fr->routes);
}

void forward_rules_on_guard(struct forward_rules *fr, const struct subnets *routes, bool is_router,
    const struct err *e, nsec_t now)
{
    fr->guarded_at = now;
    fr->was_router = is_router;
    fr->routes = *routes;
    fr->is_removed = !fr->was_router && e->code == 0;
    fr->guard_fault = fr->was_router ? *e : (struct err)ERR_NULL;
}

void forward_rules_forget(struct forward_rules *fr)
{
    fr->clamped_at = 0;
    fr->guarded_at = 0;
}

void forward_rules_apply(struct forward_rules *fr, const char *interface,
    const struct subnets *routes, bool is_router, bool masquerades, nsec_t now)
{
    _cleanup_(str_deinit) struct str body = STR_NULL;
    bool had_fault = fr->guard_fault.code != 0;
    struct err e = ERR_NULL;
    struct err why = ERR_NULL;

    if (forward_rules_clamp_is_due(fr, now)) {
        fr->clamped_at = now;
        if (mss_clamp_put(interface, &why) != 0 && !fr->cannot_clamp) {
            fr->cannot_clamp = true;
            log_info("the segment size of connections that are forwarded is not clamped: %s",
                err_text(&why));
        }
    }
    if (!forward_rules_guard_is_due(fr, routes, is_router, now))
        return;
    if (is_router)
        route_guard_format(&body, interface, routes, masquerades);
    if (kept_table_replace(GUARD_TABLE, interface, is_router ? &body : NULL, &e) < 0 && is_router &&
        !had_fault)
        log_warning(
            "what is forwarded to the subnets behind this node is not limited: %s", err_text(&e));
    forward_rules_on_guard(fr, routes, is_router, &e, now);
}

/* ---- marks by class -------------------------------------------------------------------------- */

#define MARKS_TABLE "weft_class"

/* "oifname "weft0" ip daddr { 10.42.0.1 } ip dscp cs0 ip dscp set cs6"; nothing without a hub. */
static void add_hubs(
    struct str *out, const struct snapshot *s, const char *interface, const char *family, bool v4)
{
    unsigned n_hubs = 0;

    for (size_t i = 0; i < s->nodes.n; i++) {
        const struct node *n = &s->nodes.items[i]->node;
        char text[IP_ADDR_TEXT_MAX];

        if (!n->hub)
            continue;
        if (n_hubs++ == 0)
            str_addf(out, "oifname \"%s\" %s daddr {", interface, family);
        else
            str_add(out, ",");
        str_addf(out, " %s", ip_addr_format(v4 ? &n->address4 : &n->address6, text));
    }
    if (n_hubs > 0)
        str_addf(out, " } %s dscp cs0 %s dscp set cs6\n", family, family);
}

/* TCP from a port that the kernel has chosen to another one. */
static void add_collectives(
    struct str *out, const char *interface, const char *family, const struct local_ports *ports)
{
    str_addf(out, "oifname \"%s\" %s dscp cs0 tcp sport %u-%u tcp dport %u-%u %s dscp set af21\n",
        interface, family, ports->first, ports->last, ports->first, ports->last, family);
}

void class_marks_format(const struct snapshot *s, const char *interface,
    const struct local_ports *ports, struct str *out)
{
    str_add(out, "chain out {\ntype filter hook postrouting priority mangle;\n");
    add_hubs(out, s, interface, "ip", true);
    add_hubs(out, s, interface, "ip6", false);
    /* The measuring service, whose port is among those that the kernel chooses, has rules of its
     * own: of "tcp sport != N tcp dport != N" in one rule nft 1.0.6, Debian 12's, makes one
     * comparison, which is true unless both ports are N. */
    str_addf(out, "oifname \"%s\" tcp sport %u return\n", interface, PROBE_PORT);
    str_addf(out, "oifname \"%s\" tcp dport %u return\n", interface, PROBE_PORT);
    add_collectives(out, interface, "ip", ports);
    add_collectives(out, interface, "ip6", ports);
    str_add(out, "}");
}

void class_marks_forget(struct class_marks *cm)
{
    kept_table_forget(&cm->table);
}

void class_marks_apply(struct class_marks *cm, const char *interface, const struct snapshot *s,
    const struct wg_config *config, nsec_t now)
{
    _cleanup_(str_deinit) struct str body = STR_NULL;
    bool is_wanted = wg_config_has_rates(config);
    struct local_ports ports;
    struct err e = ERR_NULL;
    int r;

    if (is_wanted) {
        ports = local_ports_read();
        class_marks_format(s, interface, &ports, &body);
    }
    r = kept_table_put(&cm->table, MARKS_TABLE, interface, is_wanted ? &body : NULL, now, &e);
    if (r < 0 && is_wanted && !cm->has_failed)
        log_info("what other programs send to the hub, and what a job's processes send each other, "
                 "has no mark that lets it go first: %s",
            err_text(&e));
    if (r <= 0)
        cm->has_failed = r < 0 && is_wanted;
}

void filter_rules_remove(const char *interface)
{
    (void)kept_table_replace(CLAMP_TABLE, interface, NULL, NULL);
    (void)kept_table_replace(GUARD_TABLE, interface, NULL, NULL);
    (void)kept_table_replace(MARKS_TABLE, interface, NULL, NULL);
    access_rules_remove(interface);
}
