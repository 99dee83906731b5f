/*
 * hosts_check.h - may these lines be put into the machine's hosts file?
 *
 * Asked by the process that writes the file for the agent (agent/hosts_helper.h) and trusts it with
 * nothing else: lines as hosts_add_block() makes them, of addresses of the overlay, with names that
 * are nobody else's.
 *
 * Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/addr.h"
#include "base/parse.h"

struct err;

/** What a helper was told at its start. */
struct hosts_rules {
    char network[NAME_MAX_LEN + 1]; /* owners begin with "NETWORK/NODE/" */
    char node[NAME_MAX_LEN + 1];    /* the same */
    struct ip_prefix cidr4;         /* of the overlay */
    struct ip_prefix cidr6;         /* the same */
};

/** hosts_check_owner() - is it this node's? 0 or -EINVAL with words. */
int hosts_check_owner(const struct hosts_rules *rules, const char *owner, struct err *e);

/**
 * hosts_check_block() - "ADDRESS<TAB>NAME [NAME...]" lines
 * @block:	@len bytes of anything
 *
 * Each address is of the overlay. Each name is one of letters, digits and "-", either below the
 * network's own domain, as "gpu-1.default.weft", or bare and not reserved (mesh/names/reserved.h);
 * so none is a name of the Internet. No line is longer than 1 KiB.
 *
 * Return: 0, or -EINVAL with words that name the line.
 */
int hosts_check_block(
    const struct hosts_rules *rules, const char *block, size_t len, struct err *e);
