/* agent.c - weft agent: keep this machine as its network wants it. */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/agent_ask.h"
#include "agent/hosts_helper.h"
#include "agent/launch.h"
#include "agent/leave.h"
#include "agent/node_metrics.h"
#include "agent/paths/socket/echo_socket.h"
#include "agent/resolved_link.h"
#include "agent/state/blocks_file.h"
#include "agent/state/state.h"
#include "base/err.h"
#include "cmd/admin.h"
#include "cmd/agent_privileges.h"
#include "cmd/cmd.h"
#include "cmd/options.h"
#include "cmd/privileges.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/hosts_file.h"
#include "os/log.h"
#include "os/process.h"
#include "tune/tune_machine.h"

/* Where systemd-resolved is asked, if it runs. */
#define RESOLVED_SOCKET "/run/systemd/resolve/io.systemd.Resolve"
#define RESOLVECTL      "/usr/bin/resolvectl"

/* An agent that writes more often than this, while it is read, is not believed any longer. */
#define TELLINGS_MAX 10

/* The old process may take some seconds to end, and the new one to begin. */
#define RENEW_TIMEOUT_MS 20000
#define DOWN_TIMEOUT_MS  10000

/* It answers before the hub is asked, some tenths of a second after its start. */
#define START_TIMEOUT_MS 20000
#define ASK_TIMEOUT_MS   2000

static struct {
    struct agent_config config;
    const char *user;
    bool no_gpus;
    bool hosts_helper;
    bool prepare;
    bool renew_engine;
    bool take_down;
    bool background;
    bool watched;
    bool tell_resolved;
    enum log_level log_level;
} arg;

static int option_cluster(const struct option *o, const char *text, struct err *e)
{
    return kube_access_parse(o->field, o->name, text, e);
}

static int option_metrics(const struct option *o, const char *text, struct err *e)
{
    return metrics_place_parse(o->field, text, METRICS_PORT_AGENT, e);
}

static const struct option options[] = {
    {"--state", "DIR", option_text, &arg.config.state_dir, STATE_DIR_DEFAULT,
        "where the node's key and its last snapshot are kept"},
    {"--socket", "PATH", option_socket, &arg.config.socket_path, STATE_SOCKET_DEFAULT,
        "where weft status and weft leave find it"},
    {"--from", "URL", option_cluster, &arg.config.cluster, NULL,
        "kubernetes: - the cluster whose resources say who is in the network, instead of the hub"},
    {"--edges-to", "URL", option_cluster, &arg.config.edges_to, NULL,
        "kubernetes: - the cluster to whose MeshEdges the agent writes its own parts itself, and "
        "not the hub"},
    {"--trust-after", "DURATION", option_duration, &arg.config.trust_after, "10m",
        "believe another key of a peer, which its key has not signed, once that one has been "
        "silent for so long",
        .min = NSEC_PER_SEC, .max = 7 * 86400 * NSEC_PER_SEC},
    {"--no-measure", NULL, option_flag, &arg.config.no_measure, NULL,
        "do not let other members measure this node (weft preflight, weft bench)"},
    {"--no-gpus", NULL, option_flag, &arg.no_gpus, NULL,
        "do not ask NVIDIA's driver how the GPUs are"},
    {"--metrics", "ADDRESS[:PORT]", option_metrics, &arg.config.metrics, NULL,
        "answer Prometheus at this address, port 9586; overlay: at the node's overlay address, to "
        "members of the network only"},
    {"--metrics-tls", "DIR", option_text, &arg.config.metrics.tls_dir, NULL,
        "answer Prometheus in TLS, with DIR/tls.key and DIR/tls.crt, which are made if missing"},
    PRIVILEGES_OPTION(&arg.user),
    {"--hosts-helper", NULL, option_flag, &arg.hosts_helper, NULL,
        "write the hosts file for an agent that is not root and is connected to standard input"},
    {"--prepare", NULL, option_flag, &arg.prepare, NULL,
        "as root, before a service manager starts the agent as --user: give that user the state, "
        "and end"},
    {"--renew-engine", NULL, option_flag, &arg.renew_engine, NULL,
        "have the running agent replace the process of its data plane by the program that is "
        "installed now"},
    {"--take-down", NULL, option_flag, &arg.take_down, NULL,
        "take the interface and the names away and end the running agent; what has been joined "
        "stays"},
    {"--background", NULL, option_flag, &arg.background, NULL,
        "start it and return: under systemd where that has its unit, else as a process that is "
        "started again when it dies"},
    {"--watched", NULL, option_flag, &arg.watched, NULL,
        "stay in the foreground, and start the agent, a child, again when it dies"},
    {"--tell-resolved", NULL, option_flag, &arg.tell_resolved, NULL,
        "as root: tell systemd-resolved that the nodes' names are asked of this node, as the agent "
        "has written down"},
    {"--log-level", "LEVEL", option_log_level, &arg.log_level, "info",
        "error, warning, info or debug"},
    OPTIONS_END,
};

static const struct option_usage usage = {
    .command = "agent",
    .summary = "Keep a machine that has joined as its network wants it.",
    .options = options,
    .notes = "The interface and its engine outlive it: traffic goes on while it is stopped.",
};

/* ---- for an agent that runs ---- */

static int renew_engine(void)
{
    struct err e = ERR_NULL;
    json_auto_t *answer = NULL;
    bool renewed;

    if (agent_ask(arg.config.socket_path, "POST", "/v1/engine", RENEW_TIMEOUT_MS, &answer, &e) != 0)
        return cmd_fail("agent", "%s", err_text(&e));
    renewed = json_is_true(json_object_get(answer, "renewed"));
    (void)printf(renewed ? "The data plane of %s runs anew.\n"
                         : "%s is the kernel's: it has no process to replace.\n",
        admin_field(answer, NULL, "interface"));
    return CMD_OK;
}

static int take_down(void)
{
    struct leave_result result = {0};
    struct err e = ERR_NULL;
    int r = agent_ask_to_end(arg.config.socket_path, "/v1/down", DOWN_TIMEOUT_MS, NULL, &e);

    if (r == AGENT_ASK_E_NONE)
        r = leave_without_agent(arg.config.state_dir, arg.config.socket_path, true, &result, &e);
    return r == 0 ? CMD_OK : cmd_fail("agent", "%s", err_text(&e));
}

/* ---- for root's units ---- */

static int tell_resolved(void)
{
    struct resolved_link link;
    struct resolved_link now;
    struct hosts_rules rules;
    struct err e = ERR_NULL;
    int r = 0;

    log_init("agent", arg.log_level);
    if (access(RESOLVED_SOCKET, F_OK) < 0)
        return CMD_OK;
    /* systemd does not look at the file while this runs. */
    for (int i = 0; i < TELLINGS_MAX; i++) {
        r = resolved_link_read(RESOLVED_LINK_FILE, &link, &e);
        if (r == 0)
            r = blocks_file_read(&rules, arg.config.state_dir, &e);
        if (r == 0)
            r = resolved_link_check(&link, &rules, &e);
        if (r == 0)
            r = resolved_link_tell(&link, RESOLVECTL, &e);
        if (r != 0 || resolved_link_read(RESOLVED_LINK_FILE, &now, NULL) != 0 ||
            resolved_link_equal(&link, &now))
            break;
    }
    /* There is nothing to be told: the interface is gone again. */
    if (r == -ENODEV || r == -ENOENT)
        return CMD_OK;
    if (r != 0) {
        log_warning("systemd-resolved is not told of the nodes' names: %s", err_text(&e));
        return CMD_FAILED;
    }
    log_info("systemd-resolved asks this node for names that end in .%s.weft", link.network);
    return CMD_OK;
}

/* ---- an agent that is watched ---- */

/* Is that word one of those that say how the agent is started? */
static bool is_way(const char *word)
{
    return strcmp(word, "--background") == 0 || strcmp(word, "--watched") == 0;
}

/* How many words at @words say where state and socket are: launch_agent() gives these itself. */
static int count_place(char **words)
{
    static const char *const places[] = {"--state", "--socket"};

    for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
        size_t len = strlen(places[i]);

        if (strncmp(words[0], places[i], len) == 0 && words[0][len] == '=')
            return 1;
        if (strcmp(words[0], places[i]) == 0)
            return 2;
    }
    return 0;
}

/* Starts it as "weft join" does, with the same further options. */
static int start_in_background(int argc, char **argv)
{
    const char *further[LAUNCH_OPTIONS_MAX];
    struct launch_config wanted = {.state_dir = arg.config.state_dir,
        .socket_path = arg.config.socket_path,
        .options = further};
    struct launch launch;
    struct err e = ERR_NULL;
    int r;

    for (int i = 1, n; i<argc; i += n> 0 ? n : 1) {
        n = count_place(argv + i);
        if (n > 0 || is_way(argv[i]))
            continue;
        if (wanted.n_options == LAUNCH_OPTIONS_MAX)
            return cmd_refuse("agent", "more than %d options", LAUNCH_OPTIONS_MAX);
        further[wanted.n_options++] = argv[i];
    }
    if (!state_is_there(arg.config.state_dir))
        return cmd_fail("agent",
            "this machine has not joined a network (%s has no node.json): weft join TOKEN",
            arg.config.state_dir);
    if (agent_ask(arg.config.socket_path, "GET", "/v1/status", ASK_TIMEOUT_MS, NULL, NULL) == 0)
        return cmd_fail("agent", "an agent answers on %s already", arg.config.socket_path);
    r = launch_agent(&wanted, &launch, &e);
    if (r == 0)
        r = launch_wait_answer(&launch, arg.config.socket_path, START_TIMEOUT_MS, &e);
    if (r != 0)
        return cmd_fail("agent", "%s", err_text(&e));
    if (launch.by_systemd)
        (void)printf("The agent runs under systemd.\n");
    else
        (void)printf("The agent runs in the background, is started again if it dies, and logs to "
                     "%s.\n",
            launch.log_path);
    return CMD_OK;
}

static int run_watched(int argc, char **argv)
{
    _cleanup_(freep) char **words = calloc((size_t)argc + 3, sizeof(*words));
    char self[PATH_MAX];
    struct err e = ERR_NULL;
    size_t n = 0;
    int r;

    if (!words)
        return cmd_fail("agent", "no memory");
    words[n++] = (char *)process_self_path(self);
    words[n++] = (char *)"agent";
    for (int i = 1; i < argc; i++)
        if (!is_way(argv[i]))
            words[n++] = argv[i];
    r = launch_watch(words, arg.config.state_dir, &e);
    if (r < 0)
        log_error("%s", err_text(&e));
    return r < 0 ? CMD_FAILED : r;
}

int cmd_agent(int argc, char **argv)
{
    struct err e = ERR_NULL;
    struct err tuning = ERR_NULL;
    enum agent_end end;
    int status;
    int r;

    if (options_parse(&usage, argc, argv, &status))
        return status;
    (void)signal(SIGPIPE, SIG_IGN);
    /* Root's unit has the agent's options, too: none of them may make it do anything else. */
    if (arg.tell_resolved)
        return tell_resolved();
    if (arg.renew_engine && arg.take_down)
        return cmd_refuse("agent", "--renew-engine and --take-down exclude each other: one begins "
                                   "the data plane anew, the other ends it");
    if (arg.config.metrics.tls_dir && arg.config.metrics.at.port == 0)
        return cmd_refuse("agent", "--metrics-tls says how --metrics ADDRESS answers, and that is "
                                   "not given");
    if (arg.renew_engine)
        return renew_engine();
    if (arg.take_down)
        return take_down();
    if (arg.background)
        return start_in_background(argc, argv);
    log_init("agent", arg.log_level);
    if (getenv(LAUNCH_LOG_TIME))
        log_set_clock(clock_wall);
    if (arg.watched)
        return run_watched(argc, argv);
    if (arg.hosts_helper) {
        (void)hosts_helper_serve(HOSTS_FILE_DEFAULT, arg.config.state_dir, &e);
        log_error("%s", err_text(&e));
        return CMD_FAILED;
    }
    if (arg.prepare)
        return agent_privileges_prepare(arg.config.state_dir, arg.user, &e) == 0
                   ? CMD_OK
                   : cmd_fail("agent", "%s", err_text(&e));
    arg.config.asks_gpus = !arg.no_gpus;
    if (tune_set_again(arg.config.state_dir, &tuning) < 0)
        log_warning("not all that weft tune has set of network devices is set again: %s",
            err_text(&tuning));
    r = agent_privileges_drop(&arg.config, arg.user, &e);
    if (r == 0)
        r = agent_run(&arg.config, &end, &e);
    arg.config.hosts = hosts_helper_free(arg.config.hosts);
    arg.config.pings = echo_socket_free(arg.config.pings);
    if (r != 0) {
        log_error("%s", err_text(&e));
        return CMD_FAILED;
    }
    return CMD_OK;
}
