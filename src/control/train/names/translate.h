/*
 * translate.h - the address map at work: from the agent's snapshot into the packet filter.
 */
#pragma once

#include "mesh/names/addrmap.h"

struct err;

/** Family and name of our table. */
#define TRANSLATE_FAMILY "ip"
#define TRANSLATE_TABLE  "weft_addrmap"

/**
 * translate_read() - make the map that belongs to the agent's present snapshot
 * @ret:	to be released with addrmap_deinit()
 *
 * Return: 0; or non-zero with words: the agent does not answer.
 */
int translate_read(struct addrmap *ret, const char *socket_path, struct err *e);

/** translate_apply() - replace what the kernel translates by @m. 0 or negative errno with words. */
int translate_apply(const struct addrmap *m, struct err *e);

/** translate_remove() - end all translation. 0 or negative errno with words. */
int translate_remove(struct err *e);
