/* node.c - see node.h. */
#include "health/node.h"

#include <inttypes.h>

bool node_is_deaf(const struct node_facts *f)
{
    return f->has_agent && f->sending_for >= NODE_DEAF_AFTER;
}

bool node_is_down(const struct node_facts *f)
{
    bool is_gone = f->silent_for >= EDGE_SILENT_AFTER && f->session == NODE_SESSION_NONE;

    return f->has_agent && f->silent_for >= 0 && !f->reached_by &&
           ((f->lost_for >= NODE_LOST_AFTER && f->sending_for < 0) || is_gone);
}

bool node_is_apart(const struct node_facts *f)
{
    bool is_lost = f->lost_for >= NODE_APART_AFTER && f->sending_for < 0;
    bool is_gone = f->silent_for >= EDGE_SILENT_AFTER && f->session == NODE_SESSION_NONE;

    return f->has_agent && f->silent_for >= 0 && f->reached_by && (is_lost || is_gone);
}

bool node_is_silent(const struct node_facts *f)
{
    return f->has_agent && f->silent_for >= EDGE_SILENT_AFTER && !node_is_down(f);
}

bool node_is_forgotten(int64_t forgets_s, int64_t keepalive_s)
{
    return forgets_s > 0 && (keepalive_s == 0 || keepalive_s >= forgets_s);
}

int64_t node_probe_limit(uint32_t every)
{
    return 5 * (int64_t)every / 2;
}

/* A machine that is going down falls silent as a whole: its probe alone is silent only if the
 * machine was there after a report of the probe was missing. */
static bool is_probe_silent(const struct node_facts *f)
{
    int64_t missed_for = f->probe_for - f->probe_every - 2;

    return f->probe_every > 0 && f->probe_for >= node_probe_limit(f->probe_every) &&
           (f->there_for < 0 || f->there_for <= missed_for);
}

static void add_down(const struct node_facts *f, struct findings *set, int64_t at)
{
    if (f->lost_for >= NODE_LOST_AFTER)
        (void)findings_add(set, FINDING_NODE_DOWN, f->name, at,
            "%s has acknowledged nothing that the hub has sent it for %" PRId64
            " s, its agent was last heard %" PRId64 " s ago, and no probe that reports reaches it.",
            f->name, f->lost_for, f->silent_for);
    else
        (void)findings_add(set, FINDING_NODE_DOWN, f->name, at,
            "The agent of %s was last heard %" PRId64
            " s ago, it has no session with the hub, and no probe that reports reaches it.",
            f->name, f->silent_for);
}

static void add_apart(const struct node_facts *f, struct findings *set, int64_t at)
{
    if (f->lost_for >= NODE_APART_AFTER)
        (void)findings_add(set, FINDING_NODE_APART, f->name, at,
            "%s has acknowledged nothing that the hub has sent it for %" PRId64
            " s, and nothing of it arrives here, while the probe of %s reaches it.",
            f->name, f->lost_for, f->reached_by);
    else
        (void)findings_add(set, FINDING_NODE_APART, f->name, at,
            "The agent of %s has not been heard here for %" PRId64
            " s, and its WireGuard has no session with the hub, while the probe of %s reaches it.",
            f->name, f->silent_for, f->reached_by);
}

static void add_silent(const struct node_facts *f, struct findings *set, int64_t at)
{
    (void)findings_add(set, FINDING_NODE_AGENT_SILENT, f->name, at,
        "The agent of %s has not been heard for %" PRId64 " s%s.", f->name, f->silent_for,
        f->session == NODE_SESSION_LIVE ? ", while its WireGuard still has a session with the hub"
                                        : "");
}

/* It is drained until it says that it is well, whatever becomes of it. */
static void add_drained(const struct node_facts *f, struct findings *set, int64_t at)
{
    struct finding *found;

    if (!f->drained)
        return;
    if (!f->hook) {
        (void)findings_add(
            set, FINDING_NODE_DRAINED, f->name, at, "%s is drained: %s.", f->name, f->drained);
        return;
    }
    found = findings_add(set, FINDING_NODE_DRAINED, f->name, at,
        "%s is to be drained, and its scheduler could not be told: %s. It is drained because: %s.",
        f->name, f->hook, f->drained);
    finding_set_fix(found, "On %s: weft health --drain says what its hook says.", f->name);
}

bool node_find(const struct node_facts *f, struct findings *set, int64_t at)
{
    bool has_copies = f->copies[0] != '\0';
    bool is_apart = node_is_apart(f);
    bool is_silent = !is_apart && node_is_silent(f);
    bool is_failing = !is_apart && !is_silent && f->has_agent && f->error;
    bool is_unapplied = f->has_agent && f->unapplied_for >= EDGE_SILENT_AFTER;
    bool lacks_probe = is_probe_silent(f);

    if (has_copies)
        (void)findings_add(set, FINDING_NODE_COPIED, f->name, at, "%s", f->copies);
    add_drained(f, set, at);
    if (node_is_down(f)) {
        add_down(f, set, at);
        return true;
    }
    if (f->unfit)
        (void)findings_add(set, FINDING_HEALTH_FAILED, f->name, at,
            "%s has failed its health check %u times in a row: %s.", f->name, f->n_failed,
            f->unfit);
    if (is_apart)
        add_apart(f, set, at);
    if (is_silent)
        add_silent(f, set, at);
    if (is_failing)
        (void)findings_add(set, FINDING_APPLY_FAILED, f->name, at,
            "The agent of %s cannot apply what the network says: %s.", f->name, f->error);
    if (is_unapplied)
        (void)findings_add(set, FINDING_NODE_NEVER_APPLIED, f->name, at,
            f->silent_for < 0 ? "The agent of %s has never been heard."
                              : "The agent of %s has applied nothing yet.",
            f->name);
    if (node_is_forgotten(f->nat_forgets_s, f->keepalive_s))
        (void)findings_add(set, FINDING_KEEPALIVE_SLOW, f->name, at,
            "The NAT of %s forgets a silent UDP mapping after about %" PRId64
            " s, and the network's keepalive is %" PRId64 " s: nobody reaches it until it speaks.",
            f->name, f->nat_forgets_s, f->keepalive_s);
    if (lacks_probe)
        (void)findings_add(set, FINDING_PROBE_SILENT, f->name, at,
            "The probe of %s has not been heard for %" PRId64 " s, and said that it reports each "
            "%" PRIu32 " s: what it said is not counted any more.",
            f->name, f->probe_for, f->probe_every);
    return has_copies || is_apart || is_silent || is_failing || is_unapplied || lacks_probe;
}

void node_find_way(
    const struct node_facts *f, struct findings *set, const char *subject, int64_t at)
{
    if (node_is_deaf(f))
        finding_set_fix(findings_add(set, FINDING_WAY_DEAF, subject, at,
                            "%s has acknowledged nothing that the hub has sent it for %" PRId64
                            " s, while packets of %s arrive at the hub.",
                            f->name, f->lost_for, f->name),
            "Let UDP of the hub in at %s, and at the NAT or packet filter before it.", f->name);
}
