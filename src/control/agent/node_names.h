/*
 * node_names.h - the nodes of the network by name, in this machine's hosts file and in what its
 * resolver answers (docs/NAMES.md).
 *
 * The file follows the snapshot, a little later than the interface does, so that many nodes that
 * come at once are written once. Without a change it is compared each ten seconds, because other
 * programs may have removed the block.
 *
 * Threads: the loop's. The resolver is asked by a thread of name_check.h.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "agent/name_check.h"
#include "agent/resolved_link.h"
#include "base/clock.h"
#include "base/err.h"
#include "os/log.h"

struct hosts_helper;
struct resolver;
struct snapshot;

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
    struct resolved_link told; /* what link_file has */
    struct log_limit limit;
};

/** node_names_init() - nothing is planned yet. @opt: copied; without @is_on no file is written. */
void node_names_init(struct node_names *nn, const struct node_names_options *opt);

/** node_names_deinit() - the file stays as it is. Idempotent. */
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
