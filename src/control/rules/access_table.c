/* access_table.c - see access_table.h. */
#include "rules/access_table.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "mesh/object/rule.h"
#include "mesh/snapshot/snapshot.h"
#include "rules/access_counts.h"
#include "rules/access_scope.h"
#include "rules/job_ports.h"

/* Chains among which the jumps to rules are divided, by the rules' names: a rule that changes
 * changes one of them. */
#define PARTS_N 32u

/* A table while it is made. */
struct access {
    struct str *out;
    struct access_scope scope;
    const struct snapshot *s; /* the scope's, like the next */
    const struct node *self;
    const char *interface;
};

/* The number of the chain that has the jumps to a rule; FNV-1a. */
static unsigned part_of(const char *name)
{
    uint32_t hash = 2166136261u;

    for (; *name != '\0'; name++)
        hash = (hash ^ (uint8_t)*name) * 16777619u;
    return hash % PARTS_N;
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
        str_addf(
            a->out, "%s%s", between, ip_addr_format(v4 ? &node->address4 : &node->address6, text));
        between = ", ";
    }
    return between[0] != '\0';
}

/* "set g0_4 { type ipv4_addr; elements = { 10.42.0.2, 10.42.0.3 } }" */
static void add_sets(const struct access *a)
{
    for (unsigned i = 0; i < 2 * a->scope.n_groups; i++) {
        bool v4 = i % 2 == 0;
        struct access found = *a;
        _cleanup_(str_deinit) struct str addresses = STR_NULL;

        found.out = &addresses;
        str_addf(
            a->out, "set g%u_%d {\ntype %s;\n", i / 2, v4 ? 4 : 6, v4 ? "ipv4_addr" : "ipv6_addr");
        if (add_addresses(&found, a->scope.groups[i / 2], v4))
            str_addf(a->out, "elements = { %s }\n", str_text(&addresses));
        str_add(a->out, "}\n");
    }
}

/* "chain in_ssh { tcp dport 22-22 accept }": what rule number @number lets pass. What comes in is
 * counted. */
static void add_services(const struct access *a, bool is_in, size_t number)
{
    const struct rule *r = access_scope_rule(&a->scope, number);
    const char *name = access_scope_name(&a->scope, number);
    char then[NAME_MAX_LEN + 40] = "accept";

    if (is_in) {
        (void)snprintf(then, sizeof(then), "counter name \"pass_%.*s\" accept", NAME_MAX_LEN, name);
        str_addf(a->out, "counter pass_%s { }\n", name);
    }
    str_addf(a->out, "chain %s_%s {\n", is_in ? "in" : "out", name);
    for (unsigned i = 0; i < r->n_services; i++) {
        const struct rule_service *s = &r->services[i];
        const char *protocol = s->protocol == RULE_PROTOCOL_TCP ? "tcp" : "udp";

        if (s->protocol == RULE_PROTOCOL_ANY)
            str_addf(a->out, "%s\n", then);
        else if (s->protocol == RULE_PROTOCOL_ICMP)
            str_addf(a->out, "meta l4proto { icmp, ipv6-icmp } %s\n", then);
        else
            str_addf(a->out, "%s dport %u-%u %s\n", protocol, s->first, s->last, then);
    }
    str_add(a->out, "}\n");
}

/* "ip saddr @g0_4 jump in_ssh", for one family. @before: what else has to be so. A family that
 * @peer has no address of has no line. */
static void add_jump(const struct access *a, const char *before, const struct rule_peer *peer,
    bool is_in, bool v4, size_t number)
{
    const char *which = is_in ? "saddr" : "daddr";
    const char *chain = is_in ? "in" : "out";
    const char *name = access_scope_name(&a->scope, number);
    const struct network *net = &a->s->network;
    const char *family = v4 ? "ip" : "ip6";
    const struct node *node;
    char text[IP_PREFIX_TEXT_MAX];
    char address[IP_ADDR_TEXT_MAX];

    switch (peer->kind) {
    case RULE_PEER_MEMBERS:
        /* The hubs' addresses are in the block, and they are no members. */
        str_addf(a->out, "%s%s %s %s %s %s != @hubs_%d jump %s_%s\n", before, family, which,
            ip_prefix_format(v4 ? &net->cidr4 : &net->cidr6, text), family, which, v4 ? 4 : 6,
            chain, name);
        break;
    case RULE_PEER_NODE:
        node = snapshot_find_node(a->s, peer->label.value);
        if (node)
            str_addf(a->out, "%s%s %s %s jump %s_%s\n", before, family, which,
                ip_addr_format(v4 ? &node->address4 : &node->address6, address), chain, name);
        break;
    case RULE_PEER_HUB:
        str_addf(a->out, "%s%s %s @hubs_%d jump %s_%s\n", before, family, which, v4 ? 4 : 6, chain,
            name);
        break;
    case RULE_PEER_LABEL:
    case RULE_PEER_ISLAND:
        str_addf(a->out, "%s%s %s @g%u_%d jump %s_%s\n", before, family, which,
            access_scope_group(&a->scope, peer), v4 ? 4 : 6, chain, name);
        break;
    case RULE_PEER_SUBNET:
        if (ip_addr_is_v4(&peer->subnet.addr) == v4)
            str_addf(a->out, "%s%s %s %s jump %s_%s\n", before, family, which,
                ip_prefix_format(&peer->subnet, text), chain, name);
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
    if (a->self->hub)
        str_add(a->out, "meta l4proto { icmp, ipv6-icmp } accept\n");
    str_addf(a->out, "ip %s @hubs_4 meta l4proto icmp accept\n", which);
    str_addf(a->out, "ip6 %s @hubs_6 meta l4proto ipv6-icmp accept\n", which);
}

/* What is refused is counted, by its ends and its port. A set that is full takes no more. */
static void end_chain(struct str *out, const char *then)
{
    for (unsigned i = 0; i < 2; i++) {
        const char *family = i == 0 ? "ip" : "ip6";

        str_addf(out,
            "meta l4proto { tcp, udp } update @ports_%d { %s saddr . %s daddr . meta l4proto . "
            "th dport counter }\n",
            i == 0 ? 4 : 6, family, family);
        str_addf(out,
            "meta l4proto != { tcp, udp } update @others_%d { %s saddr . %s daddr . meta l4proto "
            "counter }\n",
            i == 0 ? 4 : 6, family, family);
    }
    str_addf(out, "counter name \"refused\" %s\n}\n", then);
}

/* The end of the chain for what jobs refuse. */
static void close_jobs(struct str *out)
{
    end_chain(out, "drop");
}

/* What end_chain() counts in. An element that is not renewed is gone after a while. */
static void add_counters(const struct access *a)
{
    for (unsigned i = 0; i < 4; i++) {
        const char *type = i % 2 == 0 ? "ipv4_addr" : "ipv6_addr";

        str_addf(a->out,
            "set %s_%d {\ntype %s . %s . inet_proto%s;\nsize %d;\nflags dynamic,timeout;\n"
            "timeout 10m;\n}\n",
            i < 2 ? "ports" : "others", i % 2 == 0 ? 4 : 6, type, type,
            i < 2 ? " . inet_service" : "", ACCESS_SET_MAX);
    }
    str_add(a->out, "counter refused { }\n");
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

static void add_parts(const struct access *a, bool is_in)
{
    for (unsigned part = 0; part < PARTS_N; part++)
        str_addf(a->out, "jump %s%u\n", is_in ? "ins" : "outs", part);
}

/* "chain outs7": rules with this node as the source, of what goes out. */
static void add_out_part(const struct access *a, unsigned part)
{
    str_addf(a->out, "chain outs%u {\n", part);
    for (size_t i = 0; i < access_scope_rules(&a->scope); i++) {
        const struct rule *r = access_scope_rule(&a->scope, i);

        if (part_of(access_scope_name(&a->scope, i)) != part || !access_scope_is_out(&a->scope, r))
            continue;
        for (unsigned k = 0; k < 2 * r->n_to; k++)
            add_jump(a, "", &r->to[k / 2], false, k % 2 == 0, i);
    }
    str_add(a->out, "}\n");
}

/* What goes out. */
static void add_out(const struct access *a, const char *name, const char *hook)
{
    begin_chain(a, name, hook, true);
    add_hub_api(a);
    add_parts(a, false);
    end_chain(a->out, "reject with icmpx admin-prohibited");
}

/* The lines of rule number @i for what comes to @to, a block or an address. */
static void add_in_to(const struct access *a, size_t i, const char *to, bool v4)
{
    const struct rule *r = access_scope_rule(&a->scope, i);
    char before[IP_PREFIX_TEXT_MAX + 16];

    (void)snprintf(before, sizeof(before), "%s daddr %s ", v4 ? "ip" : "ip6", to);
    for (unsigned k = 0; k < r->n_from; k++)
        add_jump(a, before, &r->from[k], true, v4, i);
}

/* "chain ins7": rules with this node as the destination, or a subnet behind it, of what comes in.
 */
static void add_in_part(const struct access *a, unsigned part)
{
    const struct rule_end self = {.node = a->self};
    char text[IP_PREFIX_TEXT_MAX];

    str_addf(a->out, "chain ins%u {\n", part);
    for (size_t i = 0; i < access_scope_rules(&a->scope); i++) {
        const struct rule *r = access_scope_rule(&a->scope, i);

        if (part_of(access_scope_name(&a->scope, i)) != part)
            continue;
        if (rule_is_about(r->to, r->n_to, &self)) {
            add_in_to(a, i, ip_addr_format(&a->self->address4, text), true);
            add_in_to(a, i, ip_addr_format(&a->self->address6, text), false);
        }
        for (unsigned k = 0; k < r->n_to; k++)
            if (access_scope_is_subnet(&a->scope, &r->to[k]))
                add_in_to(a, i, ip_prefix_format(&r->to[k].subnet, text),
                    ip_addr_is_v4(&r->to[k].subnet.addr));
    }
    str_add(a->out, "}\n");
}

/* What comes in. It is looked at before a published port of a container is replaced by the
 * container's. */
static void add_in(const struct access *a)
{
    char text[IP_ADDR_TEXT_MAX];

    begin_chain(a, "in", "prerouting priority dstnat - 10", false);
    if (a->self->hub)
        add_hub_api(a);
    if (a->scope.has_jobs) {
        str_addf(a->out, "ip daddr %s jump jobs\n", ip_addr_format(&a->self->address4, text));
        str_addf(a->out, "ip6 daddr %s jump jobs\n", ip_addr_format(&a->self->address6, text));
    }
    add_parts(a, true);
    if (a->scope.is_open)
        str_add(a->out, "}\n");
    /* A kernel before 5.9 cannot refuse here; who sends is refused where it sends. */
    else
        end_chain(a->out, "drop");
}

void access_table_format(struct str *out, const char *interface, const struct snapshot *s,
    const struct job_ports *jobs, nsec_t now)
{
    static const struct rule_peer hubs = {.kind = RULE_PEER_HUB};
    struct access a = {.out = out, .s = s, .self = snapshot_self(s), .interface = interface};

    if (access_scope_init(&a.scope, s) < 0) {
        out->failed = true;
        return;
    }
    for (unsigned i = 0; i < 2; i++) {
        _cleanup_(str_deinit) struct str addresses = STR_NULL;
        struct access found = a;

        found.out = &addresses;
        str_addf(
            out, "set hubs_%d {\ntype %s;\n", i == 0 ? 4 : 6, i == 0 ? "ipv4_addr" : "ipv6_addr");
        if (add_addresses(&found, &hubs, i == 0))
            str_addf(out, "elements = { %s }\n", str_text(&addresses));
        str_add(out, "}\n");
    }
    add_sets(&a);
    add_counters(&a);
    for (size_t i = 0; i < access_scope_rules(&a.scope); i++) {
        if (access_scope_is_in(&a.scope, access_scope_rule(&a.scope, i)))
            add_services(&a, true, i);
        if (access_scope_is_out(&a.scope, access_scope_rule(&a.scope, i)))
            add_services(&a, false, i);
    }
    for (unsigned part = 0; part < PARTS_N; part++) {
        add_in_part(&a, part);
        add_out_part(&a, part);
    }
    if (a.scope.has_jobs)
        job_ports_format(out, jobs, s, now, close_jobs);
    add_in(&a);
    if (!a.scope.is_open) {
        add_out(&a, "out", "output priority filter");
        /* What containers send leaves as this node's. */
        add_out(&a, "forward", "forward priority filter");
    }
    access_scope_deinit(&a.scope);
}
