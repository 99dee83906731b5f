/* peer_routes.c - see peer_routes.h. */
#include "agent/reconcile/peer_routes.h"

#include <errno.h>
#include <stdlib.h>

#include "mesh/config/wg_config.h"
#include "wire/ip.h"

#define TCP_HEADER 20

void peer_routes_deinit(struct peer_routes *pr)
{
    free(pr->wanted);
    free(pr->extra);
    *pr = (struct peer_routes)PEER_ROUTES_NULL;
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

static int compare(const void *a, const void *b)
{
    const struct peer_route *x = a;
    const struct peer_route *y = b;

    return ip_prefix_compare(&x->to, &y->to);
}

static void add_wanted(struct peer_routes *pr, const struct wg_config *c, const struct wg_peer *p)
{
    for (size_t i = 0; i < p->n_allowed; i++) {
        const struct ip_prefix *to = &p->allowed[i];
        bool is_v4 = ip_addr_is_v4(&to->addr);

        if (to->len == (is_v4 ? 32 : 128))
            pr->wanted[pr->n++] = (struct peer_route){
                .to = *to, .metrics = peer_routes_metrics(c, p->mtu, p->mss_mtu, is_v4)};
    }
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
    for (size_t i = 0; i < c->n_peers; i++)
        if (has_own(c, &c->peers[i]))
            add_wanted(pr, c, &c->peers[i]);
    n = 0;
    for (size_t i = 0; i < pr->n; i++)
        if (!lacks_v6 || ip_addr_is_v4(&pr->wanted[i].to.addr))
            pr->wanted[n++] = pr->wanted[i];
    pr->n = n;
    qsort(pr->wanted, pr->n, sizeof(*pr->wanted), compare);
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
    wanted = bsearch(&key, pr->wanted, pr->n, sizeof(*pr->wanted), compare);
    if (!wanted)
        return add_extra(pr, &entry->prefix);
    wanted->found = wanted->metrics.mtu == entry->metrics.mtu &&
                    wanted->metrics.advmss == entry->metrics.advmss;
    return 0;
}

int peer_routes_apply(const struct peer_routes *pr, struct netlink *nl, unsigned ifindex)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < pr->n; i++)
        if (!pr->wanted[i].found)
            r = rtnl_set_peer_route(nl, ifindex, &pr->wanted[i].to, &pr->wanted[i].metrics);
    for (size_t i = 0; r == 0 && i < pr->n_extra; i++)
        r = rtnl_remove_peer_route(nl, ifindex, &pr->extra[i]);
    return r;
}
