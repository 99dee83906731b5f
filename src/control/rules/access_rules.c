/* access_rules.c - see access_rules.h. */
#include "rules/access_rules.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "mesh/object/rule.h"
#include "mesh/object/subnets.h"
#include "mesh/snapshot/snapshot.h"
#include "net/netlink/nft.h"
#include "os/log.h"

#define ACCESS_TABLE "weft_access"

/* Most selectors of several nodes that the rules of one node have. */
#define GROUPS_MAX 4096

/* Chains among which the jumps to rules are divided, by the rules' names: a rule that changes
 * changes one of them. */
#define PARTS_N 32u

/* A table while it is made. */
struct access {
    struct str *out;
    const struct snapshot *s;
    const struct node *self;
    const char *interface;
    bool is_open;                    /* what no rule allows passes */
    bool has_jobs;                   /* jobs that are isolated are here */
    const struct rule_peer **groups; /* labels and islands that have sets, by their numbers */
    unsigned n_groups;
};

static const struct rule *rule_at(const struct access *a, size_t i)
{
    return rule_of(snapshot_list(a->s, &rule_kind)->items[i]);
}

static const char *name_at(const struct access *a, size_t i)
{
    return snapshot_list(a->s, &rule_kind)->items[i]->meta.name;
}

/* The number of the chain that has the jumps to a rule; FNV-1a. */
static unsigned part_of(const char *name)
{
    uint32_t hash = 2166136261u;

    for (; *name != '\0'; name++)
        hash = (hash ^ (uint8_t)*name) * 16777619u;
    return hash % PARTS_N;
}

/* The subnets behind this node that the rule is about. */
static bool is_to_subnet(const struct access *a, const struct rule_peer *to)
{
    return to->kind == RULE_PEER_SUBNET && a->self->routes &&
           subnets_find(a->self->routes, &to->subnet);
}

/* May something come to this node by the rule? */
static bool is_for_in(const struct access *a, const struct rule *r)
{
    bool has = rule_is_about(r->to, r->n_to, &(struct rule_end){.node = a->self});

    for (unsigned k = 0; k < r->n_to && !has; k++)
        has = is_to_subnet(a, &r->to[k]);
    return has;
}

/* May this node begin something by it? */
static bool is_for_out(const struct access *a, const struct rule *r)
{
    return rule_is_about(r->from, r->n_from, &(struct rule_end){.node = a->self});
}

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
        str_addf(
            a->out, "%s%s", between, ip_addr_format(v4 ? &node->address4 : &node->address6, text));
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
        str_addf(
            a->out, "set g%u_%d {\ntype %s;\n", i / 2, v4 ? 4 : 6, v4 ? "ipv4_addr" : "ipv6_addr");
        if (add_addresses(&found, a->groups[i / 2], v4))
            str_addf(a->out, "elements = { %s }\n", str_text(&addresses));
        str_add(a->out, "}\n");
    }
}

/* "chain in_ssh { tcp dport 22-22 accept }": what rule number @number lets pass. What comes in is
 * counted. */
static void add_services(const struct access *a, bool is_in, size_t number)
{
    const struct rule *r = rule_at(a, number);
    const char *name = name_at(a, number);
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
    const char *name = name_at(a, number);
    const struct network *net = &a->s->network;
    const char *family = v4 ? "ip" : "ip6";
    const struct node *node;
    char text[IP_PREFIX_TEXT_MAX];
    char address[IP_ADDR_TEXT_MAX];

    switch (peer->kind) {
    case RULE_PEER_MEMBERS:
        str_addf(a->out, "%s%s %s %s jump %s_%s\n", before, family, which,
            ip_prefix_format(v4 ? &net->cidr4 : &net->cidr6, text), chain, name);
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
        str_addf(a->out, "%s%s %s @g%u_%d jump %s_%s\n", before, family, which, group_of(a, peer),
            v4 ? 4 : 6, chain, name);
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
    for (size_t i = 0; i < snapshot_list(a->s, &rule_kind)->n; i++) {
        const struct rule *r = rule_at(a, i);

        if (part_of(name_at(a, i)) != part || !is_for_out(a, r))
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
    const struct rule *r = rule_at(a, i);
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
    for (size_t i = 0; i < snapshot_list(a->s, &rule_kind)->n; i++) {
        const struct rule *r = rule_at(a, i);

        if (part_of(name_at(a, i)) != part)
            continue;
        if (rule_is_about(r->to, r->n_to, &self)) {
            add_in_to(a, i, ip_addr_format(&a->self->address4, text), true);
            add_in_to(a, i, ip_addr_format(&a->self->address6, text), false);
        }
        for (unsigned k = 0; k < r->n_to; k++)
            if (is_to_subnet(a, &r->to[k]))
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
    if (a->has_jobs) {
        str_addf(a->out, "ip daddr %s jump jobs\n", ip_addr_format(&a->self->address4, text));
        str_addf(a->out, "ip6 daddr %s jump jobs\n", ip_addr_format(&a->self->address6, text));
    }
    add_parts(a, true);
    if (a->is_open)
        str_add(a->out, "}\n");
    /* A kernel before 5.9 cannot refuse here; who sends is refused where it sends. */
    else
        end_chain(a->out, "drop");
}

/* Is what no rule allows let in? */
static bool is_open(const struct snapshot *s)
{
    const struct snapshot_list *rules = snapshot_list(s, &rule_kind);

    return rules_are_open((const struct object *const *)rules->items, rules->n,
        s->network.isolation == ISOLATION_STRICT);
}

void access_rules_format(struct str *out, const char *interface, const struct snapshot *s,
    const struct job_ports *jobs, nsec_t now)
{
    static const struct rule_peer hubs = {.kind = RULE_PEER_HUB};
    const struct snapshot_list *rules = snapshot_list(s, &rule_kind);
    _cleanup_(freep) const struct rule_peer **groups = calloc(GROUPS_MAX, sizeof(*groups));
    struct access a = {
        .out = out, .s = s, .self = snapshot_self(s), .interface = interface, .groups = groups};

    a.is_open = is_open(s);
    a.has_jobs = job_ports_is_any(s);

    if (!groups) {
        out->failed = true;
        return;
    }
    for (size_t i = 0; i < rules->n; i++) {
        const struct rule *r = rule_at(&a, i);

        if (is_for_in(&a, r))
            note_groups(&a, r->from, r->n_from);
        if (is_for_out(&a, r))
            note_groups(&a, r->to, r->n_to);
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
    for (size_t i = 0; i < rules->n; i++) {
        if (is_for_in(&a, rule_at(&a, i)))
            add_services(&a, true, i);
        if (is_for_out(&a, rule_at(&a, i)))
            add_services(&a, false, i);
    }
    for (unsigned part = 0; part < PARTS_N; part++) {
        add_in_part(&a, part);
        add_out_part(&a, part);
    }
    if (a.has_jobs)
        job_ports_format(out, jobs, s, now, close_jobs);
    add_in(&a);
    if (a.is_open)
        return;
    add_out(&a, "out", "output priority filter");
    /* What containers send leaves as this node's. */
    add_out(&a, "forward", "forward priority filter");
}

bool access_rules_are_wanted(const struct snapshot *s)
{
    return !is_open(s) || job_ports_is_any(s);
}

void access_rules_forget(struct access_rules *ar)
{
    kept_table_forget(&ar->table);
}

void access_rules_deinit(struct access_rules *ar)
{
    access_rules_forget(ar);
    access_counts_deinit(&ar->counts);
    job_ports_deinit(&ar->jobs);
}

/* "pass_ssh": what a rule has let in; "refused". */
static void take_counter(void *ctx, const char *name, uint64_t packets)
{
    static const char head[] = "pass_";
    struct access_counts *c = ctx;

    if (strcmp(name, "refused") == 0)
        access_counts_take_refused(c, packets);
    else if (strncmp(name, head, sizeof(head) - 1) == 0)
        access_counts_take_passed(c, name + sizeof(head) - 1, packets);
}

/* Those of rules alone. */
static void take_rule(void *ctx, const char *name, uint64_t packets)
{
    if (strcmp(name, "refused") != 0)
        take_counter(ctx, name, packets);
}

/* What somebody else has flushed has counted nothing. */
static void read_counters(
    struct access_rules *ar, const char *interface, const struct snapshot *s, nsec_t now)
{
    static const char *const sets[] = {
        "set ports_4", "set ports_6", "set others_4", "set others_6"};
    json_auto_t *list = NULL;
    char table[KEPT_TABLE_MAX];

    ar->read_at = now;
    kept_table_name(ACCESS_TABLE, interface, table);
    if (!ar->table.body || ar->fault.code != 0)
        return;
    access_counts_begin(&ar->counts);
    if (nft_each_counter(KEPT_TABLE_FAMILY, table, take_counter, &ar->counts, NULL) == 0 &&
        nft_list(KEPT_TABLE_FAMILY, table, sets, sizeof(sets) / sizeof(*sets), &list, NULL) == 0)
        access_counts_take_sets(&ar->counts, list, s, now);
    access_counts_end(&ar->counts);
}

/* What rules have let in that are about to be removed; all else in the table stays. */
static void read_rules(struct access_rules *ar, const char *interface)
{
    char table[KEPT_TABLE_MAX];

    kept_table_name(ACCESS_TABLE, interface, table);
    access_counts_begin(&ar->counts);
    (void)nft_each_counter(KEPT_TABLE_FAMILY, table, take_rule, &ar->counts, NULL);
    access_counts_end(&ar->counts);
}

void access_rules_count(
    struct access_rules *ar, const char *interface, const struct snapshot *s, nsec_t now)
{
    if (now - ar->read_at >= ACCESS_READ_EACH)
        read_counters(ar, interface, s, now);
}

void access_rules_apply(
    struct access_rules *ar, const char *interface, const struct snapshot *s, nsec_t now)
{
    _cleanup_(str_deinit) struct str body = STR_NULL;
    enum kept_table_loss loss = KEPT_TABLE_LOSES_NONE;
    bool is_wanted = access_rules_are_wanted(s);
    struct err e = ERR_NULL;
    int r;

    job_ports_tick(&ar->jobs, s, now);
    if (is_wanted)
        access_rules_format(&body, interface, s, &ar->jobs, now);
    if (is_wanted)
        loss = kept_table_loses(&ar->table, ACCESS_TABLE, interface, &body, now);
    if (loss == KEPT_TABLE_LOSES_ALL)
        read_counters(ar, interface, s, now);
    else if (loss == KEPT_TABLE_LOSES_SOME)
        read_rules(ar, interface);
    r = kept_table_put(&ar->table, ACCESS_TABLE, interface, is_wanted ? &body : NULL, now, &e);
    if (r < 0 && is_wanted && ar->fault.code == 0)
        log_warning("the network's rules are not enforced on this machine: %s", err_text(&e));
    if (r <= 0) {
        ar->fault = r < 0 && is_wanted ? e : (struct err)ERR_NULL;
        access_counts_restart(&ar->counts);
    }
}

void access_rules_remove(const char *interface)
{
    (void)kept_table_replace(ACCESS_TABLE, interface, NULL, NULL);
}
