/*
 * hub.c - see hub.h: opens and closes the hub's parts, connects them, and says when each is due.
 *
 * What a change of the model leads to is in changes.c, what answers a request in handlers.h.
 */
#include "hub.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "api/server/server.h"
#include "backends/store_open.h"
#include "base/err.h"
#include "base/secret.h"
#include "base/text.h"
#include "hub/handlers/handlers.h"
#include "hub/hub_internal.h"
#include "hub/networks/backup.h"
#include "hub/overlay/overlay.h"
#include "mesh/names/hosts.h"
#include "net/address/resolve.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/log.h"

/* ---- the clock ------------------------------------------------------------------------------ */

/* Begin to serve the jobs of the networks whose owner this hub has become, and end it with those
 * that it owns no more. */
static void serve_jobs(struct hub *hub, nsec_t now)
{
    char key[RECORD_KEY_MAX];
    struct err e = ERR_NULL;

    for (size_t i = 0; store_is_shared(hub->store) && i < hub->model.networks.n; i++) {
        const struct model_network *net = model_network_at(&hub->model, i);
        const char *name = net->spec.meta.name;
        const struct owners_network *owner = owners_find(&hub->owners, name);
        bool serves = net->served->is_up && owner && owners_serves(&hub->owners, net, now);

        if (net->served->jobs.served &&
            (!serves || jobs_fence(&net->served->jobs) != owner->revision))
            jobs_drop(&net->served->jobs);
        if (!serves || net->served->jobs.served || !jobs_load(hub->jobs, name, now))
            continue;
        if (changes_open_jobs(&hub->changes, net, owner_key(key, OWNER_RECORD_PREFIX, name),
                owner->revision, owner->record.epoch, &e) != 0)
            log_warning("the jobs of network \"%s\" are not served: %s", name, err_text(&e));
    }
}

/* How this hub's line is: who uses it is told when it is full, and whom it asks to go. */
static void look_line(struct hub *hub, nsec_t now)
{
    for (size_t i = 0; i < hub->model.networks.n; i++) {
        const struct model_network *net = model_network_at(&hub->model, i);

        if (hub_line_take(hub->reports.line, net, &hub->reports.events, clock_wall_s()))
            watch_tell_status(&hub->watcher, net->own, now);
    }
}

/* Where trains to a node go: to where its session is, if that is by UDP. */
static bool find_place(const struct model_node *node, nsec_t now, struct ip_addr *ret)
{
    struct overlay_facts facts;

    if (!list_is_empty(&node->served->streams) || !overlay_read_facts(node, now, &facts) ||
        !presence_has_session(&facts, now) || endpoint_is_none(&facts.endpoint))
        return false;
    *ret = facts.endpoint.addr;
    return true;
}

/* What this hub's line carries, where nobody has said it. */
static void look_uplink(struct hub *hub, nsec_t now)
{
    if (hub->reports.line && !overlay_has_said_line(hub->changes.overlay) &&
        hub_uplink_tick(&hub->uplink, &hub->model, hub->reports.line, now, clock_wall_s()))
        overlay_set_found_line(hub->changes.overlay, hub->uplink.found);
}

static void on_tick(uv_timer_t *timer)
{
    struct hub *hub = timer->data;
    struct err e = ERR_NULL;
    nsec_t now = clock_now();

    presence_tick(&hub->reports, now, clock_wall_s());
    look_uplink(hub, now);
    look_line(hub, now);
    reports_look(&hub->reports, now, clock_wall_s());
    if ((public_addresses_tick(&hub->public_addresses, now) ||
            hub->networks.refresh_failure.code != 0 ||
            duplicate_has_left(&hub->owners.duplicate, now)) &&
        networks_refresh(&hub->networks, now, &e) != 0)
        log_warning("nodes are not told where this hub is now: %s", err_text(&e));
    (void)networks_join(&hub->networks, now);
    if (store_due(hub->store) <= now && model_expire(&hub->model, now, &e) != 0)
        log_warning("what has expired stays until the next try: %s", err_text(&e));
    if (reports_tick(&hub->reports, now, &e) != 0)
        log_warning("reports are kept in memory: %s", err_text(&e));
    if (audit_tick(&hub->audit, now, false, &e) != 0)
        log_warning("the audit log waits for the next try: %s", err_text(&e));
    if (traffic_book_tick(&hub->traffic, now, clock_wall_s(), &e) != 0)
        log_warning("what nodes have moved is kept in memory: %s", err_text(&e));
    store_lag_tick(&hub->reports, now, clock_wall_s());
    spending_tick(&hub->spending, now, clock_wall_s());
    watch_tick(&hub->watcher, now);
    owners_tick(&hub->owners, now);
    if (owners_failure(&hub->owners))
        uv_stop(hub->loop);
    orphans_tick(&hub->orphans, now);
    serve_jobs(hub, now);
    jobs_tick(hub->jobs, now);
    streams_tick(&hub->streams, now);
    if (hub->handlers.live)
        live_tick(hub->handlers.live, now);
}

/* It is on_turn() that does what is due. */
static void on_pending(uv_timer_t *timer)
{
}

/* Whatever has happened in this turn: the watches are told of it, now or by the timer. */
static void on_turn(uv_prepare_t *turn)
{
    struct hub *hub = turn->data;
    nsec_t due;
    nsec_t now;

    if (list_is_empty(&hub->watcher.woken) && hub->watcher.n_pending == 0)
        return;
    now = clock_now();
    watch_turn(&hub->watcher, now);
    due = watch_due(&hub->watcher, now);
    if (due != NSEC_NEVER)
        (void)uv_timer_start(
            &hub->pending, on_pending, (uint64_t)((due - now) / NSEC_PER_MSEC) + 1, 0);
}

/* ---- opening -------------------------------------------------------------------------------- */

static const char *path_of(
    const struct hub *hub, char buf[static HANDLERS_PATH_MAX], const char *name)
{
    (void)snprintf(buf, HANDLERS_PATH_MAX, "%s/%s", hub->config.state_dir, name);
    return buf;
}

static int open_files(struct hub *hub, struct err *e)
{
    const struct hub_config *config = &hub->config;
    struct err why = ERR_NULL;
    char key[HANDLERS_PATH_MAX];
    char certificate[HANDLERS_PATH_MAX];
    int r = statefile_make_dir(config->state_dir, 0700, e);

    if (r == 0)
        r = statefile_make_dir(path_of(hub, key, "keys"), 0700, e);
    if (r == 0) {
        /* A hub whose disk is full still serves. */
        if (config->options &&
            backup_keep_options(config->state_dir, config->options, config->n_options, &why) != 0)
            log_warning("the options of this start are not kept, so that copies of the hub's state "
                        "do not hold them: %s",
                err_text(&why));
        r = identity_open(
            &hub->identity, path_of(hub, key, "tls.key"), path_of(hub, certificate, "tls.crt"), e);
    }
    return r;
}

static void on_stream(void *ctx, const struct model_node *node, const struct endpoint *ep)
{
    overlay_node_is_at(node, ep, clock_now());
}

/* Lend the handlers the parts that they work on; the server and its port are known later. */
static void lend_parts(struct hub *hub)
{
    hub->handlers = (struct handlers){.disk = &hub->disk,
        .state_dir = hub->config.state_dir,
        .routes = routes,
        .overlay = hub->changes.overlay,
        .identity = &hub->identity,
        .model = &hub->model,
        .audit = &hub->audit,
        .reports = &hub->reports,
        .traffic = &hub->traffic,
        .spending = &hub->spending,
        .price_table = hub->config.price_table,
        .watcher = &hub->watcher,
        .enrol = &hub->enrol,
        .admins = &hub->admins,
        .networks = &hub->networks,
        .owners = &hub->owners,
        .public_addresses = &hub->public_addresses,
        .streams = &hub->streams,
        .rng = hub->rng,
        .udp_port = hub->config.udp_port};
}

static void init_parts(struct hub *hub, struct overlay *overlay)
{
    const struct hub_config *config = &hub->config;
    struct model_listener listener = changes_listener(&hub->changes);

    changes_init(&hub->changes, &hub->model, &hub->networks, &hub->watcher, overlay,
        config->interface_prefix);
    hub->changes.health = &hub->reports.health;
    networks_init(&hub->networks, &hub->disk, &hub->model, &hub->public_addresses,
        config->state_dir, &hub->rng);
    hub->networks.tls_pin = &hub->identity.pin;
    model_init(&hub->model, hub->store, &listener, rng_u64(&hub->rng));
    if (config->name)
        (void)snprintf(hub->model.self, sizeof(hub->model.self), "%s", config->name);
    audit_init(&hub->audit, hub->store, clock_wall_s, access_before, &hub->handlers);
    if (config->audit_age_s > 0)
        hub->audit.age_s = config->audit_age_s;
    hub->model.audit = &hub->audit;
    /* 53 bits: more are not exact as a number in JSON. */
    hub->model.boot = rng_u64(&hub->rng) >> 11 | 1;
    if (hub->store && store_is_shared(hub->store))
        audit_share(&hub->audit, hub->model.self, hub->model.boot);
    reports_init(&hub->reports, &hub->model);
    hub->reports.line = overlay ? overlay_line(overlay) : NULL;
    hub->traffic = (struct traffic_book){
        .model = &hub->model, .n_days = TRAFFIC_BOOK_DAYS, .max_flows = TRAFFIC_BOOK_MEMORY_MAX};
    hub->spending = (struct spending){.book = &hub->traffic,
        .events = &hub->reports.events,
        .health = &hub->reports.health,
        .prices = config->price_table ? &hub->prices : NULL};
    watcher_init(&hub->watcher, &hub->model);
    enrol_init(&hub->enrol, &hub->model, &hub->rng);
    admin_tokens_init(&hub->admins, &hub->model, &hub->rng);
    owners_init(&hub->owners, &hub->model, clock_now);
    hub->orphans = (struct orphans){.owners = &hub->owners};
    streams_init(&hub->streams, hub->loop, config->udp_port);
    web_access_init(&hub->web, &hub->rng);
    live_init(&hub->live);
    hub_uplink_init(&hub->uplink, find_place, rng_u32(&hub->rng), clock_now());
    hub->streams.on_open = on_stream;
    hub->streams.ctx = hub;
    lend_parts(hub);
    if (config->has_web)
        handlers_web_begin(&hub->handlers, &hub->web, &hub->live);
}

/* Most records of jobs in the list of records that are set aside. People read that list, and a
 * rendezvous process, which is not trusted, could otherwise fill it. */
#define DAMAGED_MAX 1000

static void on_job_damaged(void *ctx, const char *key, const char *why)
{
    struct hub *hub = ctx;
    struct err e;

    if (hub->model.damaged.n >= DAMAGED_MAX)
        return;
    (void)err_set(&e, -EUCLEAN, "%s", why);
    model_set_aside(&hub->model, key, 0, &e);
}

static void on_job_written(void *ctx, const char *key)
{
    struct hub *hub = ctx;

    (void)damaged_remove(&hub->model.damaged, key);
}

int hub_check_name(const char *name, struct err *e)
{
    int r = node_check_name(name, e);

    return r == 0 && strcmp(name, HUB_NAME_DEFAULT) != 0 ? reserved_check(name, e) : r;
}

int hub_new(struct hub **ret, struct uv_loop_s *loop, const struct hub_config *config,
    struct overlay *overlay, struct err *e)
{
    struct hub *hub = calloc(1, sizeof(*hub));
    struct jobs_records records = {
        .ctx = hub, .damaged = on_job_damaged, .written = on_job_written};
    char path[HANDLERS_PATH_MAX];
    int r;

    if (!hub || disk_works_init(&hub->disk, loop) != 0) {
        free(hub);
        return err_set(e, -ENOMEM, "no memory for a hub");
    }
    hub->config = *config;
    hub->public_addresses.here = config->public_addresses;
    hub->loop = loop;
    hub->rng = rng_kernel();
    r = config->price_table ? prices_decode(&hub->prices, config->price_table, OBJECT_STRICT, e)
                            : 0;
    if (r == 0)
        r = open_files(hub, e);
    if (r == 0)
        public_addresses_load(
            &hub->public_addresses, path_of(hub, path, "move.json"), config->udp_port);
    hub->store = config->store;
    if (r == 0 && !hub->store)
        r = store_open(&hub->store, config->store_url, clock_now(), e);
    init_parts(hub, overlay);
    if (r == 0)
        r = audit_open(&hub->audit, e);
    if (r == 0)
        r = model_load(&hub->model, e);
    if (r == 0)
        runs_begin(&hub->watcher.runs, hub->store, hub->model.self, hub->model.boot, clock_now());
    if (r == 0)
        r = owners_load(&hub->owners, e);
    if (r == 0)
        r = admin_tokens_load(&hub->admins, e);
    if (r == 0)
        r = admin_tokens_open_file(&hub->admins, path_of(hub, path, "admin.token"), e);
    if (r == 0)
        r = jobs_new(
            &hub->jobs, loop, hub->store, &records, rng_u64(&hub->rng), rng_u64(&hub->rng), e);
    if (r != 0) {
        hub_free(hub);
        return r;
    }
    hub->changes.jobs = hub->jobs;
    hub->handlers.jobs = hub->jobs;
    *ret = hub;
    return 0;
}

/* ---- starting and stopping ------------------------------------------------------------------ */

static void on_store(uv_poll_t *poll, int status, int events)
{
    struct hub *hub = container_of(poll, struct hub, answers);

    store_dispatch(hub->store);
}

void hub__start_loop(struct hub *hub)
{
    (void)uv_timer_init(hub->loop, &hub->tick);
    (void)uv_timer_init(hub->loop, &hub->pending);
    (void)uv_prepare_init(hub->loop, &hub->turn);
    hub->turn.data = hub;
    (void)uv_poll_init(hub->loop, &hub->answers, store_fd(hub->store));
    (void)uv_poll_start(&hub->answers, UV_READABLE, on_store);
    hub->tick.data = hub;
    changes_start_timer(&hub->changes, hub->loop);
    hub->has_handles = true;
}

static int open_server(struct hub *hub, struct err *e)
{
    struct server_config config = {
        .loop = hub->loop,
        .routes = routes,
        .ctx = &hub->handlers,
        .identity = &hub->identity,
        .identify = access_identify,
        .identify_page = access_identify_page,
        .begin = access_begin,
        .admits = access_admits,
        .end = access_end,
    };
    uint16_t api_port = 0;
    int r = server_new(&hub->server, &config, e);

    if (r == 0)
        r = server_listen_tls(hub->server, &hub->config.api_listen, &api_port, e);
    if (r == 0)
        r = server_listen_unix(hub->server, hub->config.socket_path, ROLE_ADMIN, e);
    /* Members of the group may look. */
    if (r == 0)
        r = server_listen_unix(hub->server, hub->config.socket_path, ROLE_VIEWER, e);
    if (r != 0)
        return r;
    hub->changes.server = hub->server;
    hub->changes.events = &hub->reports.events;
    hub->handlers.server = hub->server;
    hub->changes.api_port = api_port;
    hub->handlers.api_port = api_port;
    hub->networks.api_port = api_port;
    return 0;
}

int hub__serve(struct hub *hub, struct err *e)
{
    /* After the server, so that it comes before it: what watches are told is sent at once. */
    (void)uv_prepare_start(&hub->turn, on_turn);
    hub->changes.is_running = true;
    hub->networks.is_serving = true;
    for (size_t i = 0; i < hub->model.networks.n; i++) {
        const struct model_network *net = model_network_at(&hub->model, i);

        if (net->served->is_up || !net->own)
            continue;
        changes_bring_up(&hub->changes, net);
        if (net->served->is_up)
            continue;
        if (e)
            *e = net->served->failure;
        return err_prefix(e, "network \"%s\"", net->spec.meta.name);
    }
    watch_fill(&hub->watcher);
    return 0;
}

/* Warn if the hub's networks are not what was given for the first one: it changes nothing then. */
static void compare_first(const struct hub *hub, const char *name, const struct ip_prefix *cidr4)
{
    const char *asked = name ? name : NETWORKS_NAME_DEFAULT;
    const struct model_network *net = model_find_network(&hub->model, asked);
    char given[IP_PREFIX_TEXT_MAX];
    char held[IP_PREFIX_TEXT_MAX];

    if (name && !net)
        log_warning("--network %s is for the first start only, and this hub has other networks "
                    "already: \"weft network add %s\" makes it",
            name, name);
    if (cidr4->len > 0 && net && !ip_prefix_equal(cidr4, &net->spec.cidr4))
        log_warning(
            "--cidr4 %s is for the first start only: network \"%s\" has %s already, for good",
            ip_prefix_format(cidr4, given), asked, ip_prefix_format(&net->spec.cidr4, held));
}

/* The outcome of networks_add() for the first network. */
struct first {
    int r;
    struct err *e; /* borrowed */
};

static void on_first(void *ctx, int r, const struct model_network *net, const struct err *e)
{
    struct first *first = ctx;

    first->r = r;
    if (r != 0 && first->e)
        *first->e = *e;
}

/* Networks that a starting hub joins at most before it serves; it joins the rest afterwards. */
#define JOIN_TRIES 64

/* A network keeps its block for good, so one that is in use here is refused before it is made. */
static int check_first(const struct hub *hub, const struct network *wanted, struct err *e)
{
    struct ip_prefix block = wanted->cidr4;
    struct err why = ERR_NULL;
    int r;

    if (!hub->changes.overlay)
        return 0;
    if (block.len == 0)
        (void)ip_prefix_parse(&block, NETWORKS_CIDR4_DEFAULT, NULL);
    r = overlay_check_block(hub->changes.overlay, &block, &why);
    if (r == -EADDRINUSE)
        return err_set(e, r, "%s, and nothing is made yet: say another block with --cidr4 CIDR",
            err_text(&why));
    return r == 0 ? 0 : err_set(e, r, "%s", err_text(&why));
}

/* Make the first network, if the hub has none, and wait for that. */
static int add_first(
    struct hub *hub, const char *name, const struct ip_prefix *cidr4, struct err *e)
{
    struct network wanted = {
        .cidr4 = *cidr4, .mtu = NETWORK_MTU_DEFAULT, .keepalive = NETWORK_KEEPALIVE_AUTO};
    struct first first = {.e = e};
    int r;

    /* A network whose record is damaged counts as well. */
    if (hub->model.networks.n > 0 ||
        damaged_find_below(&hub->model.damaged, record_prefix(RECORD_NETWORK))) {
        compare_first(hub, name, cidr4);
        return 0;
    }
    (void)snprintf(
        wanted.meta.name, sizeof(wanted.meta.name), "%s", name ? name : NETWORKS_NAME_DEFAULT);
    r = check_first(hub, &wanted, e);
    if (r != 0)
        return r;
    r = networks_add(&hub->networks, &wanted, on_first, &first, e);
    store_wait(hub->store);
    return r == 0 ? first.r : r;
}

#define KUBERNETES "kubernetes:"

int hub_start(
    struct hub *hub, const char *first_network, const struct ip_prefix *first_cidr4, struct err *e)
{
    const char *url = hub->config.store_url;
    struct networks *n = &hub->networks;
    nsec_t now = clock_now();
    struct err why = ERR_NULL;
    int r;

    hub__start_loop(hub);
    jobs_start(hub->jobs, &hub->model.networks);
    r = open_server(hub, e);
    /* Without the second STUN port nodes get by. */
    if (r == 0 &&
        stun_port_new(&hub->stun, hub->loop, hub->handlers.api_port, rng_u64(&hub->rng), &why) < 0)
        log_info("nodes cannot tell what kind of NAT they are behind: %s", err_text(&why));
    if (r == 0)
        r = add_first(hub, first_network, first_cidr4, e);
    /* Of a store of its own a hub serves what it can; here it would be taken for another hub. */
    if (r == 0 && store_is_shared(hub->store) && n->key_failure.code != 0)
        r = err_set(e, n->key_failure.code, "%s", err_text(&n->key_failure));
    /* Networks that other hubs have made are joined. Others may take an address meanwhile; so a
     * network may have to be tried some times. */
    for (unsigned tries = 0; r == 0 && tries < JOIN_TRIES && networks_join(n, now); tries++)
        store_wait(hub->store);
    /* A hub that cannot join one because its name is another one's does not start. */
    if (r == 0 && n->join_failure.code != 0)
        r = err_set(e, n->join_failure.code, "%s", err_text(&n->join_failure));
    if (r == 0)
        r = networks_refresh(&hub->networks, now, e);
    store_wait(hub->store);
    if (r == 0 && hub->networks.refresh_failure.code != 0 &&
        hub->networks.refresh_failure.code != STORE_E_CONFLICT)
        r = err_set(e, -EIO, "%s", err_text(&hub->networks.refresh_failure));
    if (r == 0)
        r = hub__serve(hub, e);
    /* What was begun here is stored before anybody is answered. Here a beat is written, then jobs
     * are taken, then read, and then served. */
    for (unsigned i = 0; r == 0 && i < 4 && store_is_shared(hub->store); i++) {
        owners_tick(&hub->owners, clock_now());
        serve_jobs(hub, clock_now());
        store_wait(hub->store);
    }
    store_wait(hub->store);
    /* Where the store is in Kubernetes, the networks, nodes and edges are resources there, too. */
    if (r == 0 && url && strncmp(url, KUBERNETES, strlen(KUBERNETES)) == 0)
        r = resources_start(
            &hub->resources, hub->loop, &hub->handlers, url + strlen(KUBERNETES), e);
    if (r == 0)
        (void)uv_timer_start(&hub->tick, on_tick, 1000, 1000);
    return r;
}

int hub_failure(const struct hub *hub, struct err *e)
{
    const struct err *failure = owners_failure(&hub->owners);

    return failure ? err_set(e, failure->code, "%s", err_text(failure)) : 0;
}

void hub_stop(struct hub *hub)
{
    struct err e = ERR_NULL;

    if (!hub->has_handles)
        return;
    hub->has_handles = false;
    resources_stop(hub->resources);
    /* All requests that wait for the store, or for other files, are answered. One kind of waiting
     * may lead to the other. */
    do {
        store_wait(hub->store);
        disk_works_wait(&hub->disk);
    } while (store_pending(hub->store) > 0);
    if (reports_flush(&hub->reports, clock_now(), &e) != 0)
        log_warning("the last reports are lost: %s", err_text(&e));
    if (traffic_book_write(&hub->traffic, NULL, clock_now(), &e) != 0)
        log_warning("the last of what nodes have moved is lost: %s", err_text(&e));
    (void)audit_tick(&hub->audit, clock_now(), true, &e);
    store_wait(hub->store);
    if (audit_tick(&hub->audit, clock_now(), true, &e) != 0)
        log_warning("the last refusals are not in the audit log: %s", err_text(&e));
    hub_uplink_deinit(&hub->uplink);
    streams_stop(&hub->streams);
    changes_stop(&hub->changes);
    jobs_stop(hub->jobs);
    owners_give_up(&hub->owners, clock_now());
    hub->stun = stun_port_free(hub->stun);
    uv_close((uv_handle_t *)&hub->tick, NULL);
    uv_close((uv_handle_t *)&hub->turn, NULL);
    uv_close((uv_handle_t *)&hub->pending, NULL);
    store_wait(hub->store);
    uv_close((uv_handle_t *)&hub->answers, NULL);
    if (hub->server)
        server_stop(hub->server);
}

struct hub *hub_free(struct hub *hub)
{
    if (!hub)
        return NULL;
    server_free(hub->server);
    live_deinit(&hub->live);
    web_access_deinit(&hub->web);
    resources_free(hub->resources);
    json_decref(hub->networks.held_keys);
    jobs_free(hub->jobs);
    resolve_task_free(hub->public_addresses.task);
    enrol_deinit(&hub->enrol);
    keys_free_all(&hub->spending.networks);
    traffic_book_deinit(&hub->traffic);
    admin_tokens_deinit(&hub->admins);
    owners_deinit(&hub->owners);
    reports_deinit(&hub->reports);
    runs_deinit(&hub->watcher.runs);
    model_deinit(&hub->model);
    store_free(hub->store);
    audit_deinit(&hub->audit);
    identity_close(&hub->identity);
    disk_works_deinit(&hub->disk);
    free(hub);
    return NULL;
}

/* ---- for others ----------------------------------------------------------------------------- */

uint16_t hub_api_port(const struct hub *hub)
{
    return hub->handlers.api_port;
}

char *hub_web_url(struct hub *hub)
{
    struct web_grant grant = {.role = ROLE_ADMIN, .maker = "hub"};

    return hub->handlers.web ? web_login_url(&hub->handlers, &grant, WEB_LOGIN_TTL, clock_now())
                             : NULL;
}

const char *hub_pin(const struct hub *hub, char buf[static HUB_PIN_TEXT_MAX])
{
    _Static_assert(BASE64_SIZE(sizeof(hub->identity.pin.b)) == HUB_PIN_TEXT_MAX, "it fits");
    base64_encode(hub->identity.pin.b, sizeof(hub->identity.pin.b), buf);
    return buf;
}

const struct model_network *hub_next_network(struct hub *hub, const struct model_network *after)
{
    const struct keys *all = &hub->model.networks;
    size_t i = after ? keys_lower(all, after->keyed.key) + 1 : 0;

    return i < all->n ? model_network_at(&hub->model, i) : NULL;
}
