/* overlay.c - see overlay.h: the networks' interfaces and devices, the port, the relay. */
#include "hub/overlay/overlay.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/metrics.h"
#include "base/secret.h"
#include "base/text.h"
#include "engine/engine.h"
#include "engine/uapi_client.h"
#include "filter/relay.h"
#include "hub/overlay/overlay_internal.h"
#include "mesh/config/diff.h"
#include "mesh/config/wg_config.h"
#include "mesh/render/render.h"
#include "net/netlink/rtnl.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/log.h"
#include "port/device.h"
#include "port/port.h"
#include "relay/router.h"
#include "uapi/uapi.h"
#include "wire/ip.h"

/* ---- an engine (engine/engine.h) whose data path is a device in this process ----------------- */

/*
 * The hub's networks share one UDP port and the relay behind it, so their devices run in the hub
 * itself. They are changed by the same requests as the process `weft wg`, without the socket.
 * It has those functions of struct engine_ops that change peers and tell of them, and no others.
 */

struct device_engine {
    struct engine engine;
    struct device *device; /* pins */
};

static struct device *device_of(struct engine *engine)
{
    return ((struct device_engine *)engine)->device;
}

static int get(struct engine *engine, struct wg_config *ret, struct err *e)
{
    struct device *device = device_of(engine);
    size_t len;
    char *text;
    int r = uapi_handle(device, UAPI_CLIENT_GET, strlen(UAPI_CLIENT_GET), &text, &len);

    if (r < 0)
        return err_set(e, r, "no memory to ask %s", device_name(device));
    r = uapi_client_decode(ret, text, len, e);
    /* The text holds the network's private key. */
    secret_wipe(text, len);
    free(text);
    return r;
}

static int apply(
    struct engine *engine, const struct diff *d, const struct x25519_secret *secret, struct err *e)
{
    _cleanup_(str_deinit) struct str request = STR_NULL;
    struct device *device = device_of(engine);
    size_t answer_len;
    char *answer;
    int r;

    uapi_client_encode(d, secret, &request);
    if (request.failed)
        return err_set(e, -ENOMEM, "no memory to configure %s", device_name(device));
    r = uapi_handle(device, request.text, request.len, &answer, &answer_len);
    if (r < 0)
        return err_set(e, r, "no memory to configure %s", device_name(device));
    r = uapi_client_result(answer, answer_len, e);
    free(answer);
    return r == 0 ? 0 : err_prefix(e, "cannot configure %s", device_name(device));
}

static void close_engine(struct engine *engine)
{
    free(engine);
}

static const struct engine_ops ops = {
    .kind = ENGINE_KIND_USERSPACE, .get = get, .apply = apply, .close = close_engine};

/* ---- one network's interface on the hub ------------------------------------------------------ */

/*
 * The interface has the network's first addresses and a route for its blocks. It
 * serves these two addresses and nothing else: a packet that a node sends
 * through its session with the hub to any other address ends here, whatever
 * the machine's forwarding is, so nothing that one node sends can reach
 * another in the hub's plaintext.
 *
 * Blocks may overlap. Then both interfaces have, say, 10.42.0.1/16, and the
 * kernel picks the way of a packet by the metric of the routes: the network that
 * came first wins. Sockets that are bound to an interface (the API's)
 * are not concerned, but what the kernel answers by itself, an echo reply for
 * one, would go to a stranger in the other network. So the later network is
 * shadowed: its interface serves the API's port alone, whose listening socket
 * is bound and answers even for connections that it does not know. It also
 * needs a loose reverse-path check, because packets come in by another
 * interface than the one that the kernel would use.
 *
 * What the hub itself says has to arrive on any line: of its packets, and of what its TCP asks of
 * the members', none is larger than every path is taken to carry. A member that measures its way to
 * the hub (overlay_internal.h) has routes of its own, with what that way carries.
 */

/* The metrics of the networks' routes begin here: after all routes that somebody made by hand, and
 * before the "unreachable" ones of IPv6. */
#define METRIC_BASE 20000

/* The rules of the hub's own packets are looked at after the local table's (0), and before those of
 * an agent on this machine. */
#define RULE_PRIORITY 5186

/* ---- the device ----------------------------------------------------------------------------- */

static const struct ip_prefix *block_of(const struct overlay_network *net, bool v4)
{
    return v4 ? &net->model->spec.cidr4 : &net->model->spec.cidr6;
}

/* Has a network whose block overlaps come before it? */
static bool is_shadowed(const struct overlay_network *net, bool v4)
{
    const struct overlay_network *each;

    list_foreach(each, &net->overlay->networks, siblings) {
        if (each == net)
            return false;
        if (ip_prefix_overlaps(block_of(each, v4), block_of(net, v4)))
            return true;
    }
    return false;
}

static void set_accept(struct overlay_network *net)
{
    uint16_t api = net->overlay->api_port;
    struct device_accept accept = {.at = {{net->model->address4, is_shadowed(net, true) ? api : 0},
                                       {net->model->address6, is_shadowed(net, false) ? api : 0}}};

    device_set_accept(net->device, &accept);
}

/* ---- listeners: with the port's lock held; see device.h -------------------------------------- */

static void on_session(void *ctx, const struct x25519_public *peer, const struct udp_path *path)
{
    overlay__note_path(ctx, peer, path, clock_now());
}

static void on_path(void *ctx, const struct x25519_public *peer, const struct udp_path *path)
{
    overlay__note_path(ctx, peer, path, 0);
}

static bool is_index_taken(void *ctx, const struct x25519_public *peer, uint32_t index)
{
    return overlay__is_leased(ctx, peer, index, clock_now());
}

static int open_device(struct overlay_network *net, struct err *e)
{
    struct device_options opt = {
        .name = net->model->served->interface, .tun_fd = -1, .mtu = net->model->spec.mtu};
    struct device_listener listener = {
        .on_session = on_session, .on_path = on_path, .is_index_taken = is_index_taken, .ctx = net};
    struct diff key = {.set_key = true};
    struct device_engine *de;
    int r = device_new(&net->device, net->overlay->port, &opt, e);

    if (r < 0)
        return r;
    device_set_listener(net->device, &listener);
    set_accept(net);
    de = calloc(1, sizeof(*de));
    if (!de)
        return err_set(e, -ENOMEM, "no memory for a network");
    *de = (struct device_engine){.engine = {.ops = &ops}, .device = net->device};
    net->engine = &de->engine;
    return engine_apply(net->engine, &key, &net->model->secret, e);
}

/* Open the socket by which wg(8) shows the interface. Nothing else depends on it. */
static void open_uapi(struct overlay_network *net)
{
    char path[sizeof(UAPI_SOCKET_DIR) + 32];
    struct err e = ERR_NULL;

    (void)snprintf(path, sizeof(path), "%s/%s.sock", UAPI_SOCKET_DIR, device_name(net->device));
    if (uapi_server_new(&net->uapi, net->device, path, -1, &e) < 0)
        log_info("%s: not shown by wg: %s", device_name(net->device), err_text(&e));
}

/* ---- the interface -------------------------------------------------------------------------- */

/** The search for a member of a network on this machine. */
struct member_walk {
    const struct overlay_network *net;
    unsigned ifindex; /* of its interface; 0: there is none */
};

static int find_member(const struct rtnl_entry *entry, void *ctx)
{
    struct member_walk *w = ctx;
    const struct model_node *node;

    if (!ip_prefix_has(block_of(w->net, ip_addr_is_v4(&entry->prefix.addr)), &entry->prefix.addr))
        return 0;
    node = model_find_address(w->net->model, &entry->prefix.addr);
    if (node && !node->spec.hub)
        w->ifindex = entry->ifindex;
    return 0;
}

/*
 * Is the block free on this machine?
 * @net:	whose block it is; NULL: a network's that is not made yet
 *
 * But for the overlay's own interfaces, and that of a member of @net which this machine is as well.
 *
 * Return: 0; -EADDRINUSE with words: it is in use; or negative errno with words.
 */
static int check_block(struct overlay *o, const struct overlay_network *net,
    const struct ip_prefix *block, struct err *e)
{
    struct member_walk member = {.net = net};
    const struct overlay_network *each;
    _cleanup_(freep) unsigned *own = NULL;
    size_t n = 2;

    list_foreach(each, &o->networks, siblings)
        n++;
    own = calloc(n, sizeof(*own));
    if (!own)
        return err_set(e, -ENOMEM, "no memory for a network");
    n = 0;
    list_foreach(each, &o->networks, siblings)
        own[n++] = each->ifindex;
    /* If the addresses cannot be read, the check below says so. */
    if (net && rtnl_each_address(&o->nl, 0, find_member, &member) == 0 && member.ifindex != 0)
        own[n++] = member.ifindex;
    return rtnl_check_free(&o->nl, block, own, n, e);
}

/*
 * A new network's blocks must be free. One that has members must come up whatever else has taken
 * its block meanwhile, or a restart would take the whole hub away from everybody.
 */
static int check_blocks(struct overlay_network *net, struct err *e)
{
    struct overlay *o = net->overlay;
    int r = check_block(o, net, &net->model->spec.cidr4, e);

    if (r == 0)
        r = check_block(o, net, &net->model->spec.cidr6, e);
    if (r != -EADDRINUSE || net->model->nodes.n <= 1)
        return r;
    log_warning(
        "network %s: %s; members may not reach the hub", net->model->spec.meta.name, err_text(e));
    return 0;
}

/* Turn IPv6 on, which may be off for new interfaces. If that fails, adding the address says so. */
static void turn_on_ipv6(const struct overlay_network *net)
{
    _cleanup_(closep) int fd = -1;
    char path[80];

    (void)snprintf(
        path, sizeof(path), "/proc/sys/net/ipv6/conf/%s/disable_ipv6", device_name(net->device));
    fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd >= 0 && write(fd, "0", 1) < 0)
        log_debug("%s: cannot be written: %s", path, strerror(errno));
}

/* What the hub sends from its own address of the network. */
static struct rtnl_rule rule_of(const struct overlay_network *net, bool v4)
{
    return (struct rtnl_rule){.table = rtnl_table_of(device_name(net->device)),
        .from = v4 ? net->model->address4 : net->model->address6,
        .priority = RULE_PRIORITY};
}

static int add_address(struct overlay_network *net, const struct ip_addr *address)
{
    struct netlink *nl = &net->overlay->nl;
    bool v4 = ip_addr_is_v4(address);
    bool shadowed = is_shadowed(net, v4);
    const struct ip_prefix *block = block_of(net, v4);
    struct ip_prefix own = {.addr = *address, .len = block->len};
    struct rtnl_route route = {.metric = METRIC_BASE + net->rank,
        /* IPv6 that is too large is cut (icmp.h). */
        .metrics = {.mtu = v4 ? RENDER_MTU_SAFE : IP_V6_MTU_MIN,
            .advmss =
                RENDER_MTU_SAFE - (v4 ? IP_V4_HEADER_MIN : IP_V6_HEADER) - OVERLAY__TCP_HEADER}};
    struct rtnl_rule rule;
    int way;
    int r;

    if (shadowed)
        own.len = v4 ? 32 : 128;
    r = rtnl_add_address(nl, net->ifindex, &own, !shadowed);
    if (r == 0)
        r = rtnl_add_route(nl, net->ifindex, block, &route);
    if (r != 0 || shadowed)
        return r;
    /* The hub's own packets leave by its own interface, also where the machine is a member too,
     * whose interface everything else takes. Without rules in this kernel that is all that is
     * missing. */
    net->has_rule[v4] = true;
    rule = rule_of(net, v4);
    route.table = rule.table;
    route.metric = 0;
    route.protocol = RTNL_PEER_ROUTES;
    way = rtnl_set_route(nl, net->ifindex, block, &route);
    if (way == 0)
        way = rtnl_add_rule(nl, v4, &rule);
    if (way < 0)
        log_info("%s: a member on this machine would answer for the hub: no routing rule: %s",
            device_name(net->device), strerror(-way));
    return 0;
}

static int set_up_interface(struct overlay_network *net, struct err *e)
{
    const struct model_network *model = net->model;
    const char *name = device_name(net->device);
    struct rtnl_link link;
    int r = rtnl_find_link(&net->overlay->nl, name, &link);

    if (r != 0)
        return err_set(e, r < 0 ? r : -ENODEV, "interface %s has gone", name);
    net->ifindex = link.ifindex;
    turn_on_ipv6(net);
    r = rtnl_accept_own(&net->overlay->nl, net->ifindex);
    if (r < 0)
        return err_set(e, r, "cannot loosen the source check of %s: %s", name, strerror(-r));
    r = rtnl_set_link(&net->overlay->nl, net->ifindex, true, 0);
    if (r < 0)
        return err_set(e, r, "cannot bring interface %s up: %s", name, strerror(-r));
    r = add_address(net, &model->address4);
    if (r < 0)
        return err_set(e, r, "cannot give interface %s its address: %s", name, strerror(-r));
    r = add_address(net, &model->address6);
    if (r < 0)
        log_info("%s: members reach the hub by IPv4 only: this machine has no IPv6 (%s)", name,
            strerror(-r));
    return 0;
}

/* ---- what the hub says of them, and asks ---------------------------------------------------- */

int overlay_check_block(struct overlay *o, const struct ip_prefix *block, struct err *e)
{
    return check_block(o, NULL, block, e);
}

void overlay_remove_network(const struct model_network *model)
{
    struct overlay_network *net = model->served->overlay;
    struct overlay *o;
    struct overlay_network *each;

    if (!net)
        return;
    model->served->overlay = NULL;
    o = net->overlay;
    list_remove(&net->siblings);
    for (int v4 = 0; net->device && v4 <= 1; v4++) {
        const struct rtnl_rule rule = rule_of(net, v4);

        if (net->has_rule[v4])
            (void)rtnl_remove_rule(&o->nl, v4, &rule);
    }
    if (net->router)
        router_network_remove(relay_router(o->relay), net->router);
    net->uapi = uapi_server_free(net->uapi);
    net->engine = engine_close(net->engine);
    net->device = device_free(net->device);
    htab_deinit(&net->by_key);
    free(net);
    /* Another network may have been in its shadow. */
    list_foreach(each, &o->networks, siblings)
        set_accept(each);
}

int overlay_add_network(struct overlay *o, const struct model_network *model, struct err *e)
{
    struct overlay_network *net = calloc(1, sizeof(*net));
    int r;

    if (!net)
        return err_set(e, -ENOMEM, "no memory for a network");
    net->overlay = o;
    net->model = model;
    model->served->overlay = net;
    net->rank = o->next_rank++;
    htab_init(&net->by_key, hash_u64(o->seed, net->rank));
    list_add_tail(&o->networks, &net->siblings);
    r = check_blocks(net, e);
    if (r == 0)
        r = open_device(net, e);
    if (r == 0)
        r = set_up_interface(net, e);
    if (r == 0) {
        r = router_network_add(&net->router, relay_router(o->relay), &model->public);
        if (r < 0)
            (void)err_set(e, r, "no memory for a network");
    }
    if (r == 0)
        open_uapi(net);
    else
        overlay_remove_network(model);
    return r;
}

/* ---- the port and the relay ------------------------------------------------------------------ */

#define WORKERS_DEFAULT_MAX 4
#define TICK_MS             1000

/* Of each receiving thread, in shared/handshake_queue.h: a hub takes 0.2 ms for a handshake, and so
 * is under load when members have to wait for about half a second. */
#define HANDSHAKES 16384

/* ---- metrics -------------------------------------------------------------------------------- */

static void add_offloads(struct overlay *o, struct metrics *m)
{
    const struct overlay_network *net;

    list_foreach(net, &o->networks, siblings)
        for (int i = 0; i < OFFLOAD_N; i++) {
            const char *why = device_offload_why(net->device, (enum offload)i);

            metrics_add_labelled(m, METRIC_OFFLOAD,
                METRIC_LABELS(device_name(net->device), offload_names[i], why ? why : ""),
                why ? 0 : 1);
        }
}

void overlay_set_found_line(struct overlay *o, uint64_t rate)
{
    if (!o->has_said_line)
        relay_set_line(o->relay, rate, true);
}

bool overlay_has_said_line(const struct overlay *o)
{
    return o->has_said_line;
}

const struct relay_line *overlay_line(const struct overlay *o)
{
    return relay_line(o->relay);
}

bool overlay_find_heard(
    struct overlay *o, const struct stun_transaction *id, struct stun_hearing *ret)
{
    return relay_find_heard(o->relay, id, ret);
}

void overlay_add_metrics(struct overlay *o, struct metrics *m)
{
    const struct relay_line *line = relay_line(o->relay);
    uint64_t drops[DROP_REASON_N] = {0};
    struct relay_counts n;

    relay_read_counts(o->relay, &n);
    metrics_add(m, METRIC_RELAY_PACKETS, (double)n.packets);
    metrics_add(m, METRIC_RELAY_BYTES, (double)n.bytes);
    metrics_add(m, METRIC_RELAY_LEASES, (double)router_n_leases(relay_router(o->relay)));
    metrics_add(m, METRIC_RELAY_LINE_RATE, (double)line->rate);
    metrics_add(m, METRIC_RELAY_LINE_CAPACITY, (double)line->capacity);
    metrics_add(m, METRIC_RELAY_REFUSED, (double)n.refused);
    metrics_add(m, METRIC_STUN_ANSWERS, (double)n.stun_answers);
    port_drops(o->port, drops);
    for (int i = 0; i < DROP_REASON_N; i++)
        metrics_add_labelled(
            m, METRIC_DROPS, METRIC_LABELS(drop_reason_names[i]), (double)drops[i]);
    add_offloads(o, m);
}

/* ---- life ----------------------------------------------------------------------------------- */

static unsigned default_workers(void)
{
    struct cpulist cpus;

    cpulist_allowed(&cpus);
    if (cpus.n / 2 > WORKERS_DEFAULT_MAX)
        return WORKERS_DEFAULT_MAX;
    return cpus.n > 1 ? cpus.n / 2 : 1;
}

static int open_parts(
    struct overlay *o, const struct port_options *opt, uint64_t line, struct err *e)
{
    struct rng rng = rng_kernel();
    int r = netlink_open(&o->nl, NETLINK_ROUTE);

    if (r < 0)
        return err_set(e, r, "cannot speak with the kernel: %s", strerror(-r));
    r = port_new(&o->port, opt, e);
    if (r < 0)
        return r;
    r = relay_new(&o->relay, opt->n_workers, &rng);
    if (r < 0)
        return err_set(e, r, "no memory for the relay");
    relay_set_line(o->relay, line, false);
    o->has_said_line = line != 0;
    port_set_filter(o->port, relay_filter, o->relay);
    return 0;
}

int overlay_new(
    struct overlay **ret, struct uv_loop_s *loop, const struct overlay_options *opt, struct err *e)
{
    struct overlay *o = calloc(1, sizeof(*o));
    struct port_options port = {.listen_port = opt->listen_port,
        .n_workers = opt->n_workers ? opt->n_workers : default_workers(),
        .n_handshakes = HANDSHAKES,
        .offloads = offloads_all()};
    struct rng rng = rng_kernel();
    int r;

    if (!o)
        return err_set(e, -ENOMEM, "no memory for the hub's interfaces");
    o->loop = loop;
    o->state_dir = opt->state_dir;
    o->api_port = opt->api_port;
    o->seed = rng_u64(&rng);
    list_init(&o->networks);
    htab_init(&o->by_remote, rng_u64(&rng));
    list_init(&o->recontacts);
    (void)pthread_mutex_init(&o->lock, NULL);
    r = open_parts(o, &port, opt->line, e);
    if (r < 0) {
        (void)overlay_free(o);
        return r;
    }
    *ret = o;
    return 0;
}

static void on_tick(uv_timer_t *timer)
{
    struct overlay *o = timer->data;
    nsec_t now = clock_now();
    nsec_t sent = port_bound_timestamps(o->port, &o->timestamps.bounds);

    if (timestamp_file_keep(&o->timestamps, sent, clock_wall(), now))
        (void)port_bound_timestamps(o->port, &o->timestamps.bounds);
    relay_tick(o->relay, now);
    overlay__tick_nodes(o, now);
}

int overlay_start(struct overlay *o, struct err *e)
{
    int r = probe_answers_open(&o->probes, o, e);
    char path[PATH_MAX];

    if (r == 0) {
        (void)snprintf(path, sizeof(path), "%.*s/timestamp", PATH_MAX - 64, o->state_dir);
        timestamp_file_open(&o->timestamps, path, clock_wall(), clock_now());
        timestamp_file_warn_back(&o->timestamps, clock_wall());
        (void)port_bound_timestamps(o->port, &o->timestamps.bounds);
        r = port_start(o->port, e);
    }
    if (r < 0) {
        probe_answers_close(&o->probes);
        return r;
    }
    addresses_open(&o->addresses, o->state_dir);
    o->is_started = true;
    (void)uv_timer_init(o->loop, &o->tick);
    o->tick.data = o;
    (void)uv_timer_start(&o->tick, on_tick, TICK_MS, TICK_MS);
    return 0;
}

void overlay_stop(struct overlay *o)
{
    if (!o->is_started)
        return;
    o->is_started = false;
    uv_close((uv_handle_t *)&o->tick, NULL);
    probe_answers_close(&o->probes);
    port_stop(o->port);
    timestamp_file_end(
        &o->timestamps, port_bound_timestamps(o->port, &o->timestamps.bounds), clock_now());
}

struct overlay *overlay_free(struct overlay *o)
{
    if (!o)
        return NULL;
    o->port = port_free(o->port);
    o->relay = relay_free(o->relay);
    htab_deinit(&o->by_remote);
    netlink_close(&o->nl);
    addresses_close(&o->addresses);
    (void)pthread_mutex_destroy(&o->lock);
    free(o);
    return NULL;
}
