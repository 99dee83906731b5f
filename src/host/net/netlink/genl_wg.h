/*
 * genl_wg.h - the kernel's own WireGuard, through generic netlink.
 *
 * A configuration may be larger than a message: it is sent and read in
 * several, of which each alone leaves the interface in a state that is a step
 * on the way.
 *
 * Spec: linux/wireguard.h.
 */
#pragma once

#include <stdint.h>

#include "net/netlink/netlink.h"

struct diff;
struct wg_config;
struct x25519_secret;

/** The kernel has no WireGuard, or its module is not loaded yet. */
#define GENL_WG_E_UNSUPPORTED 1

/** A way to ask it. */
struct genl_wg {
    struct netlink nl;
    uint16_t family; /* the number that the kernel gave to "wireguard" */
};

#define GENL_WG_NULL                                                                               \
    {                                                                                              \
        .nl = NETLINK_NULL                                                                         \
    }

/** genl_wg_open() - 0, GENL_WG_E_UNSUPPORTED or negative errno. */
int genl_wg_open(struct genl_wg *ret);

/** genl_wg_close() - idempotent. */
void genl_wg_close(struct genl_wg *g);

/**
 * genl_wg_get() - what the interface is now
 * @ret:	untouched on failure, else sorted, to be released with wg_config_deinit()
 *
 * Return: 0 or negative errno: -ENODEV when there is no such interface,
 * -EOPNOTSUPP when it is not WireGuard's.
 */
int genl_wg_get(struct genl_wg *g, unsigned ifindex, struct wg_config *ret);

/**
 * genl_wg_apply() - change it
 * @secret:	the interface's private key, for when @d says that it has to be set
 *
 * Return: 0 or negative errno; a part may then have been applied.
 */
int genl_wg_apply(
    struct genl_wg *g, unsigned ifindex, const struct diff *d, const struct x25519_secret *secret);

/** genl_wg_message_fn - takes one request; negative errno ends the encoding. */
typedef int (*genl_wg_message_fn)(struct nlmsghdr *nlh, void *ctx);

/**
 * genl_wg_encode() - the requests that apply a change, one after the other
 * @fn:		takes each while it lasts; none has more than NETLINK_MESSAGE_MAX bytes
 *
 * Return: 0, -ENOMEM, or what @fn returned.
 */
int genl_wg_encode(uint16_t family, unsigned ifindex, const struct diff *d,
    const struct x25519_secret *secret, genl_wg_message_fn fn, void *ctx);

/**
 * genl_wg_decode() - take in one message of an answer
 * @c:		grows; a peer that continues the last one of @c is joined to it
 *
 * Return: 0; -EBADMSG when it is not as linux/wireguard.h says; -E2BIG; -ENOMEM.
 */
int genl_wg_decode(const struct nlmsghdr *nlh, struct wg_config *c);
