/* wg_quick.c - see wg_quick.h. */
#include "wg_quick.h"

#include "base/secret.h"
#include "base/str.h"
#include "base/text.h"
#include "mesh/config/wg_config.h"
#include "mesh/render/render.h"
#include "mesh/snapshot/snapshot.h"

/* A text that is being made. */
struct writer {
    struct str out;
    const struct wg_quick_style *style;
    const char *equals;           /* between a name and its value */
    const char *comma;            /* between two values */
    const struct node_hub *named; /* whose first endpoint is written as its name; NULL: nobody's */
};

static struct writer writer_make(const struct wg_quick_style *style)
{
    return (struct writer){.out = STR_NULL,
        .style = style,
        .equals = style->is_compact ? "=" : " = ",
        .comma = style->is_compact ? "," : ", "};
}

static void write_text(struct writer *w, const char *name, const char *value)
{
    str_addf(&w->out, "%s%s%s\n", name, w->equals, value);
}

static void write_number(struct writer *w, const char *name, unsigned value)
{
    if (value)
        str_addf(&w->out, "%s%s%u\n", name, w->equals, value);
}

static void write_prefixes(
    struct writer *w, const char *name, const struct ip_prefix *prefixes, size_t n)
{
    char text[IP_PREFIX_TEXT_MAX];

    if (n > 0)
        str_addf(&w->out, "%s%s", name, w->equals);
    for (size_t i = 0; i < n; i++)
        str_addf(&w->out, "%s%s", i == 0 ? "" : w->comma, ip_prefix_format(&prefixes[i], text));
    if (n > 0)
        str_add(&w->out, "\n");
}

static void write_private_key(struct writer *w)
{
    char key[X25519_BASE64_MAX];

    x25519_secret_write(w->style->secret, key);
    write_text(w, "PrivateKey", key);
    secret_wipe(key, sizeof(key));
}

/*
 * Keepalives come after the key, not in the peers' sections: WireGuard sends the first one at once,
 * and a handshake that fails because there is no key yet is tried again only after five seconds.
 */
static void write_post_up(struct writer *w, const struct wg_config *c)
{
    char key[X25519_BASE64_MAX];

    str_addf(&w->out, "PostUp = wg set %%i private-key %s\n", w->style->key_file);
    for (size_t i = 0; i < c->n_peers; i++)
        if (c->peers[i].keepalive)
            str_addf(&w->out, "PostUp = wg set %%i peer %s persistent-keepalive %u\n",
                x25519_public_format(&c->peers[i].key, key), c->peers[i].keepalive);
}

static void write_interface(struct writer *w, const struct wg_config *c, const struct snapshot *s)
{
    if (!w->style->is_compact)
        str_addf(&w->out, "# %s in the network %s\n", s->self, s->network.meta.name);
    str_add(&w->out, "[Interface]\n");
    if (w->style->secret)
        write_private_key(w);
    write_prefixes(w, "Address", c->addresses, c->n_addresses);
    write_number(w, "MTU", c->mtu);
    write_number(w, "ListenPort", c->listen_port);
    if (c->fwmark)
        str_addf(&w->out, "FwMark%s0x%x\n", w->equals, c->fwmark);
    if (!w->style->secret)
        write_post_up(w, c);
}

static void write_endpoint(struct writer *w, const struct endpoint *ep)
{
    char text[ENDPOINT_TEXT_MAX];
    bool is_named = w->named && endpoint_equal(ep, &w->named->endpoints[0]);

    write_text(w, "Endpoint", is_named ? w->named->names[0] : endpoint_format(ep, text));
}

static void write_peer(
    struct writer *w, const struct wg_peer *p, const char *name, bool with_keepalive)
{
    char key[X25519_BASE64_MAX];
    char psk[BASE64_ROOM(sizeof(p->psk.b))];

    if (!w->style->is_compact && w->out.len > 0)
        str_add(&w->out, "\n");
    str_add(&w->out, "[Peer]\n");
    if (!w->style->is_compact)
        str_addf(&w->out, "# %s\n", name);
    write_text(w, "PublicKey", x25519_public_format(&p->key, key));
    if (!secret_is_zero(p->psk.b, sizeof(p->psk.b))) {
        base64_encode(p->psk.b, sizeof(p->psk.b), psk);
        write_text(w, "PresharedKey", psk);
        secret_wipe(psk, sizeof(psk));
    }
    write_prefixes(w, "AllowedIPs", p->allowed, p->n_allowed);
    if (!endpoint_is_none(&p->endpoint))
        write_endpoint(w, &p->endpoint);
    if (with_keepalive)
        write_number(w, "PersistentKeepalive", p->keepalive);
}

static void write_peers(
    struct writer *w, const struct wg_config *c, const struct snapshot *s, bool with_keepalive)
{
    for (size_t i = 0; i < s->nodes.n; i++) {
        const struct node *node = &s->nodes.items[i]->node;
        const struct wg_peer *p = wg_config_find(c, &node->key);

        if (p)
            write_peer(w, p, node->meta.name, with_keepalive);
    }
}

char *wg_quick_format(const struct wg_config *c, const struct snapshot *s,
    const struct wg_quick_style *style, size_t *ret_len)
{
    struct writer w = writer_make(style);
    const struct node *hub = render_hub(s);

    if (hub && hub->hub->n_names > 0)
        w.named = hub->hub;
    write_interface(&w, c, s);
    write_peers(&w, c, s, style->secret != NULL);
    return str_take(&w.out, ret_len);
}

char *wg_quick_format_peers(const struct wg_config *c, const struct snapshot *s, size_t *ret_len)
{
    static const struct wg_quick_style style = {.is_compact = false};
    struct writer w = writer_make(&style);

    write_peers(&w, c, s, true);
    return str_take(&w.out, ret_len);
}
