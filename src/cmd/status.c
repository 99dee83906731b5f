/* status.c - weft status: how each peer is reached. */
#include "agent/status_text.h"

#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "agent/agent_ask.h"
#include "agent/state/state.h"
#include "base/err.h"
#include "base/text.h"
#include "cmd/admin.h"
#include "cmd/cmd.h"
#include "cmd/options.h"

#define ASK_TIMEOUT_MS  10000
#define WATCH_PERIOD_MS 1000

static struct {
    const char *socket;
    bool json;
    bool watch;
} arg;

static const struct option options[] = {
    {"--json", NULL, option_flag, &arg.json, NULL, "print JSON"},
    {"--watch", NULL, option_flag, &arg.watch, NULL, "print it again every second"},
    {"--socket", "PATH", option_socket, &arg.socket, STATE_SOCKET_DEFAULT, "of the agent"},
    OPTIONS_END,
};

static const struct option_usage usage = {
    .command = "status",
    .summary = "Say how this node, its hub and its peers are.",
    .options = options,
};

static int print_status(void)
{
    _cleanup_(str_deinit) struct str out = STR_NULL;
    struct err e = ERR_NULL;
    json_t *status = NULL;
    int r = agent_ask(arg.socket, "GET", "/v1/status", ASK_TIMEOUT_MS, &status, &e);

    if (r == AGENT_ASK_E_NONE && access(ADMIN_SOCKET_DEFAULT, F_OK) == 0)
        return cmd_fail("status",
            "%s; the hub on this machine is shown by weft hub status and weft nodes", err_text(&e));
    if (r != 0)
        return cmd_fail("status", "%s", err_text(&e));
    /* On a terminal each table replaces the one before; in a file they follow each other. */
    if (!arg.json && arg.watch && isatty(STDOUT_FILENO))
        (void)fputs("\033[H\033[2J", stdout);
    if (!arg.json)
        status_text_format(status, &out);
    return admin_print("status", arg.json, status, &out);
}

int cmd_status(int argc, char **argv)
{
    int status;

    if (options_parse(&usage, argc, argv, &status))
        return status;
    do {
        status = print_status();
    } while (arg.watch && status == CMD_OK && poll(NULL, 0, WATCH_PERIOD_MS) == 0);
    return status;
}
