/* keepalive_plan.c - see keepalive_plan.h. */
#include "agent/paths/edge/keepalive_plan.h"

#include <stdio.h>

#include "mesh/object/object.h"

void keepalive_plan_init(struct keepalive_plan *p, const struct keepalive_known *known)
{
    *p = (struct keepalive_plan){.machine = {.bounds = KEEPALIVE_UNKNOWN}, .known = *known};
}

bool keepalive_plan_is_known(const struct keepalive_plan *p)
{
    return p->known.measured_at != 0;
}

/* If the hub sees this node at another address there is another NAT, or it was started anew with
 * other settings. */
static void forget_if_moved(struct keepalive_plan *p)
{
    const struct ip_addr *outside = &p->view.outside;

    if (!keepalive_plan_is_known(p) || ip_addr_is_none(outside) ||
        ip_addr_equal(outside, &p->known.outside))
        return;
    p->known = (struct keepalive_known)KEEPALIVE_KNOWN_NULL;
    keepalive_stop(&p->machine);
    p->machine.bounds = KEEPALIVE_UNKNOWN;
}

/* Is a measurement due? Also if the wall clock was set back. */
static bool is_due(const struct keepalive_plan *p)
{
    nsec_t age = p->view.wall - p->known.measured_at;
    bool is_fresh = keepalive_plan_is_known(p) && age >= 0 && age < KEEPALIVE_PLAN_PERIOD;
    bool is_refused = p->machine.obstacle == KEEPALIVE_OBSTACLE_REFUSED &&
                      p->view.now - p->begun_at < KEEPALIVE_PLAN_PERIOD;

    if (is_fresh || is_refused)
        return false;
    return p->begun_at == 0 || p->view.now - p->begun_at >= KEEPALIVE_PLAN_GAP;
}

void keepalive_plan_look(struct keepalive_plan *p, const struct keepalive_view *view)
{
    bool same_hub = endpoint_equal(&p->view.hub, &view->hub);

    p->view = *view;
    forget_if_moved(p);
    /* A measurement that is half done says nothing about the way to another hub. */
    if (!same_hub && keepalive_is_running(&p->machine))
        keepalive_stop(&p->machine);
    if (endpoint_is_none(&view->hub) || keepalive_is_running(&p->machine) || !is_due(p))
        return;
    p->begun_at = view->now;
    p->learned = (struct ip_addr){{0}};
    keepalive_start(&p->machine, view->spread, view->now);
}

void keepalive_plan_on_learned(struct keepalive_plan *p, const struct endpoint *mapped, nsec_t now)
{
    p->learned = mapped->addr;
    keepalive_on_learned(&p->machine, mapped->port, now);
}

bool keepalive_plan_finish(struct keepalive_plan *p, nsec_t wall)
{
    bool is_seen = !ip_addr_is_none(&p->view.outside);

    if (p->machine.state != KEEPALIVE_STATE_DONE)
        return false;
    p->known = (struct keepalive_known){
        .bounds = p->machine.bounds,
        .outside = is_seen ? p->view.outside : p->learned,
        .measured_at = wall,
    };
    keepalive_stop(&p->machine);
    return true;
}

nsec_t keepalive_plan_interval(const struct keepalive_plan *p)
{
    nsec_t measured = keepalive_interval(&p->known.bounds);
    nsec_t unknown = NETWORK_KEEPALIVE_UNKNOWN * NSEC_PER_SEC;

    return keepalive_cautious(&p->machine, measured != 0 ? measured : unknown);
}

static long long seconds(nsec_t t)
{
    return (t + NSEC_PER_SEC / 2) / NSEC_PER_SEC;
}

void keepalive_plan_describe(const struct keepalive_plan *p, char buf[static KEEPALIVE_TEXT_MAX])
{
    const struct keepalive_bounds *b = &p->known.bounds;
    /* Without a session by UDP nobody sees whether there is a NAT; the measurement is older. */
    bool is_seen = !endpoint_is_none(&p->view.hub);
    const char *who = !is_seen            ? "a silent UDP flow is forgotten"
                      : p->view.is_natted ? "the NAT forgets a silent UDP mapping"
                                          : "there is no NAT, but a firewall forgets a silent flow";

    if (b->dies == NSEC_NEVER && !is_seen)
        (void)snprintf(buf, KEEPALIVE_TEXT_MAX, "a silent UDP flow is kept for more than %lld s",
            seconds(b->lives));
    else if (b->dies == NSEC_NEVER && p->view.is_natted)
        (void)snprintf(buf, KEEPALIVE_TEXT_MAX,
            "the NAT keeps a silent UDP mapping for more than %lld s", seconds(b->lives));
    else if (b->dies == NSEC_NEVER)
        (void)snprintf(buf, KEEPALIVE_TEXT_MAX,
            "there is no NAT, and nothing on the way forgets a silent flow within %lld s",
            seconds(b->lives));
    else if (b->lives == 0)
        (void)snprintf(buf, KEEPALIVE_TEXT_MAX, "%s within %lld s", who, seconds(b->dies));
    else
        (void)snprintf(buf, KEEPALIVE_TEXT_MAX, "%s after about %lld s", who,
            seconds((b->lives + b->dies) / 2));
}

const char *keepalive_plan_why(const struct keepalive_plan *p)
{
    if (endpoint_is_none(&p->view.hub))
        return "there is no session with the hub by UDP";
    switch (p->machine.obstacle) {
    case KEEPALIVE_OBSTACLE_SILENCE:
        return "the hub does not answer STUN by UDP";
    case KEEPALIVE_OBSTACLE_ELSEWHERE:
        return "what the hub answers to another port of this node does not arrive, as behind a "
               "NAT with several addresses";
    case KEEPALIVE_OBSTACLE_REFUSED:
        return "the hub does not answer at other ports (RESPONSE-PORT, RFC 5780)";
    case KEEPALIVE_OBSTACLE_NONE:
        break;
    }
    return keepalive_is_running(&p->machine) ? "the measurement goes on"
                                             : "the measurement has not begun";
}
