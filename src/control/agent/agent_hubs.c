/* agent_hubs.c - see agent_hubs.h. */
#include "agent/agent_hubs.h"

#include "agent/agent_parts.h"
#include "net/netlink/rtnl.h"

struct endpoint agent_hubs_api(const struct agent *a)
{
    const struct node *hub = snapshot_find_node(&a->snapshot, a->hubs.home->name);

    if (!hub || !hub->hub)
        return (struct endpoint){0};
    return (struct endpoint){.addr = hub->address4, .port = hub->hub->api_port};
}

static bool has_route(void *ctx, const struct ip_addr *to)
{
    struct agent *a = ctx;
    struct ip_addr source;

    return rtnl_source_for(&a->reconcile.nl, to, &source) == 0;
}

struct hub_set_facts agent_hubs_see(struct agent *a, nsec_t now)
{
    return (struct hub_set_facts){.snapshot = &a->snapshot,
        .seen = &a->seen,
        .has_engine = a->reconcile.engine != NULL,
        .listen_port = a->listen_port,
        .lockout = a->time.lockout,
        .has_route = has_route,
        .has_route_ctx = a,
        .now = now};
}

void agent_hubs_use_home(struct agent *a, nsec_t now)
{
    const struct agent_hub *home = a->hubs.home;
    const struct node *node = snapshot_find_node(&a->snapshot, home->name);

    job_calls_set_hub(&a->jobs, home->link);
    if (node && node->hub)
        path_driver_use_hub(a->paths, node, now);
    poll_plan_on_news(&a->poll);
}

struct hub_link *agent_hubs_find(void *ctx, const char *name)
{
    const struct agent *a = ctx;
    struct agent_hub *hub = hub_set_find(&a->hubs, name);

    return hub ? hub->link : NULL;
}

int agent_hubs_take(struct agent *a, struct err *e)
{
    struct hub_set_facts facts = agent_hubs_see(a, a->clock());
    struct hub_set_wish wish = {.home_changed = false};
    int r = hub_set_take(&a->hubs, &facts, &wish, e);

    if (wish.home_changed)
        agent_hubs_use_home(a, facts.now);
    for (unsigned i = 0; i < a->hubs.n_gone; i++)
        job_calls_on_gone(&a->jobs, a->hubs.gone[i]->link);
    hub_set_release_gone(&a->hubs);
    return r;
}
