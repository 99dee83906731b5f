/* islands.c - weft islands: which nodes share a fast fabric, and how that is known. */
#include "train/islands/islands.h"

#include "agent/agent_ask.h"
#include "agent/state/state.h"
#include "base/err.h"
#include "base/text.h"
#include "cmd/admin.h"
#include "cmd/cmd.h"
#include "cmd/measure.h"
#include "cmd/options.h"

#define ASK_TIMEOUT_MS 10000

static struct {
    const char *socket;
    const char *state_dir;
    bool json;
} arg;

static const struct option options[] = {
    {"--json", NULL, option_flag, &arg.json, NULL, "print JSON"},
    {"--state", "DIR", option_text, &arg.state_dir, STATE_DIR_DEFAULT,
        "of the agent; has what was last measured between all members"},
    {"--socket", "PATH", option_socket, &arg.socket, STATE_SOCKET_DEFAULT, "of the agent"},
    OPTIONS_END,
};

static const struct option_usage usage = {
    .command = "islands",
    .summary = "Show which nodes share a fast fabric, and how that is known.",
    .options = options,
    .notes =
        "Round trips are those that this node has measured, and those between others of a bench\n"
        "or pre-flight of this node's within the last seven days.",
};

int cmd_islands(int argc, char **argv)
{
    _cleanup_(str_deinit) struct str out = STR_NULL;
    struct err e = ERR_NULL;
    _cleanup_(islands_deinit) struct islands islands = ISLANDS_NULL;
    json_auto_t *status_json = NULL;
    json_auto_t *measured = NULL;
    json_t *json = NULL;
    int status;

    if (options_parse(&usage, argc, argv, &status))
        return status;
    if (agent_ask(arg.socket, "GET", "/v1/status", ASK_TIMEOUT_MS, &status_json, &e) != 0)
        return cmd_fail("islands", "%s", err_text(&e));
    measured = measure_kept(arg.state_dir);
    if (islands_find(&islands, status_json, measured) == 0)
        json = islands_encode(&islands);
    if (!json)
        return cmd_fail("islands", "no memory");
    if (!arg.json)
        islands_format(&out, json);
    return admin_print("islands", arg.json, json, &out);
}
