/* node_keepalive.c - see node_keepalive.h. */
#include "agent/node_keepalive.h"

#include "agent/state/state.h"
#include "base/err.h"
#include "os/log.h"

void node_keepalive_init(
    struct node_keepalive *nk, uv_loop_t *loop, const char *dir, keepalive_fn fn, void *ctx)
{
    struct keepalive_known known = KEEPALIVE_KNOWN_NULL;
    struct err e = ERR_NULL;

    *nk = (struct node_keepalive){.dir = dir};
    if (state_read_keepalive(&known, dir, &e) < 0) {
        nk->is_damaged = true;
        log_error("%s; it is left as it is, and what is measured is not kept until it is removed",
            err_text(&e));
    }
    keepalive_probe_init(&nk->probe, loop, &known, fn, ctx);
}

uint16_t node_keepalive_interval(const struct node_keepalive *nk)
{
    return (uint16_t)(keepalive_plan_interval(&nk->probe.plan) / NSEC_PER_SEC);
}

nsec_t node_keepalive_to_tell(const struct node_keepalive *nk, const struct network *net)
{
    uint16_t interval = node_keepalive_interval(nk);

    if (net->keepalive != NETWORK_KEEPALIVE_AUTO && net->keepalive != 0)
        return net->keepalive * NSEC_PER_SEC;
    if (keepalive_plan_is_known(&nk->probe.plan) || interval < NETWORK_KEEPALIVE_UNKNOWN)
        return interval * NSEC_PER_SEC;
    return 0;
}

void node_keepalive_on_interval(const struct node_keepalive *nk)
{
    const struct keepalive *machine = &nk->probe.plan.machine;

    if (keepalive_is_running(machine))
        log_info(
            "a UDP mapping that was silent for %d s is gone; until more is known the keepalive "
            "is %u s",
            (int)(machine->bounds.dies / NSEC_PER_SEC), node_keepalive_interval(nk));
}

/* What follows from the measurement, or what the network says in its place. */
static void tell(const struct node_keepalive *nk, const struct network *net)
{
    const struct keepalive_plan *plan = &nk->probe.plan;
    uint16_t interval = node_keepalive_interval(nk);
    uint16_t fixed = net->keepalive;
    nsec_t dies = plan->known.bounds.dies;
    char text[KEEPALIVE_TEXT_MAX];

    keepalive_plan_describe(plan, text);
    if (fixed == NETWORK_KEEPALIVE_AUTO)
        log_info("%s; the keepalive is %u s", text, interval);
    else if (dies != NSEC_NEVER && (fixed == 0 || fixed * NSEC_PER_SEC >= dies))
        log_warning(
            "%s, and the network %s's keepalive is %u s, so this node cannot be reached when "
            "it has been idle; \"auto\" would be %u s",
            text, net->meta.name, fixed, interval);
    else
        log_info("%s; the network's keepalive of %u s stays", text, fixed);
}

void node_keepalive_on_result(const struct node_keepalive *nk, const struct network *net)
{
    struct err e = ERR_NULL;

    tell(nk, net);
    if (!nk->is_damaged && state_write_keepalive(&nk->probe.plan.known, nk->dir, &e) < 0)
        log_warning("what was measured of idle UDP mappings is not kept: %s", err_text(&e));
}
