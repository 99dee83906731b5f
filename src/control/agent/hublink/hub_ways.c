/* hub_ways.c - see hub_ways.h. */
#include "agent/hublink/hub_ways.h"

#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "mesh/object/block.h"
#include "net/address/resolve_task.h"

/* Time between two look-ups while the hub stays silent. */
#define WAIT_FIRST (2 * NSEC_PER_SEC)
#define WAIT_MAX   (30 * NSEC_PER_SEC)

_Static_assert(OBJECT_HUB_NAMES_MAX <= RESOLVE_TASK_TEXTS, "all names are one task");

void hub_ways_deinit(struct hub_ways *w)
{
    w->task = resolve_task_free(w->task);
}

/* ---- UDP ------------------------------------------------------------------------------------ */

static bool is_in(const struct endpoint *list, unsigned n, const struct endpoint *ep)
{
    for (unsigned i = 0; i < n; i++)
        if (endpoint_equal(&list[i], ep))
            return true;
    return false;
}

/* Adds @ep unless it is there already or there is no room. Return: the new count. */
static unsigned add_endpoint(
    struct endpoint *list, unsigned n, unsigned cap, const struct endpoint *ep)
{
    if (n < cap && !is_in(list, n, ep))
        list[n++] = *ep;
    return n;
}

static void compose(struct hub_ways *w, const struct node_hub *hub)
{
    w->n = 0;
    for (unsigned i = 0; i < w->n_found; i++)
        w->n = add_endpoint(w->all, w->n, HUB_WAYS_MAX, &w->found[i]);
    for (unsigned i = 0; i < hub->n_endpoints; i++)
        w->n = add_endpoint(w->all, w->n, HUB_WAYS_MAX, &hub->endpoints[i]);
}

/* The hosts file may give the hub's name an address on the overlay, which is no way to the hub. */
static bool is_outside(const struct endpoint *ep, const struct network *net)
{
    return !block_find_reserved(&ep->addr) && !ip_prefix_has(&net->cidr4, &ep->addr) &&
           !ip_prefix_has(&net->cidr6, &ep->addr);
}

void hub_ways_take(struct hub_ways *w, const struct node_hub *hub, const struct network *net,
    const struct resolve_answer *answers, unsigned n)
{
    struct endpoint found[OBJECT_ENDPOINTS_MAX];
    char text[ENDPOINT_TEXT_MAX];
    unsigned n_found = 0;

    for (unsigned i = 0; i < n; i++)
        for (unsigned k = 0; k < answers[i].n; k++) {
            const struct endpoint *ep = &answers[i].endpoints[k];

            if (!is_outside(ep, net))
                continue;
            if (!is_in(w->found, w->n_found, ep) && !is_in(hub->endpoints, hub->n_endpoints, ep))
                log_info("the hub's name %s leads to %s now", answers[i].text,
                    endpoint_format(ep, text));
            n_found = add_endpoint(found, n_found, OBJECT_ENDPOINTS_MAX, ep);
        }
    if (n_found == 0)
        return;
    memcpy(w->found, found, n_found * sizeof(*found));
    w->n_found = n_found;
}

static void look_up(struct hub_ways *w, const struct node_hub *hub, const struct network *net,
    bool is_silent, nsec_t now)
{
    struct resolve_answer answers[RESOLVE_TASK_TEXTS];
    unsigned n = w->task ? resolve_task_take(w->task, answers) : 0;
    struct err e = ERR_NULL;

    if (n > 0) {
        w->task = resolve_task_free(w->task);
        hub_ways_take(w, hub, net, answers, n);
    }
    if (!is_silent) {
        w->look_up_at = 0;
        w->wait_for = 0;
        return;
    }
    if (w->task || hub->n_names == 0 || now < w->look_up_at)
        return;
    w->wait_for = w->wait_for == 0 ? WAIT_FIRST : nsec_min(w->wait_for * 2, WAIT_MAX);
    w->look_up_at = now + w->wait_for;
    if (resolve_task_start(&w->task, hub->names, hub->n_names, 0, &e) < 0)
        log_limited(
            &w->limit, now, LOG_LEVEL_WARNING, "the hub's name is not looked up: %s", err_text(&e));
}

void hub_ways_poll(struct hub_ways *w, const struct node_hub *hub, const struct network *net,
    bool is_silent, nsec_t now)
{
    look_up(w, hub, net, is_silent, now);
    compose(w, hub);
}

/* ---- the public API ------------------------------------------------------------------------ */

static void add_api(struct hub_ways_api *list, const char *text)
{
    for (unsigned i = 0; i < list->n; i++)
        if (strcmp(list->items[i], text) == 0)
            return;
    (void)snprintf(list->items[list->n++], sizeof(list->items[0]), "%s", text);
}

void hub_ways_list_api(
    struct hub_ways_api *ret, const struct state_ways *ways, const struct node_hub *hub)
{
    char text[ENDPOINT_TEXT_MAX];
    char name[HOST_PORT_MAX + 1];

    ret->n = 0;
    for (unsigned i = 0; i < hub->n_names; i++) {
        int len = (int)(strrchr(hub->names[i], ':') - hub->names[i]);

        (void)snprintf(name, sizeof(name), "%.*s:%u", len, hub->names[i], hub->api_port);
        if (host_port_check(name, NULL) == 0)
            add_api(ret, name);
    }
    for (unsigned i = 0; i < ways->n_api; i++)
        add_api(ret, ways->api[i]);
    for (unsigned i = 0; i < hub->n_endpoints; i++) {
        struct endpoint api = {.addr = hub->endpoints[i].addr, .port = hub->api_port};

        add_api(ret, endpoint_format(&api, text));
    }
}
