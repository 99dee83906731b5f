/* hub_health.c - see hub_health.h. */
#include "agent/hublink/hub_health.h"

#include <stdio.h>
#include <string.h>

#include "agent/reconcile/observe.h"
#include "base/err.h"
#include "mesh/object/fields.h"
#include "net/address/resolve.h"

/* ---- where it may be ------------------------------------------------------------------------- */

/* Time between two look-ups while the hub stays silent. */
#define WAIT_FIRST (2 * NSEC_PER_SEC)
#define WAIT_MAX   (30 * NSEC_PER_SEC)

_Static_assert(OBJECT_HUB_NAMES_MAX <= RESOLVE_TASK_TEXTS, "all names are one task");

void hub_endpoints_deinit(struct hub_endpoints *he)
{
    he->task = resolve_task_free(he->task);
}

/* ---- UDP ------------------------------------------------------------------------------------- */

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

void hub_endpoints_take(struct hub_endpoints *he, const struct node_hub *hub,
    const struct network *net, const struct resolve_answer *answers, unsigned n)
{
    struct endpoint found[OBJECT_ENDPOINTS_MAX];
    char text[ENDPOINT_TEXT_MAX];
    unsigned n_found = 0;

    for (unsigned i = 0; i < n; i++)
        for (unsigned k = 0; k < answers[i].n; k++) {
            const struct endpoint *ep = &answers[i].endpoints[k];

            /* The hosts file may give the hub's name an address on the overlay, which is no way to
             * the hub. */
            if (block_find_reserved(&ep->addr) || ip_prefix_has(&net->cidr4, &ep->addr) ||
                ip_prefix_has(&net->cidr6, &ep->addr))
                continue;
            if (!is_in(he->found, he->n_found, ep) && !is_in(hub->endpoints, hub->n_endpoints, ep))
                log_info("the hub's name %s leads to %s now", answers[i].text,
                    endpoint_format(ep, text));
            n_found = add_endpoint(found, n_found, OBJECT_ENDPOINTS_MAX, ep);
        }
    if (n_found == 0)
        return;
    memcpy(he->found, found, n_found * sizeof(*found));
    he->n_found = n_found;
}

static void look_up(struct hub_endpoints *he, const struct node_hub *hub, const struct network *net,
    bool is_silent, nsec_t now)
{
    struct resolve_answer answers[RESOLVE_TASK_TEXTS];
    unsigned n = he->task ? resolve_task_take(he->task, answers) : 0;
    struct err e = ERR_NULL;

    if (n > 0) {
        he->task = resolve_task_free(he->task);
        hub_endpoints_take(he, hub, net, answers, n);
    }
    if (!is_silent) {
        he->look_up_at = 0;
        he->wait_for = 0;
        return;
    }
    if (he->task || hub->n_names == 0 || now < he->look_up_at)
        return;
    he->wait_for = he->wait_for == 0 ? WAIT_FIRST : nsec_min(he->wait_for * 2, WAIT_MAX);
    he->look_up_at = now + he->wait_for;
    if (resolve_task_start(&he->task, hub->names, hub->n_names, 0, &e) < 0)
        log_limited(&he->limit, now, LOG_LEVEL_WARNING, "the hub's name is not looked up: %s",
            err_text(&e));
}

void hub_endpoints_poll(struct hub_endpoints *he, const struct node_hub *hub,
    const struct network *net, bool is_silent, nsec_t now)
{
    look_up(he, hub, net, is_silent, now);
    he->n = 0;
    for (unsigned i = 0; i < he->n_found; i++)
        he->n = add_endpoint(he->all, he->n, HUB_ENDPOINTS_MAX, &he->found[i]);
    for (unsigned i = 0; i < hub->n_endpoints; i++)
        he->n = add_endpoint(he->all, he->n, HUB_ENDPOINTS_MAX, &hub->endpoints[i]);
}

/* ---- the public API -------------------------------------------------------------------------- */

static void add_api(struct hub_api_list *list, const char *text)
{
    for (unsigned i = 0; i < list->n; i++)
        if (strcmp(list->items[i], text) == 0)
            return;
    (void)snprintf(list->items[list->n++], sizeof(list->items[0]), "%s", text);
}

void hub_api_list_make(
    struct hub_api_list *ret, const struct state_hub_api *joined, const struct node_hub *hub)
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
    for (unsigned i = 0; i < joined->n_api; i++)
        add_api(ret, joined->api[i]);
    for (unsigned i = 0; i < hub->n_endpoints; i++) {
        struct endpoint api = {.addr = hub->endpoints[i].addr, .port = hub->api_port};

        add_api(ret, endpoint_format(&api, text));
    }
}

/* ---- which endpoint is used ------------------------------------------------------------------ */

/* Another endpoint is taken when its first answer is this old. All endpoints are asked at the same
 * time, each 0.3 to 0.4 s, so the present one could have answered by then, too. */
#define OTHER_FIRST (500 * NSEC_PER_MSEC)

/* After a pause of this length the answers of another endpoint are counted anew. */
#define OTHER_GAP (6 * NSEC_PER_SEC)

/* The next endpoint after @present to which there is a route. If there is a route to none of them:
 * @present, or the first one when the present one is not in the list. */
static unsigned find_next(const struct endpoint *endpoints, unsigned n, unsigned present,
    hub_path_fn has_route, void *ctx)
{
    unsigned start = present < n ? present + 1 : 0;

    for (unsigned k = 0; k < n; k++) {
        unsigned i = (start + k) % n;

        if (has_route(ctx, &endpoints[i].addr))
            return i;
    }
    return present < n ? present : 0;
}

static void path_take(struct hub_path *hp, const struct endpoint *endpoint, nsec_t now)
{
    hp->path.endpoint = *endpoint;
    hp->taken_at = now;
    hp->other = (struct endpoint){.port = 0};
}

bool hub_path_take(struct hub_path *hp, const char *hub, const struct endpoint *endpoints,
    unsigned n, bool works, nsec_t now, hub_path_fn has_route, void *ctx)
{
    /* Where in the list the present endpoint is; @n if it is not there any more. */
    unsigned present = strcmp(hp->path.node, hub) == 0 ? 0 : n;
    unsigned next;

    while (present < n && !endpoint_equal(&endpoints[present], &hp->path.endpoint))
        present++;
    if (present < n && (works || now - hp->taken_at < HUB_PATH_TRY))
        return false;
    next = find_next(endpoints, n, present, has_route, ctx);
    hp->taken_at = now;
    if (next == present)
        return false;
    (void)snprintf(hp->path.node, sizeof(hp->path.node), "%.*s", NAME_MAX_LEN, hub);
    path_take(hp, &endpoints[next], now);
    return true;
}

bool hub_path_on_answer(struct hub_path *hp, const struct endpoint *from, nsec_t now)
{
    if (hp->path.node[0] == '\0')
        return false;
    if (endpoint_equal(from, &hp->path.endpoint)) {
        hp->other = (struct endpoint){.port = 0};
        return false;
    }
    if (endpoint_is_none(&hp->other) || now - hp->other_at > OTHER_GAP) {
        hp->other = *from;
        hp->other_since = now;
    }
    if (!endpoint_equal(from, &hp->other))
        return false;
    hp->other_at = now;
    if (now - hp->other_since < OTHER_FIRST)
        return false;
    path_take(hp, from, now);
    return true;
}

/* ---- is it heard ----------------------------------------------------------------------------- */

/*
 * Data that the hub has not answered for this time: its kernel answers at once the TCP keepalives
 * of the stream of events, which are sent each 5 s.
 */
#define SILENCE (6 * NSEC_PER_SEC)

/* A silent hub is looked for at the same endpoint for this time, unless it answers elsewhere. */
#define PATIENCE (30 * NSEC_PER_SEC)

/* WireGuard renews a session after 120 s (whitepaper 6.1); one that is renewed before was lost. */
#define SESSION_YOUNG (100 * NSEC_PER_SEC)

static enum hub_health_link take_handshake_time(struct hub_health *hh, nsec_t at)
{
    nsec_t before = hh->handshake_at;

    hh->handshake_at = at;
    if (at <= before)
        return HUB_HEALTH_LINK_KEEP;
    if (hh->has_moved || (before != 0 && at - before < SESSION_YOUNG)) {
        hh->has_moved = false;
        return HUB_HEALTH_LINK_RESTART;
    }
    return HUB_HEALTH_LINK_POKE;
}

static void check_silence(struct hub_health *hh, const struct hub_health_facts *facts)
{
    const struct observation *ob = facts->seen;
    bool is_unanswered;

    /* Without an engine nothing was sent. */
    if (!facts->has_engine) {
        hh->no_session_since = 0;
        hh->silent_since = 0;
        return;
    }
    if (!observation_has_session(ob, facts->now)) {
        hh->no_session_since = hh->no_session_since ? hh->no_session_since : facts->now;
        hh->silent_since = hh->no_session_since;
        return;
    }
    is_unanswered = !facts->is_standby && ob->unanswered_since != 0 &&
                    facts->now - ob->unanswered_since >= SILENCE;
    hh->no_session_since = 0;
    hh->silent_since = is_unanswered ? ob->unanswered_since : 0;
}

/* The endpoint is another one. The stream is not affected, so without it alone a handshake is due.
 */
static void on_moved(struct hub_health *hh, bool is_by_stream)
{
    hh->has_moved = !is_by_stream;
    hh->wants_handshake = !is_by_stream;
}

static void choose_path(
    struct hub_health *hh, const struct hub_health_facts *facts, struct hub_health_actions *actions)
{
    nsec_t silent_for = hh->silent_since == 0 ? 0 : facts->now - hh->silent_since;
    bool works = observation_has_session(facts->seen, facts->now) && silent_for < PATIENCE;
    bool is_first = hh->path.path.node[0] == '\0';

    hub_endpoints_poll(
        &hh->endpoints, facts->hub->hub, facts->network, hh->silent_since != 0, facts->now);
    if (!hub_path_take(&hh->path, facts->hub->meta.name, hh->endpoints.all, hh->endpoints.n, works,
            facts->now, facts->has_route, facts->has_route_ctx))
        return;
    actions->reconcile = true;
    if (is_first)
        return;
    actions->moved_because = "no answer from the hub";
    on_moved(hh, facts->is_by_stream);
}

struct hub_health_actions hub_health_poll(
    struct hub_health *hh, const struct hub_health_facts *facts)
{
    struct hub_health_actions actions = {
        .link = take_handshake_time(hh, facts->seen ? facts->seen->handshake_at : 0)};

    check_silence(hh, facts);
    if (facts->hub)
        choose_path(hh, facts, &actions);
    return actions;
}

/* It answers where it is looked for, and nothing in the session: probably it was started anew.
 * Without a session the engine begins handshakes anyway. */
static bool is_session_lost(const struct hub_health *hh, const struct endpoint *from)
{
    return hh->silent_since != 0 && hh->no_session_since == 0 &&
           hh->silent_since != hh->renewed_for && endpoint_equal(from, &hh->path.path.endpoint);
}

struct hub_health_actions hub_health_on_answer(
    struct hub_health *hh, const struct endpoint *from, bool is_by_stream, nsec_t now)
{
    struct hub_health_actions actions = {.link = HUB_HEALTH_LINK_KEEP};

    if (!hub_path_on_answer(&hh->path, from, now)) {
        if (!is_by_stream && is_session_lost(hh, from)) {
            hh->renewed_for = hh->silent_since;
            actions.reconcile = true;
            on_moved(hh, false);
        }
        return actions;
    }
    actions.reconcile = true;
    actions.moved_because = "the hub answers elsewhere";
    on_moved(hh, is_by_stream);
    return actions;
}

bool hub_health_take_handshake(struct hub_health *hh)
{
    bool wanted = hh->wants_handshake;

    hh->wants_handshake = false;
    return wanted;
}
