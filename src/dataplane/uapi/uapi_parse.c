/* uapi_parse.c - see uapi_internal.h. */
#include "uapi/uapi_internal.h"

#include <errno.h>
#include <string.h>

#include "base/parse.h"
#include "base/secret.h"
#include "base/text.h"

typedef int (*value_fn)(struct uapi_item *ret, const char *value);

static int number(uint64_t *ret, const char *value, uint64_t max)
{
    return parse_u64(ret, value, 0, max, "value", NULL);
}

/* "1" for commands, "true" for flags: the only value that they have. */
static int take_one(struct uapi_item *ret, const char *value)
{
    return strcmp(value, "1") == 0 ? 0 : -EINVAL;
}

static int take_true(struct uapi_item *ret, const char *value)
{
    return strcmp(value, "true") == 0 ? 0 : -EINVAL;
}

static int take_private_key(struct uapi_item *ret, const char *value)
{
    return x25519_secret_parse_hex(&ret->private_key, value) ? 0 : -EINVAL;
}

static int take_public_key(struct uapi_item *ret, const char *value)
{
    return x25519_public_parse_hex(&ret->public_key, value) ? 0 : -EINVAL;
}

static int take_preshared_key(struct uapi_item *ret, const char *value)
{
    return hex_decode(value, ret->preshared_key.b, sizeof(ret->preshared_key.b)) ? 0 : -EINVAL;
}

static int take_listen_port(struct uapi_item *ret, const char *value)
{
    uint64_t v;
    int r = number(&v, value, UINT16_MAX);

    if (r == 0)
        ret->listen_port = (uint16_t)v;
    return r;
}

static int take_fwmark(struct uapi_item *ret, const char *value)
{
    uint64_t v;
    int r = number(&v, value, UINT32_MAX);

    if (r == 0)
        ret->fwmark = (uint32_t)v;
    return r;
}

static int take_keepalive(struct uapi_item *ret, const char *value)
{
    uint64_t v;
    int r = number(&v, value, UINT16_MAX);

    if (r == 0)
        ret->keepalive_s = (uint16_t)v;
    return r;
}

static int take_endpoint(struct uapi_item *ret, const char *value)
{
    return endpoint_parse(&ret->endpoint, value, NULL);
}

static int take_allowed_ip(struct uapi_item *ret, const char *value)
{
    ret->allowed_ip.is_removal = *value == '-';
    if (*value == '-' || *value == '+')
        value++;
    return ip_prefix_parse(&ret->allowed_ip.prefix, value, NULL);
}

static int take_version(struct uapi_item *ret, const char *value)
{
    return strcmp(value, "1") == 0 ? 0 : -EPROTO;
}

static int take_cipher(struct uapi_item *ret, const char *value)
{
    return noise_choice_parse(&ret->cipher, value, NULL);
}

/* 0: none of its own. */
static int take_mtu(struct uapi_item *ret, const char *value)
{
    uint64_t v;
    int r = number(&v, value, UINT16_MAX);

    if (r == 0 && v != 0 && v < UAPI_MTU_MIN)
        r = -EINVAL;
    if (r == 0)
        ret->mtu = (uint16_t)v;
    return r;
}

static int take_pinned(struct uapi_item *ret, const char *value)
{
    return pin_parse(&ret->pin, value) ? 0 : -EINVAL;
}

static int take_relaying(struct uapi_item *ret, const char *value)
{
    ret->is_relaying = strcmp(value, "true") == 0;
    return ret->is_relaying || strcmp(value, "false") == 0 ? 0 : -EINVAL;
}

static int take_rate(struct uapi_item *ret, const char *value)
{
    int r = number(&ret->rate, value, TRAFFIC_RATE_MAX);

    return r == 0 && !traffic_rate_is_allowed(ret->rate) ? -EINVAL : r;
}

/* "CLASS:BITS". */
static int take_class_rate(struct uapi_item *ret, const char *value)
{
    const char *colon = strchr(value, ':');
    uint64_t rate = 0;
    int r;

    if (!colon || !traffic_class_parse(&ret->class_rate.class, value, (size_t)(colon - value)))
        return -EINVAL;
    r = number(&rate, colon + 1, TRAFFIC_RATE_MAX);
    if (r == 0 && !traffic_rate_is_allowed(rate))
        r = -EINVAL;
    ret->class_rate.rate = rate;
    return r;
}

static int take_show_dscp(struct uapi_item *ret, const char *value)
{
    ret->shows_dscp = strcmp(value, "true") == 0;
    return ret->shows_dscp || strcmp(value, "false") == 0 ? 0 : -EINVAL;
}

static int take_now(struct uapi_item *ret, const char *value)
{
    return strcmp(value, "now") == 0 ? 0 : -EINVAL;
}

static const struct {
    const char *name;
    value_fn take;
} table[] = {
    [UAPI_KEY_GET] = {"get", take_one},
    [UAPI_KEY_SET] = {"set", take_one},
    [UAPI_KEY_STATS] = {"stats", take_one},
    [UAPI_KEY_HAND_OVER] = {"hand_over", take_one},
    [UAPI_KEY_PRIVATE_KEY] = {"private_key", take_private_key},
    [UAPI_KEY_LISTEN_PORT] = {"listen_port", take_listen_port},
    [UAPI_KEY_FWMARK] = {"fwmark", take_fwmark},
    [UAPI_KEY_REPLACE_PEERS] = {"replace_peers", take_true},
    [UAPI_KEY_RELAY] = {"relay", take_relaying},
    [UAPI_KEY_RATE] = {"rate", take_rate},
    [UAPI_KEY_CLASS_RATE] = {"class_rate", take_class_rate},
    [UAPI_KEY_SHOW_DSCP] = {"show_dscp", take_show_dscp},
    [UAPI_KEY_PUBLIC_KEY] = {"public_key", take_public_key},
    [UAPI_KEY_REMOVE] = {"remove", take_true},
    [UAPI_KEY_UPDATE_ONLY] = {"update_only", take_true},
    [UAPI_KEY_PRESHARED_KEY] = {"preshared_key", take_preshared_key},
    [UAPI_KEY_ENDPOINT] = {"endpoint", take_endpoint},
    [UAPI_KEY_KEEPALIVE] = {"persistent_keepalive_interval", take_keepalive},
    [UAPI_KEY_REPLACE_ALLOWED_IPS] = {"replace_allowed_ips", take_true},
    [UAPI_KEY_ALLOWED_IP] = {"allowed_ip", take_allowed_ip},
    [UAPI_KEY_PROTOCOL_VERSION] = {"protocol_version", take_version},
    [UAPI_KEY_CIPHER] = {"cipher", take_cipher},
    [UAPI_KEY_MTU] = {"mtu", take_mtu},
    [UAPI_KEY_PINNED] = {"pinned_endpoint", take_pinned},
    [UAPI_KEY_HANDSHAKE] = {"handshake", take_now},
    [UAPI_KEY_RELAYED] = {"relayed", take_relaying},
    [UAPI_KEY_PEER_RATE] = {"peer_rate", take_rate},
};
_Static_assert(sizeof(table) / sizeof(*table) == UAPI_KEY_N, "a parser per key");

int uapi_parse(struct uapi_item *ret, const char *line)
{
    const char *eq = strchr(line, '=');
    size_t len = eq ? (size_t)(eq - line) : 0;

    for (int i = UAPI_KEY_NONE + 1; eq && i < UAPI_KEY_N; i++) {
        struct uapi_item item = {.key = (enum uapi_key)i};
        int r;

        if (strlen(table[i].name) != len || memcmp(table[i].name, line, len) != 0)
            continue;
        r = table[i].take(&item, eq + 1);
        if (r == 0)
            *ret = item;
        secret_wipe(&item, sizeof(item));
        return r;
    }
    return -EINVAL;
}
