/* rtnl_block.c - is a block of addresses in use on this machine? See rtnl.h. */
#include <errno.h>
#include <net/if.h>
#include <string.h>

#include "base/err.h"
#include "net/netlink/rtnl.h"

struct search {
    const struct ip_prefix *block;
    const unsigned *own; /* interfaces that do not count */
    size_t n_own;
    bool found;             /* some entry is in the way */
    struct rtnl_entry what; /* the first of them */
};

static bool is_own(const struct search *s, unsigned ifindex)
{
    for (size_t i = 0; i < s->n_own; i++)
        if (s->own[i] == ifindex)
            return true;
    return false;
}

static int look_at(const struct rtnl_entry *entry, void *ctx)
{
    struct search *s = ctx;
    struct ip_prefix used = entry->prefix;

    if (!entry->is_address && used.len <= 1)
        return 0;
    /* An address takes up itself; what its block takes up is said by its route. */
    if (entry->is_address)
        used.len = ip_addr_is_v4(&used.addr) ? 32 : 128;
    if (s->found || is_own(s, entry->ifindex) || !ip_prefix_overlaps(&used, s->block))
        return 0;
    s->found = true;
    s->what = *entry;
    return 0;
}

/** The search for an address. */
struct holder {
    const struct ip_addr *address;
    unsigned ifindex; /* 0: not found yet */
};

static int look_for(const struct rtnl_entry *entry, void *ctx)
{
    struct holder *h = ctx;

    if (ip_addr_equal(&entry->prefix.addr, h->address))
        h->ifindex = entry->ifindex;
    return 0;
}

int rtnl_find_address(struct netlink *nl, const struct ip_addr *a, unsigned *ret_ifindex)
{
    struct holder h = {.address = a};
    int r = rtnl_each_address(nl, 0, look_for, &h);

    if (r < 0)
        return r;
    *ret_ifindex = h.ifindex;
    return h.ifindex != 0 ? 0 : RTNL_E_ABSENT;
}

int rtnl_check_free(struct netlink *nl, const struct ip_prefix *block, const unsigned *own,
    size_t n_own, struct err *e)
{
    struct search s = {.block = block, .own = own, .n_own = n_own};
    char block_text[IP_PREFIX_TEXT_MAX];
    char what_text[IP_PREFIX_TEXT_MAX];
    char name[IFNAMSIZ];
    int r = rtnl_each_address(nl, 0, look_at, &s);

    if (r == 0 && !s.found)
        r = rtnl_each_route(nl, 0, false, look_at, &s);
    if (r < 0)
        return err_set(e, r, "the routes of this machine cannot be read: %s", strerror(-r));
    if (!s.found)
        return 0;
    return err_set(e, -EADDRINUSE, "the block %s collides with the %s %s of %s",
        ip_prefix_format(block, block_text), s.what.is_address ? "address" : "route",
        ip_prefix_format(&s.what.prefix, what_text),
        if_indextoname(s.what.ifindex, name) ? name : "no interface");
}
