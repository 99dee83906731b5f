/* wg_quick.c - see wg_quick.h. */
#include "wg_quick.h"

#include "base/secret.h"
#include "base/str.h"
#include "base/text.h"
#include "mesh/snapshot.h"
#include "mesh/wg_config.h"

static void write_prefixes(
    struct str *out, const char *name, const struct ip_prefix *prefixes, size_t n)
{
    char text[IP_PREFIX_TEXT_MAX];

    for (size_t i = 0; i < n; i++)
        str_addf(out, "%s%s", i == 0 ? name : ", ", ip_prefix_format(&prefixes[i], text));
    if (n > 0)
        str_add(out, "\n");
}

/*
 * Keepalives come after the key, not in the peers' sections: WireGuard sends the first one at once,
 * and a handshake that fails because there is no key yet is tried again only after five seconds.
 */
static void write_post_up(struct str *out, const struct wg_config *c, const char *key_file)
{
    char key[X25519_BASE64_MAX];

    str_addf(out, "PostUp = wg set %%i private-key %s\n", key_file);
    for (size_t i = 0; i < c->n_peers; i++)
        if (c->peers[i].keepalive)
            str_addf(out, "PostUp = wg set %%i peer %s persistent-keepalive %u\n",
                x25519_public_format(&c->peers[i].key, key), c->peers[i].keepalive);
}

static void write_interface(
    struct str *out, const struct wg_config *c, const struct snapshot *s, const char *key_file)
{
    str_addf(out, "# %s in the network %s\n", s->self, s->network.meta.name);
    str_add(out, "[Interface]\n");
    write_prefixes(out, "Address = ", c->addresses, c->n_addresses);
    if (c->mtu)
        str_addf(out, "MTU = %u\n", c->mtu);
    if (c->listen_port)
        str_addf(out, "ListenPort = %u\n", c->listen_port);
    if (c->fwmark)
        str_addf(out, "FwMark = 0x%x\n", c->fwmark);
    write_post_up(out, c, key_file);
}

static void write_peer(struct str *out, const struct wg_peer *p, const char *name)
{
    char key[X25519_BASE64_MAX];
    char psk[BASE64_ROOM(sizeof(p->psk.b))];
    char endpoint[ENDPOINT_TEXT_MAX];

    str_add(out, "\n[Peer]\n");
    str_addf(out, "# %s\n", name);
    str_addf(out, "PublicKey = %s\n", x25519_public_format(&p->key, key));
    if (!secret_is_zero(p->psk.b, sizeof(p->psk.b))) {
        base64_encode(p->psk.b, sizeof(p->psk.b), psk);
        str_addf(out, "PresharedKey = %s\n", psk);
        secret_wipe(psk, sizeof(psk));
    }
    write_prefixes(out, "AllowedIPs = ", p->allowed, p->n_allowed);
    if (!endpoint_is_none(&p->endpoint))
        str_addf(out, "Endpoint = %s\n", endpoint_format(&p->endpoint, endpoint));
}

char *wg_quick_format(
    const struct wg_config *c, const struct snapshot *s, const char *key_file, size_t *ret_len)
{
    struct str out = STR_NULL;

    write_interface(&out, c, s, key_file);
    for (size_t i = 0; i < s->nodes.n; i++) {
        const struct node *node = &s->nodes.items[i]->node;
        const struct wg_peer *p = wg_config_find(c, &node->key);

        if (p)
            write_peer(&out, p, node->meta.name);
    }
    return str_take(&out, ret_len);
}
