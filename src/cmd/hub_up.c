/* hub_up.c - weft hub up: run the hub, one machine with a public address that all others find. */

#include <errno.h>
#include <limits.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <uv.h>

#include "agent/agent.h"
#include "agent/hosts_helper.h"
#include "agent/join.h"
#include "agent/paths/socket/echo_socket.h"
#include "agent/state/state.h"
#include "api/content/token.h"
#include "backends/kubernetes/kube_client.h"
#include "backends/store_open.h"
#include "base/addr.h"
#include "base/err.h"
#include "base/secret.h"
#include "cmd/admin.h"
#include "cmd/agent_privileges.h"
#include "cmd/cmd.h"
#include "cmd/mesh_options.h"
#include "cmd/options.h"
#include "cmd/price_table.h"
#include "cmd/privileges.h"
#include "hub/hub.h"
#include "hub/networks/networks.h"
#include "hub/overlay/overlay.h"
#include "hub/web/web_access.h"
#include "mesh/object/fields.h"
#include "mesh/object/prices.h"
#include "net/address/resolve.h"
#include "net/netlink/netlink.h"
#include "net/netlink/rtnl.h"
#include "net/socket/socket.h"
#include "os/clock.h"
#include "os/log.h"
#include "path/candidate.h"
#include "uapi/uapi.h"

/* ==== a machine that relays for a network, and does no more ================================== */

/*
 * `weft hub up --relay-only`. Such a relay is a node like any other, with an agent and the
 * userspace engine: no API, no store, nothing that a network could not do without.
 */

static void on_wait(void *ctx, unsigned for_s, const struct err *e)
{
    log_warning("%s: asking again, for up to %u s", err_text(e), for_s);
}

/* @asked: but for its token, which is decoded from @text; NULL: there is none. */
static int join(struct join_options *asked, const char *text, struct err *e)
{
    _cleanup_(state_deinit) struct state st = STATE_NULL;
    struct token token = TOKEN_NULL;
    int r;

    if (!text)
        return err_set(e, -1,
            "this machine has not joined a network yet (%s has no node.json): say --token TOKEN, "
            "from weft token new --relay",
            asked->state_dir);
    if (asked->n_given > STATE_GIVEN_MAX)
        return err_set(e, -1, "--public gives %u addresses, and a relay tells %d at most",
            asked->n_given, STATE_GIVEN_MAX);
    r = token_decode(&token, text, e);
    asked->token = &token;
    if (r == 0)
        r = join_enrol(asked, &st, e);
    token_wipe(&token);
    if (r == 0 && !snapshot_self(&st.snapshot)->relay)
        log_warning("the hub does not admit this node as a relay yet: weft node set %s --relay yes",
            st.snapshot.self);
    return r;
}

/*
 * Is a member that relays, until a signal ends it; joins first where it has not
 * @asked, @token:	as join() has them
 * @user:	to run as, as --user says
 *
 * Return: 0; or non-zero with words.
 */
static int relay_only_run(struct join_options *asked, const char *token, const char *socket_path,
    const char *user, struct err *e)
{
    _cleanup_(state_deinit) struct state st = STATE_NULL;
    struct agent_config config = {
        .state_dir = asked->state_dir, .socket_path = socket_path, .no_measure = true};
    enum agent_end end;
    int r = state_check_dir(asked->state_dir, e);

    if (r == 0)
        r = state_read(&st, asked->state_dir, e);
    if (r == STATE_E_ABSENT)
        r = join(asked, token, e);
    else if (r == 0 && !st.wants_relay)
        r = err_set(e, -1,
            "%s is the state of a node that joined without --relay; say another --state",
            asked->state_dir);
    if (r == 0)
        r = agent_privileges_drop(&config, user, e);
    if (r == 0)
        r = agent_run(&config, &end, e);
    (void)hosts_helper_free(config.hosts);
    (void)echo_socket_free(config.pings);
    return r;
}

static struct {
    struct option_list public_addresses;
    struct endpoint listen;
    struct endpoint api;
    const char *network;
    struct ip_prefix cidr4;
    const char *store;
    const char *state;
    const char *socket;
    uint64_t line;
    nsec_t audit_age;
    const char *prices;
    const char *prefix;
    const char *user;
    enum log_level level;
    bool web;
    bool no_dataplane;
    bool relay_only;
    bool ports;
    bool prepare;
    const char *token;
    const char *name;
    const char *hubs_own; /* an option that was given and that a relay has no use for */
} arg;

#define AUDIT_AGE_MAX (3650 * 86400 * NSEC_PER_SEC)

/* [const char *] */
static int option_store(const struct option *o, const char *text, struct err *e)
{
    int r = store_open_check(text, e);

    return r == 0 ? option_text(o, text, e) : r;
}

static const struct option options[] = {
    {"--public", "HOST[:PORT]", option_public, &arg.public_addresses, NULL,
        "where nodes reach this machine's UDP port; best first", .many = true},
    {"--listen", ":PORT", option_listen, &arg.listen, ":51820", "UDP port of WireGuard and relay",
        .min = 1},
    {"--api", "[ADDRESS]:PORT", option_listen, &arg.api, ":8443",
        "TCP port of the API, here and on the overlay", .given = &arg.hubs_own},
    {"--network", "NAME", option_name, &arg.network, NULL,
        "the first network, made if there is none yet (default \"default\")",
        .given = &arg.hubs_own},
    {"--cidr4", "CIDR", option_cidr4, &arg.cidr4, NULL,
        "its IPv4 block (default " NETWORKS_CIDR4_DEFAULT ")", .given = &arg.hubs_own},
    {"--store", "URL", option_store, &arg.store, NULL,
        "sqlite:PATH, memory:, etcd://HOST,... or kubernetes: (default sqlite:STATE/hub.db)",
        .given = &arg.hubs_own},
    {"--state", "DIR", option_text, &arg.state, "/var/lib/weft/hub", "where keys and state are"},
    {"--socket", "PATH", option_socket, &arg.socket, ADMIN_SOCKET_DEFAULT, "the admin socket"},
    {"--line", "RATE", option_rate, &arg.line, NULL,
        "what its line carries in each direction, as 1Gbit: near that, pairs are asked to go "
        "another way",
        .given = &arg.hubs_own},
    {"--audit-age", "DURATION", option_duration, &arg.audit_age, "400d",
        "how long entries of the audit log are kept", .min = NSEC_PER_SEC, .max = AUDIT_AGE_MAX,
        .given = &arg.hubs_own},
    {"--price-table", "FILE", option_text, &arg.prices, NULL,
        "what bytes cost, for weft cost and for budgets, in networks that have no prices of their "
        "own; read at the start",
        .given = &arg.hubs_own},
    {"--web", NULL, option_flag, &arg.web, NULL,
        "show a page to browsers, at the API's port; its URL with a login is printed",
        .given = &arg.hubs_own},
    {"--interface-prefix", "WORD", option_name, &arg.prefix, "weft",
        "interfaces are called WORD-NETWORK"},
    PRIVILEGES_OPTION(&arg.user),
    {"--log-level", "LEVEL", option_log_level, &arg.level, "info", "error, warning, info or debug"},
    {"--no-dataplane", NULL, option_flag, &arg.no_dataplane, NULL,
        "control only: no interfaces, no relay; uses interfaces that are there",
        .given = &arg.hubs_own},
    {"--relay-only", NULL, option_flag, &arg.relay_only, NULL,
        "be a relay of a network that has its hub elsewhere: a member without API or store"},
    {"--ports", NULL, option_flag, &arg.ports, NULL,
        "print the ports that have to be let in to it, with the other options as given, and end"},
    {"--prepare", NULL, option_flag, &arg.prepare, NULL,
        "as root, before a service manager starts the hub as --user: give that user the state, and "
        "end"},
    {"--token", "TOKEN", option_text, &arg.token, NULL,
        "for --relay-only, the first time: from weft token new --relay"},
    {"--name", "NAME", option_name, &arg.name, NULL,
        "of this hub among others of the same store (default \"hub\"); with --relay-only: the "
        "node's "
        "name, instead of the host's"},
    OPTIONS_END,
};

static const struct option_usage usage = {
    .command = "hub up",
    .summary = "Run the hub: enrolment, desired state, relay. It stays in the foreground.",
    .options = options,
    .notes = "The next step is \"weft token new\", and \"weft join TOKEN\" on each machine.",
};

/* ---- set-up --------------------------------------------------------------------------------- */

/* Prints what a firewall before this machine has to let in: a line a port, for scripts as well. */
static int print_ports(void)
{
    uint16_t udp = arg.listen.port;
    uint16_t api = arg.api.port;

    if (arg.relay_only) {
        (void)printf("udp %u\tWireGuard, the relay\n", udp);
        return CMD_OK;
    }
    if (api == 0)
        return cmd_refuse(usage.command,
            "--ports: with port 0 of --api a free port is taken at each start; give a number");
    (void)printf("udp %u\tWireGuard, the relay, STUN\n", udp);
    (void)printf("tcp %u\tjoining, the API, nodes whose UDP is blocked\n", api);
    if (api != udp)
        (void)printf("udp %u\tSTUN from a second port\n", api);
    return CMD_OK;
}

/* How long a name server may take before it is said that it is waited for, and how often the answer
 * is looked for until then. */
#define LOOK_UP_QUIET   (2 * NSEC_PER_SEC)
#define LOOK_UP_EACH_MS 20

/* Where a name leads, as resolve_host(). Without a name server that takes half a minute and more.
 */
static int look_up(struct hub_public *ret, uint16_t port, struct err *e)
{
    struct resolve_answer answers[RESOLVE_TASK_TEXTS];
    const nsec_t begun_at = clock_now();
    struct resolve_task *task = NULL;
    bool is_said = false;
    int r = resolve_task_start(&task, (const char(*)[HOST_PORT_MAX + 1]) & ret->text, 1, port, e);

    if (r != 0)
        return r;
    while (resolve_task_take(task, answers) == 0) {
        if (!is_said && clock_now() - begun_at >= LOOK_UP_QUIET) {
            log_info("waiting for a name server to say where --public %s leads", ret->text);
            is_said = true;
        }
        (void)poll(NULL, 0, LOOK_UP_EACH_MS);
    }
    task = resolve_task_free(task);
    if (answers[0].n == 0)
        return err_set(e, answers[0].why.code, "%s", err_text(&answers[0].why));
    for (ret->n = 0; ret->n < answers[0].n && ret->n < OBJECT_ENDPOINTS_MAX; ret->n++)
        ret->at[ret->n] = answers[0].endpoints[ret->n];
    return 0;
}

/* Reads one --public: an address, or a name, which is looked up now. */
static int find_public(struct hub_public *ret, const char *text, uint16_t port, struct err *e)
{
    char at[ENDPOINT_TEXT_MAX];
    int r = hub_public_parse(ret, text, port, e);

    if (r == 0 && ret->is_name)
        r = look_up(ret, port, e);
    for (unsigned i = 0; r == 0 && i < ret->n; i++)
        if (block_find_reserved(&ret->at[i].addr))
            r = err_set(e, -EADDRNOTAVAIL, "%.60s is %s, where no other machine reaches this one",
                text, endpoint_format(&ret->at[i], at));
    return r == 0 ? 0 : err_prefix(e, "--public");
}

/* What is right behind a cloud's address translation is elsewhere a hub that nobody finds. */
static void tell_public(struct netlink *nl, const struct endpoint *at)
{
    char text[ENDPOINT_TEXT_MAX];
    unsigned ifindex;
    int r = rtnl_find_address(nl, &at->addr, &ifindex);

    (void)endpoint_format(at, text);
    if (r < 0)
        return;
    if (r == RTNL_E_ABSENT)
        log_info("--public %s is at no interface of this machine: that is right where a cloud or a "
                 "router passes it on to this machine, with the ports of weft hub up --ports, and "
                 "otherwise no node finds the hub",
            text);
    if (candidate_is_private(&at->addr))
        log_info("--public %s is a private address: machines outside of its network do not reach "
                 "the hub",
            text);
}

static void tell_public_addresses(const struct hub_places *places)
{
    _cleanup_(netlink_close) struct netlink nl = NETLINK_NULL;

    if (netlink_open(&nl, NETLINK_ROUTE) < 0)
        return;
    for (unsigned i = 0; i < places->n; i++)
        for (unsigned k = 0; k < places->items[i].n; k++)
            tell_public(&nl, &places->items[i].at[k]);
}

/* Fills in the public endpoints: those of the command line, or else the default route's address. */
static int find_public_addresses(struct hub_places *ret, struct err *e)
{
    uint16_t port = arg.listen.port;
    struct ip_addr own[2];
    bool is_private = true;
    int r = 0;
    unsigned n;

    if (arg.public_addresses.n > OBJECT_ENDPOINTS_MAX)
        return err_set(
            e, -EINVAL, "--public is given for more than %d addresses", OBJECT_ENDPOINTS_MAX);
    for (size_t i = 0; r == 0 && i < arg.public_addresses.n; i++)
        r = find_public(&ret->items[ret->n++], arg.public_addresses.items[i], port, e);
    if (r == 0 && ret->n > 0)
        tell_public_addresses(ret);
    if (r != 0 || ret->n > 0)
        return r;
    n = resolve_own(own);
    if (n == 0)
        return err_set(e, -EADDRNOTAVAIL,
            "this machine has no default route to take an address from: say where nodes reach it, "
            "with --public HOST");
    for (unsigned i = 0; i < n; i++) {
        struct hub_public *place = &ret->items[ret->n++];

        place->at[place->n++] = (struct endpoint){.addr = own[i], .port = port};
        (void)endpoint_format(&place->at[0], place->text);
        is_private &= candidate_is_private(&own[i]);
    }
    log_info("no --public was given: nodes will be told %s, the address of the default route%s",
        ret->items[0].text,
        is_private ? ". It is private: machines outside of its network do not reach the hub there; "
                     "where they are to, say --public with an address that leads here"
                   : "");
    return 0;
}

/* The watch of each node holds a descriptor, so the limit is raised as far as the machine allows.
 */
static void raise_limits(void)
{
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &files);
    }
    /* Writing to a closed connection or a full disk shall fail, and not end the process. */
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGXFSZ, SIG_IGN);
}

/* ---- the running hub ------------------------------------------------------------------------ */

/** The hub that runs. */
struct running {
    uv_loop_t loop;
    uv_signal_t signals[2];
    struct hub *hub;         /* owns */
    struct overlay *overlay; /* owns; NULL with --no-dataplane */
    bool stopped;
};

static void stop(struct running *run)
{
    if (run->stopped)
        return;
    run->stopped = true;
    if (run->hub)
        hub_stop(run->hub);
    if (run->overlay)
        overlay_stop(run->overlay);
    for (size_t i = 0; i < 2; i++)
        uv_close((uv_handle_t *)&run->signals[i], NULL);
}

static void on_signal(uv_signal_t *handle, int signum)
{
    log_info("stopping, as signal %d asks", signum);
    stop(handle->data);
}

static int start(struct running *run, const struct hub_config *config, struct err *e)
{
    struct overlay_options opt = {.state_dir = config->state_dir,
        .listen_port = config->udp_port,
        .api_port = config->api_listen.port,
        .line = arg.line};
    int r = 0;

    if (!arg.no_dataplane)
        r = overlay_new(&run->overlay, &run->loop, &opt, e);
    if (r == 0)
        r = hub_new(&run->hub, &run->loop, config, run->overlay, e);
    if (r == 0 && run->overlay) {
        r = overlay_start(run->overlay, e);
        /* Who has the port, if that is why. */
        if (r == -EADDRINUSE)
            (void)udp_owner_check(config->udp_port, e);
    }
    return r == 0 ? hub_start(run->hub, arg.network, &arg.cidr4, e) : r;
}

static void say_ready(const struct hub_config *config, struct hub *hub)
{
    const struct model_network *net = NULL;
    char text[ENDPOINT_TEXT_MAX];
    char cidr[IP_PREFIX_TEXT_MAX];
    char pin[HUB_PIN_TEXT_MAX];
    _cleanup_(freep) char *url = hub_web_url(hub);

    (void)printf("weft hub is up: UDP %s, API port %u, TLS pin %s, networks",
        endpoint_format(&config->public_addresses.items[0].at[0], text), hub_api_port(hub),
        hub_pin(hub, pin));
    while ((net = hub_next_network(hub, net)))
        (void)printf(" %s (%s, %zu %s)", net->spec.meta.name,
            ip_prefix_format(&net->spec.cidr4, cidr), net->nodes.n,
            net->nodes.n == 1 ? "node" : "nodes");
    (void)printf("\nnext: \"weft token new\" here, then \"weft join TOKEN\" on each machine\n");
    if (url)
        (void)printf("the page, with a login that is used once, within %u minutes (then: \"weft "
                     "web\"):\n%s\n",
            WEB_LOGIN_TTL / 60, url);
    if (url)
        secret_wipe(url, strlen(url));
    (void)fflush(stdout);
}

static int run_hub(const struct hub_config *config)
{
    static const int signums[] = {SIGTERM, SIGINT};
    struct running run = {.hub = NULL};
    struct err e = ERR_NULL;
    int r;

    (void)uv_loop_init(&run.loop);
    for (size_t i = 0; i < 2; i++) {
        (void)uv_signal_init(&run.loop, &run.signals[i]);
        run.signals[i].data = &run;
        (void)uv_signal_start(&run.signals[i], on_signal, signums[i]);
    }
    r = start(&run, config, &e);
    if (r == 0) {
        say_ready(config, run.hub);
        (void)uv_run(&run.loop, UV_RUN_DEFAULT);
        r = hub_failure(run.hub, &e);
    }
    /* After a failure as well: handles that were opened close in the loop's next turns. */
    stop(&run);
    (void)uv_run(&run.loop, UV_RUN_DEFAULT);
    hub_free(run.hub);
    overlay_free(run.overlay);
    (void)uv_loop_close(&run.loop);
    return r == 0 ? CMD_OK : cmd_fail(usage.command, "%s", err_text(&e));
}

static int run_relay(void)
{
    struct hub_places places = {.n = 0};
    struct node_hub public_addresses = {.n_endpoints = 0};
    char interface[STATE_INTERFACE_MAX];
    struct join_options asked = {
        .name = arg.name,
        .engine = ENGINE_KIND_USERSPACE,
        .wants_relay = true,
        .interface = interface,
        .listen_port = arg.listen.port,
        .given = public_addresses.endpoints,
        .state_dir = arg.state,
        .on_wait = on_wait,
    };
    bool is_default = strcmp(arg.socket, ADMIN_SOCKET_DEFAULT) == 0;
    struct err e = ERR_NULL;
    int r = 0;

    (void)signal(SIGPIPE, SIG_IGN);
    (void)snprintf(interface, sizeof(interface), "%.13s0", arg.prefix);
    if (arg.public_addresses.n > 0)
        r = find_public_addresses(&places, &e);
    if (r == 0)
        hub_places_tell(&public_addresses, &places, &(struct hub_places){.n = 0});
    asked.n_given = public_addresses.n_endpoints;
    if (r == 0)
        r = relay_only_run(
            &asked, arg.token, is_default ? STATE_SOCKET_DEFAULT : arg.socket, arg.user, &e);
    return r == 0 ? CMD_OK : cmd_fail(usage.command, "%s", err_text(&e));
}

/* To bind a port below this one takes CAP_NET_BIND_SERVICE. The hub keeps it, since the API's port
 * is bound on the address of each network that is made later. */
#define PRIVILEGED_PORTS 1024

static int drop_privileges(struct err *e)
{
    static const char file_store[] = "sqlite:";
    static const char kube_store[] = "kubernetes:";
    _cleanup_(kube_config_deinit) struct kube_config kube = KUBE_CONFIG_NULL;
    struct privileges p = {.kind = SANDBOX_HUB,
        .user = arg.user,
        .capabilities = arg.no_dataplane ? 0 : SANDBOX_CAP(CAP_NET_ADMIN),
        /* The rendezvous processes that it starts become the user nobody, without any capability
           for good, and it ends them. */
        .root_capabilities = SANDBOX_CAP(CAP_SETUID) | SANDBOX_CAP(CAP_SETGID) |
                             SANDBOX_CAP(CAP_KILL) | SANDBOX_CAP(CAP_SETPCAP),
        .may_start = true,
        .has_tunnel = !arg.no_dataplane};
    char run_folder[PATH_MAX];
    char store_folder[PATH_MAX];

    if (arg.listen.port < PRIVILEGED_PORTS || arg.api.port < PRIVILEGED_PORTS)
        p.capabilities |= SANDBOX_CAP(CAP_NET_BIND_SERVICE);
    privileges_add(&p, arg.state, PRIVILEGES_STATE);
    privileges_add_folder_of(&p, arg.socket, run_folder, PRIVILEGES_RUN);
    privileges_add(&p, arg.socket, PRIVILEGES_SOCKET);
    if (arg.store && strncmp(arg.store, file_store, strlen(file_store)) == 0) {
        const char *path = arg.store + strlen(file_store);

        privileges_add_folder_of(&p, path, store_folder, PRIVILEGES_WRITE);
        privileges_add(&p, path, PRIVILEGES_DEVICE);
    }
    if (arg.store && strncmp(arg.store, kube_store, strlen(kube_store)) == 0 &&
        kube_access_add(&p, &kube, arg.store + strlen(kube_store), store_folder, e) != 0)
        return -EINVAL;
    if (!arg.no_dataplane) {
        privileges_add(&p, UAPI_SOCKET_DIR, PRIVILEGES_RUN);
        privileges_add(&p, "/dev/net/tun", PRIVILEGES_DEVICE);
    }
    return privileges_drop(&p, e);
}

int cmd_hub_up(int argc, char **argv)
{
    struct hub_config config = {.state_dir = NULL};
    _cleanup_(freep) char *url = NULL;
    json_auto_t *table = NULL;
    struct prices prices;
    struct err e = ERR_NULL;
    int status;
    int r;

    if (options_parse(&usage, argc, argv, &status))
        return status;
    log_init(arg.relay_only ? "relay" : "hub", arg.level);
    if (!ip_addr_is_none(&arg.listen.addr))
        return cmd_refuse(usage.command, "--listen takes a port only: WireGuard answers from the "
                                         "address that it was asked at");
    if (arg.relay_only && arg.hubs_own)
        return cmd_refuse(usage.command,
            "%s is for a hub, and with --relay-only this machine is none", arg.hubs_own);
    if (arg.ports)
        return print_ports();
    if (arg.prepare)
        return privileges_give(arg.state, arg.user, &e) == 0
                   ? CMD_OK
                   : cmd_fail(usage.command, "%s", err_text(&e));
    if (arg.relay_only)
        return run_relay();
    if (arg.token)
        return cmd_refuse(usage.command, "--token is for --relay-only");
    if (arg.name && hub_check_name(arg.name, &e) != 0)
        return cmd_refuse(usage.command, "--name: %s", err_text(&e));
    if (!arg.store && asprintf(&url, "sqlite:%s/hub.db", arg.state) < 0)
        return cmd_fail(usage.command, "no memory for a path");
    config = (struct hub_config){.name = arg.name,
        .state_dir = arg.state,
        .store_url = arg.store ? arg.store : url,
        .audit_age_s = arg.audit_age / NSEC_PER_SEC,
        .socket_path = arg.socket,
        .interface_prefix = arg.prefix,
        .api_listen = arg.api,
        .udp_port = arg.listen.port,
        .has_web = arg.web,
        .options = (const char *const *)argv + 1,
        .n_options = (size_t)argc - 1};
    raise_limits();
    r = arg.prices ? price_table_read(&prices, &table, arg.prices, &e) : 0;
    config.price_table = table;
    if (r == 0)
        r = find_public_addresses(&config.public_addresses, &e);
    if (r == 0)
        r = drop_privileges(&e);
    if (r != 0)
        return cmd_fail(usage.command, "%s", err_text(&e));
    return run_hub(&config);
}
