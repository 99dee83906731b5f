/*
 * node_names.h - the nodes' names in this machine's hosts file, and which of them mean something
 * else here.
 *
 * Threads: the loop's, where nothing else is said.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "agent/resolved_link.h"
#include "base/clock.h"
#include "base/err.h"
#include "net/address/resolve.h"
#include "os/log.h"

struct name_check;

/* ---- names that mean something else ---------------------------------------------------------- */

/*
 * Which names of the network mean something else on this machine already?
 *
 * Theory of operation. A thread of its own asks for one name after the other
 * (net/address/resolve.h blocks): new names first, and each name again every minute, or less
 * often where there are so many that it would ask for more than ten a second. A name is PENDING
 * until the first answer. While the resolver does not answer at all, every name counts as FREE.
 *
 * Threads: name_check_*() are the loop's; what is shared is guarded by a lock
 * that is held for moments. A question that is under way when name_check_free() is called is not
 * waited for; its thread ends later.
 */

enum name_verdict {
    NAME_VERDICT_PENDING,   /* being asked, or to be asked */
    NAME_VERDICT_FREE,      /* nothing else answers to it */
    NAME_VERDICT_ELSEWHERE, /* something does */
};

/** As name_lookup(). */
typedef enum name_found (*name_lookup_fn)(const struct name_query *q, struct ip_addr *ret_where);

/** name_check_new() - asks for nothing yet. 0 or negative errno with words. */
int name_check_new(struct name_check **ret, name_lookup_fn lookup, struct err *e);

/**
 * name_check_want() - replace the names that are asked for
 * @queries:	@n of them, with different names; copied
 *
 * What is known of names that were there before is kept.
 *
 * Return: false for no memory; then nothing has changed.
 */
bool name_check_want(struct name_check *c, const struct name_query *queries, size_t n);

/**
 * name_check_ask() - the verdict about one of the names
 * @ret_where:	set for ELSEWHERE: where the name leads; none: not known
 */
enum name_verdict name_check_ask(
    struct name_check *c, const char *name, nsec_t now, struct ip_addr *ret_where);

/** name_check_free() - release it. */
struct name_check *name_check_free(struct name_check *c);

/* ---- the hosts file -------------------------------------------------------------------------- */

/*
 * The nodes of the network by name, in this machine's hosts file and in what its
 * resolver answers (docs/NAMES.md).
 *
 * The file follows the snapshot, a little later than the interface does, so that many nodes that
 * come at once are written once. Without a change it is compared each ten seconds, because other
 * programs may have removed the block.
 *
 * The resolver is asked by the thread of a struct name_check.
 */

/** What holds for all updates. */
struct node_names_options {
    bool is_on;                  /* the node was told at its join to keep the names */
    const char *file;            /* pinned: HOSTS_FILE_DEFAULT; a test has another one */
    struct hosts_helper *helper; /* pinned: writes that file; NULL: this process does */
    name_lookup_fn lookup;       /* asks the resolver, in a thread: name_lookup() */
    struct resolver *resolver;   /* pinned: answers by the same names; NULL: there is none */
    const char *interface;       /* pinned: the overlay's, and ... */
    const char *link_file;       /* ... pinned: where it is written what systemd-resolved is to know
                                    of it (resolved_link.h); NULL: nowhere */
    const struct snapshot *born; /* pinned: as at the join, which names the owner of the lines: hubs
                                    come and go; NULL: the present one does */
};

struct node_names {
    struct node_names_options opt;
    struct name_check
        *check;         /* owns; NULL: no name was checked yet, or no thread could be started */
    json_t *left_out;   /* owns; [{"name", "node", "why"}]; NULL: not known yet */
    struct err failure; /* why the last update could not write the file; code 0: it could */
    bool is_settled; /* the last update left no name to be asked for, or could not write the file */
    nsec_t due_at;   /* time of the next update; NSEC_NEVER: none is planned */
    struct resolved_link written; /* what link_file has */
    struct log_limit limit;
};

/** node_names_deinit() - the file stays as it is. */
void node_names_deinit(struct node_names *nn);

/** node_names_request() - have an update at @at or earlier. */
void node_names_request(struct node_names *nn, nsec_t at);

/**
 * node_names_update() - make the block in the hosts file, and what the resolver answers by, what
 * the snapshot says; plans the next time
 * @lacks_v6:	this machine takes no IPv6 address, so no name leads to one
 *
 * A file that cannot be written is logged and tried again; @failure says why until it succeeds.
 */
void node_names_update(struct node_names *nn, const struct snapshot *s, bool lacks_v6, nsec_t now);

/** node_names_is_pending() - will names be in the file in a moment that are not there yet? */
bool node_names_is_pending(const struct node_names *nn);

/** node_names_remove() - take the block out of the file. 0 or negative errno with words. */
int node_names_remove(const struct node_names *nn, const struct snapshot *s, struct err *e);
