/*
 * agent_names.c - the nodes of the network by name, in the machine's hosts file.
 *
 * Follows the snapshot, a little later than the interface does, so that many
 * nodes that come at once are written once; and looks whether the block is
 * still there when nothing changes.
 */
#include <errno.h>

#include "agent/agent_internal.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"
#include "mesh/hosts.h"
#include "sys/clock.h"
#include "sys/hosts_file.h"

#define LOOK_PERIOD (10 * NSEC_PER_SEC)

void agent__name_nodes(struct agent *a)
{
    _cleanup_(str_deinit) struct str block = STR_NULL;
    char owner[HOSTS_OWNER_MAX];
    struct err e = ERR_NULL;
    nsec_t now = clock_now();
    bool changed = false;
    int r;

    a->due.names = NSEC_NEVER;
    if (!a->state.keeps_hosts)
        return;
    hosts_add_block(&block, &a->snapshot, !a->reconcile.lacks_v6);
    r = block.failed ? err_set(&e, -ENOMEM, "no memory for %zu names", a->snapshot.nodes.n)
                     : hosts_file_put(HOSTS_FILE_DEFAULT, hosts_owner(&a->snapshot, owner),
                           str_text(&block), &changed, &e);
    if (r < 0)
        log_limited(&a->names_limit, now, LOG_LEVEL_WARNING,
            "the nodes' names are not kept, trying again: %s", err_text(&e));
    else if (changed)
        log_info("%zu names are in " HOSTS_FILE_DEFAULT, a->snapshot.nodes.n);
    agent__schedule(a, &a->due.names, now + LOOK_PERIOD);
}

int agent__forget_names(const struct agent *a, struct err *e)
{
    char owner[HOSTS_OWNER_MAX];
    bool changed;

    if (!a->state.keeps_hosts)
        return 0;
    return hosts_file_put(HOSTS_FILE_DEFAULT, hosts_owner(&a->snapshot, owner), NULL, &changed, e);
}
