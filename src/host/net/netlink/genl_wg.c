/* genl_wg.c - see genl_wg.h. */
#include "net/netlink/genl_wg.h"

#include <errno.h>
#include <linux/genetlink.h>
#include <linux/wireguard.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/secret.h"
#include "mesh/config/diff.h"
#include "mesh/config/wg_config.h"
#include "net/address/sockaddr.h"

/* Most bytes that one peer without its blocks, and one block, add to a message. */
#define PEER_SIZE  256
#define BLOCK_SIZE 64

static struct nlmsghdr *start_message(
    void *buf, uint16_t family, uint16_t flags, uint8_t command, uint8_t version)
{
    struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
    struct genlmsghdr *genl;

    nlh->nlmsg_type = family;
    nlh->nlmsg_flags = NLM_F_REQUEST | flags;
    genl = mnl_nlmsg_put_extra_header(nlh, sizeof(*genl));
    genl->cmd = command;
    genl->version = version;
    return nlh;
}

/* ---- opening -------------------------------------------------------------------------------- */

static int take_family(const struct nlmsghdr *nlh, void *ctx)
{
    const struct nlattr *attrs[CTRL_ATTR_MAX + 1];
    size_t len = mnl_nlmsg_get_payload_len(nlh);
    uint16_t *family = ctx;

    if (len < sizeof(struct genlmsghdr))
        return -EBADMSG;
    netlink_attributes(mnl_nlmsg_get_payload_offset(nlh, sizeof(struct genlmsghdr)),
        len - sizeof(struct genlmsghdr), attrs, CTRL_ATTR_MAX + 1);
    if (attrs[CTRL_ATTR_FAMILY_ID] &&
        mnl_attr_validate(attrs[CTRL_ATTR_FAMILY_ID], MNL_TYPE_U16) >= 0)
        *family = mnl_attr_get_u16(attrs[CTRL_ATTR_FAMILY_ID]);
    return 0;
}

int genl_wg_open(struct genl_wg *ret)
{
    _Alignas(struct nlmsghdr) char buf[256];
    struct genl_wg g = {.nl = NETLINK_NULL};
    struct nlmsghdr *nlh;
    int r = netlink_open(&g.nl, NETLINK_GENERIC);

    if (r < 0)
        return r;
    nlh = start_message(buf, GENL_ID_CTRL, NLM_F_ACK, CTRL_CMD_GETFAMILY, 1);
    mnl_attr_put_strz(nlh, CTRL_ATTR_FAMILY_NAME, WG_GENL_NAME);
    r = netlink_request(&g.nl, nlh, take_family, &g.family);
    if (r == -ENOENT || (r == 0 && g.family == 0))
        r = GENL_WG_E_UNSUPPORTED;
    if (r != 0) {
        netlink_close(&g.nl);
        return r;
    }
    *ret = g;
    return 0;
}

/* ---- changing ------------------------------------------------------------------------------- */

/** A change on its way into messages. */
struct encoder {
    char *buf; /* owns; one message */
    uint16_t family;
    unsigned ifindex;
    genl_wg_message_fn fn;
    void *ctx;
    struct nlmsghdr *nlh; /* being filled */
    struct nlattr *peers; /* open nest in it */
};

static void begin(struct encoder *en)
{
    en->nlh = start_message(en->buf, en->family, NLM_F_ACK, WG_CMD_SET_DEVICE, WG_GENL_VERSION);
    mnl_attr_put_u32(en->nlh, WGDEVICE_A_IFINDEX, en->ifindex);
}

static int finish(struct encoder *en)
{
    int r;

    mnl_attr_nest_end(en->nlh, en->peers);
    r = en->fn(en->nlh, en->ctx);
    secret_wipe(en->buf, en->nlh->nlmsg_len);
    return r;
}

static int next_message(struct encoder *en)
{
    int r = finish(en);

    begin(en);
    en->peers = mnl_attr_nest_start(en->nlh, WGDEVICE_A_PEERS);
    return r;
}

/* Adds all attributes of a peer except its blocks. */
static void put_peer(struct nlmsghdr *nlh, const struct diff_peer *change)
{
    const struct wg_peer *p = &change->peer;
    union sockaddr_inet sa;
    uint32_t flags = 0;

    if (change->op == DIFF_OP_REMOVE)
        flags = WGPEER_F_REMOVE_ME;
    else if (change->op == DIFF_OP_UPDATE)
        flags = WGPEER_F_UPDATE_ONLY;
    if (change->set_allowed)
        flags |= WGPEER_F_REPLACE_ALLOWEDIPS;
    mnl_attr_put(nlh, WGPEER_A_PUBLIC_KEY, sizeof(p->key.b), p->key.b);
    mnl_attr_put_u32(nlh, WGPEER_A_FLAGS, flags);
    if (change->set_psk)
        mnl_attr_put(nlh, WGPEER_A_PRESHARED_KEY, sizeof(p->psk.b), p->psk.b);
    if (change->set_endpoint)
        mnl_attr_put(nlh, WGPEER_A_ENDPOINT, sockaddr_from_endpoint(&sa, &p->endpoint), &sa);
    if (change->set_keepalive)
        mnl_attr_put_u16(nlh, WGPEER_A_PERSISTENT_KEEPALIVE_INTERVAL, p->keepalive);
}

static void put_block(struct nlmsghdr *nlh, const struct ip_prefix *block)
{
    struct nlattr *nest = mnl_attr_nest_start(nlh, 0);
    bool v4 = ip_addr_is_v4(&block->addr);

    mnl_attr_put_u16(nlh, WGALLOWEDIP_A_FAMILY, v4 ? AF_INET : AF_INET6);
    mnl_attr_put(nlh, WGALLOWEDIP_A_IPADDR, v4 ? 4 : 16, block->addr.b + (v4 ? 12 : 0));
    mnl_attr_put_u8(nlh, WGALLOWEDIP_A_CIDR_MASK, block->len);
    mnl_attr_nest_end(nlh, nest);
}

static int encode_peer(struct encoder *en, const struct diff_peer *change)
{
    const struct wg_peer *p = &change->peer;
    struct nlattr *blocks;
    struct nlattr *nest;
    size_t i = 0;
    int r = 0;

    if (en->nlh->nlmsg_len + PEER_SIZE > NETLINK_MESSAGE_MAX)
        r = next_message(en);
    nest = mnl_attr_nest_start(en->nlh, 0);
    put_peer(en->nlh, change);
    while (r == 0 && change->set_allowed && i < p->n_allowed) {
        blocks = mnl_attr_nest_start(en->nlh, WGPEER_A_ALLOWEDIPS);
        for (; i < p->n_allowed && en->nlh->nlmsg_len + BLOCK_SIZE <= NETLINK_MESSAGE_MAX; i++)
            put_block(en->nlh, &p->allowed[i]);
        mnl_attr_nest_end(en->nlh, blocks);
        if (i == p->n_allowed)
            break;
        mnl_attr_nest_end(en->nlh, nest);
        r = next_message(en);
        nest = mnl_attr_nest_start(en->nlh, 0);
        /* The same peer in the next message: it exists by now, and keeps the blocks that it has. */
        mnl_attr_put(en->nlh, WGPEER_A_PUBLIC_KEY, sizeof(p->key.b), p->key.b);
        mnl_attr_put_u32(en->nlh, WGPEER_A_FLAGS, WGPEER_F_UPDATE_ONLY);
    }
    mnl_attr_nest_end(en->nlh, nest);
    return r;
}

int genl_wg_encode(uint16_t family, unsigned ifindex, const struct diff *d,
    const struct x25519_secret *secret, genl_wg_message_fn fn, void *ctx)
{
    struct encoder en = {.family = family, .ifindex = ifindex, .fn = fn, .ctx = ctx};
    int r = 0;

    en.buf = calloc(1, NETLINK_MESSAGE_MAX);
    if (!en.buf)
        return -ENOMEM;
    begin(&en);
    if (d->set_key)
        mnl_attr_put(en.nlh, WGDEVICE_A_PRIVATE_KEY, sizeof(secret->b), secret->b);
    if (d->set_listen_port)
        mnl_attr_put_u16(en.nlh, WGDEVICE_A_LISTEN_PORT, d->listen_port);
    if (d->set_fwmark)
        mnl_attr_put_u32(en.nlh, WGDEVICE_A_FWMARK, d->fwmark);
    en.peers = mnl_attr_nest_start(en.nlh, WGDEVICE_A_PEERS);
    for (size_t i = 0; r == 0 && i < d->n_peers; i++)
        r = encode_peer(&en, &d->peers[i]);
    if (r == 0)
        r = finish(&en);
    secret_wipe(en.buf, NETLINK_MESSAGE_MAX);
    free(en.buf);
    return r;
}

static int send_message(struct nlmsghdr *nlh, void *ctx)
{
    return netlink_request(ctx, nlh, NULL, NULL);
}

int genl_wg_apply(
    struct genl_wg *g, unsigned ifindex, const struct diff *d, const struct x25519_secret *secret)
{
    return genl_wg_encode(g->family, ifindex, d, secret, send_message, &g->nl);
}

/* ---- reading -------------------------------------------------------------------------------- */

/* False when the attribute is there and has another size. */
static bool copy_exactly(const struct nlattr *attr, void *ret, size_t len)
{
    if (!attr)
        return true;
    if (mnl_attr_get_payload_len(attr) != len)
        return false;
    memcpy(ret, mnl_attr_get_payload(attr), len);
    return true;
}

static bool get_endpoint(const struct nlattr *attr, struct endpoint *ret)
{
    union sockaddr_inet sa = {0};
    size_t len = attr ? mnl_attr_get_payload_len(attr) : 0;

    if (!attr)
        return true;
    if (len != sizeof(sa.v4) && len != sizeof(sa.v6))
        return false;
    memcpy(&sa, mnl_attr_get_payload(attr), len);
    return sockaddr_to_endpoint(&sa, ret);
}

static bool get_facts(const struct nlattr *const attrs[], struct wg_facts *ret)
{
    struct {
        int64_t sec;
        int64_t nsec;
    } handshake = {0};

    if (!copy_exactly(attrs[WGPEER_A_LAST_HANDSHAKE_TIME], &handshake, sizeof(handshake)) ||
        !copy_exactly(attrs[WGPEER_A_RX_BYTES], &ret->rx_bytes, sizeof(ret->rx_bytes)) ||
        !copy_exactly(attrs[WGPEER_A_TX_BYTES], &ret->tx_bytes, sizeof(ret->tx_bytes)))
        return false;
    ret->handshake_sec = handshake.sec;
    ret->handshake_nsec = (uint32_t)handshake.nsec;
    return true;
}

static int take_block(const struct nlattr *nest, struct wg_peer *p)
{
    const struct nlattr *attrs[WGALLOWEDIP_A_MAX + 1];
    struct ip_prefix block;
    uint16_t family = 0;
    uint8_t b[16];
    bool v4;

    netlink_attributes(
        mnl_attr_get_payload(nest), mnl_attr_get_payload_len(nest), attrs, WGALLOWEDIP_A_MAX + 1);
    if (!attrs[WGALLOWEDIP_A_FAMILY] || !attrs[WGALLOWEDIP_A_IPADDR] ||
        !attrs[WGALLOWEDIP_A_CIDR_MASK] ||
        !copy_exactly(attrs[WGALLOWEDIP_A_FAMILY], &family, sizeof(family)))
        return -EBADMSG;
    v4 = family == AF_INET;
    if (!copy_exactly(attrs[WGALLOWEDIP_A_IPADDR], b, v4 ? 4 : 16) ||
        !copy_exactly(attrs[WGALLOWEDIP_A_CIDR_MASK], &block.len, 1) || block.len > (v4 ? 32 : 128))
        return -EBADMSG;
    block.addr = v4 ? ip_addr_v4(b) : ip_addr_v6(b);
    return wg_peer_allow(p, &block);
}

static int take_blocks(const struct nlattr *nest, struct wg_peer *p)
{
    const struct nlattr *attr;
    int r = 0;

    if (!nest)
        return 0;
    mnl_attr_for_each_nested(attr, nest) {
        r = take_block(attr, p);
        if (r < 0)
            break;
    }
    return r;
}

static int take_peer(const struct nlattr *nest, struct wg_config *c)
{
    const struct nlattr *attrs[WGPEER_A_MAX + 1];
    struct wg_peer *last = c->n_peers > 0 ? &c->peers[c->n_peers - 1] : NULL;
    struct wg_peer p = WG_PEER_NULL;
    int r;

    netlink_attributes(
        mnl_attr_get_payload(nest), mnl_attr_get_payload_len(nest), attrs, WGPEER_A_MAX + 1);
    if (!attrs[WGPEER_A_PUBLIC_KEY] ||
        !copy_exactly(attrs[WGPEER_A_PUBLIC_KEY], p.key.b, sizeof(p.key.b)))
        return -EBADMSG;
    if (last && x25519_public_equal(&last->key, &p.key))
        return take_blocks(attrs[WGPEER_A_ALLOWEDIPS], last);
    if (!copy_exactly(attrs[WGPEER_A_PRESHARED_KEY], p.psk.b, sizeof(p.psk.b)) ||
        !copy_exactly(
            attrs[WGPEER_A_PERSISTENT_KEEPALIVE_INTERVAL], &p.keepalive, sizeof(p.keepalive)) ||
        !get_endpoint(attrs[WGPEER_A_ENDPOINT], &p.endpoint) || !get_facts(attrs, &p.facts))
        return -EBADMSG;
    r = take_blocks(attrs[WGPEER_A_ALLOWEDIPS], &p);
    if (r < 0) {
        wg_peer_deinit(&p);
        return r;
    }
    return wg_config_add(c, &p);
}

int genl_wg_decode(const struct nlmsghdr *nlh, struct wg_config *c)
{
    const struct nlattr *attrs[WGDEVICE_A_MAX + 1];
    size_t len = mnl_nlmsg_get_payload_len(nlh);
    const struct nlattr *attr;
    int r = 0;

    if (len < sizeof(struct genlmsghdr))
        return -EBADMSG;
    netlink_attributes(mnl_nlmsg_get_payload_offset(nlh, sizeof(struct genlmsghdr)),
        len - sizeof(struct genlmsghdr), attrs, WGDEVICE_A_MAX + 1);
    if (!copy_exactly(attrs[WGDEVICE_A_PUBLIC_KEY], c->public.b, sizeof(c->public.b)) ||
        !copy_exactly(attrs[WGDEVICE_A_LISTEN_PORT], &c->listen_port, sizeof(c->listen_port)) ||
        !copy_exactly(attrs[WGDEVICE_A_FWMARK], &c->fwmark, sizeof(c->fwmark)))
        return -EBADMSG;
    if (!attrs[WGDEVICE_A_PEERS])
        return 0;
    mnl_attr_for_each_nested(attr, attrs[WGDEVICE_A_PEERS]) {
        r = take_peer(attr, c);
        if (r < 0)
            break;
    }
    return r;
}

static int take_answer(const struct nlmsghdr *nlh, void *ctx)
{
    return genl_wg_decode(nlh, ctx);
}

int genl_wg_get(struct genl_wg *g, unsigned ifindex, struct wg_config *ret)
{
    _Alignas(struct nlmsghdr) char buf[256];
    struct wg_config c = WG_CONFIG_NULL;
    struct nlmsghdr *nlh =
        start_message(buf, g->family, NLM_F_DUMP, WG_CMD_GET_DEVICE, WG_GENL_VERSION);
    int r;

    mnl_attr_put_u32(nlh, WGDEVICE_A_IFINDEX, ifindex);
    r = netlink_request(&g->nl, nlh, take_answer, &c);
    /* The private key and preshared keys came with it. */
    secret_wipe(g->nl.buf, NETLINK_MESSAGE_MAX);
    if (r == 0)
        r = wg_config_sort(&c, NULL);
    if (r < 0) {
        wg_config_deinit(&c);
        return r;
    }
    *ret = c;
    return 0;
}
