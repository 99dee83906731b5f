/* routes.c - see routes.h. */
#include "agent/reconcile/routes.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "mesh/config/wg_config.h"
#include "mesh/snapshot/snapshot.h"
#include "wire/ip.h"

/* ---- to single peers ------------------------------------------------------------------------- */

#define TCP_HEADER 20

void peer_routes_deinit(struct peer_routes *pr)
{
    free(pr->wanted);
    free(pr->extra);
    *pr = (struct peer_routes){0};
}

struct rtnl_metrics peer_routes_metrics(
    const struct wg_config *c, uint16_t mtu, uint16_t mss_mtu, bool is_v4)
{
    unsigned most = c->link_mtu != 0 && c->link_mtu < c->mtu ? c->link_mtu : c->mtu;

    if (mss_mtu != 0 && mss_mtu < most)
        most = mss_mtu;
    if (!is_v4 && mtu < IP_V6_MTU_MIN) /* With less the kernel would not send IPv6 at all. */
        mtu = IP_V6_MTU_MIN;
    return (struct rtnl_metrics){
        .mtu = mtu, .advmss = most - (is_v4 ? IP_V4_HEADER_MIN : IP_V6_HEADER) - TCP_HEADER};
}

static int peer_compare(const void *a, const void *b)
{
    const struct peer_route *x = a;
    const struct peer_route *y = b;

    return ip_prefix_compare(&x->to, &y->to);
}

/* Does the route to the network's block say something else than is to hold for @p? */
static bool has_own(const struct wg_config *c, const struct wg_peer *p)
{
    return p->mtu != 0 && (p->mtu != c->route_mtu || p->mss_mtu != 0);
}

int peer_routes_plan(struct peer_routes *pr, const struct wg_config *c, bool lacks_v6)
{
    size_t n = 0;

    for (size_t i = 0; i < c->n_peers; i++)
        n += has_own(c, &c->peers[i]) ? c->peers[i].n_allowed : 0;
    pr->wanted = calloc(n + 1, sizeof(*pr->wanted));
    if (!pr->wanted)
        return -ENOMEM;
    for (size_t i = 0; i < c->n_peers; i++) {
        const struct wg_peer *p = &c->peers[i];
        size_t n_allowed = has_own(c, p) ? p->n_allowed : 0;

        for (size_t k = 0; k < n_allowed; k++) {
            const struct ip_prefix *to = &p->allowed[k];
            bool is_v4 = ip_addr_is_v4(&to->addr);

            if (to->len == (is_v4 ? 32 : 128) && (is_v4 || !lacks_v6))
                pr->wanted[pr->n++] = (struct peer_route){
                    .to = *to, .metrics = peer_routes_metrics(c, p->mtu, p->mss_mtu, is_v4)};
        }
    }
    qsort(pr->wanted, pr->n, sizeof(*pr->wanted), peer_compare);
    return 0;
}

static int add_extra(struct peer_routes *pr, const struct ip_prefix *to)
{
    if (pr->n_extra == pr->cap_extra) {
        size_t cap = pr->cap_extra ? 2 * pr->cap_extra : 16;
        struct ip_prefix *grown = reallocarray(pr->extra, cap, sizeof(*grown));

        if (!grown)
            return -ENOMEM;
        pr->extra = grown;
        pr->cap_extra = cap;
    }
    pr->extra[pr->n_extra++] = *to;
    return 0;
}

int peer_routes_take(struct peer_routes *pr, const struct rtnl_entry *entry)
{
    struct peer_route key = {.to = entry->prefix};
    struct peer_route *wanted;

    if (entry->protocol != RTNL_PEER_ROUTES)
        return 0;
    wanted = bsearch(&key, pr->wanted, pr->n, sizeof(*pr->wanted), peer_compare);
    if (!wanted)
        return add_extra(pr, &entry->prefix);
    wanted->found = wanted->metrics.mtu == entry->metrics.mtu &&
                    wanted->metrics.advmss == entry->metrics.advmss;
    return 0;
}

int peer_routes_apply(const struct peer_routes *pr, struct netlink *nl, unsigned ifindex)
{
    struct rtnl_route route = {.protocol = RTNL_PEER_ROUTES};
    int r = 0;

    for (size_t i = 0; r == 0 && i < pr->n; i++) {
        route.metrics = pr->wanted[i].metrics;
        if (!pr->wanted[i].found)
            r = rtnl_set_route(nl, ifindex, &pr->wanted[i].to, &route);
    }
    for (size_t i = 0; r == 0 && i < pr->n_extra; i++)
        r = rtnl_remove_route(nl, ifindex, &pr->extra[i], &route);
    return r;
}

/* ---- to subnets behind other nodes ----------------------------------------------------------- */

/* Our rule is looked at after the local table's (0) and before the main table's (32766). */
#define RULE_PRIORITY 5187

void subnet_routes_deinit(struct subnet_routes *sr)
{
    free(sr->items);
    *sr = (struct subnet_routes){0};
}

/* ---- which are used -------------------------------------------------------------------------- */

bool subnet_routes_is_in_the_way(const struct rtnl_entry *used, const struct ip_prefix *to)
{
    /* A route that covers half of all addresses or more is a way out to the world. */
    if (used->prefix.len <= 1 ||
        !(used->table == RT_TABLE_MAIN || used->table == RT_TABLE_LOCAL ||
            rtnl_is_own_table(used->table)) ||
        !ip_prefix_overlaps(&used->prefix, to))
        return false;
    return used->prefix.len >= to->len || used->is_on_link;
}

/** The kernel's routes against those that are planned. */
struct comparison {
    struct subnet_routes *sr;
    unsigned own; /* index of our interface */
};

static int compare_route(const struct rtnl_entry *used, void *ctx)
{
    const struct comparison *c = ctx;
    char text[IP_PREFIX_TEXT_MAX];
    char name[IF_NAMESIZE];

    if (c->own != 0 && used->ifindex == c->own)
        return 0;
    for (size_t i = 0; i < c->sr->n; i++) {
        struct subnet_route *sub = &c->sr->items[i];

        if (sub->why[0] == '\0' && subnet_routes_is_in_the_way(used, &sub->to))
            (void)snprintf(sub->why, sizeof(sub->why), "this machine reaches %s by %s itself",
                ip_prefix_format(&used->prefix, text),
                if_indextoname(used->ifindex, name) ? name : "no interface");
    }
    return 0;
}

static void refuse_around_hubs(struct subnet_route *sub, const struct snapshot *s)
{
    char text[ENDPOINT_TEXT_MAX];

    for (size_t i = 0; i < s->nodes.n; i++) {
        const struct node *hub = &s->nodes.items[i]->node;

        for (unsigned k = 0; hub->hub && k < hub->hub->n_endpoints; k++)
            if (ip_prefix_has(&sub->to, &hub->hub->endpoints[k].addr))
                (void)snprintf(sub->why, sizeof(sub->why), "the hub is reached at %s, inside it",
                    endpoint_format(&hub->hub->endpoints[k], text));
    }
}

/* A block that is not accepted is also taken out of the peer's allowed IPs, so that no packet from
 * it is accepted either. */
static void refuse_foreign(
    struct subnet_route *sub, enum subnets_accept accepts, struct wg_config *want)
{
    struct wg_peer *p = wg_config_find(want, &sub->key);
    size_t n = 0;

    if (subnets_accepts(accepts, &sub->to))
        return;
    (void)snprintf(sub->why, sizeof(sub->why),
        "this machine joined to use %s, not this one (weft join --accept-routes)",
        accepts == SUBNETS_ACCEPT_NONE ? "no subnets" : "private subnets");
    for (size_t i = 0; p && i < p->n_allowed; i++)
        if (!ip_prefix_equal(&p->allowed[i], &sub->to))
            p->allowed[n++] = p->allowed[i];
    if (p)
        p->n_allowed = n;
}

static bool is_allowed(const struct wg_config *want, const struct subnet_route *sub)
{
    const struct wg_peer *p = wg_config_find(want, &sub->key);

    for (size_t i = 0; p && i < p->n_allowed; i++)
        if (ip_prefix_equal(&p->allowed[i], &sub->to))
            return true;
    return false;
}

static void collect(struct subnet_routes *sr, enum subnets_accept accepts, const struct snapshot *s,
    struct wg_config *want)
{
    for (size_t i = 0; i < s->nodes.n; i++) {
        const struct node *node = &s->nodes.items[i]->node;

        for (unsigned k = 0; node != snapshot_self(s) && node->routes && k < node->routes->n; k++) {
            struct subnet_route *sub = &sr->items[sr->n++];

            *sub = (struct subnet_route){.key = node->key, .to = node->routes->items[k]};
            memcpy(sub->node, node->meta.name, strnlen(node->meta.name, NAME_MAX_LEN));
            if (!is_allowed(want, sub))
                (void)snprintf(sub->why, sizeof(sub->why), "no packets go to that node from here");
            refuse_around_hubs(sub, s);
            refuse_foreign(sub, accepts, want);
        }
    }
}

static bool is_any_used(const struct subnet_routes *sr)
{
    for (size_t i = 0; i < sr->n; i++)
        if (sr->items[i].why[0] == '\0')
            return true;
    return false;
}

int subnet_routes_plan(struct subnet_routes *sr, struct netlink *nl, unsigned ifindex,
    enum subnets_accept accepts, const struct snapshot *s, struct wg_config *want)
{
    _cleanup_(subnet_routes_deinit) struct subnet_routes next = {.is_clean = sr->is_clean};
    struct comparison c = {.sr = &next, .own = ifindex};
    size_t n = 0;
    int r = 0;

    for (size_t i = 0; i < s->nodes.n; i++)
        n += s->nodes.items[i]->node.routes ? s->nodes.items[i]->node.routes->n : 0;
    if (n > 0) {
        next.items = calloc(n, sizeof(*next.items));
        if (!next.items)
            return -ENOMEM;
        collect(&next, accepts, s, want);
    }
    if (next.n > 0)
        r = rtnl_each_route(nl, 0, true, compare_route, &c);
    if (r < 0)
        return r;
    want->fwmark = is_any_used(&next) ? RTNL_OUTER_MARK : 0;
    free(sr->items);
    *sr = next;
    next = (struct subnet_routes){0};
    return 0;
}

/* ---- the kernel ------------------------------------------------------------------------------ */

static struct rtnl_rule rule_of(uint32_t table)
{
    return (struct rtnl_rule){.table = table, .mark = RTNL_OUTER_MARK, .priority = RULE_PRIORITY};
}

static bool is_used(const struct subnet_route *sub, bool v4)
{
    return sub->why[0] == '\0' && ip_addr_is_v4(&sub->to.addr) == v4;
}

/* None of that family's subnets is used after all; @why is the reason. */
static void give_up(struct subnet_routes *sr, bool v4, const char *why)
{
    for (size_t i = 0; i < sr->n; i++)
        if (is_used(&sr->items[i], v4))
            (void)snprintf(sr->items[i].why, sizeof(sr->items[i].why), "%s", why);
}

static int reconcile_rule(struct subnet_routes *sr, struct netlink *nl, bool v4, uint32_t table)
{
    const struct rtnl_rule rule = rule_of(table);
    bool any = false;
    int r;

    for (size_t i = 0; i < sr->n; i++)
        any = any || is_used(&sr->items[i], v4);
    r = rtnl_find_rule(nl, v4, &rule);
    if (any && r == RTNL_E_ABSENT)
        r = rtnl_add_rule(nl, v4, &rule);
    else if (!any && r == 0)
        r = rtnl_remove_rule(nl, v4, &rule);
    if (r == RTNL_E_ABSENT)
        r = 0;
    if (r != -EOPNOTSUPP && r != -EAFNOSUPPORT)
        return r;
    give_up(sr, v4, "this kernel has no routing rules");
    return 0;
}

/** The routes of our table, against those that are used. */
struct table_walk {
    struct subnet_routes *sr;
    const struct wg_config *want;
    uint32_t table;
    bool *found;                         /* owns; of the items of @sr */
    struct ip_prefix extra[SUBNETS_MAX]; /* routes to be removed; what does not fit waits */
    unsigned n_extra;
};

static void table_walk_deinit(struct table_walk *w)
{
    free(w->found);
}

/* The metrics of the route to the peer itself, because both take the same path. */
static struct rtnl_metrics metrics_of(const struct wg_config *want, const struct subnet_route *sub)
{
    const struct wg_peer *p = wg_config_find(want, &sub->key);
    uint16_t mtu = p && p->mtu != 0 ? p->mtu : want->route_mtu;

    if (mtu == 0)
        return (struct rtnl_metrics){0};
    return peer_routes_metrics(want, mtu, p ? p->mss_mtu : 0, ip_addr_is_v4(&sub->to.addr));
}

static int take_entry(const struct rtnl_entry *entry, void *ctx)
{
    struct table_walk *w = ctx;

    if (entry->table != w->table)
        return 0;
    for (size_t i = 0; i < w->sr->n; i++) {
        const struct subnet_route *sub = &w->sr->items[i];
        struct rtnl_metrics m = metrics_of(w->want, sub);

        if (sub->why[0] != '\0' || !ip_prefix_equal(&sub->to, &entry->prefix))
            continue;
        w->found[i] = m.mtu == entry->metrics.mtu && m.advmss == entry->metrics.advmss;
        return 0;
    }
    if (w->n_extra < SUBNETS_MAX)
        w->extra[w->n_extra++] = entry->prefix;
    return 0;
}

static int reconcile_table(struct subnet_routes *sr, struct netlink *nl, unsigned ifindex,
    uint32_t table, const struct wg_config *want)
{
    _cleanup_(table_walk_deinit) struct table_walk w = {.sr = sr, .want = want, .table = table};
    struct rtnl_route route = {.table = table, .protocol = RTNL_PEER_ROUTES};
    int r;

    w.found = calloc(sr->n + 1, sizeof(*w.found));
    if (!w.found)
        return -ENOMEM;
    r = rtnl_each_route(nl, ifindex, true, take_entry, &w);
    for (unsigned i = 0; r == 0 && i < w.n_extra; i++)
        r = rtnl_remove_route(nl, ifindex, &w.extra[i], &route);
    for (size_t i = 0; r == 0 && i < sr->n; i++) {
        route.metrics = metrics_of(want, &sr->items[i]);
        if (sr->items[i].why[0] == '\0' && !w.found[i])
            r = rtnl_set_route(nl, ifindex, &sr->items[i].to, &route);
    }
    /* There may be more to remove. */
    sr->is_clean = r == 0 && !is_any_used(sr) && w.n_extra < SUBNETS_MAX;
    return r;
}

int subnet_routes_apply(struct subnet_routes *sr, struct netlink *nl, unsigned ifindex,
    const char *interface, const struct wg_config *want, bool lacks_v6)
{
    uint32_t table = rtnl_table_of(interface);
    int r;

    if (sr->is_clean && !is_any_used(sr))
        return 0;
    if (lacks_v6)
        give_up(sr, false, "this machine has no IPv6");
    r = reconcile_rule(sr, nl, true, table);
    if (r == 0)
        r = reconcile_rule(sr, nl, false, table);
    return r == 0 ? reconcile_table(sr, nl, ifindex, table, want) : r;
}

int subnet_routes_remove(struct netlink *nl, const char *interface)
{
    const struct rtnl_rule rule = rule_of(rtnl_table_of(interface));
    int r4 = rtnl_remove_rule(nl, true, &rule);
    int r6 = rtnl_remove_rule(nl, false, &rule);
    int r = r4 < 0 ? r4 : r6;

    return r == -EOPNOTSUPP || r == -EAFNOSUPPORT ? 0 : r;
}
