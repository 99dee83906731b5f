/*
 * wg_quick.h - a configuration as text: a file of wg-quick(8), or what `wg syncconf` takes.
 *
 * A stock WireGuard becomes a node with the file, and stays one with the text:
 * both have the same peers, so that what a running interface is given is what
 * its file would say today.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct snapshot;
struct wg_config;
struct x25519_secret;

/** Where wg-quick finds the private key unless said otherwise; %i is the interface. */
#define WG_QUICK_KEY_FILE "/etc/wireguard/%i.key"

/** How the file is to be. */
struct wg_quick_style {
    const char *key_file;               /* borrowed; the node reads its private key from it when the
                                           interface comes up */
    const struct x25519_secret *secret; /* borrowed; NULL: the private key is not in the text. With
                                           it the file needs nothing of its machine, as a phone's */
    bool is_compact; /* without comments, empty lines and spaces: for a QR code */
};

/**
 * wg_quick_format() - the file's text
 * @c:		as render_config() gave it
 * @s:		the same snapshot; peers come in the order of its names, each below its name
 *
 * Where the hub has a name, that is its endpoint: the file is read again when it is elsewhere.
 *
 * Return: gives it, free() it, and wipe it before that if it has the private
 * key; NULL for no memory.
 */
char *wg_quick_format(const struct wg_config *c, const struct snapshot *s,
    const struct wg_quick_style *style, size_t *ret_len);

/**
 * wg_quick_format_peers() - all peers, as `wg syncconf` takes them beside an [Interface] section
 *
 * The private key and the port are the node's own: `wg syncconf` takes them
 * from the interface when they are not said. Endpoints are addresses: whoever
 * is told this has reached the hub. As wg_quick_format() otherwise.
 */
char *wg_quick_format_peers(const struct wg_config *c, const struct snapshot *s, size_t *ret_len);
