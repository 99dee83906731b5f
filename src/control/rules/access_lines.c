/* access_lines.c - see access_lines.h. */
#include "rules/access_lines.h"

#include <stdio.h>

#include "base/text.h"
#include "mesh/object/rule.h"
#include "mesh/object/subnets.h"
#include "mesh/snapshot/snapshot.h"
#include "rules/access_scope.h"
#include "rules/job_ports.h"

/* Items of one line, which has at most 1,024 bytes. */
#define ADDRESSES_A_LINE 16
#define SERVICES_A_LINE  32

/* Number of the set of the hubs; labels and islands follow. */
#define SET_OF_HUBS  0u
#define SET_OF_GROUP 1u

#define ANY_V4 "0.0.0.0/0"
#define ANY_V6 "::/0"

/* Lines while they are made. */
struct lines {
    struct str *out;
    struct access_scope scope;
};

/* A set of the members that one of @peers is about. */
static void add_set(
    struct str *out, const struct snapshot *s, const struct rule_peer *peers, unsigned n)
{
    unsigned n_nodes = 0;

    str_add(out, "set");
    for (size_t i = 0; i < s->nodes.n; i++) {
        const struct node *node = &s->nodes.items[i]->node;
        char v4[IP_ADDR_TEXT_MAX];
        char v6[IP_ADDR_TEXT_MAX];

        if (!rule_is_about(peers, n, &(struct rule_end){.node = node}))
            continue;
        if (n_nodes > 0 && n_nodes % (ADDRESSES_A_LINE / 2) == 0)
            str_add(out, "\nmore");
        str_addf(out, "%s%s,%s", n_nodes++ % (ADDRESSES_A_LINE / 2) == 0 ? " " : ",",
            ip_addr_format(&node->address4, v4), ip_addr_format(&node->address6, v6));
    }
    str_add(out, "\n");
}

static void add_sets(const struct lines *l)
{
    static const struct rule_peer hubs = {.kind = RULE_PEER_HUB};

    add_set(l->out, l->scope.s, &hubs, 1);
    for (unsigned i = 0; i < l->scope.n_groups; i++)
        add_set(l->out, l->scope.s, l->scope.groups[i], 1);
}

/* ---- what is never refused ------------------------------------------------------------------ */

/* Pings between a node and its hubs, and all of a hub; the hubs' API. */
static void add_free(const struct lines *l)
{
    const struct snapshot *s = l->scope.s;
    bool is_hub = l->scope.self->hub != NULL;

    str_add(l->out, "rule\nallow icmp\n");
    for (unsigned i = 0; i < 2; i++) {
        const char *any = i == 0 ? ANY_V4 : ANY_V6;

        if (is_hub)
            str_addf(l->out, "in %s %s\nout %s\n", any, any, any);
        else
            str_addf(l->out, "in set:%u %s\n", SET_OF_HUBS, any);
    }
    if (!is_hub)
        str_addf(l->out, "out set:%u\n", SET_OF_HUBS);
    for (size_t i = 0; i < s->nodes.n; i++) {
        const struct node *node = &s->nodes.items[i]->node;
        char v4[IP_ADDR_TEXT_MAX];
        char v6[IP_ADDR_TEXT_MAX];

        if (!node->hub)
            continue;
        (void)ip_addr_format(&node->address4, v4);
        (void)ip_addr_format(&node->address6, v6);
        str_addf(l->out, "rule\nallow tcp/%u-%u\nout %s/32\nout %s/128\n", node->hub->api_port,
            node->hub->api_port, v4, v6);
        if (is_hub)
            str_addf(l->out, "in " ANY_V4 " %s/32\nin " ANY_V6 " %s/128\n", v4, v6);
    }
}

/* ---- rules ---------------------------------------------------------------------------------- */

static void add_services(const struct lines *l, const struct rule *r)
{
    for (unsigned i = 0; i < r->n_services; i++) {
        const struct rule_service *s = &r->services[i];

        str_add(l->out, i % SERVICES_A_LINE > 0 ? "," : i > 0 ? "\nallow " : "allow ");
        if (s->protocol == RULE_PROTOCOL_ANY)
            str_add(l->out, "any");
        else if (s->protocol == RULE_PROTOCOL_ICMP)
            str_add(l->out, "icmp");
        else
            str_addf(l->out, "%s/%u-%u", s->protocol == RULE_PROTOCOL_TCP ? "tcp" : "udp", s->first,
                s->last);
    }
    str_add(l->out, "\n");
}

/* "in set:3 10.42.0.2/32", for one family. @what: "in" or "out"; @to: what comes behind the peer. A
 * family that @peer has no address of has no line. */
static void add_peer(
    const struct lines *l, const char *what, const struct rule_peer *peer, const char *to, bool v4)
{
    const struct network *net = &l->scope.s->network;
    char text[IP_PREFIX_TEXT_MAX];
    char address[IP_ADDR_TEXT_MAX];
    const struct node *node;

    switch (peer->kind) {
    case RULE_PEER_MEMBERS:
        str_addf(l->out, "%s others:%s%s\n", what,
            ip_prefix_format(v4 ? &net->cidr4 : &net->cidr6, text), to);
        break;
    case RULE_PEER_NODE:
        node = snapshot_find_node(l->scope.s, peer->label.value);
        if (node)
            str_addf(l->out, "%s %s/%d%s\n", what,
                ip_addr_format(v4 ? &node->address4 : &node->address6, address), v4 ? 32 : 128, to);
        break;
    case RULE_PEER_HUB:
        str_addf(l->out, "%s set:%u%s\n", what, SET_OF_HUBS, to);
        break;
    case RULE_PEER_LABEL:
    case RULE_PEER_ISLAND:
        str_addf(
            l->out, "%s set:%u%s\n", what, SET_OF_GROUP + access_scope_group(&l->scope, peer), to);
        break;
    case RULE_PEER_SUBNET:
        if (ip_addr_is_v4(&peer->subnet.addr) == v4)
            str_addf(l->out, "%s %s%s\n", what, ip_prefix_format(&peer->subnet, text), to);
        break;
    }
}

/* What the rule lets come to @to, a block. */
static void add_in_to(
    const struct lines *l, const struct rule *r, const struct ip_prefix *to, bool v4)
{
    char block[IP_PREFIX_TEXT_MAX];
    char text[IP_PREFIX_TEXT_MAX + 1];

    (void)snprintf(text, sizeof(text), " %s", ip_prefix_format(to, block));
    for (unsigned k = 0; k < r->n_from; k++)
        add_peer(l, "in", &r->from[k], text, v4);
}

static void add_in(const struct lines *l, const struct rule *r)
{
    const struct node *self = l->scope.self;

    if (rule_is_about(r->to, r->n_to, &(struct rule_end){.node = self})) {
        add_in_to(l, r, &(struct ip_prefix){self->address4, 32}, true);
        add_in_to(l, r, &(struct ip_prefix){self->address6, 128}, false);
    }
    for (unsigned k = 0; k < r->n_to; k++)
        if (access_scope_is_subnet(&l->scope, &r->to[k]))
            add_in_to(l, r, &r->to[k].subnet, ip_addr_is_v4(&r->to[k].subnet.addr));
}

static bool is_of_both(const struct rule_peer *peer)
{
    return peer->kind == RULE_PEER_HUB || peer->kind == RULE_PEER_LABEL ||
           peer->kind == RULE_PEER_ISLAND;
}

static void add_rule(const struct lines *l, size_t i)
{
    const struct rule *r = access_scope_rule(&l->scope, i);
    bool is_in = access_scope_is_in(&l->scope, r);
    /* In a network that is open nothing is refused where it is sent. */
    bool is_out = access_scope_is_out(&l->scope, r) && !l->scope.is_open;

    if (!is_in && !is_out)
        return;
    str_addf(l->out, "rule %s\n", access_scope_name(&l->scope, i));
    add_services(l, r);
    if (is_in)
        add_in(l, r);
    for (unsigned k = 0; is_out && k < r->n_to; k++) {
        add_peer(l, "out", &r->to[k], "", true);
        /* A set has addresses of both families. */
        if (!is_of_both(&r->to[k]))
            add_peer(l, "out", &r->to[k], "", false);
    }
}

void access_lines_format(
    struct str *out, const struct snapshot *s, const struct job_ports *jobs, nsec_t now)
{
    struct lines l = {.out = out};
    char v4[IP_ADDR_TEXT_MAX];
    char v6[IP_ADDR_TEXT_MAX];

    if (access_scope_init(&l.scope, s) < 0) {
        out->failed = true;
        return;
    }
    str_addf(out, "self %s,%s\n", ip_addr_format(&l.scope.self->address4, v4),
        ip_addr_format(&l.scope.self->address6, v6));
    if (!l.scope.is_open)
        str_add(out, "refuse in\nrefuse out\n");
    add_sets(&l);
    add_free(&l);
    for (size_t i = 0; i < access_scope_rules(&l.scope); i++)
        add_rule(&l, i);
    if (l.scope.has_jobs)
        job_ports_lines(out, jobs, s, now, SET_OF_GROUP + l.scope.n_groups, add_set);
    access_scope_deinit(&l.scope);
}
