/*
 * wg_quick.h - a configuration as a file of wg-quick(8).
 *
 * A stock WireGuard becomes a node with it. The private key is not in the
 * text: it is read from a file on the node when the interface comes up.
 */
#pragma once

#include <stddef.h>

struct snapshot;
struct wg_config;

/** Where wg-quick finds the private key unless said otherwise; %i is the interface. */
#define WG_QUICK_KEY_FILE "/etc/wireguard/%i.key"

/**
 * wg_quick_format() - the file's text
 * @c:		as render_config() gave it
 * @s:		the same snapshot; peers come in the order of its names, each below its name
 * @key_file:	where the node keeps its private key
 *
 * Return: gives it, free() it; NULL for no memory.
 */
char *wg_quick_format(
    const struct wg_config *c, const struct snapshot *s, const char *key_file, size_t *ret_len);
