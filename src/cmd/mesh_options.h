/*
 * mesh_options.h - option parsers for what a network has: subnets, blocks, places, labels, names.
 *
 * They are used like those of options.h. They stand apart from them because the program weft-wg,
 * which has options.c, knows neither objects nor hubs.
 */
#pragma once

#include <jansson.h>

struct err;
struct label;
struct option;
struct option_list;
struct subnets;

/** The row of --route, for commands that say what is reached through a node. [struct subnets] */
#define OPTION_SUBNETS_ROUTE(field)                                                                \
    {                                                                                              \
        "--route", "CIDR", option_subnets, &(field), NULL,                                         \
            "all others reach this subnet through it; with commas, or given again, several",       \
            .many = true                                                                           \
    }

/** option_subnets() - one subnet, or several with commas between, are added. [struct subnets] */
int option_subnets(const struct option *o, const char *text, struct err *e);

/**
 * option_public() - a place where nodes reach a hub, as HOST[:PORT], is appended
 *
 * Its form is checked; a name is looked up later. [struct option_list]
 */
int option_public(const struct option *o, const char *text, struct err *e);

/**
 * option_listen() - where to listen, as ":PORT", "PORT" or "ADDRESS:PORT"
 *
 * The option's @min is the lowest port that ":PORT" and "PORT" may name. Without an address it is
 * every one of the machine. [struct endpoint]
 */
int option_listen(const struct option *o, const char *text, struct err *e);

/** option_cidr4() - an IPv4 block for a network's nodes, as block_parse(). [struct ip_prefix] */
int option_cidr4(const struct option *o, const char *text, struct err *e);

/**
 * option_object_name() - an object's name, or an edge's: two names with "--" between
 *
 * It may become part of a URL. [const char *]
 */
int option_object_name(const struct option *o, const char *text, struct err *e);

/**
 * mesh_options_check_name() - the same for a name that does not come from an option
 * @what:	what has the name, for the sentence ("metadata.name")
 *
 * Return: 0, or -EINVAL with words.
 */
int mesh_options_check_name(const char *text, const char *what, struct err *e);

/**
 * mesh_options_parse_labels() - the labels of a node, from every --label KEY=VALUE
 * @given:	what option_append() has collected
 * @ret:	gives an array of @given->n, free() it; it is not NULL when there are none
 *
 * Return: 0 or negative errno with words.
 */
int mesh_options_parse_labels(struct label **ret, const struct option_list *given, struct err *e);

/** mesh_options_set_rate() - set one rate to what was typed, which is the hub's to judge; "none"
 * removes it. 0, or -1: no memory, or the text is no UTF-8. */
int mesh_options_set_rate(json_t *rates, const char *name, const char *text);

/**
 * mesh_options_print_admit() - print the command with which the hub admits @routes of a node
 * @node:	the node's name
 *
 * On standard output, without a newline.
 */
void mesh_options_print_admit(const char *node, const struct subnets *routes);
