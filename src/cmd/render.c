/* render.c - weft render: a node's configuration as a file of wg-quick. */
#include <stdio.h>
#include <stdlib.h>

#include "api/client/client.h"
#include "base/err.h"
#include "cmd/admin.h"
#include "cmd/cmd.h"
#include "cmd/options.h"
#include "cmd/price_table.h"
#include "cmd/stock.h"
#include "mesh/render/render.h"
#include "mesh/snapshot/snapshot.h"
#include "mesh/snapshot/watch_event.h"
#include "os/file.h"

static struct {
    struct admin_target target;
    const char *node;
    const char *network;
    const char *says_network; /* "--network" when the person has named it; NULL: the default */
    const char *snapshot;
    struct stock_options opt;
} arg;

static const struct option options[] = {
    {"NODE", NULL, option_name, &arg.node, NULL, "the node; without it --snapshot names a file"},
    {"--network", "NAME", option_name, &arg.network, "default", "the node's network",
        .given = &arg.says_network},
    {"--snapshot", "FILE", option_text, &arg.snapshot, NULL,
        "read the node's snapshot from a file instead of asking the hub"},
    STOCK_OPTIONS(arg.opt),
    ADMIN_OPTIONS(arg.target),
    OPTIONS_END,
};

static const struct option_usage usage = {
    .command = "render",
    .summary = "Print a node's configuration for wg-quick, so that a stock WireGuard can be it.",
    .options = options,
};

static int fail(const struct err *e)
{
    return cmd_fail(usage.command, "%s", err_text(e));
}

static int read_file(struct snapshot *ret)
{
    json_auto_t *json = NULL;
    struct err e = ERR_NULL;
    int r = json_file_read(&json, arg.snapshot, WATCH_EVENT_LINE_MAX, &e);

    if (r == 0)
        r = stock_take(ret, json, &e);
    return r == 0 ? CMD_OK : fail(&e);
}

static int ask_hub(struct snapshot *ret)
{
    _cleanup_(client_answer_deinit) struct client_answer answer = CLIENT_ANSWER_NULL;
    struct err e = ERR_NULL;
    char path[192];
    int status;

    (void)snprintf(path, sizeof(path), "/v1/networks/%s/snapshots/%s", arg.network, arg.node);
    status = admin_call(&arg.target, usage.command, "GET", path, NULL, &answer);
    if (status != CMD_OK)
        return status;
    return stock_take(ret, answer.body, &e) == 0 ? CMD_OK : fail(&e);
}

int cmd_render(int argc, char **argv)
{
    _cleanup_(snapshot_deinit) struct snapshot s = SNAPSHOT_NULL;
    _cleanup_(freep) char *text = NULL;
    struct err e = ERR_NULL;
    const char *given;
    int status;

    if (options_parse(&usage, argc, argv, &status))
        return status;
    if (!arg.node == !arg.snapshot)
        return cmd_refuse(usage.command, "give either NODE or --snapshot FILE");
    given = admin_option_given(&arg.target);
    if (!given)
        given = arg.says_network;
    /* What asks the hub says nothing to a file. */
    if (arg.snapshot && given)
        return cmd_refuse(usage.command,
            "%s is for asking a hub, and with --snapshot the file is all that is read", given);
    status = arg.snapshot ? read_file(&s) : ask_hub(&s);
    if (status == CMD_OK) {
        text = stock_format(&s, &arg.opt, NULL, false, &e);
        status = text ? cmd_print(usage.command, text) : fail(&e);
    }
    option_list_deinit(&arg.opt.peers);
    return status;
}
