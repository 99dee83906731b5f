/* join.c - weft join: this machine becomes a node. */
#include "agent/join.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/launch.h"
#include "agent/leave.h"
#include "agent/node_metrics.h"
#include "agent/state/state.h"
#include "api/client/client.h"
#include "api/content/token.h"
#include "base/err.h"
#include "base/secret.h"
#include "cmd/admin.h"
#include "cmd/cmd.h"
#include "cmd/agent_privileges.h"
#include "cmd/mesh_options.h"
#include "cmd/options.h"
#include "mesh/names/hosts.h"
#include "mesh/object/object.h"
#include "net/socket/socket.h"
#include "os/file.h"
#include "os/process.h"

#define WAIT_MS 15000

static struct {
    const char *token;
    const char *token_file;
    const char *name;
    struct option_list labels;
    enum engine_kind engine;
    const char *interface;
    struct option_list endpoints;
    uint64_t listen;
    const char *state_dir;
    const char *socket;
    const char *proxy;
    bool relay;
    struct subnets routes;
    bool no_masquerade;
    enum subnets_accept accepts;
    bool no_start;
    bool foreground;
    const char *from;
    const char *edges_to;
    const char *metrics;
    bool no_hosts;
    bool no_dns;
} arg;

static int option_engine(const struct option *o, const char *text, struct err *e)
{
    return engine_kind_parse(o->field, text, e);
}

static int option_node_name(const struct option *o, const char *text, struct err *e)
{
    int r = node_check_name(text, e);

    if (r == 0)
        r = reserved_check(text, e);
    return r == 0 ? option_text(o, text, e) : r;
}

static int option_interface(const struct option *o, const char *text, struct err *e)
{
    int r = state_check_interface(text, e);

    return r == 0 ? option_text(o, text, e) : r;
}

static int option_accept(const struct option *o, const char *text, struct err *e)
{
    return subnets_accept_parse(o->field, text, e);
}

/* The agent that this process becomes takes the text as it is. */
static int option_from(const struct option *o, const char *text, struct err *e)
{
    const char *where;
    int r = kube_access_parse(&where, o->name, text, e);

    return r == 0 ? option_text(o, text, e) : r;
}

static int option_metrics(const struct option *o, const char *text, struct err *e)
{
    struct metrics_place place;
    int r = metrics_place_parse(&place, text, METRICS_PORT_AGENT, e);

    return r == 0 ? option_text(o, text, e) : r;
}

static const struct option options[] = {
    {"TOKEN", NULL, option_text, &arg.token, NULL,
        "from weft token new; - reads it from standard input"},
    {"--token-file", "FILE", option_text, &arg.token_file, NULL,
        "read the token from this file: other users of the machine can see a command line"},
    {"--name", "NAME", option_node_name, &arg.name, NULL, "the node's name, instead of the host's"},
    {"--label", "KEY=VALUE", option_append, &arg.labels, NULL, "describe the node", .many = true},
    {"--engine", "KIND", option_engine, &arg.engine, "auto",
        "auto, userspace or kernel: auto takes the kernel's WireGuard where there is one"},
    {"--interface", "NAME", option_interface, &arg.interface, "weft0", "the interface to make"},
    {"--endpoint", "ADDRESS[:PORT]", option_append, &arg.endpoints, NULL,
        "where others reach this machine, as a public address that a cloud maps to it one to one",
        .many = true},
    {"--listen", "PORT", option_u64, &arg.listen, NULL,
        "WireGuard's UDP port; by default that of --endpoint, else any", .min = 1, .max = 65535},
    {"--state", "DIR", option_text, &arg.state_dir, STATE_DIR_DEFAULT,
        "where the node's key is kept"},
    {"--socket", "PATH", option_socket, &arg.socket, STATE_SOCKET_DEFAULT, "of the agent"},
    {"--proxy", "URL", option_text, &arg.proxy, NULL,
        "ask the hub through this HTTP proxy, now and where UDP is blocked; none: through none "
        "(default: as https_proxy and no_proxy say)"},
    {"--relay", NULL, option_flag, &arg.relay, NULL,
        "relay for nodes that have no better path to each other, once the hub admits it: by a "
        "token "
        "made with --relay, or weft node set"},
    {"--route", "CIDR", option_subnets, &arg.routes, NULL,
        "be the way to this subnet for all others, once the hub admits it: by a token made with "
        "--route, or weft node set; with commas, or given again, several",
        .many = true},
    {"--no-masquerade", NULL, option_flag, &arg.no_masquerade, NULL,
        "let hosts of subnets behind this machine see who sends, instead of this machine; they "
        "need a route back"},
    {"--accept-routes", "WHICH", option_accept, &arg.accepts, "private",
        "reach subnets behind other nodes: private ones, all that the hub admits, or none"},
    {"--no-start", NULL, option_flag, &arg.no_start, NULL,
        "do not start the agent: a service manager will run weft agent"},
    {"--foreground", NULL, option_flag, &arg.foreground, NULL,
        "become the agent instead of starting it, as the one program of a container does; where "
        "this state has joined already, only that"},
    {"--from", "URL", option_from, &arg.from, NULL,
        "with --foreground: kubernetes: - the cluster whose resources say who is in the network, "
        "instead of the hub"},
    {"--edges-to", "URL", option_from, &arg.edges_to, NULL,
        "with --foreground: kubernetes: - the cluster to whose MeshEdges the agent writes its own "
        "parts itself, and not the hub"},
    {"--metrics", "ADDRESS[:PORT]", option_metrics, &arg.metrics, NULL,
        "with --foreground: where the agent answers Prometheus, as weft agent has it"},
    {"--no-hosts", NULL, option_flag, &arg.no_hosts, NULL,
        "do not put the nodes' names into /etc/hosts"},
    {"--no-dns", NULL, option_flag, &arg.no_dns, NULL,
        "do not answer for the nodes' names on this node's overlay addresses, port 53"},
    OPTIONS_END,
};

static const struct option_usage usage = {
    .command = "join",
    .summary = "Make this machine a node of the network that a token is for.",
    .options = options,
};

/* White space may be around a token. There is room for more than the longest one, so that one that
 * is too long is refused, and not cut. */
#define TOKEN_READ_MAX (TOKEN_TEXT_MAX + 64)

/* Reads a token from @f; @what names @f in messages. */
static int read_token(char buf[static TOKEN_READ_MAX + 1], FILE *f, const char *what, struct err *e)
{
    size_t len = fread(buf, 1, TOKEN_READ_MAX, f);

    buf[len] = '\0';
    if (len == 0)
        return err_set(e, -1, "there is no token in %s", what);
    if (len == TOKEN_READ_MAX)
        return err_set(e, -1, "the token in %s has more than %d characters", what, TOKEN_TEXT_MAX);
    return 0;
}

/* Copies of the secrets that must not stay readable on the command line; they are wiped at the
 * end. A proxy that is too long is cut, but stays too long by one byte, for which it is refused.
 */
static char token_text[TOKEN_READ_MAX + 1];
static char proxy_text[PROXY_TEXT_MAX + 1];

static void hide_secrets(void)
{
    if (arg.token && strcmp(arg.token, "-") != 0) {
        (void)snprintf(token_text, sizeof(token_text), "%s", arg.token);
        options_scrub(arg.token);
        arg.token = token_text;
    }
    if (arg.proxy) {
        (void)snprintf(proxy_text, sizeof(proxy_text), "%s", arg.proxy);
        options_scrub(arg.proxy);
        arg.proxy = proxy_text;
    }
}

static int take_token(struct token *ret, struct err *e)
{
    _cleanup_(fclosep) FILE *f = arg.token_file ? fopen(arg.token_file, "re") : NULL;
    int r = 0;

    if (f)
        r = read_token(token_text, f, arg.token_file, e);
    else if (arg.token_file)
        r = err_set(e, -errno, "token file %s: %s", arg.token_file, strerror(errno));
    else if (strcmp(arg.token, "-") == 0)
        r = read_token(token_text, stdin, "standard input", e);
    return r == 0 ? token_decode(ret, token_text, e) : r;
}

/* The port of --endpoint is the one to listen on as well, unless --listen names another. */
static int take_endpoints(
    struct endpoint given[static STATE_GIVEN_MAX], struct join_options *opt, struct err *e)
{
    int r = 0;

    if (arg.endpoints.n > STATE_GIVEN_MAX)
        return err_set(
            e, -1, "%zu endpoints are given, and %d are allowed", arg.endpoints.n, STATE_GIVEN_MAX);
    opt->listen_port = (uint16_t)arg.listen;
    for (unsigned i = 0; r == 0 && i < arg.endpoints.n; i++) {
        r = state_parse_given(&given[i], arg.endpoints.items[i], e);
        if (r == 0 && opt->listen_port == 0)
            opt->listen_port = given[i].port;
    }
    opt->given = given;
    opt->n_given = (unsigned)arg.endpoints.n;
    return r;
}

static void print_joined(const struct state *st)
{
    const struct node *self = snapshot_self(&st->snapshot);
    char a4[IP_ADDR_TEXT_MAX];
    char a6[IP_ADDR_TEXT_MAX];

    (void)printf("%s has joined the network %s: %s and %s on %s.\n", self->meta.name,
        self->meta.network, ip_addr_format(&self->address4, a4),
        ip_addr_format(&self->address6, a6), st->interface);
    if (st->wants_relay && !self->relay)
        (void)printf(
            "It will relay for others once the hub admits it: weft node set %s --relay yes\n",
            self->meta.name);
}

/* Prints which of the --route subnets the hub admits, and the command that admits the others. */
static void print_routes(const struct state *st)
{
    const struct node *self = snapshot_self(&st->snapshot);
    const struct subnets has = self->routes ? *self->routes : (struct subnets)SUBNETS_NULL;
    const struct subnets waits = subnets_without(&st->routes, &has);
    char text[SUBNETS_TEXT_MAX];

    if (has.n > 0)
        (void)printf("It is the way to %s.\n", subnets_format(&has, text));
    if (waits.n == 0)
        return;
    (void)printf(
        "It asks to be the way to %s; the hub admits it with: ", subnets_format(&waits, text));
    mesh_options_print_admit(self->meta.name, &waits);
    (void)printf("\n");
}

/* The agent cannot run here, as @why says: the join is undone, so that it can be tried again. */
static int give_up(const struct launch *launch, const char *name, uint16_t port, struct err *why)
{
    struct leave_result done;
    struct err taken = ERR_NULL;
    struct err e = ERR_NULL;
    int r;

    launch_stop(launch);
    r = leave_without_agent(arg.state_dir, arg.socket, false, &done, &e);
    /* A port that another program took meanwhile the agent would go on waiting for; it has ended.
     */
    if (port != 0 && udp_owner_check(port, &taken) == UDP_OWNER_E_TAKEN)
        (void)err_set(
            why, -EADDRINUSE, "%s: end that, or join with another --listen", err_text(&taken));
    if (r != 0)
        return cmd_fail("join",
            "the hub has taken this machine in as %s, but its agent cannot run: %s; nor can the "
            "join be undone: %s",
            name, err_text(why), err_text(&e));
    if (!done.has_reported_hub)
        return cmd_fail("join",
            "the agent cannot run: %s; nothing of the join is left here, but the hub could not be "
            "told (%s): weft node rm %s removes the node there",
            err_text(why), done.why, name);
    return cmd_fail("join",
        "the agent cannot run: %s; the join is undone: the hub has removed %s again, and the token "
        "can be used once more",
        err_text(why), name);
}

static void print_started(const struct launch *launch, const json_t *status)
{
    const char *why = admin_field(status, "hub", "why");
    if (why[0] != '\0')
        (void)printf("The hub answers in TLS: %s.\nThe agent", why);
    else
        (void)printf("The hub at %s answers; the agent", admin_field(status, "hub", "endpoint"));
    (void)printf(" runs the %s engine", admin_field(status, "self", "engine"));
    if (launch->by_systemd)
        (void)printf(" under systemd.\n");
    else
        (void)printf(
            " in the background, is started again if it dies, and logs to %s.\n", launch->log_path);
}

static void on_wait(void *ctx, unsigned for_s, const struct err *e)
{
    (void)cmd_fail("join", "%s: asking again, for up to %u s", err_text(e), for_s);
}

/* The hub may be asked more than once. */
static void on_proxy_passed_over(void *ctx, const struct err *e)
{
    static bool is_said;

    if (!is_said)
        (void)fprintf(stderr,
            "weft join: %s; the hub answers without it, and the node keeps it for later\n",
            err_text(e));
    is_said = true;
}

/* Fills in @opt from the command line, but for the token. 0, or non-zero with words. */
static int take_options(struct join_options *opt, struct label **labels,
    struct endpoint given[static STATE_GIVEN_MAX], struct err *e)
{
    int r;

    *opt = (struct join_options){
        .name = arg.name,
        .engine = arg.engine,
        .n_labels = arg.labels.n,
        .keeps_hosts = !arg.no_hosts,
        .answers_dns = !arg.no_dns,
        .wants_relay = arg.relay,
        .routes = &arg.routes,
        .keeps_sources = arg.no_masquerade,
        .accepts = arg.accepts,
        .proxy = arg.proxy,
        .interface = arg.interface,
        .state_dir = arg.state_dir,
        .on_wait = on_wait,
        .on_proxy_passed_over = on_proxy_passed_over,
    };
    r = take_endpoints(given, opt, e);
    if (r == 0 && arg.name)
        r = node_check_name(arg.name, e);
    if (r == 0)
        r = mesh_options_parse_labels(labels, &arg.labels, e);
    opt->labels = *labels;
    return r;
}

/* This process becomes weft agent. Returns only on failure. */
static int become_agent(void)
{
    char self[PATH_MAX];
    const char *argv[13] = {"weft", "agent", "--state", arg.state_dir, "--socket", arg.socket};
    size_t n = 6;

    if (arg.from) {
        argv[n++] = "--from";
        argv[n++] = arg.from;
    }
    if (arg.edges_to) {
        argv[n++] = "--edges-to";
        argv[n++] = arg.edges_to;
    }
    if (arg.metrics) {
        argv[n++] = "--metrics";
        argv[n++] = arg.metrics;
    }
    (void)fflush(stdout);
    (void)execv(process_self_path(self), (char *const *)argv);
    return cmd_fail("join", "%s cannot be run: %s", self, strerror(errno));
}

/* Has an earlier run joined? Then the token, which may be used up or gone by now, is not read. */
static bool has_joined(void)
{
    _cleanup_(state_deinit) struct state st = STATE_NULL;
    struct err e = ERR_NULL;

    if (state_read(&st, arg.state_dir, &e) != 0)
        return false; /* if the state is damaged, join_enrol() says how */
    (void)printf(
        "This is %s in the network %s already.\n", st.snapshot.self, st.snapshot.network.meta.name);
    return true;
}

static int join(struct join_options *opt)
{
    _cleanup_(state_deinit) struct state st = STATE_NULL;
    struct token token = TOKEN_NULL;
    struct removed before = {.at = 0};
    json_auto_t *status = NULL;
    const struct launch_config wanted = {.state_dir = arg.state_dir, .socket_path = arg.socket};
    bool starts = !arg.no_start && !arg.foreground;
    char text[REMOVED_TEXT_MAX];
    struct err e = ERR_NULL;
    struct launch launch;
    int r = take_token(&token, &e);

    /* join_enrol() deletes the note of a removal; it is printed once the join has succeeded. */
    (void)removed_read(&before, arg.state_dir, NULL);
    opt->token = &token;
    if (r == 0)
        r = join_enrol(opt, &st, &e);
    token_wipe(&token);
    if (r == CLIENT_E_UNREACHABLE)
        return cmd_fail("join",
            "%s\n"
            "weft join: these are the addresses of the hub's --public: see that "
            "it runs, is reached there, and that TCP and UDP are let in to it: "
            "\"weft hub up --ports\" prints the ports",
            err_text(&e));
    if (r != 0)
        return cmd_fail("join", "%s", err_text(&e));
    /* Either it has joined or it has failed: whoever reads one line is not misled. */
    r = starts ? launch_agent(&wanted, &launch, &e) : 0;
    if (starts && r == 0)
        r = launch_wait(&launch, arg.socket, WAIT_MS, &status, &e);
    if (r != 0 && r != -ETIMEDOUT)
        return give_up(&launch, snapshot_self(&st.snapshot)->meta.name, opt->listen_port, &e);
    if (r != 0)
        return cmd_fail("join",
            "the hub has taken this machine in as %s, but it does not take part yet: %s",
            snapshot_self(&st.snapshot)->meta.name, err_text(&e));
    print_joined(&st);
    if (before.at != 0)
        (void)printf("Before, %s.\n", removed_explain(&before, text));
    print_routes(&st);
    if (starts)
        print_started(&launch, status);
    return CMD_OK;
}

int cmd_join(int argc, char **argv)
{
    _cleanup_(freep) struct label *labels = NULL;
    struct endpoint given[STATE_GIVEN_MAX];
    struct join_options opt;
    struct err e = ERR_NULL;
    int status;

    if (options_parse(&usage, argc, argv, &status))
        return status;
    hide_secrets();
    if (arg.no_start && arg.foreground)
        status = cmd_refuse("join", "--no-start and --foreground exclude each other");
    else if (arg.from && !arg.foreground)
        status = cmd_refuse("join", "--from is for the agent: give it to weft agent, or add "
                                    "--foreground");
    else if (arg.edges_to && !arg.foreground)
        status = cmd_refuse("join", "--edges-to is for the agent: give it to weft agent, or add "
                                    "--foreground");
    else if (arg.metrics && !arg.foreground)
        status = cmd_refuse("join", "--metrics is for the agent: give it to weft agent, or add "
                                    "--foreground");
    else if (arg.foreground && has_joined())
        status = CMD_OK;
    else if (!arg.token == !arg.token_file)
        status = cmd_refuse("join", "say one of TOKEN, - for standard input, and --token-file");
    else if (take_options(&opt, &labels, given, &e) != 0)
        status = cmd_refuse("join", "%s", err_text(&e));
    else if (geteuid() != 0)
        status = cmd_fail("join", "only root can make a network interface");
    else
        status = join(&opt);
    secret_wipe(token_text, sizeof(token_text));
    secret_wipe(proxy_text, sizeof(proxy_text));
    option_list_deinit(&arg.labels);
    option_list_deinit(&arg.endpoints);
    return status == CMD_OK && arg.foreground ? become_agent() : status;
}
