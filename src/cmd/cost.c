/* cost.c - weft cost: what edges and jobs have moved, and what that cost. */
#include <errno.h>
#include <stdio.h>

#include "api/client/client.h"
#include "base/err.h"
#include "base/text.h"
#include "cmd/admin.h"
#include "cmd/cmd.h"
#include "cmd/options.h"
#include "cmd/price_table.h"
#include "cost/ledger.h"
#include "mesh/object/prices.h"
#include "mesh/object/traffic.h"
#include "os/clock.h"

#define DAYS_MAX 3660

static struct {
    struct admin_target target;
    const char *network;
    const char *job;
    const char *since;
    const char *until;
    const char *prices;
    uint64_t days;
    bool json;
} arg;

static const struct option options[] = {
    {"--network", "NAME", option_name, &arg.network, "default", "whose edges"},
    {"--job", "NAME", option_name, &arg.job, NULL, "only what this job has moved"},
    {"--days", "N", option_u64, &arg.days, "1", "how many days, the last of which is today",
        .min = 1, .max = DAYS_MAX},
    {"--since", "DATE", option_text, &arg.since, NULL, "the first day, as 2026-11-23 (UTC)"},
    {"--until", "DATE", option_text, &arg.until, NULL, "the last day (default: today)"},
    {"--price-table", "FILE", option_text, &arg.prices, NULL,
        "what bytes cost, as weft plan takes it (default: the network's, else the hub's)"},
    {"--json", NULL, option_flag, &arg.json, NULL, "print JSON"},
    ADMIN_OPTIONS(arg.target),
    OPTIONS_END,
};

static const struct option_usage usage = {
    .command = "cost",
    .summary = "Show what a network's edges and jobs have moved, by day, and what that cost.",
    .options = options,
    .notes = "Agents report each minute, and when a command of weft run has ended.",
};

/* The path of the call; -EINVAL with words. */
static int make_path(char *ret, size_t cap, struct err *e)
{
    int32_t until = traffic_day(clock_wall_s());
    char first[TRAFFIC_DAY_TEXT_MAX];
    char last[TRAFFIC_DAY_TEXT_MAX];
    int r = arg.until ? traffic_day_parse(&until, arg.until, e) : 0;
    int32_t since = until - (int32_t)arg.days + 1;

    if (r == 0 && arg.since)
        r = traffic_day_parse(&since, arg.since, e);
    if (r != 0)
        return r;
    if (since < 0)
        since = 0;
    if (since > until)
        return err_set(e, -EINVAL, "--since %s is a later day than %s", arg.since,
            traffic_day_format(until, last));
    (void)snprintf(ret, cap, "/v1/networks/%s/traffic?since=%s&until=%s%s%s", arg.network,
        traffic_day_format(since, first), traffic_day_format(until, last), arg.job ? "&job=" : "",
        arg.job ? arg.job : "");
    return 0;
}

static int show(const json_t *answer)
{
    _cleanup_(str_deinit) struct str out = STR_NULL;
    struct err e = ERR_NULL;
    struct prices prices;
    json_t *ledger = NULL;

    if (!arg.prices || price_table_read(&prices, NULL, arg.prices, &e) == 0)
        ledger = ledger_make(arg.prices ? &prices : NULL, answer, &e);
    if (!ledger)
        return cmd_fail(usage.command, "%s", err_text(&e));
    if (!arg.json)
        ledger_format(&out, ledger);
    return admin_print(usage.command, arg.json, ledger, &out);
}

int cmd_cost(int argc, char **argv)
{
    _cleanup_(client_answer_deinit) struct client_answer answer = CLIENT_ANSWER_NULL;
    struct err e = ERR_NULL;
    char path[256];
    int status;

    if (options_parse(&usage, argc, argv, &status))
        return status;
    if (make_path(path, sizeof(path), &e) != 0)
        return cmd_refuse(usage.command, "%s", err_text(&e));
    status = admin_call(&arg.target, usage.command, "GET", path, NULL, &answer);
    return status == CMD_OK ? show(answer.body) : status;
}
