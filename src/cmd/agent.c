/* agent.c - weft agent: keep this machine as its network wants it. */
#include <signal.h>
#include <stdlib.h>

#include "agent/agent.h"
#include "agent/hosts_helper.h"
#include "agent/launch.h"
#include "agent/state.h"
#include "base/err.h"
#include "base/log.h"
#include "cmd/agent_privileges.h"
#include "cmd/cmd.h"
#include "cmd/options.h"
#include "cmd/privileges.h"
#include "sys/clock.h"
#include "sys/hosts_file.h"

static struct {
    struct agent_config config;
    const char *user;
    bool hosts_helper;
    enum log_level log_level;
} arg;

static const struct option options[] = {
    {"--state", "DIR", option_text, &arg.config.state_dir, STATE_DIR_DEFAULT,
        "where the node's key and its last snapshot are kept"},
    {"--socket", "PATH", option_text, &arg.config.socket_path, STATE_SOCKET_DEFAULT,
        "where weft status and weft leave find it"},
    {"--no-measure", NULL, option_flag, &arg.config.no_measure, NULL,
        "do not let other members measure this node (weft preflight, weft bench)"},
    PRIVILEGES_OPTION(&arg.user),
    {"--hosts-helper", NULL, option_flag, &arg.hosts_helper, NULL,
        "write the hosts file for an agent that is not root and is connected to standard input"},
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

int cmd_agent(int argc, char **argv)
{
    struct err e = ERR_NULL;
    enum agent_end end;
    int status;
    int r;

    if (options_parse(&usage, argc, argv, &status))
        return status;
    (void)signal(SIGPIPE, SIG_IGN);
    log_init("agent", arg.log_level);
    if (getenv(LAUNCH_LOG_TIME))
        log_set_clock(clock_wall);
    if (arg.hosts_helper) {
        (void)hosts_helper_serve(HOSTS_FILE_DEFAULT, &e);
        log_error("%s", err_text(&e));
        return CMD_FAILED;
    }
    r = agent_privileges_drop(&arg.config, arg.user, &e);
    if (r == 0)
        r = agent_run(&arg.config, &end, &e);
    arg.config.hosts = hosts_helper_free(arg.config.hosts);
    if (r != 0) {
        log_error("%s", err_text(&e));
        return CMD_FAILED;
    }
    return CMD_OK;
}
