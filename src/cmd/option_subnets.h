/* option_subnets.h - subnets on the command line: in the tables of options.h, and in what is
 * printed. */
#pragma once

struct err;
struct option;
struct subnets;

/** The row of --route, for those who say what is reached through a node. [struct subnets] */
#define OPTION_SUBNETS_ROUTE(field)                                                                \
    {                                                                                              \
        "--route", "CIDR", option_subnets, &(field), NULL,                                         \
            "all others reach this subnet through it; with commas, or given again, several",       \
            .many = true                                                                           \
    }

/** option_subnets() - one, or several with commas, that are added to the field: struct subnets. */
int option_subnets(const struct option *o, const char *text, struct err *e);

/** option_subnets_print() - on standard output the command that admits @routes, without a newline.
 */
void option_subnets_print(const char *node, const struct subnets *routes);
