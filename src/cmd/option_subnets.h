/* option_subnets.h - subnets on the command line, for the tables of options.h. */
#pragma once

struct err;
struct option;

/** option_subnets() - one, or several with commas, that are added to the field: struct subnets. */
int option_subnets(const struct option *o, const char *text, struct err *e);
