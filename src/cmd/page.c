/* page.c - weft page: a network on one page of HTML. */
#include <stdio.h>
#include <string.h>

#include "api/client/client.h"
#include "base/err.h"
#include "cmd/admin.h"
#include "cmd/cmd.h"
#include "cmd/options.h"
#include "mesh/object/traffic.h"
#include "os/clock.h"
#include "os/file.h"

#define DAYS_MAX 62

static struct {
    struct admin_target target;
    const char *network;
    const char *output;
    uint64_t days;
} arg;

static const struct option options[] = {
    {"--network", "NAME", option_name, &arg.network, "default", "which network"},
    {"--days", "N", option_u64, &arg.days, "7",
        "of how many days it shows what was moved, the last of which is today", .min = 1,
        .max = DAYS_MAX},
    {"--output", "FILE", option_text, &arg.output, NULL,
        "write it there, replacing the file whole (default: standard output)"},
    ADMIN_OPTIONS(arg.target),
    OPTIONS_END,
};

static const struct option_usage usage = {
    .command = "page",
    .summary = "Write a page of HTML with a network's nodes, edges, jobs, costs and budgets.",
    .options = options,
    .notes = "In a browser: https://HUB:8443/v1/networks/NAME/page, with an admin token of role "
             "viewer as the password.",
};

static int show(const json_t *body)
{
    const char *text = json_string_value(body);
    struct err e = ERR_NULL;

    if (!text)
        return cmd_fail(usage.command, "the hub has answered with no page: it is an earlier one");
    if (!arg.output)
        return cmd_print(usage.command, text);
    if (statefile_replace(arg.output, text, strlen(text), 0644, &e) != 0)
        return cmd_fail(usage.command, "%s", err_text(&e));
    return CMD_OK;
}

int cmd_page(int argc, char **argv)
{
    _cleanup_(client_answer_deinit) struct client_answer answer = CLIENT_ANSWER_NULL;
    int32_t today = traffic_day(clock_wall_s());
    char since[TRAFFIC_DAY_TEXT_MAX];
    char path[256];
    int status;

    if (options_parse(&usage, argc, argv, &status))
        return status;
    (void)snprintf(path, sizeof(path), "/v1/networks/%s/page?since=%s", arg.network,
        traffic_day_format(today >= (int32_t)arg.days ? today - (int32_t)arg.days + 1 : 0, since));
    status = admin_call(&arg.target, usage.command, "GET", path, NULL, &answer);
    return status == CMD_OK ? show(answer.body) : status;
}
