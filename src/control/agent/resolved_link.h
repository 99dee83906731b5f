/*
 * resolved_link.h - tells systemd-resolved which name server the overlay's interface has: this
 * node.
 *
 * Theory of operation. Where systemd-resolved runs it takes names to the name servers of the link
 * whose domain they end with. To say so takes root, which the agent is not. So the agent writes
 * down what is to be said, and says it again when the interface is another one; a unit of root's,
 * weft-resolved.path, notices, and "weft agent --tell-resolved" reads it and tells. That one
 * believes nothing it reads: only the interface's own addresses, within the blocks of the join, are
 * made its name servers, and only for the names of the network, which end in ".weft". What it has
 * said goes with the interface.
 *
 * Threads: any; the struct's owner only.
 */
#pragma once

#include <jansson.h>
#include <net/if.h>
#include <stdbool.h>

#include "base/addr.h"
#include "base/parse.h"

struct hosts_rules;
struct resolver_place;

/** What the agent writes beside its usual socket, and weft-resolved.path looks at. */
#define RESOLVED_LINK_FILE "/run/weft/resolved.json"

/** The link, and what is to be said of it. */
struct resolved_link {
    char interface[IF_NAMESIZE];
    unsigned index; /* of the interface; it is another one when somebody has made it anew */
    char network[NAME_MAX_LEN + 1];
    struct ip_addr address4;
    struct ip_addr address6; /* none: the machine takes no IPv6 address */
};

/**
 * resolved_link_write() - have it told, unless it is as it was told last
 * @path:	the file; failures are none, as nobody may be there who reads it
 * @last:	what was written last; set
 */
void resolved_link_write(const char *path, const char *interface,
    const struct resolver_place *place, struct resolved_link *last);

/** resolved_link_encode() - what the file holds; a new reference, or NULL for no memory. */
json_t *resolved_link_encode(const struct resolved_link *link);

/** resolved_link_decode() - 0; or negative errno with words. */
int resolved_link_decode(struct resolved_link *ret, const json_t *json, struct err *e);

/** resolved_link_equal() - is the same to be said? */
bool resolved_link_equal(const struct resolved_link *a, const struct resolved_link *b);

/** resolved_link_read() - 0; or negative errno with words: -ENOENT when there is no such file. */
int resolved_link_read(const char *path, struct resolved_link *ret, struct err *e);

/**
 * resolved_link_check() - is it of the network that was joined, and its interface's own?
 * @rules:	network and blocks of the join, from a file of root's
 *
 * Return: 0, or negative errno with words.
 */
int resolved_link_check(
    const struct resolved_link *link, const struct hosts_rules *rules, struct err *e);

/**
 * resolved_link_tell() - have systemd-resolved take the network's names, and no others, there
 * @resolvectl:	path of that program
 *
 * Return: 0; or non-zero with words.
 */
int resolved_link_tell(const struct resolved_link *link, const char *resolvectl, struct err *e);
