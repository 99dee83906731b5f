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
#include "mesh/object/rule.h"
#include "mesh/snapshot/snapshot.h"
#include "net/netlink/nft.h"
#include "net/socket/socket.h"
#include "os/log.h"

/* Rules that are there are put again after this time. */
#define FORWARD_PERIOD (60 * NSEC_PER_SEC)

/* ---- a table --------------------------------------------------------------------------------- */

/*
 * A table of the packet filter that is about one interface.
 *
 * What it is for has one for each interface, WHAT_INTERFACE of the family inet. It is replaced and
 * removed whole.
 */

#define FAMILY    "inet"
#define TABLE_MAX 64

/* @what: "weft_" and a short word; @body: its chains, as for nft_replace_table(); NULL: removes it.
 * An interface with characters that have a meaning in nft's syntax is refused. */
static int filter_table_replace(
    const char *what, const char *interface, const struct str *body, struct err *e)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
    char table[TABLE_MAX];

    if (interface[strspn(interface, allowed)] != '\0')
        return err_set(e, -EINVAL,
            "the packet filter takes no interface \"%s\", only letters, digits, '_', '.', '-'",
            interface);
    if (body && body->failed)
        return err_set(e, -ENOMEM, "no memory for the packet filter");
    (void)snprintf(table, sizeof(table), "%s_%.*s", what, IFNAMSIZ - 1, interface);
    return nft_replace_table(FAMILY, table, body ? str_text(body) : NULL, e);
}

static void table_forget(struct kept_table *t)
{
    free(t->body);
    *t = (struct kept_table){.body = NULL};
}

/* Has it in the kernel what it should have, @body; NULL: no table. Return: 1: nothing was due; 0:
 * it was put, or removed; or negative errno with words. */
static int table_keep(struct kept_table *t, const char *what, const char *interface,
    const struct str *body, nsec_t now, struct err *e)
{
    int r = 1;

    if (!body) {
        if (!t->is_removed) {
            r = filter_table_replace(what, interface, NULL, e);
            table_forget(t);
            t->is_removed = r == 0;
        }
        return r;
    }
    if (!body->failed && t->body && strcmp(t->body, str_text(body)) == 0 &&
        now - t->put_at < KEPT_TABLE_PERIOD)
        return 1;
    table_forget(t);
    t->body = body->failed ? NULL : strdup(str_text(body));
    t->put_at = now;
    return filter_table_replace(what, interface, body, e);
}

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
    return filter_table_replace(CLAMP_TABLE, interface, &body, e);
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
    if (filter_table_replace(GUARD_TABLE, interface, is_router ? &body : NULL, &e) < 0 &&
        is_router && !had_fault)
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
    table_forget(&cm->table);
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
    r = table_keep(&cm->table, MARKS_TABLE, interface, is_wanted ? &body : NULL, now, &e);
    if (r < 0 && is_wanted && !cm->has_failed)
        log_info("what other programs send to the hub, and what a job's processes send each other, "
                 "has no mark that lets it go first: %s",
            err_text(&e));
    if (r <= 0)
        cm->has_failed = r < 0 && is_wanted;
}

/* ---- who may reach whom ---------------------------------------------------------------------- */

#define ACCESS_TABLE "weft_access"

/* Most selectors of several nodes that the rules of one node have. */
#define GROUPS_MAX 4096

/* A table while it is made. */
struct access {
    struct str *out;
    const struct snapshot *s;
    const struct node *self;
    const char *interface;
    const struct rule_peer **groups; /* labels and islands that have sets, by their numbers */
    unsigned n_groups;
};

static bool is_group(const struct rule_peer *p)
{
    return p->kind == RULE_PEER_LABEL || p->kind == RULE_PEER_ISLAND;
}

static bool is_same_group(const struct rule_peer *a, const struct rule_peer *b)
{
    return a->kind == b->kind && strcmp(a->label.key, b->label.key) == 0 &&
           strcmp(a->label.value, b->label.value) == 0;
}

/* The number of its set. */
static unsigned group_of(const struct access *a, const struct rule_peer *p)
{
    unsigned i = 0;

    while (i < a->n_groups && !is_same_group(a->groups[i], p))
        i++;
    return i;
}

static void note_groups(struct access *a, const struct rule_peer *peers, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        if (is_group(&peers[i]) && group_of(a, &peers[i]) == a->n_groups &&
            a->n_groups < GROUPS_MAX)
            a->groups[a->n_groups++] = &peers[i];
}

/* The addresses, of one family, of the members that @peer is about; false: there are none. */
static bool add_addresses(const struct access *a, const struct rule_peer *peer, bool v4)
{
    const char *between = "";

    for (size_t i = 0; i < a->s->nodes.n; i++) {
        const struct node *node = &a->s->nodes.items[i]->node;
        char text[IP_ADDR_TEXT_MAX];

        if (!rule_is_about(peer, 1, &(struct rule_end){.node = node}))
            continue;
        str_addf(a->out, "%s%s", between, ip_addr_format(v4 ? &node->address4 : &node->address6, text));
        between = ", ";
    }
    return between[0] != '\0';
}

/* "set g0_4 { type ipv4_addr; elements = { 10.42.0.2, 10.42.0.3 } }" */
static void add_sets(const struct access *a)
{
    for (unsigned i = 0; i < 2 * a->n_groups; i++) {
        bool v4 = i % 2 == 0;
        struct access found = *a;
        _cleanup_(str_deinit) struct str addresses = STR_NULL;

        found.out = &addresses;
        str_addf(a->out, "set g%u_%d {\ntype %s;\n", i / 2, v4 ? 4 : 6, v4 ? "ipv4_addr" : "ipv6_addr");
        if (add_addresses(&found, a->groups[i / 2], v4))
            str_addf(a->out, "elements = { %s }\n", str_text(&addresses));
        str_add(a->out, "}\n");
    }
}

/* "chain r3 { tcp dport 22 accept }": what rule number @number lets pass. */
static void add_services(const struct access *a, const struct rule *r, size_t number)
{
    str_addf(a->out, "chain r%zu {\n", number);
    for (unsigned i = 0; i < r->n_services; i++) {
        const struct rule_service *s = &r->services[i];
        const char *protocol = s->protocol == RULE_PROTOCOL_TCP ? "tcp" : "udp";

        if (s->protocol == RULE_PROTOCOL_ANY)
            str_add(a->out, "counter accept\n");
        else if (s->protocol == RULE_PROTOCOL_ICMP)
            str_add(a->out, "meta l4proto { icmp, ipv6-icmp } counter accept\n");
        else
            str_addf(a->out, "%s dport %u-%u counter accept\n", protocol, s->first, s->last);
    }
    str_add(a->out, "}\n");
}

/* "ip saddr @g0_4 jump r3", for one family. @before: what else has to be so; @which: saddr or
 * daddr. A family that @peer has no address of has no line. */
static void add_jump(const struct access *a, const char *before, const struct rule_peer *peer,
    const char *which, bool v4, size_t number)
{
    const struct network *net = &a->s->network;
    const char *family = v4 ? "ip" : "ip6";
    const struct node *node;
    char text[IP_PREFIX_TEXT_MAX];
    char address[IP_ADDR_TEXT_MAX];

    switch (peer->kind) {
    case RULE_PEER_MEMBERS:
        str_addf(a->out, "%s%s %s %s jump r%zu\n", before, family, which,
            ip_prefix_format(v4 ? &net->cidr4 : &net->cidr6, text), number);
        break;
    case RULE_PEER_NODE:
        node = snapshot_find_node(a->s, peer->label.value);
        if (node)
            str_addf(a->out, "%s%s %s %s jump r%zu\n", before, family, which,
                ip_addr_format(v4 ? &node->address4 : &node->address6, address), number);
        break;
    case RULE_PEER_HUB:
        str_addf(a->out, "%s%s %s @hubs_%d jump r%zu\n", before, family, which, v4 ? 4 : 6, number);
        break;
    case RULE_PEER_LABEL:
    case RULE_PEER_ISLAND:
        str_addf(a->out, "%s%s %s @g%u_%d jump r%zu\n", before, family, which, group_of(a, peer),
            v4 ? 4 : 6, number);
        break;
    case RULE_PEER_SUBNET:
        if (ip_addr_is_v4(&peer->subnet.addr) == v4)
            str_addf(a->out, "%s%s %s %s jump r%zu\n", before, family, which,
                ip_prefix_format(&peer->subnet, text), number);
        break;
    }
}

/* What begins each chain: answers pass, and pings between a node and its hubs. */
static void begin_chain(const struct access *a, const char *name, const char *hook, bool is_out)
{
    const char *which = is_out ? "daddr" : "saddr";

    str_addf(a->out, "chain %s {\ntype filter hook %s; policy accept;\n", name, hook);
    str_addf(a->out, "%s != \"%s\" accept\n", is_out ? "oifname" : "iifname", a->interface);
    str_add(a->out, "ct state established,related accept\n");
    str_addf(a->out, "ip %s @hubs_4 meta l4proto icmp accept\n", which);
    str_addf(a->out, "ip6 %s @hubs_6 meta l4proto ipv6-icmp accept\n", which);
}

static const struct rule *rule_at(const struct access *a, size_t i)
{
    return rule_of(snapshot_list(a->s, &rule_kind)->items[i]);
}

/* The hubs' API, which nobody can shut. */
static void add_hub_api(const struct access *a)
{
    for (size_t i = 0; i < a->s->nodes.n; i++) {
        const struct node *node = &a->s->nodes.items[i]->node;
        char v4[IP_ADDR_TEXT_MAX];
        char v6[IP_ADDR_TEXT_MAX];

        if (node->hub)
            str_addf(a->out, "ip daddr %s tcp dport %u accept\nip6 daddr %s tcp dport %u accept\n",
                ip_addr_format(&node->address4, v4), node->hub->api_port,
                ip_addr_format(&node->address6, v6), node->hub->api_port);
    }
}

/* Rules with this node as the source, of what goes out. */
static void add_out(const struct access *a, const char *name, const char *hook)
{
    const struct rule_end self = {.node = a->self};

    begin_chain(a, name, hook, true);
    add_hub_api(a);
    for (size_t i = 0; i < snapshot_list(a->s, &rule_kind)->n; i++) {
        const struct rule *r = rule_at(a, i);

        for (unsigned k = 0; k < 2 * r->n_to && rule_is_about(r->from, r->n_from, &self); k++)
            add_jump(a, "", &r->to[k / 2], "daddr", k % 2 == 0, i);
    }
    str_add(a->out, "counter reject with icmpx admin-prohibited\n}\n");
}

/* The lines of rule number @i for what comes to @to, a block or an address. */
static void add_in_to(const struct access *a, size_t i, const char *to, bool v4)
{
    const struct rule *r = rule_at(a, i);
    char before[IP_PREFIX_TEXT_MAX + 16];

    (void)snprintf(before, sizeof(before), "%s daddr %s ", v4 ? "ip" : "ip6", to);
    for (unsigned k = 0; k < r->n_from; k++)
        add_jump(a, before, &r->from[k], "saddr", v4, i);
}

/* Rules with this node as the destination, or a subnet behind it, of what comes in. It is looked at
 * before a published port of a container is replaced by the container's. */
static void add_in(const struct access *a)
{
    const struct rule_end self = {.node = a->self};
    char text[IP_PREFIX_TEXT_MAX];

    begin_chain(a, "in", "prerouting priority dstnat - 10", false);
    for (size_t i = 0; i < snapshot_list(a->s, &rule_kind)->n; i++) {
        const struct rule *r = rule_at(a, i);

        if (rule_is_about(r->to, r->n_to, &self)) {
            add_in_to(a, i, ip_addr_format(&a->self->address4, text), true);
            add_in_to(a, i, ip_addr_format(&a->self->address6, text), false);
        }
        for (unsigned k = 0; k < r->n_to && a->self->routes; k++)
            if (r->to[k].kind == RULE_PEER_SUBNET &&
                subnets_find(a->self->routes, &r->to[k].subnet))
                add_in_to(a, i, ip_prefix_format(&r->to[k].subnet, text),
                    ip_addr_is_v4(&r->to[k].subnet.addr));
    }
    /* A kernel before 5.9 cannot refuse here; who sends is refused where it sends. */
    str_add(a->out, "counter drop\n}\n");
}

void access_rules_format(struct str *out, const char *interface, const struct snapshot *s)
{
    static const struct rule_peer hubs = {.kind = RULE_PEER_HUB};
    const struct snapshot_list *rules = snapshot_list(s, &rule_kind);
    _cleanup_(freep) const struct rule_peer **groups = calloc(GROUPS_MAX, sizeof(*groups));
    struct access a = {.out = out,
        .s = s,
        .self = snapshot_self(s),
        .interface = interface,
        .groups = groups};

    if (!groups) {
        out->failed = true;
        return;
    }
    for (size_t i = 0; i < rules->n; i++) {
        note_groups(&a, rule_at(&a, i)->from, rule_at(&a, i)->n_from);
        note_groups(&a, rule_at(&a, i)->to, rule_at(&a, i)->n_to);
    }
    for (unsigned i = 0; i < 2; i++) {
        _cleanup_(str_deinit) struct str addresses = STR_NULL;
        struct access found = a;

        found.out = &addresses;
        str_addf(out, "set hubs_%d {\ntype %s;\n", i == 0 ? 4 : 6, i == 0 ? "ipv4_addr" : "ipv6_addr");
        if (add_addresses(&found, &hubs, i == 0))
            str_addf(out, "elements = { %s }\n", str_text(&addresses));
        str_add(out, "}\n");
    }
    add_sets(&a);
    for (size_t i = 0; i < rules->n; i++)
        add_services(&a, rule_at(&a, i), i);
    add_in(&a);
    add_out(&a, "out", "output priority filter");
    /* What containers send leaves as this node's. */
    add_out(&a, "forward", "forward priority filter");
}

bool access_rules_are_wanted(const struct snapshot *s)
{
    return s->network.isolation == ISOLATION_STRICT || snapshot_list(s, &rule_kind)->n > 0;
}

void access_rules_forget(struct access_rules *ar)
{
    table_forget(&ar->table);
}

void access_rules_apply(
    struct access_rules *ar, const char *interface, const struct snapshot *s, nsec_t now)
{
    _cleanup_(str_deinit) struct str body = STR_NULL;
    bool is_wanted = access_rules_are_wanted(s);
    struct err e = ERR_NULL;
    int r;

    if (is_wanted)
        access_rules_format(&body, interface, s);
    r = table_keep(&ar->table, ACCESS_TABLE, interface, is_wanted ? &body : NULL, now, &e);
    if (r < 0 && is_wanted && ar->fault.code == 0)
        log_warning("the network's rules are not enforced on this machine: %s", err_text(&e));
    if (r <= 0)
        ar->fault = r < 0 && is_wanted ? e : (struct err)ERR_NULL;
}

void filter_rules_remove(const char *interface)
{
    (void)filter_table_replace(CLAMP_TABLE, interface, NULL, NULL);
    (void)filter_table_replace(GUARD_TABLE, interface, NULL, NULL);
    (void)filter_table_replace(MARKS_TABLE, interface, NULL, NULL);
    (void)filter_table_replace(ACCESS_TABLE, interface, NULL, NULL);
}
