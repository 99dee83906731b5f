/*
 * agent_look.c - what the engine sees, whether the hub answers, what to report.
 *
 * A look asks the engine about every peer, which is most of what an idle node costs. So once a
 * second there is only a glance: whether anything has passed through the interface, or has happened
 * to this agent. If not, the last look is as good as a new one, for a while.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/agent_internal.h"
#include "base/err.h"
#include "base/version.h"
#include "mesh/path_report.h"
#include "os/clock.h"
#include "net/rtnl.h"

/* How often the engine is asked: its answer grows with the network. */
#define OBSERVE_SMALL   (1 * NSEC_PER_SEC)
#define OBSERVE_REST    (10 * NSEC_PER_SEC) /* at the latest, though nothing is to be seen */
#define OBSERVE_LARGE   (10 * NSEC_PER_SEC)
#define OBSERVE_LARGE_N 500

/*
 * Data that the hub does not answer for so long: its kernel answers at once what keeps the watch
 * alive, which is sent each 5 s.
 */
#define HUB_SILENCE (6 * NSEC_PER_SEC)

/* So long it is looked for where it was, unless it answers elsewhere. */
#define HUB_PATIENCE (30 * NSEC_PER_SEC)

/* No session is renewed sooner than this without need (whitepaper 6.1: after 120 s). */
#define SESSION_YOUNG (100 * NSEC_PER_SEC)

#define REPORT_PERIOD   (60 * NSEC_PER_SEC)
#define REPORT_MIN      (5 * NSEC_PER_SEC)
#define REPORT_SELF_MIN (NSEC_PER_SEC / 5) /* peers wait for it */
#define REPORT_EDGES    340 /* so that a report stays under the 64 KiB that the hub takes */

struct endpoint agent__hub_api(const struct agent *a)
{
    const struct node *hub = render_hub(&a->snapshot);

    if (!hub)
        return (struct endpoint){0};
    return (struct endpoint){.addr = hub->address4, .port = hub->hub->api_port};
}

/* Where the hub is for WireGuard: at the endpoint that was chosen, or at the stream's near end. */
static const struct render_path *hub_route(struct agent *a)
{
    struct endpoint stream = hub_transport_endpoint(&a->transport);

    if (a->hub_path.path.node[0] == '\0')
        return NULL;
    a->hub_route = a->hub_path.path;
    if (!endpoint_is_none(&stream))
        a->hub_route.endpoint = stream;
    return &a->hub_route;
}

/* The hub's path among those that were found: all in order of their nodes. */
static size_t merge_routes(struct agent *a)
{
    const struct render_path *hub = hub_route(a);
    size_t n = 0;
    size_t n_found;
    const struct render_path *found = finder_routes(a->finder, &n_found);
    struct render_path *all = realloc(a->routes, (n_found + 1) * sizeof(*all));

    /* Without memory all go through the hub, wherever that is first. */
    if (!all)
        return 0;
    a->routes = all;
    for (size_t i = 0; i < n_found; i++) {
        if (hub && strcmp(hub->node, found[i].node) < 0) {
            all[n++] = *hub;
            hub = NULL;
        }
        all[n++] = found[i];
    }
    if (hub)
        all[n++] = *hub;
    return n;
}

struct render_input agent__render_input(struct agent *a)
{
    size_t n = merge_routes(a);

    return (struct render_input){
        .snapshot = &a->snapshot,
        .paths = a->routes,
        .n_paths = n,
        .listen_port = a->state.listen_port ? a->state.listen_port : a->listen_port,
        .link_mtu = a->link_mtu,
        .keepalive = agent__keepalive(a),
        .pins = finder_pins(a->finder),
        .relays = a->state.wants_relay && a->state.engine == ENGINE_KIND_USERSPACE &&
                  snapshot_self(&a->snapshot)->relay,
    };
}

/* ---- the hub -------------------------------------------------------------------------------- */

static bool has_route(void *ctx, const struct ip_addr *to)
{
    struct agent *a = ctx;
    struct ip_addr source;

    return rtnl_source_for(&a->reconcile.nl, to, &source) == 0;
}

static const struct observation *hub_observation(const struct agent *a)
{
    const struct node *hub = render_hub(&a->snapshot);

    return hub ? observe_find(&a->seen, &hub->key) : NULL;
}

/* Since when the hub has not been heard, for all that we sent; 0: it is heard. */
static nsec_t silence_of_hub(struct agent *a, const struct observation *ob, nsec_t now)
{
    /* Without an engine nothing was sent. */
    if (!a->reconcile.engine) {
        a->no_session = 0;
        return 0;
    }
    if (!observation_has_session(ob, now)) {
        a->no_session = a->no_session ? a->no_session : now;
        return a->no_session;
    }
    a->no_session = 0;
    return ob->unanswered != 0 && now - ob->unanswered >= HUB_SILENCE ? ob->unanswered : 0;
}

/* The engine is told in the next pass, which begins a handshake. */
static void move_hub(struct agent *a, const char *why, nsec_t now)
{
    struct endpoint stream = hub_transport_endpoint(&a->transport);
    char text[ENDPOINT_TEXT_MAX];

    log_info("%s, trying it at %s", why, endpoint_format(&a->hub_path.path.endpoint, text));
    /* What goes through the stream goes on there. */
    a->hub_moved = endpoint_is_none(&stream);
    a->greets_hub = a->hub_moved;
    agent__schedule(a, &a->due.reconcile, now);
}

/* @silent: since when the hub has not been heard; 0: it is heard. */
static void choose_hub_path(
    struct agent *a, const struct observation *ob, nsec_t silent, nsec_t now)
{
    bool works = observation_has_session(ob, now) && (silent == 0 || now - silent < HUB_PATIENCE);
    const struct node *hub = render_hub(&a->snapshot);
    bool first = a->hub_path.path.node[0] == '\0';

    if (!hub)
        return;
    hub_ways_poll(&a->hub_ways, hub->hub, &a->snapshot.network, silent != 0, now);
    if (!hub_path_take(
            &a->hub_path, hub->meta.name, a->hub_ways.all, a->hub_ways.n, works, now, has_route, a))
        return;
    if (first)
        agent__schedule(a, &a->due.reconcile, now);
    else
        move_hub(a, "no answer from the hub", now);
}

void agent__hub_answers(struct agent *a, const struct endpoint *from)
{
    nsec_t now = clock_now();

    if (hub_path_on_answer(&a->hub_path, from, now))
        move_hub(a, "the hub answers elsewhere", now);
}

static void look_at_transport(
    struct agent *a, const struct observation *ob, nsec_t silent, nsec_t now)
{
    struct hub_transport_view view = {.silent = silent,
        .hub = render_hub(&a->snapshot),
        .ways = &a->hub_ways,
        .listen_port = a->listen_port};

    if (ob) {
        view.heard_at = ob->endpoint;
        view.rx_bytes = ob->facts.rx_bytes;
    }
    /* What arrives does not prove that the hub hears us, too. */
    if (view.silent == 0 && a->reconcile.engine) {
        view.silent = hub_link_unheard(a->hub, now);
        view.is_doubt = view.silent != 0;
    }
    hub_transport_look(&a->transport, &view);
}

/* ---- reports -------------------------------------------------------------------------------- */

/* Null where nobody ever spoke. */
static json_t *encode_edge(const struct reach_peer *path, const struct observation *ob, nsec_t now)
{
    int64_t age = observation_age_seconds(ob, now);

    return json_pack("{s:s, s:o, s:o*}", "path", path_kind_name(path->kind), "handshakeAgeSeconds",
        age < 0 ? json_null() : json_integer(age), "alarm", path->is_alarm ? json_true() : NULL);
}

static json_t *encode_edges(const struct agent *a, nsec_t now)
{
    json_t *edges = json_object();
    unsigned n = 0;

    for (size_t i = 0; edges && i < a->reach.n && n < REPORT_EDGES; i++) {
        const struct reach_peer *path = &a->reach.items[i];
        const struct node *node = snapshot_find_node(&a->snapshot, path->node);
        const struct observation *ob = node ? observe_find(&a->seen, &node->key) : NULL;

        /* An edge on which nobody ever spoke is no news, unless somebody should look at it. */
        if ((!ob || ob->handshake == 0) && !path->is_alarm)
            continue;
        n++;
        if (json_object_set_new(edges, path->node, encode_edge(path, ob, now)) < 0)
            edges = (json_decref(edges), NULL);
    }
    return edges;
}

/*
 * What programs of this machine announce themselves as, where that is not the
 * node's name. A name with a domain is not for others to have in their hosts file.
 */
static bool read_hostname(const struct agent *a, char ret[static NAME_MAX_LEN + 1])
{
    char host[NAME_MAX_LEN + 2] = "";

    if (gethostname(host, sizeof(host) - 1) < 0)
        return false;
    for (char *p = host; *p; p++)
        *p = (char)tolower((unsigned char)*p);
    if (parse_name(host, "host name", NULL) < 0 || strcmp(host, a->snapshot.self) == 0)
        return false;
    (void)snprintf(ret, NAME_MAX_LEN + 1, "%.*s", NAME_MAX_LEN, host);
    return true;
}

/* The engine, and what others need to know to reach it; the kernel's speaks one cipher only. */
static json_t *encode_node(const struct agent *a)
{
    const struct path_side *self = finder_self(a->finder);
    const struct engine *engine = a->reconcile.engine;
    enum engine_kind kind = engine ? engine_kind_of(engine) : ENGINE_KIND_AUTO;
    json_t *speeds = kind == ENGINE_KIND_USERSPACE ? node_speeds_encode(&a->speeds) : NULL;
    char hostname[NAME_MAX_LEN + 1];

    return json_pack("{s:s, s:s, s:s*, s:o, s:o, s:o*, s:o*}", "engine",
        engine ? engine_kind_name(kind) : "", "version", version_text, "hostname",
        read_hostname(a, hostname) ? hostname : NULL, "candidates",
        path_report_encode_candidates(self), "paths", path_report_encode_facts(self), "aead",
        speeds, "routes", a->state.routes.n ? subnets_encode(&a->state.routes) : NULL);
}

static void report(struct agent *a, nsec_t now)
{
    nsec_t since = now - a->reported;
    bool is_due = a->reported == 0 || since >= REPORT_PERIOD ||
                  (a->paths_changed && since >= REPORT_MIN) ||
                  (a->self_changed && since >= REPORT_SELF_MIN);

    if (!is_due || !hub_link_is_heard(a->hub))
        return;
    if (hub_link_report(a->hub,
            json_pack("{s:o, s:o}", "node", encode_node(a), "edges", encode_edges(a, now)))) {
        a->reported = now;
        a->paths_changed = false;
        a->self_changed = false;
    }
}

/* ---- a hub that has forgotten ---------------------------------------------------------------- */

/* Peers that find paths take turns at it; those that do not wait for us. */
void agent__hub_forgot(struct agent *a, nsec_t now)
{
    struct err e = ERR_NULL;

    for (size_t i = 0; i < a->snapshot.nodes.n; i++) {
        const struct node *node = &a->snapshot.nodes.items[i]->node;
        const struct observation *ob = observe_find(&a->seen, &node->key);

        if (node->hub || node->side || !ob || ob->handshake == 0)
            continue;
        if (reconcile_handshake(&a->reconcile, &node->key, &e) != 0)
            log_debug("no handshake with %s: %s", node->meta.name, err_text(&e));
    }
    finder_on_hub_forgot(a->finder, now);
}

/* ---- peers that were led astray ------------------------------------------------------------- */

/*
 * Those whose paths we find go nowhere by themselves: somebody moved them by hand, or the engine
 * cannot hold an endpoint and has followed a packet from the old path, while both ends change.
 */
static void lead_back(struct agent *a, nsec_t now)
{
    char text[ENDPOINT_TEXT_MAX];

    for (size_t i = 0; i < a->snapshot.nodes.n; i++) {
        const struct node *node = &a->snapshot.nodes.items[i]->node;
        const struct observation *ob = node->side ? observe_find(&a->seen, &node->key) : NULL;

        if (!ob || node->hub || endpoint_is_none(&ob->endpoint) ||
            finder_is_relay_at(a->finder, node->meta.name, &ob->endpoint) ||
            !reconcile_doubt(&a->reconcile, &ob->key, &ob->endpoint))
            continue;
        log_limited(&a->doubt_limit, now, LOG_LEVEL_INFO,
            "the engine sends to %s at %s, which is not its path: back to that", node->meta.name,
            endpoint_format(&ob->endpoint, text));
        agent__schedule(a, &a->due.reconcile, now);
    }
}

static void doubt_silent_peers(struct agent *a, nsec_t now)
{
    char text[ENDPOINT_TEXT_MAX];
    char key[X25519_BASE64_MAX];

    for (size_t i = 0; i < a->seen.n; i++) {
        const struct observation *ob = &a->seen.items[i];

        if (!observation_is_silent(ob, now) ||
            !reconcile_doubt(&a->reconcile, &ob->key, &ob->endpoint))
            continue;
        log_limited(&a->doubt_limit, now, LOG_LEVEL_INFO,
            "no answer from %s at %s, where it seemed to have moved: back to where it was",
            x25519_public_format(&ob->key, key), endpoint_format(&ob->endpoint, text));
        agent__schedule(a, &a->due.reconcile, now);
    }
}

/* ---- all of it ------------------------------------------------------------------------------ */

/* Somebody has changed the engine by hand; what this does not see, the next regular pass does. */
static bool is_estranged(const struct agent *a, const struct wg_config *have)
{
    return a->reconcile.has_told &&
           (have->n_peers != a->reconcile.told.n_peers ||
               !x25519_public_equal(&have->public, &a->reconcile.told.public));
}

static void observe_engine(struct agent *a, nsec_t now)
{
    struct wg_config have = WG_CONFIG_NULL;
    struct err e = ERR_NULL;
    int r = reconcile_observe(&a->reconcile, &have, &e);
    bool estranged = r == 0 && is_estranged(a, &have);

    if (r == 0) {
        a->listen_port = have.listen_port;
        r = observe_take(&a->seen, &have, now, clock_wall());
    }
    finder_set_engine(a->finder, r == 0 ? a->reconcile.engine : NULL, a->listen_port, now);
    if (r == 0)
        finder_take_observation(a->finder, &a->seen, now);
    wg_config_deinit(&have);
    /* When the engine is gone a pass opens another one, and says so. */
    if (r != 0 || estranged)
        agent__schedule(a, &a->due.reconcile, now);
}

static void judge_paths(struct agent *a, nsec_t now)
{
    struct render_input in = agent__render_input(a);
    struct reach before = {.n = a->reach.n, .n_alarms = a->reach.n_alarms};
    bool changed = false;

    if (reach_take(&a->reach, &in, a->finder, hub_link_is_heard(a->hub),
            hub_transport_why(&a->transport), now) < 0)
        return;
    changed = before.n != a->reach.n || before.n_alarms != a->reach.n_alarms;
    for (size_t i = 0; i < a->reach.n && !changed; i++)
        changed = a->reach.items[i].since == now;
    a->paths_changed |= changed;
}

/* What has gone through the interface so far; 0: there is none. */
static uint64_t count_packets(struct agent *a)
{
    struct rtnl_link link;
    int r = rtnl_find_link(&a->reconcile.nl, a->state.interface, &link);

    return r == 0 ? link.n_packets : 0;
}

/* All is as the last look left it, and it left nothing open. */
static bool can_rest(struct agent *a, nsec_t now)
{
    if (a->is_stirred || a->self_changed || a->paths_changed || now - a->looked >= OBSERVE_REST)
        return false;
    if (!hub_link_is_heard(a->hub) || hub_link_unheard(a->hub, now) != 0 ||
        !hub_transport_is_calm(&a->transport) || finder_awaits_handshake(a->finder))
        return false;
    return a->n_packets != 0 && a->n_packets == count_packets(a);
}

void agent__stir(struct agent *a, nsec_t at)
{
    a->is_stirred = true;
    agent__schedule(a, &a->due.observe, at);
}

void agent__glance(struct agent *a)
{
    nsec_t now = clock_now();

    if (!can_rest(a, now)) {
        agent__look(a);
        return;
    }
    a->due.observe = NSEC_NEVER;
    agent__schedule(a, &a->due.observe, now + OBSERVE_SMALL);
}

void agent__look(struct agent *a)
{
    nsec_t now = clock_now();
    const struct observation *ob = hub_observation(a);
    nsec_t handshake = ob ? ob->handshake : 0;
    nsec_t silent;
    nsec_t period;

    /* What passes or happens meanwhile is for the next one. */
    a->looked = now;
    a->is_stirred = false;
    a->n_packets = count_packets(a);
    observe_engine(a, now);
    ob = hub_observation(a);
    /* The hub has just proved that it is there; and when its session was a young one, that it has
     * lost it: the stream is dead, though its end was not heard of. */
    if (ob && ob->handshake > handshake) {
        if (a->hub_moved || (handshake != 0 && ob->handshake - handshake < SESSION_YOUNG))
            hub_link_restart(a->hub);
        else
            hub_link_poke(a->hub);
        a->hub_moved = false;
    }
    silent = silence_of_hub(a, ob, now);
    choose_hub_path(a, ob, silent, now);
    look_at_transport(a, ob, silent, now);
    agent__look_at_keepalive(a, observation_has_session(ob, now), now);
    finder_set_blocked(a->finder, hub_transport_why(&a->transport) != NULL, now);
    lead_back(a, now);
    doubt_silent_peers(a, now);
    judge_paths(a, now);
    agent__tell_members(a);
    report(a, now);
    period = a->seen.n > OBSERVE_LARGE_N ? OBSERVE_LARGE : OBSERVE_SMALL;
    a->due.observe = NSEC_NEVER;
    agent__schedule(a, &a->due.observe, now + (a->self_changed ? REPORT_SELF_MIN : period));
}
