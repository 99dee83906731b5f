/* option_public.h - a place where nodes reach a hub, for the tables of options.h. */
#pragma once

struct err;
struct option;

/** option_public() - "HOST[:PORT]", one more of the field: struct option_list. No name is looked
 * up. */
int option_public(const struct option *o, const char *text, struct err *e);
