/*
 * translate.h - makes the address map from the agent's snapshot and installs it in the kernel's
 * packet filter.
 */
#pragma once

#include "mesh/names/addrmap.h"

struct err;

/** Family and name of Weft's table in nftables. */
#define TRANSLATE_FAMILY "ip"
#define TRANSLATE_TABLE  "weft_addrmap"

/**
 * translate_read() - make the map from the agent's present snapshot
 * @ret:	on success to be released with addrmap_deinit()
 * @socket_path:	the agent's socket
 *
 * Return: 0; or non-zero with words: the agent does not answer, its answer is not a snapshot, or
 * there is no memory.
 */
int translate_read(struct addrmap *ret, const char *socket_path, struct err *e);

/**
 * translate_apply() - make the kernel translate by @m and by no earlier map
 *
 * Return: 0; or negative errno with words.
 */
int translate_apply(const struct addrmap *m, struct err *e);

/**
 * translate_remove() - remove Weft's table, which ends all its translations
 *
 * Return: 0; or negative errno with words.
 */
int translate_remove(struct err *e);
