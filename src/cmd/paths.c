/* paths.c - weft paths: every way to a peer that was tried, and what became of it. */
#include <stdio.h>

#include "agent/agent_ask.h"
#include "agent/state/state.h"
#include "agent/status_text.h"
#include "base/err.h"
#include "base/parse.h"
#include "base/text.h"
#include "cmd/admin.h"
#include "cmd/cmd.h"
#include "cmd/options.h"

#define ASK_TIMEOUT_MS 10000

static struct {
    const char *node;
    const char *socket;
    bool json;
} arg;

static const struct option options[] = {
    {"NODE", NULL, option_name, &arg.node, NULL, "the peer", .is_required = true},
    {"--json", NULL, option_flag, &arg.json, NULL, "print JSON"},
    {"--socket", "PATH", option_socket, &arg.socket, STATE_SOCKET_DEFAULT, "of the agent"},
    OPTIONS_END,
};

static const struct option_usage usage = {
    .command = "paths",
    .summary = "Show every way to a peer that was tried, and what became of it.",
    .options = options,
};

int cmd_paths(int argc, char **argv)
{
    char path[sizeof("/v1/paths/") + NAME_MAX_LEN];
    _cleanup_(str_deinit) struct str out = STR_NULL;
    struct err e = ERR_NULL;
    json_t *paths = NULL;
    int status;

    if (options_parse(&usage, argc, argv, &status))
        return status;
    (void)snprintf(path, sizeof(path), "/v1/paths/%s", arg.node);
    if (agent_ask(arg.socket, "GET", path, ASK_TIMEOUT_MS, &paths, &e) != 0)
        return cmd_fail("paths", "%s", err_text(&e));
    if (!arg.json)
        status_text_format_paths(paths, &out);
    return admin_print("paths", arg.json, paths, &out);
}
