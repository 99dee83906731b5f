/* ownership.c - see ownership.h. */
#include "agent/reconcile/ownership.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/err.h"
#include "engine/engine.h"
#include "mesh/config/wg_config.h"
#include "net/netlink/rtnl.h"

static const char advice[] = "it is left alone; remove it, or join anew with --interface";

/* ---- addresses ------------------------------------------------------------------------------ */

struct address_walk {
    const struct wg_config *want;
    const struct wg_config *told; /* NULL: not known */
    bool has_any;
    bool has_ours;
    struct ip_prefix other; /* the last that is not ours */
};

static bool has_address(const struct wg_config *c, const struct ip_addr *a)
{
    for (unsigned i = 0; c && i < c->n_addresses; i++)
        if (ip_addr_equal(&c->addresses[i].addr, a))
            return true;
    return false;
}

static int take_address(const struct rtnl_entry *entry, void *ctx)
{
    struct address_walk *w = ctx;
    const struct ip_addr *a = &entry->prefix.addr;

    if (ip_addr_is_link_local(a))
        return 0;
    w->has_any = true;
    if (has_address(w->want, a) || has_address(w->told, a))
        w->has_ours = true;
    else
        w->other = entry->prefix;
    return 0;
}

static int judge_addresses(struct netlink *nl, const struct rtnl_link *link,
    const struct wg_config *want, const struct wg_config *told, struct err *e)
{
    struct address_walk w = {.want = want, .told = told};
    char text[IP_PREFIX_TEXT_MAX];
    int r = rtnl_each_address(nl, link->ifindex, take_address, &w);

    if (r < 0)
        return err_set(e, r, "the addresses of %s cannot be read: %s", link->name, strerror(-r));
    if (w.has_ours || !w.has_any)
        return 0;
    return err_set(e, OWNERSHIP_E_FOREIGN,
        "an interface %s with the address %s was made by somebody else: %s", link->name,
        ip_prefix_format(&w.other, text), advice);
}

/* ---- keys ----------------------------------------------------------------------------------- */

/* The key that the interface has; none: it has none. The interface is there, and so is the process
 * that serves it, so opening the engine makes nothing. */
static int read_key(
    enum engine_kind kind, const char *interface, struct x25519_public *ret, struct err *e)
{
    struct wg_config have = WG_CONFIG_NULL;
    char why[ENGINE_WHY_MAX];
    struct engine *engine;
    int r = engine_open(&engine, kind, interface, NULL, why, e);

    if (r != 0)
        return r < 0 ? r : -1;
    r = engine_get(engine, &have, e);
    if (r == 0)
        *ret = have.public;
    wg_config_deinit(&have);
    (void)engine_close(engine);
    return r < 0 ? r : -r;
}

static bool is_wireguard(const struct rtnl_link *link)
{
    return strcmp(link->kind, "wireguard") == 0 ||
           (strcmp(link->kind, "tun") == 0 && engine_userspace_is_served(link->name));
}

bool ownership_is_of_key(
    struct netlink *nl, const char *interface, const struct x25519_public *key, unsigned *ret)
{
    struct x25519_public have = {{0}};
    struct rtnl_link link;
    enum engine_kind kind;

    if (strlen(interface) >= sizeof(link.name) || rtnl_find_link(nl, interface, &link) != 0 ||
        !is_wireguard(&link))
        return false;
    kind = strcmp(link.kind, "tun") == 0 ? ENGINE_KIND_USERSPACE : ENGINE_KIND_KERNEL;
    if (read_key(kind, link.name, &have, NULL) != 0 || x25519_public_is_none(&have) ||
        !x25519_public_equal(&have, key))
        return false;
    *ret = link.ifindex;
    return true;
}

int ownership_check(struct netlink *nl, const char *interface, const struct wg_config *want,
    const struct wg_config *told, struct err *e)
{
    struct x25519_public key = {{0}};
    char text[X25519_BASE64_MAX];
    struct rtnl_link link;
    bool is_tun;
    int r = rtnl_find_link(nl, interface, &link);

    if (r == RTNL_E_ABSENT)
        return 0;
    if (r < 0)
        return err_set(e, r, "the interface %s cannot be looked at: %s", interface, strerror(-r));
    is_tun = strcmp(link.kind, "tun") == 0;
    if (!is_tun && strcmp(link.kind, "wireguard") != 0)
        return err_set(e, OWNERSHIP_E_FOREIGN,
            "an interface %s that is no WireGuard but of the kind \"%s\" was made by somebody "
            "else: "
            "%s",
            interface, link.kind, advice);
    if (!is_tun || engine_userspace_is_served(interface))
        r = read_key(is_tun ? ENGINE_KIND_USERSPACE : ENGINE_KIND_KERNEL, interface, &key, e);
    if (r < 0)
        return r;
    if (x25519_public_is_none(&key))
        return judge_addresses(nl, &link, want, told, e);
    if (x25519_public_equal(&key, &want->public) ||
        (told && x25519_public_equal(&key, &told->public)))
        return 0;
    return err_set(e, OWNERSHIP_E_FOREIGN,
        "an interface %s with the public key %s, which is not this node's, was made by somebody "
        "else: %s",
        interface, x25519_public_format(&key, text), advice);
}
