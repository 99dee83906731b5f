/* agent_keepalive.c - how often this node says hello: measured, kept, told. */
#include "agent/agent_internal.h"
#include "base/err.h"
#include "os/clock.h"

/* ---- what is in force ----------------------------------------------------------------------- */

uint16_t agent__keepalive(const struct agent *a)
{
    return (uint16_t)(keepalive_plan_interval(&a->keepalive.plan) / NSEC_PER_SEC);
}

/*
 * Peers take the shorter of both ends' for a direct path that is idle. One that is kept alive by
 * nothing but its pings has them whatever the network says of hellos to the hub.
 */
static nsec_t keepalive_to_report(struct agent *a)
{
    uint16_t fixed = a->snapshot.network.keepalive;

    if (fixed != NETWORK_KEEPALIVE_AUTO && fixed != 0)
        return fixed * NSEC_PER_SEC;
    if (keepalive_plan_is_known(&a->keepalive.plan) ||
        agent__keepalive(a) < NETWORK_KEEPALIVE_UNKNOWN)
        return agent__keepalive(a) * NSEC_PER_SEC;
    return 0;
}

static void on_interval(void *ctx)
{
    const struct keepalive_plan *plan;
    struct agent *a = ctx;

    plan = &a->keepalive.plan;
    if (a->is_ending)
        return;
    if (keepalive_is_running(&plan->machine))
        log_info(
            "a UDP mapping that was silent for %d s is gone; until more is known the keepalive "
            "is %u s",
            (int)(plan->machine.bounds.dies / NSEC_PER_SEC), agent__keepalive(a));
    agent__schedule(a, &a->due.reconcile, clock_now());
}

/* ---- what was measured ---------------------------------------------------------------------- */

static void save(struct agent *a)
{
    struct err e = ERR_NULL;

    if (!a->keepalive_is_damaged &&
        state_write_keepalive(&a->keepalive.plan.known, a->config->state_dir, &e) < 0)
        log_warning("what was measured of idle UDP mappings is not kept: %s", err_text(&e));
}

/* What follows from it, or what the network says instead. */
static void tell(const struct agent *a)
{
    const struct keepalive_plan *plan = &a->keepalive.plan;
    uint16_t fixed = a->snapshot.network.keepalive;
    nsec_t dies = plan->known.bounds.dies;
    char text[KEEPALIVE_TEXT_MAX];

    keepalive_plan_describe(plan, text);
    if (fixed == NETWORK_KEEPALIVE_AUTO)
        log_info("%s; the keepalive is %u s", text, agent__keepalive(a));
    else if (dies != NSEC_NEVER && (fixed == 0 || fixed * NSEC_PER_SEC >= dies))
        log_warning(
            "%s, and the network %s's keepalive is %u s, so this node cannot be reached when "
            "it has been idle; \"auto\" would be %u s",
            text, a->snapshot.network.meta.name, fixed, agent__keepalive(a));
    else
        log_info("%s; the network's keepalive of %u s stays", text, fixed);
}

static void on_result(void *ctx)
{
    struct agent *a = ctx;

    if (a->is_ending)
        return;
    tell(a);
    save(a);
}

/* ---- life ----------------------------------------------------------------------------------- */

void agent__start_keepalive(struct agent *a)
{
    struct keepalive_listener listener = {
        .on_result = on_result, .on_interval = on_interval, .ctx = a};
    struct keepalive_known known = KEEPALIVE_KNOWN_NULL;
    struct err e = ERR_NULL;

    if (state_read_keepalive(&known, a->config->state_dir, &e) < 0) {
        a->keepalive_is_damaged = true;
        log_error("%s; it is left as it is, and what is measured is not kept until it is removed",
            err_text(&e));
    }
    keepalive_probe_init(&a->keepalive, &a->loop, &known, &listener);
}

void agent__look_at_keepalive(struct agent *a, bool has_session, nsec_t now)
{
    const struct endpoint *hub = &a->hub_path.path.endpoint;
    struct keepalive_view view = {.now = now, .wall = clock_wall()};

    if (has_session && !hub_transport_why(&a->transport)) {
        view.hub = *hub;
        view.outside = finder_outside(a->finder, hub);
        view.is_natted = ip_addr_is_v4(&hub->addr) && finder_self(a->finder)->nat.is_natted;
    }
    keepalive_probe_look(&a->keepalive, &view, a->snapshot.nodes.n);
    finder_set_keepalive(a->finder, keepalive_to_report(a), now);
}
