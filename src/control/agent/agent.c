/* agent.c - see agent.h. Life of the agent: start, events, deadlines, end. */
#include "agent/agent.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent_internal.h"
#include "agent/mss_clamp.h"
#include "agent/name_check.h"
#include "agent/removed.h"
#include "os/fd_cleanup.h"
#include "base/err.h"
#include "base/secret.h"
#include "crypto/aead_speed.h"
#include "mesh/watch_event.h"
#include "os/clock.h"
#include "net/offload.h"

#define SOON             (5 * NSEC_PER_MSEC) /* so that a burst of events makes one pass */
#define RECONCILE_PERIOD (10 * NSEC_PER_SEC) /* somebody may have changed the interface by hand */
#define CLAMP_PERIOD     (60 * NSEC_PER_SEC)
#define MEASURE_TIME     (4 * NSEC_PER_MSEC) /* for each cipher */
#define RETRY_FIRST      (NSEC_PER_SEC / 4)
#define NAMES_DELAY      (NSEC_PER_SEC / 5)
#define SAVE_RETRY       (30 * NSEC_PER_SEC)
#define END_PATIENCE     (1 * NSEC_PER_SEC)
#define END_POLL         (10 * NSEC_PER_MSEC)

/* ---- deadlines ------------------------------------------------------------------------------ */

static void on_timer(uv_timer_t *timer);

static void arm_timer(struct agent *a)
{
    nsec_t due =
        nsec_min(nsec_min(a->due.reconcile, a->due.names), nsec_min(a->due.observe, a->due.save));
    nsec_t wait;

    if (a->is_ending)
        due = nsec_min(a->end_by, clock_now() + END_POLL);
    wait = nsec_max(due - clock_now(), 0);
    /* Rounded up: a timer that is early would only be armed again. */
    (void)uv_timer_start(&a->timer, on_timer, (uint64_t)(wait / NSEC_PER_MSEC + 1), 0);
}

void agent__schedule(struct agent *a, nsec_t *deadline, nsec_t at)
{
    /* A try to make the interface, which fails, is itself news of a link. */
    if (deadline == &a->due.reconcile)
        at = nsec_max(at, a->held_until);
    *deadline = nsec_min(*deadline, at);
    arm_timer(a);
}

/* ---- passes --------------------------------------------------------------------------------- */

/* The engine has said it where nobody reads: it is a process of its own in the background. */
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

static void log_pass(struct agent *a, const struct reconcile_result *result)
{
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

/* Again and again: whoever loads a packet filter of their own often flushes all others'. */
static void clamp(struct agent *a, nsec_t now)
{
    struct err e = ERR_NULL;

    if (a->clamped != 0 && now - a->clamped < CLAMP_PERIOD)
        return;
    a->clamped = now;
    if (mss_clamp_put(a->state.interface, &e) == 0 || a->cannot_clamp)
        return;
    a->cannot_clamp = true;
    log_info("the segment size of connections that are forwarded is not clamped: %s", err_text(&e));
}

/* Where it is now it may know nothing of the session, or of where this node is. */
static void greet_hub(struct agent *a)
{
    const struct node *hub = render_hub(&a->snapshot);
    struct err e = ERR_NULL;

    if (!a->greets_hub || !hub)
        return;
    a->greets_hub = false;
    if (reconcile_handshake(&a->reconcile, &hub->key, &e) != 0)
        log_debug("no handshake with the hub: %s", err_text(&e));
    hub_transport_speak(&a->transport);
}

void agent__reconcile(struct agent *a)
{
    struct reconcile_result result = {0};
    struct err e = ERR_NULL;
    struct endpoint api = agent__hub_api(a);
    struct render_input in;
    nsec_t now;
    int r;

    a->link_mtu = reconcile_see_links(&a->reconcile);
    finder_set_link_mtu(a->finder, a->link_mtu);
    in = agent__render_input(a);
    r = reconcile_run(&a->reconcile, &in, &a->state.secret, &result, &e);
    now = clock_now();
    a->due.reconcile = NSEC_NEVER;
    if (r < 0) {
        /* Perhaps somebody else has taken the port that an earlier engine had. */
        a->listen_port = 0;
        log_limited(&a->reconcile_limit, now, LOG_LEVEL_WARNING,
            "%s is not as the hub wants it, trying again: %s", a->state.interface, err_text(&e));
        a->fault = e;
        a->held_until = a->reconcile.engine ? 0 : now + a->retry;
        agent__schedule(a, &a->due.reconcile, now + a->retry);
        a->retry = nsec_min(a->retry * 2, RECONCILE_PERIOD);
        return;
    }
    a->retry = RETRY_FIRST;
    a->held_until = 0;
    a->fault = (struct err)ERR_NULL;
    log_pass(a, &result);
    clamp(a, now);
    agent__guard_routes(a, now);
    agent__schedule(a, &a->due.reconcile, now + RECONCILE_PERIOD);
    if (!endpoint_is_none(&api))
        hub_link_set_target(a->hub, &api);
    if (result.opened) {
        hub_link_poke(a->hub);
        agent__stir(a, now);
    }
    greet_hub(a);
    finder_set_relay(a->finder, in.relays, result.opened, now);
    finder_on_applied(a->finder, &a->reconcile, now);
    agent__tell_members(a);
}

static void save(struct agent *a)
{
    struct err e = ERR_NULL;

    a->due.save = NSEC_NEVER;
    if (a->cache_is_damaged)
        return;
    a->saving.saved_at = clock_now();
    if (state_write_snapshot(&a->snapshot, a->config->state_dir, &e) == 0)
        return;
    log_limited(&a->save_limit, clock_now(), LOG_LEVEL_WARNING,
        "the snapshot is not kept, trying again: %s", err_text(&e));
    agent__schedule(a, &a->due.save, clock_now() + SAVE_RETRY);
}

static void end_if_done(struct agent *a)
{
    if (clock_now() >= a->end_by || server_counts(a->server).connections == 0)
        uv_stop(&a->loop);
}

static void on_timer(uv_timer_t *timer)
{
    struct agent *a = timer->data;
    nsec_t now = clock_now();

    if (a->is_ending) {
        end_if_done(a);
    } else {
        if (now >= a->due.reconcile)
            agent__reconcile(a);
        if (now >= a->due.observe)
            agent__glance(a);
        if (now >= a->due.save)
            save(a);
        if (now >= a->due.names)
            agent__name_nodes(a);
    }
    arm_timer(a);
}

/* ---- events --------------------------------------------------------------------------------- */

void agent__finish(struct agent *a, enum agent_end end)
{
    if (a->is_ending)
        return;
    a->is_ending = true;
    a->end = end;
    a->end_by = clock_now() + END_PATIENCE;
    /* WireGuard goes on without us, but not by a path that goes through this process. */
    if (end == AGENT_END_STOPPED && finder_retreat(a->finder, clock_now()))
        agent__reconcile(a);
    arm_timer(a);
}

int agent__take_down(struct agent *a, struct err *names, struct err *e)
{
    int r = reconcile_take_down(&a->reconcile, e);

    *names = (struct err)ERR_NULL;
    /* Names are a convenience: a file that cannot be written must not hold back the rest. */
    if (r == 0)
        (void)agent__forget_names(a, names);
    return r;
}

/* A peer that only sends would go on with a session that the new engine does not know. */
static void shake_hands_again(struct agent *a)
{
    char key[X25519_BASE64_MAX];

    for (size_t i = 0; i < a->seen.n; i++) {
        const struct observation *ob = &a->seen.items[i];
        struct err e = ERR_NULL;

        if (observation_has_session(ob, clock_now()) &&
            reconcile_handshake(&a->reconcile, &ob->key, &e) != 0)
            log_debug(
                "no handshake with %s: %s", x25519_public_format(&ob->key, key), err_text(&e));
    }
}

int agent__renew_engine(struct agent *a, struct err *e)
{
    int r;

    /* Who has a session, and what the port is. */
    agent__look(a);
    r = reconcile_retire_engine(&a->reconcile, e);
    if (r != 0)
        return r;
    /* The new interface may be another one: its rules have to be there from the first packet on. */
    a->clamped = 0;
    a->guarded = 0;
    agent__reconcile(a);
    if (!a->reconcile.engine) {
        if (a->fault.code >= 0)
            return err_set(e, -EIO, "no engine runs %s", a->state.interface);
        *e = a->fault;
        return e->code;
    }
    shake_hands_again(a);
    return 0;
}

/* For whoever asks for the node later. */
static void leave_word(const struct agent *a, const char *reason)
{
    struct removed rm = {.at = clock_wall() / NSEC_PER_SEC};
    struct err e = ERR_NULL;

    (void)snprintf(rm.node, sizeof(rm.node), "%s", a->snapshot.self);
    (void)snprintf(
        rm.network, sizeof(rm.network), "%.*s", NAME_MAX_LEN, a->snapshot.network.meta.name);
    removed_set_reason(&rm, reason);
    (void)snprintf(rm.socket_path, sizeof(rm.socket_path), "%s", a->config->socket_path);
    if (removed_write(&rm, a->config->state_dir, &e) < 0)
        log_warning("nobody will be told later that it was removed: %s", err_text(&e));
}

static void on_removed(struct agent *a, const char *reason)
{
    struct err names;
    struct err e = ERR_NULL;

    leave_word(a, reason);
    log_info("the hub has removed this node: %s", reason[0] ? reason : "it gives no reason");
    if (agent__take_down(a, &names, &e) < 0 || state_remove(a->config->state_dir, &e) < 0)
        log_error("not all of it could be cleaned up: %s", err_text(&e));
    else if (names.code != 0)
        log_error("the nodes' names could not be removed: %s", err_text(&names));
    agent__finish(a, AGENT_END_REMOVED);
}

/* A view must be of this node, with the key that this machine has. */
static int check_self(const struct agent *a, const struct node *self, struct err *e)
{
    const struct node *known = snapshot_self(&a->state.snapshot);

    if (strcmp(self->meta.name, known->meta.name) != 0 ||
        strcmp(self->meta.network, known->meta.network) != 0)
        return err_set(e, -EINVAL, "they are about \"%s\" in \"%s\", and this is \"%s\" in \"%s\"",
            self->meta.name, self->meta.network, known->meta.name, known->meta.network);
    if (!x25519_public_equal(&self->key, &known->key))
        return err_set(e, -EINVAL, "they give \"%s\" another key than it has", self->meta.name);
    return 0;
}

static int check_event(const struct agent *a, const struct watch_event *ev, struct err *e)
{
    if (ev->kind == WATCH_EVENT_SNAPSHOT)
        return check_self(a, snapshot_self(&ev->snapshot), e);
    if (ev->kind == WATCH_EVENT_PUT && ev->object.kind == &node_kind &&
        strcmp(ev->object.node.meta.name, a->snapshot.self) == 0)
        return check_self(a, &ev->object.node, e);
    return 0;
}

static int on_event(void *ctx, struct watch_event *ev, struct err *e)
{
    struct agent *a = ctx;
    enum watch_event_kind kind = ev->kind;
    nsec_t now = clock_now();
    bool is_status;
    uint64_t boot;
    int r;

    if (a->is_ending || kind == WATCH_EVENT_REMOVED) {
        if (!a->is_ending)
            on_removed(a, ev->reason);
        watch_event_deinit(ev);
        return 0;
    }
    r = check_event(a, ev, e);
    if (r < 0) {
        watch_event_deinit(ev);
        return r;
    }
    boot = a->snapshot.boot;
    is_status = watch_event_is_status(ev, &a->snapshot);
    r = watch_event_apply(&a->snapshot, ev, e);
    if (r == 0 && kind == WATCH_EVENT_SNAPSHOT && boot != 0 && boot != a->snapshot.boot)
        agent__hub_forgot(a, now);
    if (r == 0 && kind != WATCH_EVENT_HEARTBEAT && kind != WATCH_EVENT_NONE) {
        agent__schedule(a, &a->due.reconcile, now + SOON);
        agent__schedule(a, &a->due.save, save_plan_due(&a->saving, is_status, now));
        agent__schedule(a, &a->due.names, now + NAMES_DELAY);
        finder_set_snapshot(a->finder, &a->snapshot, now);
        a->is_stirred = true;
    }
    return r;
}

static void on_hub_change(void *ctx, bool heard, const char *why)
{
    struct agent *a = ctx;

    if (a->is_ending)
        return;
    finder_set_hub(a->finder, heard, clock_now());
    if (heard) {
        log_info("the hub answers");
        a->reported = 0;
    } else {
        log_warning("the hub does not answer, known peers stay: %s", why);
    }
    agent__stir(a, clock_now());
}

static void on_routes(void *ctx)
{
    struct agent *a = ctx;

    a->is_stirred = true;
    if (!a->is_ending)
        agent__schedule(a, &a->due.reconcile, clock_now());
}

static void on_self(void *ctx)
{
    struct agent *a = ctx;

    a->self_changed = true;
    if (!a->is_ending)
        agent__stir(a, clock_now() + SOON);
}

static void on_network(void *ctx)
{
    struct agent *a = ctx;

    reconcile_on_network(&a->reconcile);
    on_routes(a);
}

/* The interface was changed, or is gone: look at it at once. */
static void on_link(uv_poll_t *poll, int status, int events)
{
    struct agent *a = poll->data;

    if (link_watch_read(&a->link) && !a->is_ending)
        agent__schedule(a, &a->due.reconcile, clock_now() + SOON);
}

static void on_signal(uv_signal_t *handle, int number)
{
    agent__finish(handle->data, AGENT_END_STOPPED);
}

/* ---- start ---------------------------------------------------------------------------------- */

/* The cached snapshot, or what is known from the join. */
static int load_snapshot(struct agent *a, struct err *e)
{
    const char *dir = a->config->state_dir;
    struct err damaged = ERR_NULL;
    json_t *json;
    int r = state_read_snapshot(&a->snapshot, dir, &damaged);

    if (r == 0) {
        r = check_self(a, snapshot_self(&a->snapshot), &damaged);
        if (r == 0)
            return 0;
        snapshot_deinit(&a->snapshot);
    }
    if (r < 0) {
        a->cache_is_damaged = true;
        log_error("%s; it is left as it is, and what is heard is not kept until it is removed",
            err_text(&damaged));
    }
    json = snapshot_encode(&a->state.snapshot);
    r = json ? snapshot_decode(&a->snapshot, json, NULL, e) : -ENOMEM;
    json_decref(json);
    return r;
}

static int load(struct agent *a, struct err *e)
{
    const char *dir = a->config->state_dir;
    struct err unkept = ERR_NULL;
    char text[REMOVED_TEXT_MAX];
    struct removed rm;
    int r = state_read(&a->state, dir, e);

    if (r == STATE_E_ABSENT && removed_read(&rm, dir, NULL) == 0)
        return err_set(e, AGENT_E_NOT_JOINED, "%s; weft join with a new token makes it one again",
            removed_explain(&rm, text));
    if (r == STATE_E_ABSENT)
        return err_set(e, AGENT_E_NOT_JOINED,
            "this machine has not joined a network (%s has no node.json): weft join TOKEN", dir);
    if (r == 0)
        r = state_lock(dir, &a->lock_fd, e);
    /* A machine that joined with an older version has none; a full disk keeps no node from running.
     */
    if (r == 0 && state_write_public(&a->state, dir, &unkept) < 0)
        log_warning("weft probe will not know this node: %s", err_text(&unkept));
    return r == 0 ? load_snapshot(a, e) : r;
}

/* None of these fails: they only fill in their structs. */
static void init_handles(struct agent *a)
{
    (void)uv_loop_init(&a->loop);
    list_init(&a->job_calls);
    (void)uv_timer_init(&a->loop, &a->timer);
    a->timer.data = a;
    for (unsigned i = 0; i < 2; i++) {
        (void)uv_signal_init(&a->loop, &a->signals[i]);
        a->signals[i].data = a;
    }
}

static int start_signals(struct agent *a, struct err *e)
{
    int r = uv_signal_start(&a->signals[0], on_signal, SIGTERM);

    if (r == 0)
        r = uv_signal_start(&a->signals[1], on_signal, SIGINT);
    return r == 0 ? 0 : err_set(e, r, "signals cannot be taken: %s", uv_strerror(r));
}

/* Follows the interface from its first pass on, also when it is made again. */
static void start_link_watch(struct agent *a)
{
    int r = link_watch_open(&a->link);

    if (r == 0) {
        /* When it is not there yet, or made again, it is taken as it comes. */
        link_watch_adopt(&a->link, a->state.interface);
        (void)link_watch_find(&a->link, a->state.interface, -1);
    }
    if (r < 0) {
        log_warning("%s cannot be watched, it is looked at every %d s: %s", a->state.interface,
            (int)(RECONCILE_PERIOD / NSEC_PER_SEC), strerror(-r));
        return;
    }
    (void)uv_poll_init(&a->loop, &a->link_poll, a->link.fd);
    a->link_poll.data = a;
    (void)uv_poll_start(&a->link_poll, UV_READABLE, on_link);
}

/* With the back ends that the userspace engine takes, since they come from the same call. */
static void measure_ciphers(struct agent *a)
{
    for (unsigned c = 0; c < AEAD_CIPHER_N; c++) {
        const struct aead_algorithm *alg = aead_best((enum aead_cipher)c, NULL);

        a->speeds.mb_per_s[c] = alg ? aead_speed(alg, MEASURE_TIME, clock_now) : 0;
    }
}

/* The hub's endpoint is another one: tell the engine at once. */
static void on_hub_moved(void *ctx)
{
    struct agent *a = ctx;

    if (a->is_ending)
        return;
    agent__reconcile(a);
    hub_transport_speak(&a->transport);
    hub_link_poke(a->hub);
}

static void on_answer(void *ctx, const struct endpoint *from)
{
    struct agent *a = ctx;

    if (!a->is_ending)
        agent__hub_answers(a, from);
}

static void on_heard(void *ctx, const struct endpoint *from)
{
    struct agent *a = ctx;

    if (!a->is_ending)
        hub_transport_on_heard(&a->transport, from);
}

static bool ask_heard(void *ctx, const struct stun_transaction *id)
{
    struct agent *a = ctx;

    return hub_link_ask_heard(a->hub, id, on_heard, a);
}

/* For the hub that the machine has joined at; its key is pinned by the join token. */
static int make_signer(struct agent *a, struct err *e)
{
    const struct node *hub = render_hub(&a->state.snapshot);

    /* Without a hub there is nobody to ask. */
    if (!hub || member_proof_signer_init(&a->signer, &a->state.secret, &hub->key))
        return 0;
    return err_set(e, -EINVAL, "the hub's key in node.json is one that nobody can have");
}

static int start(struct agent *a, struct err *e)
{
    struct hub_link_listener listener = {
        .on_event = on_event, .on_change = on_hub_change, .ctx = a};
    struct hub_transport_listener life = {
        .on_change = on_hub_moved, .ask_heard = ask_heard, .on_answer = on_answer, .ctx = a};
    struct finder_listener paths = {
        .on_routes = on_routes, .on_self = on_self, .on_network = on_network, .ctx = a};
    struct render_input in;
    int r = reconcile_init(&a->reconcile, a->state.interface, a->state.engine, e);

    a->reconcile.accepts = a->state.accepts;
    if (r == 0)
        r = make_signer(a, e);
    if (r == 0)
        r = finder_new(&a->finder, &a->loop, &a->state, &paths, e);
    if (r == 0)
        r = hub_link_new(&a->hub, &a->loop, a->state.interface, &a->signer, &listener, e);
    if (r == 0)
        r = agent__open_door(a, e);
    if (r == 0)
        r = start_signals(a, e);
    if (r < 0)
        return r;
    hub_transport_init(&a->transport, &a->loop, &a->state, &life);
    measure_ciphers(a);
    finder_set_snapshot(a->finder, &a->snapshot, clock_now());
    in = agent__render_input(a);
    reconcile_assume(&a->reconcile, &in);
    agent__look(a);
    agent__reconcile(a);
    agent__name_nodes(a);
    start_link_watch(a);
    agent__start_measuring(a);
    return 0;
}

/* ---- end ------------------------------------------------------------------------------------ */

static void stop(struct agent *a)
{
    if (a->is_ending && a->end <= AGENT_END_DOWN && a->due.save != NSEC_NEVER)
        save(a);
    agent__stop_measuring(a);
    if (a->server)
        server_stop(a->server);
    a->hub = hub_link_free(a->hub);
    hub_transport_stop(&a->transport);
    hub_ways_deinit(&a->hub_ways);
    keepalive_probe_stop(&a->keepalive);
    a->finder = finder_free(a->finder, a->end != AGENT_END_STOPPED);
    uv_close((uv_handle_t *)&a->timer, NULL);
    for (unsigned i = 0; i < 2; i++)
        uv_close((uv_handle_t *)&a->signals[i], NULL);
    if (a->link.fd >= 0)
        uv_close((uv_handle_t *)&a->link_poll, NULL);
    (void)uv_run(&a->loop, UV_RUN_DEFAULT);
    a->server = server_free(a->server);
    link_watch_close(&a->link);
    reconcile_deinit(&a->reconcile);
    observe_deinit(&a->seen);
    reach_deinit(&a->reach);
    free(a->routes);
    json_decref(a->names_left_out);
    a->names = name_check_free(a->names);
    (void)uv_loop_close(&a->loop);
}

static void unload(struct agent *a)
{
    snapshot_deinit(&a->snapshot);
    state_deinit(&a->state);
    secret_wipe(&a->signer, sizeof(a->signer));
    closep(&a->lock_fd);
}

static void say_hello(const struct agent *a)
{
    const struct node *self = snapshot_self(&a->snapshot);
    char a4[IP_ADDR_TEXT_MAX];
    char a6[IP_ADDR_TEXT_MAX];

    log_info("%s in the network %s: %s and %s on %s", self->meta.name, self->meta.network,
        ip_addr_format(&self->address4, a4), ip_addr_format(&self->address6, a6),
        a->state.interface);
}

int agent_run(const struct agent_config *config, enum agent_end *ret, struct err *e)
{
    struct agent a = {
        .config = config,
        .lock_fd = -1,
        .link = LINK_WATCH_NULL,
        .reconcile = RECONCILE_NULL,
        .retry = RETRY_FIRST,
        .due = {NSEC_NEVER, NSEC_NEVER, NSEC_NEVER, NSEC_NEVER},
    };
    int r = state_check_dir(config->state_dir, e);

    if (r == 0)
        r = load(&a, e);
    if (r == 0) {
        say_hello(&a);
        init_handles(&a);
        agent__start_keepalive(&a);
        r = start(&a, e);
        if (r == 0)
            (void)uv_run(&a.loop, UV_RUN_DEFAULT);
        stop(&a);
    }
    if (r == 0)
        *ret = a.end;
    unload(&a);
    return r;
}
