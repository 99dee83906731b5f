/* forward_rules.c - see forward_rules.h. */
#include "agent/reconcile/forward_rules.h"

#include "agent/reconcile/mss_clamp.h"
#include "agent/reconcile/route_guard.h"
#include "os/log.h"

static enum forward_rules_guard plan_guard(
    const struct forward_rules *fr, const struct forward_rules_facts *facts, nsec_t now)
{
    if (!facts->is_router && fr->is_removed)
        return FORWARD_RULES_GUARD_KEEP;
    if (fr->guarded_at != 0 && now - fr->guarded_at < FORWARD_RULES_PERIOD &&
        facts->is_router == fr->was_router && subnets_equal(facts->routes, &fr->routes))
        return FORWARD_RULES_GUARD_KEEP;
    return facts->is_router ? FORWARD_RULES_GUARD_PUT : FORWARD_RULES_GUARD_REMOVE;
}

struct forward_rules_wish forward_rules_plan(
    const struct forward_rules *fr, const struct forward_rules_facts *facts, nsec_t now)
{
    return (struct forward_rules_wish){
        .clamp = fr->clamped_at == 0 || now - fr->clamped_at >= FORWARD_RULES_PERIOD,
        .guard = plan_guard(fr, facts, now)};
}

void forward_rules_on_guard(struct forward_rules *fr, const struct forward_rules_facts *facts,
    enum forward_rules_guard guard, const struct err *e, nsec_t now)
{
    fr->guarded_at = now;
    fr->was_router = guard == FORWARD_RULES_GUARD_PUT;
    fr->routes = *facts->routes;
    fr->is_removed = !fr->was_router && e->code == 0;
    fr->guard_fault = fr->was_router ? *e : (struct err)ERR_NULL;
}

void forward_rules_forget(struct forward_rules *fr)
{
    fr->clamped_at = 0;
    fr->guarded_at = 0;
}

static void put_clamp(struct forward_rules *fr, const char *interface, nsec_t now)
{
    struct err e = ERR_NULL;

    fr->clamped_at = now;
    if (mss_clamp_put(interface, &e) == 0 || fr->cannot_clamp)
        return;
    fr->cannot_clamp = true;
    log_info("the segment size of connections that are forwarded is not clamped: %s", err_text(&e));
}

void forward_rules_apply(struct forward_rules *fr, const char *interface,
    const struct forward_rules_facts *facts, bool masquerades, nsec_t now)
{
    struct forward_rules_wish wish = forward_rules_plan(fr, facts, now);
    bool had_fault = fr->guard_fault.code != 0;
    struct err e = ERR_NULL;

    if (wish.clamp)
        put_clamp(fr, interface, now);
    switch (wish.guard) {
    case FORWARD_RULES_GUARD_KEEP:
        return;
    case FORWARD_RULES_GUARD_PUT:
        if (route_guard_put(interface, facts->routes, masquerades, &e) < 0 && !had_fault)
            log_warning("what is forwarded to the subnets behind this node is not limited: %s",
                err_text(&e));
        break;
    case FORWARD_RULES_GUARD_REMOVE:
        (void)route_guard_remove(interface, &e);
        break;
    }
    forward_rules_on_guard(fr, facts, wish.guard, &e, now);
}
