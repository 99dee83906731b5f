/* agent_core.c - see agent_core.h. */
#include "agent/agent_core.h"

#include <errno.h>

#include "agent/agent_handshakes.h"
#include "agent/agent_parts.h"
#include "agent/agent_pass.h"
#include "agent/agent_poll.h"
#include "base/err.h"

#define END_PATIENCE (1 * NSEC_PER_SEC)

/* ---- deadlines ------------------------------------------------------------------------------ */

nsec_t agent_core_due(const struct agent *a)
{
    nsec_t due = nsec_min(a->pass.due_at, a->poll.due_at);

    due = nsec_min(due, hub_set_due(&a->hubs));
    due = nsec_min(due, a->cache.due_at);
    return nsec_min(due, a->names.due_at);
}

void agent_core_run(struct agent *a, nsec_t now)
{
    if (now >= a->pass.due_at)
        agent_pass_run(a);
    if (now >= hub_set_due(&a->hubs))
        agent_poll_run_hubs(a, now);
    if (now >= a->poll.due_at)
        agent_poll_if_changed(a, now);
    if (now >= a->cache.due_at)
        snapshot_cache_save(&a->cache, &a->snapshot, now);
    if (now >= a->names.due_at)
        node_names_update(&a->names, &a->snapshot, a->reconcile.lacks_v6, now);
}

/* ---- the end -------------------------------------------------------------------------------- */

void agent_core_finish(struct agent *a, enum agent_end end)
{
    nsec_t now = a->clock();

    if (a->is_ending)
        return;
    a->is_ending = true;
    a->end = end;
    a->ends_at = now + END_PATIENCE;
    job_calls_end(&a->jobs);
    /* WireGuard goes on without this process, but paths that lead through this process end. */
    if (end == AGENT_END_STOPPED && path_driver_retreat(a->paths, now))
        agent_pass_run(a);
}

int agent_core_take_down(struct agent *a, struct err *names, struct err *e)
{
    int r = reconcile_take_down(&a->reconcile, e);

    *names = (struct err)ERR_NULL;
    /* A hosts file that cannot be written must not hold back the rest. */
    if (r == 0)
        (void)node_names_remove(&a->names, &a->snapshot, names);
    return r;
}

int agent_core_renew_engine(struct agent *a, struct err *e)
{
    int r;

    /* Only the old engine knows the port, and which peers have a session. */
    agent_poll_run(a);
    r = reconcile_retire_engine(&a->reconcile, e);
    if (r != 0)
        return r;
    /* The new interface may be another one: its rules have to be there from the first packet on. */
    forward_rules_forget(&a->rules);
    class_marks_forget(&a->marks);
    agent_pass_run(a);
    if (!a->reconcile.engine) {
        if (a->pass.fault.code >= 0)
            return err_set(e, -EIO, "no engine runs %s", a->state.interface);
        *e = a->pass.fault;
        return e->code;
    }
    agent_handshakes_renew(a);
    return 0;
}
