/*
 * genl_wg.h - the kernel's own WireGuard, through generic netlink.
 *
 * A configuration may be larger than one message, so it is sent and read in
 * several. Each message that is sent changes a part of the interface.
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

/** A connection to the kernel's WireGuard. */
struct genl_wg {
    struct netlink nl;
    uint16_t family; /* the number that the kernel gave to "wireguard" */
};

/** genl_wg_open() - 0, GENL_WG_E_UNSUPPORTED or negative errno. */
int genl_wg_open(struct genl_wg *ret);

/**
 * genl_wg_get() - read the interface's configuration
 * @ret:	untouched on failure, else sorted, to be released with wg_config_deinit()
 *
 * Return: 0 or negative errno: -ENODEV when there is no such interface,
 * -EOPNOTSUPP when it is not WireGuard's.
 */
int genl_wg_get(struct genl_wg *g, unsigned ifindex, struct wg_config *ret);

/**
 * genl_wg_apply() - change the interface's configuration
 * @secret:	the interface's private key; used when @d says that it has to be set
 *
 * Return: 0 or negative errno; after a failure a part of @d may have been applied.
 */
int genl_wg_apply(
    struct genl_wg *g, unsigned ifindex, const struct diff *d, const struct x25519_secret *secret);

/** genl_wg_message_fn - takes one request; negative errno ends the encoding. */
typedef int (*genl_wg_message_fn)(struct nlmsghdr *nlh, void *ctx);

/**
 * genl_wg_encode() - the requests that apply a change, one after the other
 * @fn:		called for each; borrows it; none has more than NETLINK_MESSAGE_MAX bytes
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
