/* islands.c - weft islands: which nodes share a fast fabric, and how that is known. */
#include "train/islands/islands.h"

#include "agent/launch.h"
#include "agent/state/state.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"
#include "cmd/admin.h"
#include "cmd/cmd.h"
#include "cmd/options.h"

#define ASK_TIMEOUT_MS 10000

static struct {
    const char *socket;
    bool json;
} arg;

static const struct option options[] = {
    {"--json", NULL, option_flag, &arg.json, NULL, "print JSON"},
    {"--socket", "PATH", option_text, &arg.socket, STATE_SOCKET_DEFAULT, "of the agent"},
    OPTIONS_END,
};

static const struct option_usage usage = {
    .command = "islands",
    .summary = "Show which nodes share a fast fabric, and how that is known.",
    .options = options,
    .notes = "Round trips are those that this node has measured.",
};

static int print_table(const json_t *islands)
{
    _cleanup_(str_deinit) struct str out = STR_NULL;

    islands_format(&out, islands);
    return cmd_print("islands", str_text(&out));
}

/* Gives the islands of the network as JSON; NULL: no memory. */
static json_t *find(const json_t *status)
{
    struct islands islands = ISLANDS_NULL;
    struct islands_facts facts;
    json_t *json = NULL;

    if (islands_facts_of_status(&facts, status) < 0)
        return NULL;
    if (islands_find(&islands, facts.nodes, facts.n_nodes, facts.pairs, facts.n_pairs) == 0)
        json = islands_encode(&islands, &facts);
    islands_deinit(&islands);
    islands_facts_deinit(&facts);
    return json;
}

int cmd_islands(int argc, char **argv)
{
    struct err e = ERR_NULL;
    json_t *status_json = NULL;
    json_t *islands;
    int status;
    int r;

    if (options_parse(&usage, argc, argv, &status))
        return status;
    r = launch_ask(arg.socket, "GET", "/v1/status", ASK_TIMEOUT_MS, &status_json, &e);
    if (r != 0)
        return cmd_fail("islands", "%s", err_text(&e));
    islands = find(status_json);
    json_decref(status_json);
    if (!islands)
        return cmd_fail("islands", "no memory");
    r = arg.json ? admin_print_json(islands) : print_table(islands);
    json_decref(islands);
    return r;
}
