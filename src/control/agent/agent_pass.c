/* agent_pass.c - see agent_pass.h. */
#include "agent/agent_pass.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent_handshakes.h"
#include "agent/agent_hubs.h"
#include "agent/agent_parts.h"
#include "base/err.h"
#include "net/tun/offload.h"
#include "os/log.h"
#include "os/rng_kernel.h"

/* Puts the hubs' paths among those that were found, all in order of their nodes' names. */
static size_t merge_paths(struct agent *a)
{
    struct render_path hubs[HOME_HUB_MAX];
    size_t n_hubs = hub_set_paths(&a->hubs, hubs);
    size_t n = 0;
    size_t k = 0;
    size_t n_found;
    const struct render_path *found = path_driver_routes(a->paths, &n_found);
    struct render_path *all = realloc(a->routes, (n_found + n_hubs + 1) * sizeof(*all));

    /* Without memory all peers are reached through the hub, and the hub at its first endpoint. */
    if (!all)
        return 0;
    a->routes = all;
    for (size_t i = 0; i < n_hubs; i++) {
        const struct node *hub = snapshot_find_node(&a->snapshot, hubs[i].node);

        hubs[i].mtu = hub ? path_driver_hub_mtu(a->paths, &hub->key) : 0;
    }
    for (size_t i = 0; i < n_found; i++) {
        while (k < n_hubs && strcmp(hubs[k].node, found[i].node) < 0)
            all[n++] = hubs[k++];
        all[n++] = found[i];
    }
    while (k < n_hubs)
        all[n++] = hubs[k++];
    return n;
}

struct render_input agent_pass_input(struct agent *a)
{
    size_t n = merge_paths(a);

    return (struct render_input){
        .snapshot = &a->snapshot,
        .paths = a->routes,
        .n_paths = n,
        .relay = a->hubs.home->name,
        .listen_port = a->state.listen_port ? a->state.listen_port : a->listen_port,
        .link_mtu = a->link_mtu,
        .keepalive = node_keepalive_interval(&a->keepalive),
        .pins = path_driver_pins(a->paths),
        .relays = a->state.wants_relay && a->state.engine == ENGINE_KIND_USERSPACE &&
                  snapshot_self(&a->snapshot)->relay,
    };
}

/* The engine's process runs in the background, and nobody reads its own log. */
static void log_offloads(const struct agent *a)
{
    struct offloads o;
    struct err e = ERR_NULL;

    if (engine_offloads(a->reconcile.engine, &o, &e) != 0)
        return;
    for (int i = 0; i < OFFLOAD_N; i++)
        if (!o.on[i])
            log_info("%s: the offload %s is off: %s", a->state.interface,
                offload_name((enum offload)i), o.why[i]);
}

static bool has_mended(const struct reconcile_result *result)
{
    return result->renamed[0] != '\0' || result->was_gone || result->was_down || result->lost_route;
}

/* What somebody else has done to the interface, and that it is mended: one line each. */
static void log_mended(struct agent *a, const struct reconcile_result *result, nsec_t now)
{
    const char *interface = a->state.interface;
    char text[IP_PREFIX_TEXT_MAX];

    if (result->renamed[0] != '\0')
        log_limited(&a->mended_limit, now, LOG_LEVEL_INFO,
            "%s had been renamed to %s and has its name again", interface, result->renamed);
    if (result->was_gone)
        log_limited(&a->mended_limit, now, LOG_LEVEL_INFO,
            "%s had been deleted, or its data plane had ended: both are there again", interface);
    if (result->was_down)
        log_limited(&a->mended_limit, now, LOG_LEVEL_INFO, "%s had been set down and is up again",
            interface);
    if (result->lost_route)
        log_limited(&a->mended_limit, now, LOG_LEVEL_INFO,
            "the route to %s had been taken from %s and leads into it again",
            ip_prefix_format(&result->route, text), interface);
}

static void log_pass(struct agent *a, const struct reconcile_result *result, nsec_t now)
{
    log_mended(a, result, now);
    if (a->pass.fault.code == -EADDRINUSE && a->state.listen_port != 0)
        log_info("UDP port %u is free again, and %s listens on it", a->state.listen_port,
            a->state.interface);
    if (result->opened) {
        log_info("the %s engine runs %s%s%s", engine_kind_name(engine_kind_of(a->reconcile.engine)),
            a->state.interface, a->reconcile.why[0] ? ": " : "", a->reconcile.why);
        log_offloads(a);
    }
    if (result->n_changes > 0)
        log_info("revision %llu applied to %s: %zu change%s",
            (unsigned long long)a->snapshot.revision, a->state.interface, result->n_changes,
            result->n_changes == 1 ? "" : "s");
}

/* Says once that rates are not kept, and once that they are. */
static void tell_rates(struct agent *a)
{
    const char *why = a->reconcile.rates_why;

    if (strcmp(why, a->rates_why) == 0)
        return;
    if (why[0] != '\0')
        log_warning("%s: its rates are not kept: %s", a->state.interface, why);
    else
        log_info("%s: nothing stands against its rates any more", a->state.interface);
    memcpy(a->rates_why, why, sizeof(a->rates_why));
    hub_set_on_edges(&a->hubs);
}

/* Peers that somebody else has added to the interface, with wg(8) say. */
static void tell_foreign(struct agent *a, const struct reconcile_result *result, nsec_t now)
{
    char key[X25519_BASE64_MAX];

    if (result->n_foreign == 0)
        return;
    a->foreign_at = now;
    log_limited(&a->foreign_limit, now, LOG_LEVEL_WARNING,
        "%zu peer%s of %s that neither the hub nor this agent had added %s removed, the last with "
        "the public key %s",
        result->n_foreign, result->n_foreign == 1 ? "" : "s", a->state.interface,
        result->n_foreign == 1 ? "was" : "were", x25519_public_format(&a->reconcile.foreign, key));
}

static void apply_rules(struct agent *a, nsec_t now)
{
    static const struct subnets none = SUBNETS_NULL;
    const struct node *self = snapshot_self(&a->snapshot);
    struct forward_rules_facts facts = {.routes = self->routes ? self->routes : &none};

    facts.is_router = facts.routes->n > 0 || a->state.routes.n > 0;
    forward_rules_apply(&a->rules, a->state.interface, &facts, !a->state.keeps_sources, now);
    class_marks_apply(&a->marks, a->state.interface, &a->snapshot, &a->reconcile.told, now);
}

static void fail_pass(struct agent *a, const struct err *e, nsec_t now)
{
    struct rng rng = rng_kernel();
    /* A port that is taken is not had sooner by asking for it more often. */
    bool may_hurry = a->reconcile.engine && e->code != -EADDRINUSE;

    /* Another program may have taken the port that an earlier engine had, so any port will do. */
    a->listen_port = 0;
    log_limited(&a->pass_limit, now, LOG_LEVEL_WARNING,
        "%s is not as the hub wants it, trying again: %s", a->state.interface, err_text(e));
    if (a->pass.fault.text[0] == '\0')
        hub_set_on_edges(&a->hubs);
    pass_plan_on_failure(&a->pass, e, may_hurry, rng_u32(&rng), now);
}

void agent_pass_run(struct agent *a)
{
    struct reconcile_result result = {0};
    struct err e = ERR_NULL;
    nsec_t since = a->clock();
    struct render_input in;
    nsec_t now;
    int r;

    if (agent_hubs_take(a, &e) < 0)
        log_limited(&a->pass_limit, a->clock(), LOG_LEVEL_WARNING, "not all hubs are used: %s",
            err_text(&e));
    a->link_mtu = reconcile_see_links(&a->reconcile);
    path_driver_set_link_mtu(a->paths, a->link_mtu);
    in = agent_pass_input(a);
    r = reconcile_run(&a->reconcile, &in, &a->state.secret, &result, &e);
    /* The pass may have taken seconds. */
    now = a->clock();
    pass_metrics_add(&a->pass_metrics,
        r < 0                  ? PASS_RESULT_FAILED
        : result.n_changes > 0 ? PASS_RESULT_CHANGED
                               : PASS_RESULT_UNCHANGED,
        now - since);
    if (r < 0) {
        fail_pass(a, &e, now);
        return;
    }
    if (a->pass.fault.text[0] != '\0' || a->applied == 0)
        hub_set_on_edges(&a->hubs);
    a->applied = a->snapshot.revision;
    log_pass(a, &result, now);
    pass_plan_on_success(&a->pass, has_mended(&result), now);
    tell_foreign(a, &result, now);
    tell_rates(a);
    apply_rules(a, now);
    hub_set_on_applied(&a->hubs, &a->snapshot, now);
    if (result.opened) {
        /* The resolver listens on that interface's addresses. */
        node_names_request(&a->names, now);
        hub_link_poke(a->hubs.home->link, now);
        poll_plan_request(&a->poll, now);
    }
    agent_handshakes_greet_hubs(a, now);
    path_driver_set_relay(a->paths, in.relays, result.opened, now);
    path_driver_on_applied(a->paths);
    /* The engine has forgotten its sessions, and peers would go on sending in them for 15 s. */
    if (result.was_gone || result.was_down)
        agent_handshakes_renew(a);
    agent_handshakes_begin(a, now);
    node_measure_tell(&a->measure, &a->snapshot, &a->reach);
}
