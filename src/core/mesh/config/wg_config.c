/* wg_config.c - see wg_config.h. */
#include "wg_config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/secret.h"

#define WG_CONFIG_PEERS_MAX   65536
#define WG_CONFIG_ALLOWED_MAX 65536 /* blocks of one peer */

void wg_peer_deinit(struct wg_peer *p)
{
    free(p->allowed);
    secret_wipe(&p->psk, sizeof(p->psk));
    *p = (struct wg_peer)WG_PEER_NULL;
}

void wg_config_deinit(struct wg_config *c)
{
    for (size_t i = 0; i < c->n_peers; i++)
        wg_peer_deinit(&c->peers[i]);
    free(c->peers);
    free(c->line);
    *c = (struct wg_config)WG_CONFIG_NULL;
}

int ip_prefix_compare(const struct ip_prefix *a, const struct ip_prefix *b)
{
    int c = memcmp(a->addr.b, b->addr.b, sizeof(a->addr.b));

    return c != 0 ? c : (int)a->len - (int)b->len;
}

static int compare_prefixes(const void *a, const void *b)
{
    return ip_prefix_compare(a, b);
}

static int compare_peers(const void *a, const void *b)
{
    return x25519_public_compare(
        &((const struct wg_peer *)a)->key, &((const struct wg_peer *)b)->key);
}

int wg_peer_allow(struct wg_peer *p, const struct ip_prefix *block)
{
    struct ip_prefix *grown;

    if (p->n_allowed >= WG_CONFIG_ALLOWED_MAX)
        return -E2BIG;
    /* The array has room for a power of two, so it is full when the number of blocks is one. */
    if ((p->n_allowed & (p->n_allowed - 1)) == 0) {
        grown = reallocarray(p->allowed, p->n_allowed ? p->n_allowed * 2 : 2, sizeof(*grown));
        if (!grown)
            return -ENOMEM;
        p->allowed = grown;
    }
    p->allowed[p->n_allowed++] = ip_prefix_mask(block);
    return 0;
}

int wg_peer_copy(struct wg_peer *ret, const struct wg_peer *from)
{
    struct wg_peer p = *from;

    p.allowed = NULL;
    p.n_allowed = 0;
    for (size_t i = 0; i < from->n_allowed; i++) {
        int r = wg_peer_allow(&p, &from->allowed[i]);

        if (r < 0) {
            wg_peer_deinit(&p);
            return r;
        }
    }
    *ret = p;
    return 0;
}

bool wg_peer_allows_equal(const struct wg_peer *a, const struct wg_peer *b)
{
    if (a->n_allowed != b->n_allowed)
        return false;
    for (size_t i = 0; i < a->n_allowed; i++)
        if (!ip_prefix_equal(&a->allowed[i], &b->allowed[i]))
            return false;
    return true;
}

int wg_config_add(struct wg_config *c, struct wg_peer *p)
{
    bool is_full = c->n_peers >= WG_CONFIG_PEERS_MAX;
    struct wg_peer *peers =
        is_full ? NULL : secret_grow(c->peers, c->n_peers, sizeof(*peers), &c->cap_peers);

    if (!peers) {
        wg_peer_deinit(p);
        return is_full ? -E2BIG : -ENOMEM;
    }
    c->peers = peers;
    c->peers[c->n_peers++] = *p;
    secret_wipe(&p->psk, sizeof(p->psk));
    *p = (struct wg_peer)WG_PEER_NULL;
    return 0;
}

static void sort_allowed(struct wg_peer *p)
{
    size_t kept = 0;

    if (p->n_allowed == 0)
        return;
    qsort(p->allowed, p->n_allowed, sizeof(*p->allowed), compare_prefixes);
    for (size_t i = 0; i < p->n_allowed; i++)
        if (kept == 0 || !ip_prefix_equal(&p->allowed[kept - 1], &p->allowed[i]))
            p->allowed[kept++] = p->allowed[i];
    p->n_allowed = kept;
}

int wg_config_sort(struct wg_config *c, struct err *e)
{
    char text[X25519_BASE64_MAX];

    for (size_t i = 0; i < c->n_peers; i++)
        sort_allowed(&c->peers[i]);
    if (c->n_peers > 0)
        qsort(c->peers, c->n_peers, sizeof(*c->peers), compare_peers);
    for (size_t i = 1; i < c->n_peers; i++)
        if (x25519_public_equal(&c->peers[i - 1].key, &c->peers[i].key))
            return err_set(e, -EINVAL, "two peers have the public key %s",
                x25519_public_format(&c->peers[i].key, text));
    return 0;
}

struct wg_peer *wg_config_find(const struct wg_config *c, const struct x25519_public *key)
{
    struct wg_peer wanted = {.key = *key};

    if (c->n_peers == 0)
        return NULL;
    return bsearch(&wanted, c->peers, c->n_peers, sizeof(*c->peers), compare_peers);
}

bool wg_config_has_rates(const struct wg_config *c)
{
    if (traffic_rates_any(&c->rates))
        return true;
    for (size_t i = 0; i < c->n_peers; i++)
        if (c->peers[i].rate != 0)
            return true;
    return false;
}

void wg_config_clear_rates(struct wg_config *c)
{
    c->rates = (struct traffic_rates){0};
    c->shows_dscp = false;
    for (size_t i = 0; i < c->n_peers; i++) {
        c->peers[i].rate = 0;
    }
}

bool wg_config_has_next_keys(const struct wg_config *c)
{
    if (!x25519_public_is_none(&c->next_public))
        return true;
    for (size_t i = 0; i < c->n_peers; i++)
        if (!x25519_public_is_none(&c->peers[i].next_key))
            return true;
    return false;
}

void wg_config_clear_next_keys(struct wg_config *c)
{
    const struct x25519_public none = {{0}};

    c->next_public = none;
    c->initiate_with_next = false;
    for (size_t i = 0; i < c->n_peers; i++) {
        c->peers[i].next_key = none;
        c->peers[i].initiate_with_current = false;
    }
}
