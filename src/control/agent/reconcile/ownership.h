/*
 * ownership.h - is the interface that has our name really ours?
 *
 * Another program may have made an interface of that name: a bridge, wg-quick's, another VPN's.
 * Such a one is never touched: neither its peers, nor its addresses, nor the link, nor is it
 * removed when this node leaves. It is asked when an engine is opened, not while one is open.
 *
 * Ours is one that has this node's public key, or the one that an earlier agent has told it.
 * Without a key, as a TUN device has that an engine has handed over, it is ours if it has one of
 * this node's addresses, or no address at all: nobody uses it then. All others are somebody else's.
 */
#pragma once

#include <stdbool.h>

struct err;
struct netlink;
struct wg_config;
struct x25519_public;

/** Somebody else's. */
#define OWNERSHIP_E_FOREIGN 1

/**
 * ownership_check() - whose is it?
 * @nl:		NETLINK_ROUTE
 * @want:	what it should be: its key and its addresses are ours
 * @told:	what it was told to be last; NULL: that is not known
 *
 * Changes nothing.
 *
 * Return: 0: ours, or there is none; OWNERSHIP_E_FOREIGN with words; or negative errno with words.
 */
int ownership_check(struct netlink *nl, const char *interface, const struct wg_config *want,
    const struct wg_config *told, struct err *e);

/**
 * ownership_is_of_key() - is there a WireGuard of that name, with that public key?
 * @nl:		NETLINK_ROUTE
 * @interface:	as a stranger may have said it
 * @ret:	its number, set when it is so
 *
 * Asks the kernel, or the engine that serves the interface; without the right to, the answer is no.
 */
bool ownership_is_of_key(
    struct netlink *nl, const char *interface, const struct x25519_public *key, unsigned *ret);
