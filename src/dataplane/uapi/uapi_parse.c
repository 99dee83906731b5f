/* uapi_parse.c - see uapi_internal.h. */
#include "uapi/uapi_internal.h"

#include <errno.h>
#include <string.h>

#include "base/parse.h"
#include "base/secret.h"
#include "base/text.h"

/* Least MTU of a peer: RFC 791 has every host take so much. */
#define UAPI_MTU_MIN 576

typedef int (*value_fn)(struct uapi_item *ret, const char *value);

static int take_u16(struct uapi_item *ret, const char *value)
{
    return parse_u64(&ret->number, value, 0, UINT16_MAX, "value", NULL);
}

static int take_u32(struct uapi_item *ret, const char *value)
{
    return parse_u64(&ret->number, value, 0, UINT32_MAX, "value", NULL);
}

static int take_bool(struct uapi_item *ret, const char *value)
{
    ret->is_on = strcmp(value, "true") == 0;
    return ret->is_on || strcmp(value, "false") == 0 ? 0 : -EINVAL;
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
    int r = take_u16(ret, value);

    return r == 0 && ret->number != 0 && ret->number < UAPI_MTU_MIN ? -EINVAL : r;
}

/* What it says is read in access/. */
static int take_text(struct uapi_item *ret, const char *value)
{
    ret->text = value;
    return *value == '\0' ? -EINVAL : 0;
}

static int take_pinned(struct uapi_item *ret, const char *value)
{
    return pin_parse(&ret->pin, value) ? 0 : -EINVAL;
}

static int parse_rate_bits(uint64_t *ret, const char *value)
{
    int r = parse_u64(ret, value, 0, TRAFFIC_RATE_MAX, "value", NULL);

    return r == 0 && !traffic_rate_is_allowed(*ret) ? -EINVAL : r;
}

static int take_rate(struct uapi_item *ret, const char *value)
{
    return parse_rate_bits(&ret->number, value);
}

/* "CLASS:BITS". */
static int take_class_rate(struct uapi_item *ret, const char *value)
{
    const char *colon = strchr(value, ':');

    if (!colon || !traffic_class_parse(&ret->class_rate.class, value, (size_t)(colon - value)))
        return -EINVAL;
    return parse_rate_bits(&ret->class_rate.rate, colon + 1);
}

static const struct {
    const char *name;
    value_fn take;
    const char *word; /* the only value that it has, where there is no @take */
} table[] = {
    [UAPI_KEY_GET] = {"get", .word = "1"},
    [UAPI_KEY_SET] = {"set", .word = "1"},
    [UAPI_KEY_STATS] = {"stats", .word = "1"},
    [UAPI_KEY_ACCESS_COUNTS] = {"access_counts", .word = "1"},
    [UAPI_KEY_HAND_OVER] = {"hand_over", .word = "1"},
    [UAPI_KEY_PRIVATE_KEY] = {"private_key", take_private_key},
    [UAPI_KEY_LISTEN_PORT] = {"listen_port", take_u16},
    [UAPI_KEY_FWMARK] = {"fwmark", take_u32},
    [UAPI_KEY_REPLACE_PEERS] = {"replace_peers", .word = "true"},
    [UAPI_KEY_NEXT_PRIVATE_KEY] = {"next_private_key", take_private_key},
    [UAPI_KEY_INITIATE_WITH_NEXT] = {"initiate_with_next", take_bool},
    [UAPI_KEY_RELAY] = {"relay", take_bool},
    [UAPI_KEY_RATE] = {"rate", take_rate},
    [UAPI_KEY_CLASS_RATE] = {"class_rate", take_class_rate},
    [UAPI_KEY_SHOW_DSCP] = {"show_dscp", take_bool},
    [UAPI_KEY_ACCESS] = {"access", take_text},
    [UAPI_KEY_PUBLIC_KEY] = {"public_key", take_public_key},
    [UAPI_KEY_REMOVE] = {"remove", .word = "true"},
    [UAPI_KEY_UPDATE_ONLY] = {"update_only", .word = "true"},
    [UAPI_KEY_PRESHARED_KEY] = {"preshared_key", take_preshared_key},
    [UAPI_KEY_ENDPOINT] = {"endpoint", take_endpoint},
    [UAPI_KEY_KEEPALIVE] = {"persistent_keepalive_interval", take_u16},
    [UAPI_KEY_REPLACE_ALLOWED_IPS] = {"replace_allowed_ips", .word = "true"},
    [UAPI_KEY_ALLOWED_IP] = {"allowed_ip", take_allowed_ip},
    [UAPI_KEY_PROTOCOL_VERSION] = {"protocol_version", take_version},
    [UAPI_KEY_CIPHER] = {"cipher", take_cipher},
    [UAPI_KEY_MTU] = {"mtu", take_mtu},
    [UAPI_KEY_NEXT_PUBLIC_KEY] = {"next_public_key", take_public_key},
    [UAPI_KEY_REPLACES] = {"replaces", take_public_key},
    [UAPI_KEY_INITIATE_WITH_CURRENT] = {"initiate_with_current", take_bool},
    [UAPI_KEY_PINNED] = {"pinned_endpoint", take_pinned},
    [UAPI_KEY_HANDSHAKE] = {"handshake", .word = "now"},
    [UAPI_KEY_RELAYED] = {"relayed", take_bool},
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
        if (table[i].take)
            r = table[i].take(&item, eq + 1);
        else
            r = strcmp(eq + 1, table[i].word) == 0 ? 0 : -EINVAL;
        if (r == 0)
            *ret = item;
        secret_wipe(&item, sizeof(item));
        return r;
    }
    return -EINVAL;
}
